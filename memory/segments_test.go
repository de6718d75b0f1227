package memory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/internal/index"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
)

// told fills a memory with lines of several sessions and makes segments of all but the newest.
func (r *fixture) told(lines int) (character, conversation string) {
	r.Helper()
	character = r.character()
	conversation = r.conversation(character)
	parent := ""
	for i := range lines {
		name := []string{"Ann", "Reed"}[i%2]
		parent = r.addMessage(conversation, parent, fmt.Sprintf("%s: We saw the lighthouse of town%d in the rain.", name, i)).ID
	}
	r.compact(character)
	return character, conversation
}

func (r *fixture) compact(character string) {
	r.Helper()
	if err := r.svc.Compact(r.Context(), memory.Scope{UserID: r.user, CharacterID: character}); err != nil {
		r.Fatal(err)
	}
}

func (r *fixture) segments(character string) (list []memory.Segment) {
	r.Helper()
	r.update(func(tx nodest.Tx) (err error) {
		_, list, err = tx.Memory.Segments(character)
		return err
	})
	return list
}

// A long memory has few segments of growing size, and each unit is in one of them or in memory.
func TestSegmentsAreMerged(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{Loose: 8})
	character := r.character()
	conversation := r.conversation(character)
	parent := ""
	for i := range 300 {
		parent = r.addMessage(conversation, parent, fmt.Sprintf("Ann: The lighthouse of town%d.", i)).ID
		r.compact(character)
	}
	list := r.segments(character)
	units, most := 0, 0
	for _, s := range list {
		units += s.Units
		most = max(most, s.Units)
	}
	if len(list) > 10 || most < 64 || units < 290 || units > 300 {
		t.Errorf("%d segments with %d units, the largest with %d", len(list), units, most)
	}
	for _, i := range []int{0, 77, 150, 299} {
		text := fmt.Sprintf("The lighthouse of town%d.", i)
		if got := r.recall(asked{memory.Ask{CharacterID: character}, recall.Query{Text: fmt.Sprintf("town%d", i), Limit: 1, Mode: recall.Ranked}}); !slices.Equal(got, []string{text}) {
			t.Errorf("town%d: %q", i, got)
		}
	}
}

// A text that is forgotten leaves the segments at once, and the rest is found.
func TestForgettingRemovesWordsFromSegments(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{Loose: 4})
	character, conversation := r.told(40)
	if len(r.segments(character)) == 0 {
		t.Fatal("there are no segments")
	}
	var gone []memory.Text
	r.update(func(tx nodest.Tx) (err error) {
		gone, err = tx.Memory.Said(conversation, memory.SaidFilter{Limit: 1})
		if err != nil {
			return err
		}
		return tx.Memory.ForgetTexts(character, gone[0].RevisionID)
	})
	for _, compacted := range []bool{false, true} {
		if compacted {
			r.compact(character)
		}
		for i, want := range map[int]int{0: 0, 1: 1, 20: 1} {
			got := r.recall(asked{memory.Ask{CharacterID: character}, recall.Query{Text: fmt.Sprintf("town%d", i), Mode: recall.Related}})
			n := 0
			for _, text := range got {
				if text == fmt.Sprintf("We saw the lighthouse of town%d in the rain.", i) {
					n++
				}
			}
			if n != want {
				t.Errorf("compacted: %v: town%d was found %d times, want %d", compacted, i, n, want)
			}
		}
	}
}

const brokenSegment = "01a22000-0000-7000-8000-000000000000"

// Segments can be thrown away: what cannot be read is searched in memory until it is built again.
func TestDamagedSegmentsAreBuiltAgain(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{Loose: 4})
	character := r.character()
	conversation := r.conversation(character)
	first := r.addMessage(conversation, "", "Ann: The lighthouse of Bergen.")
	r.addMessage(conversation, first.ID, "Reed: A fine one.")
	r.update(func(tx nodest.Tx) error {
		base, _, err := tx.Memory.Segments(character)
		if err != nil {
			return err
		}
		if err := tx.Memory.PutSegmentParts(character, brokenSegment, 0, []byte("this is no segment")); err != nil {
			return err
		}
		return tx.Memory.PutSegment(character, base, memory.Segment{ID: brokenSegment, From: 0, To: 1 << 40, Units: 2})
	})
	got := r.recall(asked{memory.Ask{CharacterID: character}, recall.Query{Text: "Bergen", Limit: 1, Mode: recall.Related}})
	if !slices.Equal(got, []string{first.Text()}) || len(r.segments(character)) != 0 {
		t.Errorf("found %q, %d segments are left", got, len(r.segments(character)))
	}
}

// vectorStore is a store whose vectors of units are read by a test.
type vectorStore struct {
	countingStore
	vectors func()
}

func (s *vectorStore) View(ctx context.Context, userID string, fn func(memory.Tx) error) error {
	return s.countingStore.View(ctx, userID, func(tx memory.Tx) error {
		tx.ScopeTx = vectorTx{tx.ScopeTx, s.vectors}
		return fn(tx)
	})
}

type vectorTx struct {
	memory.ScopeTx
	vectors func()
}

func (tx vectorTx) UnitVectors(characterID, model string, ids ...string) (map[string]index.Packed, error) {
	tx.vectors()
	return tx.ScopeTx.UnitVectors(characterID, model, ids...)
}

// A question of a long memory has as many transactions as a short one needs, however many segments
// there are, and a panic while vectors are compared fails that question only.
func TestAQuestionOfALongMemoryReadsEachThingOnce(t *testing.T) {
	t.Parallel()
	r, e := newFixture(t, memory.Options{Loose: 4}), keywordEmbedder{}
	character := r.character()
	conversation, parent := r.conversation(character), ""
	for i := range 60 {
		text := fmt.Sprintf("We saw the lighthouse of town%d in the rain.", i)
		said := r.addMessage(conversation, parent, "Ann: "+text)
		parent = said.ID
		made, err := e.Embed(t.Context(), llm.Passage, []string{text})
		if err != nil {
			t.Fatal(err)
		}
		r.update(func(tx nodest.Tx) error {
			return tx.Memory.PutVectors(character, made.Model, map[string][]float32{said.Swipes[0].RevisionID: made.Vectors[0]})
		})
		r.compact(character)
	}
	if n := len(r.segments(character)); n < 3 {
		t.Fatalf("%d segments", n)
	}
	read := 0
	s := &vectorStore{countingStore{Store: r.db.Memory()}, func() { read++ }}
	svc := memory.New(s, memory.Options{Loose: 4, Embedder: func(context.Context, string) (llm.Embedder, error) { return e, nil }})
	ask := func(i int) error {
		hits, err := svc.Recall(t.Context(), r.user, memory.Ask{CharacterID: character, Scene: &sharing}, recall.Query{Text: fmt.Sprintf("the lighthouse of town%d", i), Now: noon, Mode: recall.Search})
		if err == nil && len(hits) == 0 {
			t.Errorf("town%d was not found", i)
		}
		return err
	}
	for i := range 3 {
		before := s.n.Load()
		read = 0
		if err := ask(20 + i); err != nil {
			t.Fatal(err)
		}
		// the changes, the vectors that are near it, the rows, and whether they count
		if n := s.n.Load() - before; i > 0 && n > 4 || read != 1 {
			t.Errorf("%d transactions, vectors were read %d times", n, read)
		}
	}
	s.vectors = func() { panic("a broken vector") }
	if err := ask(20); err == nil || !strings.Contains(err.Error(), "a broken vector") {
		t.Errorf("a panic gives %v", err)
	}
	s.vectors = func() {}
	if err := ask(20); err != nil {
		t.Error(err)
	}
}
