package websearch_test

import (
	"context"
	"testing"

	"nodest/internal/cite"
	"nodest/store/storetest"
	"nodest/websearch"
	"nodest/websearch/miniweb"
)

// lateStore ends the time of a turn before each write.
type lateStore struct {
	websearch.Store
	end context.CancelFunc
}

func (s lateStore) Update(ctx context.Context, userID string, fn func(websearch.Tx) error) error {
	s.end()
	return s.Store.Update(ctx, userID, fn)
}

// A page that was read when the turn waits no longer is stored for the next one.
func TestPagesReadTooLateAreStored(t *testing.T) {
	web := miniweb.Start(t)
	q := web.Questions[0]
	db := storetest.Open(t)
	user := storetest.User(t, db)
	ctx, end := context.WithCancel(t.Context())
	svc := searchedIn(t, web, lateStore{db.WebSearch(), end})
	found, err := svc.Quick(ctx, websearch.Turn{UserID: user, Text: q.Question, Lang: q.Lang})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, s := range found.Sources {
		if s.Evidence != cite.EvidencePage {
			continue
		}
		read++
		err := db.WebSearch().View(t.Context(), user, func(tx websearch.Tx) error {
			page, err := tx.WebPage(s.URL)
			if err == nil && page == nil {
				t.Errorf("%s was read and is not stored", s.URL)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read == 0 {
		t.Fatalf("no page was read:\n%s", found.Block(1))
	}
}
