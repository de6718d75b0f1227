package storetest

import (
	"context"
	"testing"

	"nodest/internal/stream"
	"nodest/store"
)

// CompareLog checks that a user's log repeats events as they were published. It ignores those of
// other users and those that are not kept.
func CompareLog(t testing.TB, db *store.DB, userID string, published []*stream.Event) {
	t.Helper()
	logged := map[int64]string{}
	for after, more := int64(0), true; more; {
		events, err := db.Events(context.Background(), userID, after, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			logged[ev.Seq], after = string(ev.Frame()), ev.Seq
		}
		more = len(events) > 0
	}
	for _, ev := range published {
		if want := string(ev.Frame()); ev.Durable() && ev.UserID == userID && logged[ev.Seq] != want {
			t.Errorf("the log repeats\n%s\nas\n%s", want, logged[ev.Seq])
		}
	}
}
