package memory_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"nodest/fault"
	"nodest/jobs"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/nodest"
)

// patchy is an embedder whose calls fail from one number on.
type patchy struct {
	offline.Embedder
	model string
	calls *atomic.Int64
	fail  int64 // this call and those after it; 0 = none
	texts *atomic.Int64
	then  func() // when one fails
	made  func() // when the vectors are there; nil = nothing
}

func newPatchy(model string) *patchy {
	return &patchy{model: model, calls: new(atomic.Int64), texts: new(atomic.Int64)}
}

func (e *patchy) ModelID() string { return e.model }

func (e *patchy) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	if task != llm.Passage {
		return llm.Embeddings{}, errors.New("not asked here")
	}
	if n := e.calls.Add(1); e.fail > 0 && n >= e.fail {
		if e.then != nil {
			e.then()
		}
		return llm.Embeddings{}, fault.New(fault.UpstreamDown, "come back later")
	}
	e.texts.Add(int64(len(texts)))
	out, err := e.Embedder.Embed(ctx, task, texts)
	out.Model = e.model
	if e.made != nil {
		e.made()
	}
	return out, err
}

// claim enqueues the embedding of a character and takes the job, as a runner does.
func (r *rig) claim(character string) *jobs.Job {
	r.Helper()
	r.update(func(tx nodest.Tx) error { return tx.Jobs.Enqueue(jobs.Spec{Kind: memory.JobEmbed, Subject: character}) })
	return r.claimed()
}

func (r *rig) claimed() *jobs.Job {
	r.Helper()
	claimed, err := r.db.ClaimJobs(r.Context(), "runner", time.Minute, []jobs.Want{{Kind: memory.JobEmbed, Free: 1, PerUser: 1}})
	if err != nil || len(claimed) != 1 {
		r.Fatalf("claimed %v: %v", claimed, err)
	}
	return claimed[0]
}

// runEmbed runs the handler of embedding jobs.
func (r *rig) runEmbed(ctx context.Context, j *jobs.Job) error {
	kinds := r.svc.Kinds()
	return kinds[slices.IndexFunc(kinds, func(k jobs.Kind) bool { return k.Name == memory.JobEmbed })].Run(ctx, j)
}

func (r *rig) job(id string) (j *jobs.Job) {
	r.Helper()
	r.update(func(tx nodest.Tx) (err error) {
		j, err = tx.Jobs.Job(id)
		return err
	})
	return j
}

// town is a rig with a chat of many messages.
func town(t *testing.T, e *patchy, n int) (r *rig, character string) {
	t.Helper()
	r = newRig(t, memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return e, nil }})
	character = r.character()
	chat := r.conversation(character)
	r.update(func(tx nodest.Tx) error {
		at := ""
		for _, line := range lines(n) {
			m, err := sayIn(tx, chat, at, line)
			if err != nil {
				return err
			}
			at = m.ID
		}
		return nil
	})
	return r, character
}

func TestEmbeddingGoesOnAfterACrash(t *testing.T) {
	e := newPatchy("m1")
	r, character := town(t, e, 150)
	j := r.claim(character)
	e.fail = 2
	if err := r.runEmbed(t.Context(), j); !fault.Is(err, fault.UpstreamDown) {
		t.Fatalf("a provider that is away: %v", err)
	}
	if with, _ := r.vectorsIn(character, "m1"); with != 64 {
		t.Errorf("after one batch %d have vectors", with)
	}
	r.expect("what has no vector yet", memory.Ask{CharacterID: character, Text: "pier1043", Limit: 1}, "The harbour of town149 has pier1043 and mole1937.")
	e.fail = 0
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

// TestALostEmbeddingWritesNothing takes the job away while a batch is embedded.
func TestALostEmbeddingWritesNothing(t *testing.T) {
	e := newPatchy("m1")
	r, character := town(t, e, 10)
	j := r.claim(character)
	r.update(func(tx nodest.Tx) error { return tx.Jobs.CancelJobs(character) })
	if err := r.runEmbed(t.Context(), j); !errors.Is(err, jobs.ErrLost) {
		t.Errorf("a job that was cancelled: %v", err)
	}
	if with, _ := r.vectorsIn(character, "m1"); with != 0 {
		t.Errorf("%d vectors of a lost job", with)
	}
	ctx, cancel := context.WithCancel(t.Context())
	e.fail, e.then = 1, cancel
	if err := r.runEmbed(ctx, r.claim(character)); err == nil {
		t.Error("a stop is no end")
	}
}

// TestAnotherModelReplacesTheVectors sweeps after the model was changed; until the job
// has run, the vectors by spelling serve.
func TestAnotherModelReplacesTheVectors(t *testing.T) {
	e := newPatchy(offline.EmbeddingModel)
	r, character := town(t, e, 30)
	misspelt := memory.Ask{CharacterID: character, Text: "harbuor townn29 pierr203", Everything: true, Limit: 1}
	want := "The harbour of town29 has pier203 and mole377."
	if err := r.runEmbed(t.Context(), r.claim(character)); err != nil {
		t.Fatal(err)
	}
	r.expect("by spelling", misspelt, want)
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
	r.expect("by spelling still", misspelt, want)
	if err := r.runEmbed(t.Context(), r.claimed()); err != nil {
		t.Fatal(err)
	}
	with, all := r.vectorsIn(character, "m2")
	if old, _ := r.vectorsIn(character, offline.EmbeddingModel); with != all || old != 0 {
		t.Errorf("%d of %d have new vectors, %d old ones", with, all, old)
	}
}

// TestARefusedTextLeavesTheOthers has a provider that refuses one text for good.
func TestARefusedTextLeavesTheOthers(t *testing.T) {
	r, character := town(t, newPatchy("m1"), 100)
	picky := shyEmbedder{asked: func(_ context.Context, _ llm.EmbedTask, texts []string) error {
		if slices.ContainsFunc(texts, func(s string) bool { return s == "The harbour of town70 has pier490 and mole910." }) {
			return fault.New(fault.Blocked, "no harbours please")
		}
		return nil
	}}
	r.svc = memory.New(r.db.Memory(), memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return picky, nil }})
	if err := r.runEmbed(t.Context(), r.claim(character)); err != nil {
		t.Fatal(err)
	}
	if with, all := r.vectorsIn(character, "shy"); with != 99 || all != 100 {
		t.Errorf("%d of %d have vectors", with, all)
	}
}

// A character that is deleted, before its job or while it runs, needs no vectors.
func TestADeletedCharacterNeedsNoVectors(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(map[bool]string{true: "before", false: "meanwhile"}[before], func(t *testing.T) {
			e := newPatchy("m")
			r := newRig(t, memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return e, nil }})
			character := r.character()
			r.say(r.conversation(character), "", "Ann: I live in Paris.")
			gone := func() {
				r.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(character) })
			}
			j := r.claim(character)
			if before {
				gone()
			} else {
				e.made = gone
			}
			if err := r.runEmbed(t.Context(), j); err != nil {
				t.Error(err)
			}
		})
	}
}
