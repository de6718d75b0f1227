package app_test

import (
	"testing"

	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestMain(m *testing.M) { nodesttest.Main(m) }

// fixture is an engine with an app that knows Ida's chat as "app-1".
type fixture struct{ *nodesttest.Fixture }

func newFixture(t *testing.T, o nodest.Options) *fixture {
	t.Helper()
	return &fixture{nodesttest.New(t, o)}
}
