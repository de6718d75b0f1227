package knowledge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/llm"
)

// sweepBatch is how many users, or files of one, are looked at in one transaction.
const sweepBatch = 200

// embedder returns the embedding provider of a user; nil if there is none.
func (s *Service) embedder(ctx context.Context, userID string) (llm.Embedder, error) {
	if s.opts.Embedder == nil {
		return nil, nil
	}
	e, err := s.opts.Embedder(ctx, userID)
	if fault.Is(err, fault.NotConfigured) {
		return nil, nil
	}
	return e, err
}

// embedderOf returns the embedding provider with a model id; nil if it is gone.
func (s *Service) embedderOf(ctx context.Context, userID, modelID string) llm.Embedder {
	if e, err := s.embedder(ctx, userID); err == nil && e != nil && e.ModelID() == modelID {
		return e
	}
	if s.opts.EmbedderOf == nil {
		return nil
	}
	e, err := s.opts.EmbedderOf(ctx, userID, modelID)
	if err != nil || e == nil || e.ModelID() != modelID {
		return nil
	}
	return e
}

// target returns the model that new vectors are made with, and starts to build its space when
// it is new. nil = there is no embedding provider.
func (s *Service) target(ctx context.Context, userID string) (llm.Embedder, error) {
	e, err := s.embedder(ctx, userID)
	if err != nil || e == nil {
		return nil, err
	}
	var spaces []Space
	err = s.store.View(ctx, userID, func(tx Tx) (err error) {
		spaces, err = tx.Spaces()
		return err
	})
	if err != nil {
		return nil, err
	}
	now := decide(spaces, e.ModelID())
	if now.changes() {
		err = s.store.Update(ctx, userID, func(tx Tx) error {
			if spaces, err = tx.Spaces(); err != nil {
				return err
			}
			now = decide(spaces, e.ModelID())
			return now.apply(tx)
		})
	}
	if err == nil && now.state == SpaceStopped { // the user wants the old one to stay
		if old := s.embedderOf(ctx, userID, now.active); old != nil {
			return old, nil
		}
	}
	return e, err
}

// decision is what the spaces of a user should be.
type decision struct {
	model  string // the current one
	state  string // that its space gets; "" = it has it
	isNew  bool   // there is no space of it yet
	active string // the model that is searched; "" = none
	drop   []string
}

// decide says what a current model means for the spaces of a user. The first one is active at
// once. Another one is built beside it, in place of any that was being built.
func decide(spaces []Space, model string) decision {
	d := decision{model: model, isNew: true}
	for _, s := range spaces {
		if s.State == SpaceActive {
			d.active = s.Model
		}
		if s.Model == model {
			d.isNew, d.state = false, s.State
		}
	}
	for _, s := range spaces {
		if s.State != SpaceActive && s.Model != model {
			d.drop = append(d.drop, s.Model)
		}
	}
	switch {
	case d.active == "":
		d.active, d.state = model, SpaceActive
		d.isNew = true
	case d.isNew:
		d.state = SpaceBuilding
	}
	return d
}

func (d *decision) changes() bool { return d.isNew || len(d.drop) > 0 }

// apply stores the decision. Vectors of spaces that were dropped go with the next reindexing.
func (d *decision) apply(tx Tx) error {
	var errs []error
	for _, model := range d.drop {
		errs = append(errs, tx.DropSpace(model))
	}
	if d.isNew {
		errs = append(errs, tx.PutSpace(Space{Model: d.model, State: d.state}))
	}
	if d.state == SpaceBuilding || len(d.drop) > 0 {
		errs = append(errs, tx.Jobs.Enqueue(jobs.Spec{Kind: ReindexKind, Once: true}))
	}
	return errors.Join(errs...)
}

// resumeAfter is how long files whose key was refused wait for the key to work again: the
// provider may have changed its mind. A new key does not wait: see Resume.
const resumeAfter = 24 * time.Hour

// Sweep enqueues what a change of the embedding model, or a crash, has left to do. The server
// calls it at start and every hour.
func (s *Service) Sweep(ctx context.Context) error {
	var errs []error
	resume := s.engine.mayResume(time.Now())
	for after := ""; ; {
		users, err := s.store.FileOwners(ctx, after, sweepBatch)
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("sweep files: %w", err))...)
		}
		for _, user := range users {
			after = user
			if err := s.sweepUser(ctx, user, resume); err != nil && !fault.Is(err, fault.NotFound) {
				errs = append(errs, fmt.Errorf("sweep files of %s: %w", user, err))
			}
		}
		if len(users) < sweepBatch {
			return errors.Join(errs...)
		}
	}
}

// mayResume reports whether it is time to resume files of all users, and takes it that they are.
func (e *engine) mayResume(now time.Time) bool {
	e.resuming.Lock()
	defer e.resuming.Unlock()
	if !e.resumed.IsZero() && now.Sub(e.resumed) < resumeAfter {
		return false
	}
	e.resumed = now
	return true
}

func (s *Service) sweepUser(ctx context.Context, userID string, resume bool) error {
	if _, err := s.target(ctx, userID); err != nil {
		return err
	}
	var left []string
	var deleted []*File
	err := s.store.View(ctx, userID, func(tx Tx) (err error) {
		if deleted, err = tx.DeletedFiles(1); err != nil {
			return err
		}
		left, err = tx.Unfinished(sweepBatch)
		return err
	})
	if err != nil {
		return err
	}
	err = s.store.Update(ctx, userID, func(tx Tx) error {
		if err := reindexNext(tx, false); err != nil {
			return err
		}
		if len(deleted) > 0 { // the job that removes them has failed
			if err := tx.Jobs.Enqueue(jobs.Spec{Kind: PurgeKind, Subject: purgeSubject, Once: true}); err != nil {
				return err
			}
		}
		for _, id := range left {
			if err := s.sweepFile(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	err = errors.Join(err, s.retryFull(ctx, userID))
	if resume {
		err = errors.Join(err, s.Resume(ctx, userID))
	}
	return errors.Join(err, s.IndexWords(ctx, userID))
}
