package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
)

// Sizes of embedding jobs.
const (
	embedBatch  = 64   // contents of one call and of one transaction
	embedText   = 4000 // code points of a content that are embedded: more than models take
	embedFaults = 16   // calls that may fail while what is refused is looked for in a batch
	sweepBatch  = 200  // scopes

	compactEvery = 20 * time.Second
)

// embedProgress is the progress of an embedding job, in contents.
type embedProgress struct {
	Done    int `json:"done"`
	Refused int `json:"refused,omitempty"` // by the provider, for good: words find them
}

// runEmbed makes the vectors that a scope lacks. Each batch is committed, so that the next
// attempt continues where the last one ended; until then the rest is found by words. A deleted
// character needs none.
func (s *Service) runEmbed(ctx context.Context, j *jobs.Job) error {
	e, err := s.embedder(ctx, j.UserID)
	if err != nil {
		return err
	}
	b := &embedding{e: e, refused: map[string]bool{}, since: -1}
	last, progress, scope := "", embedProgress{}, Scope{j.UserID, j.Subject}
	compacted := time.Now()
	for {
		if time.Since(compacted) > compactEvery { // a text that has no vectors yet is found by its words
			if err := s.compact(ctx, scope); err != nil {
				return err
			}
			compacted = time.Now()
		}
		batch, err := s.nextBatch(ctx, j, b)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || len(batch) == 0 {
			return err
		}
		if batch[0].Hash == last {
			return fmt.Errorf("the embedding of content %s was not stored", last)
		}
		last = batch[0].Hash
		if err := b.embed(ctx, batch); err != nil {
			return errors.Join(err, s.compact(ctx, scope))
		}
		progress.Done, progress.Refused = b.done, len(b.refused)
		err = s.store.Update(ctx, j.UserID, func(tx Tx) error {
			if err := tx.PutVectors(j.Subject, e.ModelID(), b.vectors); err != nil {
				return err
			}
			return tx.Jobs.NoteJob(j, progress)
		})
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
}

// nextBatch returns the first contents that have no vector and were not rejected. If there are
// none it ends the job, in a transaction that sees what was added meanwhile. Behind a first batch
// that had room for more, as most jobs have it, only that transaction looks.
func (s *Service) nextBatch(ctx context.Context, j *jobs.Job, b *embedding) (batch []Content, err error) {
	var version int64
	read := func(tx Tx) (err error) {
		if b.since < 0 {
			if b.since, err = embeddedTo(tx, j.Subject, b.e.ModelID()); err != nil {
				return err
			}
		}
		if version, err = tx.MemoryVersion(j.Subject); err != nil { // before the rows, which may be newer
			return err
		}
		batch, err = tx.WithoutVector(j.Subject, b.e.ModelID(), b.since, embedBatch+len(b.refused))
		batch = slices.DeleteFunc(batch, func(c Content) bool { return b.refused[c.Hash] })
		return err
	}
	if !b.small {
		if err = s.store.View(ctx, j.UserID, read); err != nil || len(batch) > 0 {
			b.small = b.done == 0 && len(batch) < embedBatch
			return batch, err
		}
		b.since = version
	}
	b.small = false
	if err := s.compact(ctx, Scope{j.UserID, j.Subject}); err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, j.UserID, func(tx Tx) error {
		if err := read(tx); err != nil || len(batch) > 0 {
			return err
		}
		if err := tx.SetEmbedded(j.Subject, b.e.ModelID(), version); err != nil {
			return err
		}
		return tx.Jobs.FinishJob(j)
	})
	return batch, err
}

// embeddedTo returns the change up to which a scope needs no more vectors of a model.
func embeddedTo(tx Tx, characterID, model string) (int64, error) {
	of, change, err := tx.Embedded(characterID)
	if of != model {
		change = 0
	}
	return change, err
}

