package memory_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
)

// embedder is an offline embedder whose calls fail from a given number on.
type embedder struct {
	offline.Embedder
	model    string
	calls    *atomic.Int64
	failFrom int64 // number of the first call that fails; 0 = none
	texts    *atomic.Int64
	onFail   func() // called when a call fails; nil = none
	onDone   func() // called when the vectors are made; nil = none
}

func newEmbedder(model string) *embedder {
	return &embedder{model: model, calls: new(atomic.Int64), texts: new(atomic.Int64)}
}

func (e *embedder) ModelID() string { return e.model }

func (e *embedder) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	if task != llm.Passage {
		return llm.Embeddings{}, errors.New("not asked here")
	}
	if n := e.calls.Add(1); e.failFrom > 0 && n >= e.failFrom {
		if e.onFail != nil {
			e.onFail()
		}
		return llm.Embeddings{}, fault.New(fault.UpstreamDown, "come back later")
	}
	e.texts.Add(int64(len(texts)))
	out, err := e.Embedder.Embed(ctx, task, texts)
	out.Model = e.model
	if e.onDone != nil {
		e.onDone()
	}
	return out, err
}

// enqueueEmbed enqueues the embedding of a character and claims the job as a runner
// does.
func (r *fixture) enqueueEmbed(character string) *jobs.Job {
	r.Helper()
	r.update(func(tx nodest.Tx) error { return tx.Jobs.Enqueue(jobs.Spec{Kind: memory.JobEmbed, Subject: character}) })
	return r.claimEmbed()
}

func (r *fixture) claimEmbed() *jobs.Job {
	r.Helper()
	claimed, err := r.db.ClaimJobs(r.Context(), "runner", time.Minute, []jobs.Want{{Kind: memory.JobEmbed, Free: 1, PerUser: 1}})
	if err != nil || len(claimed) != 1 {
		r.Fatalf("claimed %v: %v", claimed, err)
	}
	return claimed[0]
}

// runEmbed runs the handler of embedding jobs.
func (r *fixture) runEmbed(ctx context.Context, j *jobs.Job) error {
	kinds := r.svc.Kinds()
	return kinds[slices.IndexFunc(kinds, func(k jobs.Kind) bool { return k.Name == memory.JobEmbed })].Run(ctx, j)
}

func (r *fixture) job(id string) (j *jobs.Job) {
	r.Helper()
	r.update(func(tx nodest.Tx) (err error) {
		j, err = tx.Jobs.Job(id)
		return err
	})
	return j
}

// newEmbedFixture is a fixture with a chat of n messages.
func newEmbedFixture(t *testing.T, e *embedder, n int) (r *fixture, character string) {
	t.Helper()
	r = newFixture(t, memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return e, nil }})
	character = r.character()
	chat := r.conversation(character)
	r.update(func(tx nodest.Tx) error {
		at := ""
		for _, line := range harbourLines(n) {
			m, err := insertMessage(tx, chat, at, line)
			if err != nil {
				return err
			}
			at = m.ID
		}
		return nil
	})
	return r, character
}

// An embedding job that failed halfway continues where it stopped; until then, texts
// without vectors are found by their words.
func TestEmbeddingContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	e := newEmbedder("m1")
	r, character := newEmbedFixture(t, e, 150)
	j := r.enqueueEmbed(character)
	e.failFrom = 2
	if err := r.runEmbed(t.Context(), j); !fault.Is(err, fault.UpstreamDown) {
		t.Fatalf("a provider that is away: %v", err)
	}
	if with, _ := r.vectorsIn(character, "m1"); with != 64 {
		t.Errorf("after one batch %d have vectors", with)
	}
	r.wantRecall("what has no vector yet", asked{memory.Ask{CharacterID: character}, recall.Query{Text: "pier1043", Limit: 1}}, "The harbour of town149 has pier1043 and mole1937.")
	e.failFrom = 0
	if err := r.runEmbed(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if with, all := r.vectorsIn(character, "m1"); with != 150 || all != 150 || e.texts.Load() != 150 {
		t.Errorf("%d of %d have vectors, %d texts were embedded", with, all, e.texts.Load())
	}
	if j := r.job(j.ID); j.State != jobs.Done || string(j.Progress) != `{"done":86}` {
		t.Errorf("the job is %s at %s", j.State, j.Progress)
	}
}

