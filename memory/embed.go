package memory

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"nodest/fault"
	"nodest/jobs"
	"nodest/llm"
)

// Sizes of embedding.
const (
	embedBatch = 64   // contents of one call and of one transaction
	embedText  = 4000 // code points of a content that are embedded: more than models take
	sweepBatch = 10_000
)

// Embedded is the progress of an embedding job.
type Embedded struct {
	Done int `json:"done"` // contents
}

func (s *Service) embedKind() jobs.Kind {
	return jobs.Kind{Name: JobEmbed, Run: s.runEmbed}
}

// runEmbed gives vectors to what a scope has without. Each batch is committed, so
// that an attempt goes on where the last one ended; until then words find the rest.
func (s *Service) runEmbed(ctx context.Context, j *jobs.Job) error {
	e, err := s.embedder(ctx, j.UserID)
	if err != nil {
		return err
	}
	var done Embedded
	last := ""
	for {
		batch, err := s.withoutVector(ctx, j, e.ModelID())
		if err != nil || len(batch) == 0 {
			return err
		}
		if batch[0].Hash == last {
			return fmt.Errorf("the vector of content %s was not kept", last)
		}
		last = batch[0].Hash
		vectors, err := embedContents(ctx, e, batch)
		if err != nil {
			return err
		}
		done.Done += len(batch)
		err = s.store.Update(ctx, j.UserID, func(tx Tx) error {
			if err := tx.PutVectors(j.Subject, e.ModelID(), vectors); err != nil {
				return err
			}
			return tx.NoteJob(j, done)
		})
		if err != nil {
			return err
		}
	}
}

// withoutVector returns the next batch; when there is none it ends the job, in the
// same transaction.
func (s *Service) withoutVector(ctx context.Context, j *jobs.Job, model string) (batch []Content, err error) {
	read := func(tx Tx) (err error) {
		batch, err = tx.WithoutVector(j.Subject, model, embedBatch)
		return err
	}
	if err := s.store.View(ctx, j.UserID, read); err != nil || len(batch) > 0 {
		return batch, err
	}
	err = s.store.Update(ctx, j.UserID, func(tx Tx) error {
		if err := read(tx); err != nil || len(batch) > 0 {
			return err
		}
		return tx.FinishJob(j)
	})
	return batch, err
}

func embedContents(ctx context.Context, e llm.Embedder, batch []Content) (map[string][]float32, error) {
	texts := make([]string, len(batch))
	for i, c := range batch {
		texts[i] = firstRunes(c.Text, embedText)
	}
	found, err := e.Embed(ctx, llm.Passage, texts)
	if err != nil {
		return nil, err
	}
	vectors := make(map[string][]float32, len(batch))
	for i, c := range batch {
		vectors[c.Hash] = found.Vectors[i]
	}
	return vectors, nil
}

// firstRunes returns the first n code points of text.
func firstRunes(text string, n int) string {
	if len(text) <= n || utf8.RuneCountInString(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// Sweep enqueues embedding for scopes that lack vectors of the current model; the
// server calls it at its start and every hour. Which model that is Options.Embedder
// tells, for each user; asked for the user "" it tells that of most.
func (s *Service) Sweep(ctx context.Context) error {
	e, err := s.embedder(ctx, "")
	if err != nil {
		return fmt.Errorf("sweep memories: %w", err)
	}
	scopes, err := s.store.Unembedded(ctx, e.ModelID(), sweepBatch)
	if err != nil {
		return fmt.Errorf("sweep memories: %w", err)
	}
	var errs []error
	for _, scope := range scopes {
		err := s.enqueueEmbed(ctx, scope)
		if err != nil && !fault.Is(err, fault.NotFound) { // deleted meanwhile
			errs = append(errs, fmt.Errorf("sweep memories of %s: %w", scope.UserID, err))
		}
	}
	return errors.Join(errs...)
}

// enqueueEmbed enqueues the embedding of a scope if it lacks vectors of its user's
// model.
func (s *Service) enqueueEmbed(ctx context.Context, scope Scope) error {
	e, err := s.embedder(ctx, scope.UserID)
	if err != nil {
		return err
	}
	return s.store.Update(ctx, scope.UserID, func(tx Tx) error {
		lacks, err := tx.WithoutVector(scope.CharacterID, e.ModelID(), 1)
		if err != nil || len(lacks) == 0 {
			return err
		}
		return tx.Enqueue(jobs.Spec{Kind: JobEmbed, Subject: scope.CharacterID, Once: true})
	})
}
