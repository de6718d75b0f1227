package nodest_test

import (
	"testing"
	"time"

	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store"
)

// fixture adds what only the tests of turns do to an engine.
type fixture struct{ *nodesttest.Fixture }

func newFixture(t *testing.T, o nodest.Options) *fixture {
	t.Helper()
	return &fixture{nodesttest.New(t, o)}
}

func newFixtureWithClock(t *testing.T, o nodest.Options, now func() time.Time) *fixture {
	t.Helper()
	return &fixture{nodesttest.NewWithClock(t, o, now)}
}

func newFixtureOn(t *testing.T, o nodest.Options, open func(store.Options) *store.DB) *fixture {
	t.Helper()
	return &fixture{nodesttest.NewOn(t, o, open)}
}

func newMemoryFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{nodesttest.NewWithMemory(t)}
}