// embedding is the work of one job.
type embedding struct {
	e       llm.Embedder
	vectors map[string][]float32 // vectors of the present batch, by unit
	done    int                  // contents, in all batches
	refused map[string]bool      // hashes of contents, in all batches
	since   int64                // units that changed last up to here need no vector; -1 = not read yet
	small   bool                 // the present batch is the first, and all that lacked a vector
	faults  int                  // in the present batch
}

// embed makes the vectors of a batch. If the provider rejects some of the texts, the others
// still get theirs; if it rejects all of them, it fails.
func (b *embedding) embed(ctx context.Context, batch []Content) error {
	b.vectors, b.faults = make(map[string][]float32, len(batch)), 0
	err := b.part(ctx, batch)
	if err == nil && len(b.vectors) == 0 && len(batch) > 1 {
		return fault.New(fault.UpstreamBadAnswer, "the embedding provider rejected every text of a batch")
	}
	return err
}

// part embeds some contents of a batch, in halves to find what is rejected.
func (b *embedding) part(ctx context.Context, contents []Content) error {
	texts := make([]string, len(contents))
	for i, c := range contents {
		texts[i] = op.Truncate(c.Text, embedText)
	}
	found, err := b.e.Embed(ctx, llm.Passage, texts)
	switch {
	case err == nil:
		for i, c := range contents {
			for _, id := range c.IDs {
				b.vectors[id] = found.Vectors[i]
			}
		}
		b.done += len(contents)
		return nil
	case !refusal(err) || b.faults == embedFaults:
		return err
	}
	b.faults++
	if len(contents) == 1 {
		b.refused[contents[0].Hash] = true
		return nil
	}
	half := len(contents) / 2
	if err := b.part(ctx, contents[:half]); err != nil {
		return err
	}
	return b.part(ctx, contents[half:])
}

// refusal reports whether an error may be due to a text.
func refusal(err error) bool {
	return fault.Is(err, fault.UpstreamBadAnswer) || fault.Is(err, fault.ContextTooLarge) || fault.Is(err, fault.Blocked)
}

// Sweep enqueues embedding for scopes that lack vectors of the current model, or segments. The
// server calls it at start and every hour.
func (s *Service) Sweep(ctx context.Context) error {
	e, err := s.embedder(ctx, "")
	if err != nil {
		return fmt.Errorf("sweep memories: %w", err)
	}
	var errs []error
	var after Scope
	for {
		scopes, err := s.store.Unembedded(ctx, e.ModelID(), after, sweepBatch)
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("sweep memories: %w", err))...)
		}
		for _, scope := range scopes {
			err := s.enqueueEmbed(ctx, scope)
			if err != nil && !fault.Is(err, fault.NotFound) { // deleted meanwhile
				errs = append(errs, fmt.Errorf("sweep memories of %s: %w", scope.UserID, err))
			}
			after = scope
		}
		if len(scopes) < sweepBatch {
			return errors.Join(errs...)
		}
	}
}

func (s *Service) enqueueEmbed(ctx context.Context, scope Scope) error {
	e, err := s.embedder(ctx, scope.UserID)
	if err != nil {
		return err
	}
	_, pieces, err := s.pieces(ctx, scope)
	if err != nil {
		return err
	}
	return s.store.Update(ctx, scope.UserID, func(tx Tx) error {
		since, err := embeddedTo(tx, scope.CharacterID, e.ModelID())
		if err != nil {
			return err
		}
		version, err := tx.MemoryVersion(scope.CharacterID)
		if err != nil || version == since {
			return err
		}
		lacks, err := tx.WithoutVector(scope.CharacterID, e.ModelID(), since, 1)
		if err != nil {
			return err
		}
		if len(lacks) == 0 && s.nextMerge(pieces) == nil {
			return tx.SetEmbedded(scope.CharacterID, e.ModelID(), version)
		}
		return tx.Jobs.Enqueue(jobs.Spec{Kind: JobEmbed, Subject: scope.CharacterID, Once: true})
	})
}
