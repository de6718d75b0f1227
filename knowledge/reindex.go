package knowledge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/stream"
)

// runReindex gives the files of a user the vectors of the space that is being built. When all
// have theirs it takes the place of the active one; then the vectors of other models are removed.
func (s *Service) runReindex(ctx context.Context, r *run) error {
	for {
		model, err := r.building(ctx)
		if err != nil {
			return err
		}
		if model == "" {
			break
		}
		err = r.build(ctx, model)
		if err == nil {
			err = r.flip(ctx, model)
		}
		if err != nil && !errors.Is(err, errLacks) && !errors.Is(err, errOtherModel) {
			return err
		}
	}
	s.tellAll(ctx, r.job.UserID, "server")
	return r.dropVectors(ctx)
}

// dropVectors removes the vectors of models without a space, in small transactions.
func (r *run) dropVectors(ctx context.Context) error {
	for next, more := "", true; more; more = next != "" {
		err := r.s.store.Update(ctx, r.job.UserID, func(tx Tx) error {
			spaces, err := tx.Spaces()
			if err != nil {
				return err
			}
			keep := make([]string, len(spaces))
			for i, sp := range spaces {
				keep[i] = sp.Model
			}
			next, err = tx.DropVectors(keep, next, dropAtOnce)
			return err
		})
		if err != nil {
			return err
		}
		r.beat()
	}
	return nil
}

// building returns the model whose space is to be built now; "" = none.
func (r *run) building(ctx context.Context) (model string, err error) {
	e, err := r.s.target(ctx, r.job.UserID)
	if err != nil || e == nil {
		return "", err
	}
	err = r.s.store.View(ctx, r.job.UserID, func(tx Tx) error {
		spaces, err := tx.Spaces()
		if slices.ContainsFunc(spaces, func(s Space) bool { return s.Model == e.ModelID() && s.State == SpaceBuilding }) {
			model = e.ModelID()
		}
		return err
	})
	return model, err
}

// build embeds what lacks vectors of a model.
func (r *run) build(ctx context.Context, model string) error {
	e := r.s.embedderOf(ctx, r.job.UserID, model)
	if e == nil {
		return errOtherModel
	}
	for after := ""; ; {
		var files []FileEdition
		var done, total int
		err := r.s.store.View(ctx, r.job.UserID, func(tx Tx) (err error) {
			if files, err = tx.Incomplete(model, after, sweepBatch); err != nil {
				return err
			}
			done, total, err = tx.SpaceCoverage(model, "")
			return err
		})
		if err != nil || len(files) == 0 {
			return err
		}
		for _, f := range files {
			after = f.FileID
			w := &work{run: r, embedder: e, done: done, total: total}
			err := r.s.store.View(ctx, r.job.UserID, func(tx Tx) error {
				edition, err := tx.EditionOf(r.job.UserID, f.FileID, f.Edition)
				if err == nil {
					w.edition = *edition
				}
				return err
			})
			if err == nil {
				err = w.embedAll(ctx)
			}
			if err != nil && !fault.Is(err, fault.NotFound) { // it was deleted meanwhile
				return err
			}
			done = w.done
		}
	}
}