// Most jobs embed the texts of one turn: these are looked for once, and the transaction that ends
// the job looks for others.
func TestAFewTextsAreEmbeddedWithFewStatements(t *testing.T) {
	t.Parallel()
	r, character := newEmbedFixture(t, newEmbedder("m1"), 2)
	j := r.enqueueEmbed(character)
	before := r.db.Statements()
	if err := r.runEmbed(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	n := r.db.Statements() - before
	if with, all := r.vectorsIn(character, "m1"); with != 2 || all != 2 {
		t.Errorf("%d of %d have vectors", with, all)
	}
	t.Logf("%d statements", n)
	if n > 32 {
		t.Errorf("embedding two texts ran %d statements, at most 32 were expected", n)
	}
}

// A job that was cancelled while a batch was embedded stores nothing.
func TestALostEmbeddingJobStoresNothing(t *testing.T) {
	t.Parallel()
	e := newEmbedder("m1")
	r, character := newEmbedFixture(t, e, 10)
	j := r.enqueueEmbed(character)
	r.update(func(tx nodest.Tx) error { return tx.Jobs.CancelJobs(character) })
	if err := r.runEmbed(t.Context(), j); !errors.Is(err, jobs.ErrLost) {
		t.Errorf("a job that was cancelled: %v", err)
	}
	if with, _ := r.vectorsIn(character, "m1"); with != 0 {
		t.Errorf("%d vectors of a lost job", with)
	}
	ctx, cancel := context.WithCancel(t.Context())
	e.failFrom, e.onFail = 1, cancel
	if err := r.runEmbed(ctx, r.enqueueEmbed(character)); err == nil {
		t.Error("a stop is no end")
	}
}

// After a change of the model a sweep enqueues one job that replaces all vectors.
// Until it has run, the offline vectors are used.
func TestChangingTheModelReplacesTheVectors(t *testing.T) {
	t.Parallel()
	e := newEmbedder(offline.EmbeddingModel)
	r, character := newEmbedFixture(t, e, 30)
	misspelt := asked{memory.Ask{CharacterID: character}, recall.Query{Text: "harbuor townn29 pierr203", Limit: 1, Mode: recall.Ranked}}
	want := "The harbour of town29 has pier203 and mole377."
	if err := r.runEmbed(t.Context(), r.enqueueEmbed(character)); err != nil {
		t.Fatal(err)
	}
	r.wantRecall("by spelling", misspelt, want)
	if err := r.svc.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := func() (n int) {
		r.update(func(tx nodest.Tx) error {
			items, _, err := tx.Jobs.Jobs(jobs.Filter{Kind: memory.JobEmbed, Open: true}, "", 0)
			n = len(items)
			return err
		})
		return n
	}
	if n := open(); n != 0 {
		t.Errorf("%d jobs though everything has vectors", n)
	}
	e.model = "m2"
	for range 2 {
		if err := r.svc.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := open(); n != 1 {
		t.Fatalf("%d jobs after the model was changed", n)
	}
	r.wantRecall("by spelling still", misspelt, want)
	if err := r.runEmbed(t.Context(), r.claimEmbed()); err != nil {
		t.Fatal(err)
	}
	with, all := r.vectorsIn(character, "m2")
	if old, _ := r.vectorsIn(character, offline.EmbeddingModel); with != all || old != 0 {
		t.Errorf("%d of %d have new vectors, %d old ones", with, all, old)
	}
}

// A text that the provider refuses for good does not keep the others from being
// embedded.
func TestARefusedTextDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	r, character := newEmbedFixture(t, newEmbedder("m1"), 100)
	picky := keywordEmbedder{onEmbed: func(_ context.Context, _ llm.EmbedTask, texts []string) error {
		if slices.ContainsFunc(texts, func(s string) bool { return s == "The harbour of town70 has pier490 and mole910." }) {
			return fault.New(fault.Blocked, "no harbours please")
		}
		return nil
	}}
	r.svc = memory.New(r.db.Memory(), memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return picky, nil }})
	if err := r.runEmbed(t.Context(), r.enqueueEmbed(character)); err != nil {
		t.Fatal(err)
	}
	if with, all := r.vectorsIn(character, "keyword"); with != 99 || all != 100 {
		t.Errorf("%d of %d have vectors", with, all)
	}
}

