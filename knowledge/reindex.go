package knowledge

import (
	"context"
	"errors"
	"slices"

	"nodest/fault"
	"nodest/op"
)

// runReindex gives the files of a user the vectors of the space that is being built. When all
// have theirs it takes the place of the active one, in the transaction that checks it; then the
// vectors of other models are removed.
func (s *Service) runReindex(ctx context.Context, r *run) error {
	for {
		model, err := r.building(ctx)
		if err != nil {
			return err
		}
		if model == "" {
			break
		}
		if err := r.build(ctx, model); err != nil {
			return err
		}
		if err := r.flip(ctx, model); err != nil && !errors.Is(err, errLacks) {
			return err
		}
	}
	for n := 1; n > 0; {
		err := s.store.Update(ctx, r.job.UserID, func(tx Tx) error {
			spaces, err := tx.Spaces()
			if err != nil {
				return err
			}
			keep := make([]string, len(spaces))
			for i, sp := range spaces {
				keep[i] = sp.Model
			}
			n, err = tx.DropVectors(keep, dropAtOnce)
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
		return fault.New(fault.Internal, "the embedding model was changed meanwhile")
	}
	for after := ""; ; {
		var files []FileEdition
		var done, total int
		err := r.s.store.View(ctx, r.job.UserID, func(tx Tx) (err error) {
			if files, err = tx.Incomplete(model, after, sweepBatch); err != nil {
				return err
			}
			done, total, err = tx.Coverage(model, "")
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

// flip makes the space that was built the active one; errLacks if a file was added meanwhile.
func (r *run) flip(ctx context.Context, model string) error {
	return r.s.store.Update(ctx, r.job.UserID, func(tx Tx) error {
		lacks, err := tx.Incomplete(model, "", 1)
		if err != nil {
			return err
		}
		if len(lacks) > 0 {
			return errLacks
		}
		spaces, err := tx.Spaces()
		if err != nil {
			return err
		}
		for _, sp := range spaces {
			switch {
			case sp.Model == model && sp.State == SpaceBuilding:
				sp.State = SpaceActive
				err = tx.PutSpace(sp)
			case sp.State == SpaceActive:
				err = tx.DropSpace(sp.Model)
			case sp.Model == model: // cancelled
				return errLacks
			}
			if err != nil {
				return err
			}
		}
		return r.s.tellAll(tx, model, "server")
	})
}

// Reindexing returns how far the vectors and chunks of a knowledge base are.
func (s *Service) Reindexing(ctx context.Context, userID, baseID string) (*Reindexing, error) {
	current, err := s.embedder(ctx, userID)
	if err != nil {
		return nil, err
	}
	model := ""
	if current != nil {
		model = current.ModelID()
	}
	return op.Read(ctx, s.store, userID, func(tx Tx) (*Reindexing, error) { return s.reindexing(tx, baseID, model) })
}

func (s *Service) reindexing(tx Tx, baseID, model string) (*Reindexing, error) {
	if _, err := tx.Base(baseID); err != nil {
		return nil, err
	}
	spaces, err := tx.Spaces()
	if err != nil {
		return nil, err
	}
	r := &Reindexing{State: "idle", Model: model}
	building := false
	for _, sp := range spaces {
		if sp.State == SpaceActive {
			r.SearchedBy = sp.Model
		}
		building = building || sp.State == SpaceBuilding
	}
	if r.Done, r.Total, err = tx.Coverage(model, baseID); err != nil {
		return nil, err
	}
	r.Calls = (r.Total - r.Done + s.opts.Batch - 1) / s.opts.Batch
	busy, err := tx.Busy(baseID)
	if busy || building {
		r.State = "running"
	}
	return r, err
}

// tell emits how far a knowledge base is.
func (s *Service) tell(tx Tx, baseID, model, by string) (*Reindexing, error) {
	state, err := s.reindexing(tx, baseID, model)
	if err != nil {
		return nil, err
	}
	return state, tx.Emit(op.Event(tx.UserID(), "knowledge.reindex", by, map[string]any{
		"knowledgeBaseId": baseID, "state": state.State, "done": state.Done, "total": state.Total,
	}))
}

// tellAll does it for all knowledge bases with files of the user.
func (s *Service) tellAll(tx Tx, model, by string) error {
	for cursor := ""; ; {
		bases, next, err := tx.Bases(cursor, sweepBatch)
		if err != nil {
			return err
		}
		for _, b := range bases {
			if _, err := s.tell(tx, b.ID, model, by); err != nil {
				return err
			}
		}
		if cursor = next; next == "" {
			return nil
		}
	}
}

// rested tells that the knowledge bases of a file that was processed again are done, unless other
// files of theirs still are.
func (s *Service) rested(tx Tx, f *File) error {
	bases, err := tx.BasesOf(f)
	if err != nil || len(bases) == 0 {
		return err
	}
	spaces, err := tx.Spaces()
	if err != nil {
		return err
	}
	model := ""
	for _, sp := range spaces {
		if sp.State == SpaceBuilding {
			return nil // this goes on
		}
		if sp.State == SpaceActive {
			model = sp.Model
		}
	}
	for _, b := range bases {
		busy, err := tx.Busy(b.ID)
		if err == nil && !busy {
			_, err = s.tell(tx, b.ID, model, "server")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ownFilesOf calls fn with the user's files of a knowledge base.
func ownFilesOf(tx Tx, baseID string, fn func(f *File) error) error {
	b, err := tx.Base(baseID)
	if err != nil {
		return err
	}
	for cursor := ""; ; {
		files, next, err := tx.BaseFiles(b, cursor, sweepBatch)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.OwnerID != tx.UserID() {
				continue
			}
			if err := fn(f); err != nil {
				return err
			}
		}
		if cursor = next; next == "" {
			return nil
		}
	}
}

// Reindex makes the chunks and vectors of the user's files in a knowledge base again where its
// rules or the embedding model have changed. Without changes it does nothing.
func (s *Service) Reindex(ctx context.Context, c *op.Call, baseID string) (*Reindexing, error) {
	e, err := s.embedder(ctx, c.UserID)
	if err != nil {
		return nil, err
	}
	model := ""
	if e != nil {
		model = e.ModelID()
	}
	return op.Once(ctx, s.store, c, func(tx Tx) (*Reindexing, error) {
		if err := mayWrite(tx, baseID); err != nil {
			return nil, err
		}
		if err := restart(tx, model); err != nil {
			return nil, err
		}
		err := ownFilesOf(tx, baseID, func(f *File) error {
			if f.State != Ready && f.State != Failed { // it is being processed
				return nil
			}
			return ingest(tx, f.ID)
		})
		if err != nil {
			return nil, err
		}
		return s.tell(tx, baseID, model, c.By())
	})
}

func mayWrite(tx Tx, baseID string) error {
	b, err := tx.Base(baseID)
	if err == nil && b.Access == AccessRead {
		err = fault.New(fault.Forbidden, "this knowledge base is shared with you for reading")
	}
	return err
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
	e, err := s.embedder(ctx, c.UserID)
	if err != nil {
		return err
	}
	model := ""
	if e != nil {
		model = e.ModelID()
	}
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		if err := mayWrite(tx, baseID); err != nil {
			return err
		}
		spaces, err := tx.Spaces()
		if err != nil {
			return err
		}
		stopped := false
		for _, sp := range spaces {
			if sp.State == SpaceBuilding {
				sp.State, stopped = SpaceStopped, true
				if err := errors.Join(tx.PutSpace(sp), tx.Jobs.CancelJobs("", ReindexKind)); err != nil {
					return err
				}
			}
		}
		err = ownFilesOf(tx, baseID, func(f *File) error {
			if f.State != Ready {
				return nil
			}
			return tx.Jobs.CancelJobs(f.ID, IngestKind, EmbedKind)
		})
		switch {
		case err != nil:
			return err
		case stopped: // for all knowledge bases
			return s.tellAll(tx, model, c.By())
		}
		_, err = s.tell(tx, baseID, model, c.By())
		return err
	})
}
