package nodest_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store"
	"nodest/store/storetest"
)

// awayStore is a store whose database cannot be read any more from the next transaction on, once it is armed.
type awayStore struct {
	nodest.Store
	armed, away *atomic.Bool
}

func (s awayStore) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	if s.armed.Load() {
		s.away.Store(true)
	}
	return s.Store.Update(ctx, userID, fn)
}

func (s awayStore) View(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	if s.away.Load() {
		return fault.New(fault.StorageDown, "the database does not answer")
	}
	return s.Store.View(ctx, userID, fn)
}

// A reply that the database was away for ends as interrupted. What was accepted is stored, so its
// key finds that, and never an error that asks to send the same again.
func TestAReplyWithoutADatabaseIsInterrupted(t *testing.T) {
	s := newFixture(t, nodest.Options{})
	armed, away := &atomic.Bool{}, &atomic.Bool{}
	s.Engine = nodesttest.NewEngine(awayStore{s.DB, armed, away}, s, s.Events, s.Options)
	defer s.Engine.Close(context.Background()) //nolint:errcheck // nothing runs
	conv := s.Chat()
	s.SayAndWait(conv, "Hello?")
	armed.Store(true)
	id, err := s.Impersonate(t.Context(), s.Call(), nodest.GenerateInput{ConversationID: conv.ID})
	s.Must(err)
	var g *chat.Generation
	s.Eventually("the end", func() bool {
		g = s.Generation(id)
		return g.Ended()
	})
	if g.Status != chat.GenInterrupted || g.Error != nil {
		t.Errorf("the reply ended as %s with %v, want interrupted", g.Status, g.Error)
	}
}

// Replies are written although every connection to PostgreSQL is cut while they are prepared.
func TestRepliesSurviveCutConnections(t *testing.T) {
	url := storetest.PostgresURL(t)
	other, err := pgx.Connect(t.Context(), os.Getenv("NODEST_TEST_DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background()) //nolint:errcheck // in a test
	cut := testSource("cut", func(ctx context.Context, _ *nodest.Question) (nodest.Findings, error) {
		_, err := other.Exec(ctx, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = $1", t.Name())
		return nodest.Findings{}, err
	})
	s := newFixtureOn(t, nodest.Options{Sources: []nodest.Source{cut}}, func(o store.Options) *store.DB {
		o.URL = url + "&application_name=" + t.Name()
		return storetest.OpenWith(t, o)
	})
	conv := s.Chat()
	for range 5 {
		if reply := s.SayAndWait(conv, "Who keeps the light?"); reply.Status != chat.StatusComplete {
			t.Errorf("the reply is %s with %v", reply.Status, reply.Error)
		}
	}
}