// A vector that is zero, not finite or of another length is not stored, and the other texts
// get theirs.
func TestAVectorThatCannotBeUsedIsNotStored(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, bad := range map[string][]float32{"zero": {0, 0}, "not a number": {1, nan}, "infinite": {inf, 1}, "another length": {1, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, character := newEmbedFixture(t, newEmbedder("m1"), 3)
			provider := &llm.Batches{Provider: "test", Model: "m", Texts: 64, Bytes: 1 << 20, Call: func(_ context.Context, _ llm.EmbedTask, texts []string) ([][]float32, int, error) {
				vectors := make([][]float32, len(texts))
				for i, text := range texts {
					if vectors[i] = []float32{30, 40}; strings.Contains(text, "town1 ") {
						vectors[i] = bad
					}
				}
				return vectors, 0, nil
			}}
			r.svc = memory.New(r.db.Memory(), memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return provider, nil }})
			if err := r.runEmbed(t.Context(), r.enqueueEmbed(character)); err != nil {
				t.Fatal(err)
			}
			if with, all := r.vectorsIn(character, provider.ModelID()); with != 2 || all != 3 {
				t.Errorf("%d of %d have vectors", with, all)
			}
		})
	}
}

// A text that was refused is asked for again when the model changes, not by each job.
func TestARefusedTextIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	e := newEmbedder("m1")
	r, character := newEmbedFixture(t, e, 3)
	asked := 0
	picky := keywordEmbedder{onEmbed: func(_ context.Context, _ llm.EmbedTask, texts []string) error {
		for _, s := range texts {
			if strings.Contains(s, "town1 ") {
				asked++
				return fault.New(fault.Blocked, "no")
			}
		}
		return nil
	}}
	var provider llm.Embedder = picky
	r.svc = memory.New(r.db.Memory(), memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return provider, nil }})
	run := func() {
		t.Helper()
		if err := r.runEmbed(t.Context(), r.enqueueEmbed(character)); err != nil {
			t.Fatal(err)
		}
	}
	run()
	before := asked
	r.addMessage(r.conversation(character), "", "Ann: I live in Paris.")
	run()
	if with, all := r.vectorsIn(character, "keyword"); with != 3 || all != 4 || before == 0 || asked != before {
		t.Errorf("%d of %d have vectors; the refused one was asked for %d times, then %d times", with, all, before, asked-before)
	}
	provider = e
	run()
	if with, all := r.vectorsIn(character, "m1"); with != all {
		t.Errorf("%d of %d have vectors of another model", with, all)
	}
}

// The embedding job of a character that is deleted before or during the job ends
// without an error.
func TestEmbeddingADeletedCharacterSucceeds(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		t.Run(map[bool]string{true: "before", false: "meanwhile"}[before], func(t *testing.T) {
			e := newEmbedder("m")
			r := newFixture(t, memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return e, nil }})
			character := r.character()
			r.addMessage(r.conversation(character), "", "Ann: I live in Paris.")
			gone := func() {
				r.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(character) })
			}
			j := r.enqueueEmbed(character)
			if before {
				gone()
			} else {
				e.onDone = gone
			}
			if err := r.runEmbed(t.Context(), j); err != nil {
				t.Error(err)
			}
		})
	}
}