// flip makes the space that was built the active one; errLacks if a file was added meanwhile,
// errOtherModel if the space is not being built any more.
// Looking for one takes too long for a transaction that others wait for, so it is done before and
// after. A file that came in between is embedded by its own job, or in the next round.
func (r *run) flip(ctx context.Context, model string) error {
	if err := r.whole(ctx, model); err != nil {
		return err
	}
	err := r.s.store.Update(ctx, r.job.UserID, func(tx Tx) error {
		spaces, err := tx.Spaces()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(spaces, func(sp Space) bool { return sp.Model == model && sp.State == SpaceBuilding }) {
			return errOtherModel // it was cancelled, or a third model took its place
		}
		for _, sp := range spaces {
			switch {
			case sp.Model == model:
				sp.State = SpaceActive
				err = tx.PutSpace(sp)
			case sp.State == SpaceActive:
				err = tx.DropSpace(sp.Model)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.whole(ctx, model); errors.Is(err, errLacks) {
		return r.build(ctx, model)
	}
	return err
}

// whole returns errLacks if a file lacks vectors of a model.
func (r *run) whole(ctx context.Context, model string) error {
	return r.s.store.View(ctx, r.job.UserID, func(tx Tx) error {
		lacks, err := tx.Incomplete(model, "", 1)
		if err == nil && len(lacks) > 0 {
			err = errLacks
		}
		return err
	})
}

// model returns the current embedding model of a user; "" = there is none.
func (s *Service) model(ctx context.Context, userID string) (string, error) {
	e, err := s.embedder(ctx, userID)
	if err != nil || e == nil {
		return "", err
	}
	return e.ModelID(), nil
}

// Reindexing returns how far the vectors and chunks of a knowledge base are.
func (s *Service) Reindexing(ctx context.Context, userID, baseID string) (*Reindexing, error) {
	model, err := s.model(ctx, userID)
	if err != nil {
		return nil, err
	}
	return s.counted(ctx, userID, baseID, model)
}

// counted counts chunks and vectors. With 100,000 of them that takes a moment, so it is never done
// in a transaction that others wait for.
func (s *Service) counted(ctx context.Context, userID, baseID, model string) (*Reindexing, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (*Reindexing, error) {
		if _, err := tx.Base(baseID); err != nil {
			return nil, err
		}
		done, total, err := tx.SpaceCoverage(model, baseID)
		if err != nil {
			return nil, err
		}
		r := &Reindexing{Model: model, Done: done, Total: total, Calls: (total - done + s.opts.Batch - 1) / s.opts.Batch}
		return r, r.look(tx, baseID)
	})
}

// look sets what is being done.
func (r *Reindexing) look(tx Tx, baseID string) error {
	spaces, err := tx.Spaces()
	if err != nil {
		return err
	}
	r.State, r.Error = "idle", nil
	for _, sp := range spaces {
		switch sp.State {
		case SpaceActive:
			r.SearchedBy = sp.Model
		case SpaceBuilding:
			r.State = "running"
		}
	}
	if r.State == "running" {
		if r.Error, err = reindexError(tx); err != nil {
			return err
		}
	}
	busy, err := tx.Busy(baseID)
	switch {
	case busy:
		r.State = "running"
	case r.Error != nil:
		r.State = "failed"
	}
	return err
}

// reindexError is why the space of another model is not being built; nil = it is.
func reindexError(tx Tx) (*FileError, error) {
	last, _, err := tx.Jobs.Jobs(jobs.Filter{Kind: ReindexKind}, "", 1)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	var n note
	_ = json.Unmarshal(last[0].Progress, &n) // nil, or what an attempt noted
	if e := last[0].Error; last[0].State == jobs.Failed && n.Error == nil && e != nil {
		return &FileError{Code: string(e.Code), Detail: e.Message, Retryable: true}, nil
	}
	return n.Error, nil
}

// tell emits how far knowledge bases are, after the transaction that changed it. If that fails,
// clients see it when they look.
func (s *Service) tell(ctx context.Context, userID, model, by string, baseIDs []string) {
	var events []*stream.Event
	for _, id := range baseIDs {
		r, err := s.counted(ctx, userID, id, model)
		switch {
		case err == nil:
			events = append(events, reindexEvent(userID, by, id, r))
		case !fault.Is(err, fault.NotFound):
			s.opts.Log.WarnContext(ctx, "cannot tell the state of a reindexing", "err", err)
			return
		}
	}
	if len(events) == 0 {
		return
	}
	if err := s.store.Update(ctx, userID, func(tx Tx) error { return tx.Emit(events...) }); err != nil {
		s.opts.Log.WarnContext(ctx, "cannot tell the state of a reindexing", "err", err)
	}
}

func reindexEvent(userID, by, baseID string, r *Reindexing) *stream.Event {
	return op.Event(userID, "knowledge.reindex", by, map[string]any{
		"knowledgeBaseId": baseID, "state": r.State, "done": r.Done, "total": r.Total,
	})
}

// tellAll does it for all knowledge bases that the user may read.
func (s *Service) tellAll(ctx context.Context, userID, by string) {
	model, err := s.model(ctx, userID)
	for cursor, more := "", true; more && err == nil; more = cursor != "" {
		var bases []*Base
		err = s.store.View(ctx, userID, func(tx Tx) (err error) {
			bases, cursor, err = tx.Bases(cursor, sweepBatch)
			return err
		})
		ids := make([]string, len(bases))
		for i, b := range bases {
			ids[i] = b.ID
		}
		s.tell(ctx, userID, model, by, ids)
	}
	if err != nil {
		s.opts.Log.WarnContext(ctx, "cannot tell the state of a reindexing", "err", err)
	}
}

// rested tells that the knowledge bases of a file that was processed again are done, unless other
// files of theirs still are.
func (s *Service) rested(ctx context.Context, userID, fileID string) {
	model := ""
	ids, err := op.Read(ctx, s.store, userID, func(tx Tx) (ids []string, err error) {
		f, err := tx.OwnFile(fileID)
		if err != nil {
			return nil, err
		}
		bases, err := tx.BasesOf(f)
		if err != nil || len(bases) == 0 {
			return nil, err
		}
		spaces, err := tx.Spaces()
		for _, sp := range spaces {
			if sp.State == SpaceBuilding {
				return nil, nil // this goes on
			}
			if sp.State == SpaceActive {
				model = sp.Model
			}
		}
		for _, b := range bases {
			busy, err := tx.Busy(b.ID)
			if err != nil {
				return nil, err
			}
			if !busy {
				ids = append(ids, b.ID)
			}
		}
		return ids, err
	})
	if err != nil && !fault.Is(err, fault.NotFound) {
		s.opts.Log.WarnContext(ctx, "cannot tell the state of a reindexing", "err", err)
	}
	s.tell(ctx, userID, model, "server", ids)
}

// ownFilesOf calls fn with the user's files of a knowledge base that the user may write, in
// transactions of some files each: there may be thousands.
func (s *Service) ownFilesOf(ctx context.Context, userID, baseID string, fn func(tx Tx, f *File) error) error {
	for cursor, more := "", true; more; more = cursor != "" {
		next := ""
		err := s.store.Update(ctx, userID, func(tx Tx) error {
			b, err := writableBase(tx, baseID)
			if err != nil {
				return err
			}
			var files []*File
			if files, next, err = tx.BaseFiles(b, cursor, filesAtOnce); err != nil {
				return err
			}
			for _, f := range files {
				if f.OwnerID != userID {
					continue
				}
				if err := fn(tx, f); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		cursor = next
	}
	return nil
}

// filesAtOnce is how many files one transaction enqueues, or deletes.
const filesAtOnce = 100

// Reindex makes the chunks and vectors of the user's files in a knowledge base again where its
// rules or the embedding model have changed. Without changes it does nothing.
func (s *Service) Reindex(ctx context.Context, c *op.Call, baseID string) (*Reindexing, error) {
	model, err := s.model(ctx, c.UserID)
	if err != nil {
		return nil, err
	}
	counts, err := s.counted(ctx, c.UserID, baseID, model)
	if err != nil {
		return nil, err
	}
	if r, known, err := op.Earlier[*Reindexing](ctx, s.store, c); known || err != nil {
		return r, err
	}
	err = s.store.Update(ctx, c.UserID, func(tx Tx) error {
		if _, err := writableBase(tx, baseID); err != nil {
			return err
		}
		return errors.Join(restart(tx, model), reindexNext(tx, true))
	})
	if err != nil {
		return nil, err
	}
	err = s.ownFilesOf(ctx, c.UserID, baseID, func(tx Tx, f *File) error {
		if f.State != Ready && f.State != Failed { // it is being processed
			return nil
		}
		return ingest(tx, f.ID)
	})
	if err != nil {
		return nil, err
	}
	return op.Once(ctx, s.store, c, func(tx Tx) (*Reindexing, error) {
		r := *counts
		if err := r.look(tx, baseID); err != nil {
			return nil, err
		}
		return &r, tx.Emit(reindexEvent(c.UserID, c.By(), baseID, &r))
	})
}

// restart builds the space of a model, also when that was cancelled before.
func restart(tx Tx, model string) error {
	spaces, err := tx.Spaces()
	if err != nil || model == "" {
		return err
	}
	d := decide(spaces, model)
	if d.state == SpaceStopped {
		d.state, d.isNew = SpaceBuilding, true
	}
	if !d.changes() {
		return nil
	}
	return d.apply(tx)
}

// CancelReindex stops building the space of another model, for all files of the user, and what
// of the knowledge base has not begun; what is searched stays.
func (s *Service) CancelReindex(ctx context.Context, c *op.Call, baseID string) error {
	if _, known, err := op.Earlier[struct{}](ctx, s.store, c); known || err != nil {
		return err
	}
	err := s.ownFilesOf(ctx, c.UserID, baseID, func(tx Tx, f *File) error {
		if f.State != Ready {
			return nil
		}
		return tx.Jobs.CancelJobs(f.ID, IngestKind, EmbedKind)
	})
	if err != nil {
		return err
	}
	stopped := false
	err = op.Do(ctx, s.store, c, func(tx Tx) error {
		spaces, err := tx.Spaces()
		if err != nil {
			return err
		}
		stopped = false
		for _, sp := range spaces {
			if sp.State == SpaceBuilding {
				sp.State, stopped = SpaceStopped, true
				if err := errors.Join(tx.PutSpace(sp), tx.Jobs.CancelJobs("", ReindexKind)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if stopped { // for all knowledge bases
		s.tellAll(ctx, c.UserID, c.By())
		return nil
	}
	model, err := s.model(ctx, c.UserID)
	if err != nil { // the cancelled work may depend on it; cancelling must not
		s.opts.Log.WarnContext(ctx, "nobody is told that a reindexing was cancelled", "err", err)
		return nil
	}
	s.tell(ctx, c.UserID, model, c.By(), []string{baseID})
	return nil
}
