package memory_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"nodest/memory"
	"nodest/nodest"
	"nodest/op"
	"nodest/store/storetest"
)

// reads counts the transactions that read a store.
type reads struct {
	memory.Store
	n atomic.Int64
}

func (c *reads) View(ctx context.Context, userID string, fn func(memory.Tx) error) error {
	c.n.Add(1)
	return c.Store.View(ctx, userID, fn)
}

// TestATurnReadsNothingTwice: what the profile of a turn was made of is not read again
// for what it recalls, and no later turn has it from an earlier one.
func TestATurnReadsNothingTwice(t *testing.T) {
	r := newRig(t, memory.Options{})
	store := &reads{Store: r.db.Memory()}
	r.svc = memory.New(store, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	said := r.say(chat, "", "Ann: I keep bees behind the lighthouse.")
	r.say(chat, said.ID, "Reed: How nice.")
	r.learn(character, "User keeps bees behind the lighthouse", asProfile, said)
	var profile []string
	turn := func(text string) (hits []string, views int64) {
		t.Helper()
		before := store.n.Load()
		found, err := r.svc.Turn(t.Context(), r.user, memory.Ask{CharacterID: character, Text: text, Scene: &sharing, Now: noon}, func(facts []memory.Memory) []string {
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
	turn("Where are the bees?") // it loads the index
	for text, want := range map[string]int64{
		"":                             2, // what has changed, the profile
		"Where do I keep bees by now?": 2, // nothing rests on a text that the profile does not
	} {
		hits, views := turn(text)
		if views > want || len(profile) != 1 || (len(hits) > 0) != (text != "") {
			t.Errorf("%q: %d transactions, want %d; profile %q, hits %q", text, views, want, profile, hits)
		}
	}

	// What somebody changes meanwhile counts in the next turn.
	r.change(said.ID, editTo("I keep goats."))
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
