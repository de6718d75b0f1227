package store_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"nodest/internal/stream"
	"nodest/store"
	"nodest/store/storetest"
)

// relayed is the relay of a process, and what it hears.
func relayed(t *testing.T, db *store.DB) (stream.Relay, chan stream.Message) {
	t.Helper()
	r, err := db.Relay(context.Background(), store.RelayOptions{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	heard := make(chan stream.Message, 1000)
	r.Receive(func(m stream.Message) { heard <- m })
	return r, heard
}

// until sends until it is heard: following takes a moment.
func until(t *testing.T, from stream.Relay, m stream.Message, heard chan stream.Message) stream.Message {
	t.Helper()
	end, again := time.After(30*time.Second), time.NewTicker(50*time.Millisecond)
	defer again.Stop()
	for {
		from.Send(m)
		select {
		case got := <-heard:
			return got
		case <-again.C:
		case <-end:
			t.Fatalf("%+v is not heard", m)
		}
	}
}

func TestThereIsNoRelayOnSQLite(t *testing.T) {
	t.Parallel()
	r, err := storetest.Open(t).Relay(context.Background(), store.RelayOptions{Log: quiet})
	if r != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
}

// Over PostgreSQL alone, a process hears in order what others tell of the users that it follows, and of no others.
func TestProcessesHearOfTheUsersThatTheyFollow(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	stranger := storetest.User(t, n.here)
	here, own := relayed(t, n.here)
	there, heard := relayed(t, n.there)
	defer here.Follow(n.user)()
	stop := there.Follow(n.user)
	defer stop()
	until(t, here, stream.Message{UserID: n.user, Seq: 1}, heard)
	here.Send(stream.Message{UserID: stranger, Seq: 8})
	for i := range 300 {
		e := &stream.Event{UserID: n.user, GenerationID: "g", Off: i, At: time.UnixMilli(1700000000123)}
		e.Say("é\n\"", "text")
		here.Send(stream.Message{UserID: n.user, Event: e})
	}
	here.Send(stream.Message{UserID: n.user, Ask: true})
	next := 0
	for m := range heard {
		switch {
		case m.UserID != n.user:
			t.Fatalf("heard of another user: %+v", m)
		case m.Event != nil && (m.Event.Off != next || m.Event.Delta().Text != "é\n\""):
			t.Fatalf("event %d comes as number %d: %s", m.Event.Off, next, m.Event.Frame())
		case m.Event != nil:
			next++
		}
		if m.Ask {
			break
		}
	}
	if next != 300 {
		t.Errorf("%d events are heard, want 300", next)
	}
	if len(own) > 0 {
		t.Error("a process hears itself")
	}
}

// Nothing is written while nobody follows elsewhere.
func TestNothingIsRelayedToNobody(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	here, _ := relayed(t, n.here)
	there, heard := relayed(t, n.there)
	defer here.Follow(n.user)()
	other := storetest.User(t, n.here)
	defer there.Follow(other)()
	here.Send(stream.Message{UserID: n.user, Seq: 1})
	until(t, here, stream.Message{UserID: other, Seq: 2}, heard) // the one before is through
	if rows := n.number("SELECT count(*) FROM relay_rows"); rows != 0 {
		t.Errorf("%d rows are left", rows)
	}
	for len(heard) > 0 {
		if m := <-heard; m.UserID != other {
			t.Errorf("heard %+v", m)
		}
	}
}

// A process that lost its connection, or whose tables PostgreSQL has emptied, is heard and hears again.
func TestTheRelayComesBackByItself(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	here, _ := relayed(t, n.here)
	there, heard := relayed(t, n.there)
	defer there.Follow(n.user)()
	until(t, here, stream.Message{UserID: n.user, Seq: 1}, heard)
	n.number("WITH gone AS (DELETE FROM relay_followers RETURNING 1) SELECT count(*) FROM gone")
	n.number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN nodest_relay%' AND query LIKE '%' || md5(current_schema()) || '%'")
	for m := until(t, here, stream.Message{UserID: n.user, Seq: 2}, heard); m.Seq != 2; m = <-heard {
	}
}

// A process that ends leaves nothing behind.
func TestAProcessThatEndsIsFollowedNoMore(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	here, _ := relayed(t, n.here)
	there, heard := relayed(t, n.there)
	there.Follow(n.user)
	until(t, here, stream.Message{UserID: n.user, Seq: 1}, heard)
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if rows := n.number("SELECT count(*) FROM relay_followers"); rows != 0 {
		t.Errorf("%d rows are left", rows)
	}
}

// number runs a statement in the database that the processes share.
func (n *neighbours) number(statement string) (number int) {
	n.Helper()
	db, err := sql.Open("pgx", n.url)
	if err != nil {
		n.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only reads
	n.must(db.QueryRow(statement).Scan(&number))
	return number
}
