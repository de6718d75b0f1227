package memory_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store/storetest"
)

// countingStore counts the read transactions of a store.
type countingStore struct {
	memory.Store
	n atomic.Int64
}

func (c *countingStore) View(ctx context.Context, userID string, fn func(memory.Tx) error) error {
	c.n.Add(1)
	return c.Store.View(ctx, userID, fn)
}

// The facts read for the profile of a turn are not read again for its recall, and no
// turn uses what an earlier one read.
func TestATurnReadsNothingTwice(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	store := &countingStore{Store: r.db.Memory()}
	r.svc = memory.New(store, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	said := r.addMessage(chat, "", "Ann: I keep bees behind the lighthouse.")
	r.addMessage(chat, said.ID, "Reed: How nice.")
	r.addFact(character, "User keeps bees behind the lighthouse", asProfile, said)
	var profile []string
	turn := func(text string) (hits []string, views int64) {
		t.Helper()
		before := store.n.Load()
		found, _, err := r.svc.Turn(t.Context(), r.user, memory.Ask{CharacterID: character, Scene: &sharing}, recall.Query{Text: text, Now: noon}, func(facts []memory.Memory) []string {
			profile = nil
			for _, f := range facts {
				profile = append(profile, f.Text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range found {
			hits = append(hits, h.Text)
		}
		return hits, store.n.Load() - before
	}
	turn("Where are the bees?") // the first turn loads the index
	for text, want := range map[string]int64{
		"":                             2, // the changes and the profile
		"Where do I keep bees by now?": 2, // no evidence beyond that of the profile
	} {
		hits, views := turn(text)
		if views > want || len(profile) != 1 || (len(hits) > 0) != (text != "") {
			t.Errorf("%q: %d transactions, want %d; profile %q, hits %q", text, views, want, profile, hits)
		}
	}

	// Changes made meanwhile are used in the next turn.
	r.changeMessage(said.ID, editTo("I keep goats."))
	if hits, _ := turn("Where do I keep bees by now?"); len(profile) != 0 || slices.Contains(hits, "User keeps bees behind the lighthouse") {
		t.Errorf("after an edit: profile %q, hits %q", profile, hits)
	}
	r.update(func(tx nodest.Tx) error {
		_, err := storetest.Memory(tx.Memory).Create(context.Background(), &op.Call{Device: "test"}, character, memory.Draft{Text: "Ann fears bees.", Pinned: true})
		return err
	})
	if turn("And now?"); !slices.Equal(profile, []string{"Ann fears bees."}) {
		t.Errorf("after a pin: %q", profile)
	}
}
