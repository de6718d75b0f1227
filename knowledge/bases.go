package knowledge

import (
	"context"
	"strings"
	"unicode"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge/chunk"
)

// Limits of a knowledge base.
const (
	maxBaseName    = 200  // code points
	maxDescription = 2000 // code points
	maxBases       = 1000 // knowledge bases of a user
)

// NewBase is what a knowledge base is created or changed with; nil = as it is.
type NewBase struct {
	Name         *string
	Description  *string
	ChunkSize    *int  // 100 to 8,000 code points
	ChunkOverlap *int  // 0 to half of the size
	ContextLines *bool // the owner's model writes a line for each chunk of the owner's files
}

// apply sets what is given.
func (in NewBase) apply(b *Base) error {
	if in.Name != nil {
		b.Name = strings.TrimSpace(*in.Name)
		if err := op.CheckLine("name", b.Name, maxBaseName); err != nil {
			return err
		}
	}
	if !strings.ContainsFunc(b.Name, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) {
		return fault.InvalidField("name", "required", "must not be blank")
	}
	if in.Description != nil {
		b.Description = strings.TrimSpace(*in.Description)
		if err := op.CheckLength("description", b.Description, maxDescription); err != nil {
			return err
		}
	}
	if in.ContextLines != nil {
		b.ContextLines = *in.ContextLines
	}
	if in.ChunkSize == nil && in.ChunkOverlap == nil {
		return nil
	}
	r := chunk.Default
	if b.Rules != nil {
		r = *b.Rules
	}
	if in.ChunkSize != nil {
		r.Size = *in.ChunkSize
		r.Overlap = min(r.Overlap, r.Size/2)
	}
	if in.ChunkOverlap != nil {
		r.Overlap = *in.ChunkOverlap
	}
	var check op.Checks
	op.Between(&check, "chunkSize", &r.Size, 100, 8000)
	op.Between(&check, "chunkOverlap", &r.Overlap, 0, r.Size/2)
	b.Rules = &r
	return check.Err()
}

// CheckStored refuses a base that the operations would not have stored.
func (b *Base) CheckStored() error {
	in := NewBase{Name: &b.Name, Description: &b.Description}
	if b.Rules != nil {
		in.ChunkSize, in.ChunkOverlap = &b.Rules.Size, &b.Rules.Overlap
	}
	return in.apply(&Base{})
}

// CreateBase creates a knowledge base.
//
// Errors: Invalid; Conflict for more than 1,000 of the user.
func (s *Service) CreateBase(ctx context.Context, c *op.Call, in NewBase) (*Base, error) {
	b := Base{ID: op.NewID(), Version: 1, Languages: []string{}}
	if err := in.apply(&b); err != nil {
		return nil, err
	}
	return op.Once(ctx, s.store, c, func(tx Tx) (*Base, error) {
		b := b
		n, err := tx.LockBases()
		if err != nil {
			return nil, err
		}
		if n >= maxBases {
			return nil, fault.New(fault.Conflict, "a user may have %d knowledge bases; delete some first", maxBases)
		}
		if err := tx.InsertBase(&b); err != nil {
			return nil, err
		}
		return &b, tx.Emit(baseUpdated(c, &b))
	})
}

// Base returns a knowledge base that the user may read.
//
// Errors: NotFound.
func (s *Service) Base(ctx context.Context, userID, id string) (*Base, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (*Base, error) { return tx.Base(id) })
}

// Bases lists those that the user may read, newest first.
func (s *Service) Bases(ctx context.Context, userID, cursor string, limit int) (op.Page[*Base], error) {
	return page(ctx, s, userID, limit, func(tx Tx, limit int) ([]*Base, string, error) { return tx.Bases(cursor, limit) })
}

// UpdateBase changes an own knowledge base. Other chunk rules, and context lines, hold for files
// that are added later; Reindex applies them to those that are in it.
//
// Errors: Invalid; NotFound; Forbidden for one that is not the user's own; PreconditionFailed
// when ifVersion is not 0 and not its version.
func (s *Service) UpdateBase(ctx context.Context, c *op.Call, id string, ifVersion int64, in NewBase) (*Base, error) {
	return op.Once(ctx, s.store, c, func(tx Tx) (*Base, error) {
		b, err := ownBase(tx, id)
		if err != nil {
			return nil, err
		}
		if err := op.CheckVersion(ifVersion, b.Version); err != nil {
			return nil, err
		}
		if err := in.apply(b); err != nil {
			return nil, err
		}
		b.Version++
		if err := tx.UpdateBase(b); err != nil {
			return nil, err
		}
		return b, tx.Emit(baseUpdated(c, b))
	})
}

// DeleteBase deletes an own knowledge base: it is gone at once, for all. With files also its
// files that are in no other one and belong to the user.
//
// Errors: NotFound; Forbidden for one that is not the user's own.
func (s *Service) DeleteBase(ctx context.Context, c *op.Call, id string, files bool) error {
	if files {
		if _, known, err := op.Earlier[struct{}](ctx, s.store, c); known || err != nil {
			return err
		}
		if err := s.deleteOnlyIn(ctx, c, id); err != nil {
			return err
		}
	}
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		if _, err := ownBase(tx, id); err != nil {
			return err
		}
		if err := tx.DeleteBase(id); err != nil {
			return err
		}
		if err := tx.Jobs.CancelJobs(id); err != nil {
			return err
		}
		if err := tx.Emit(baseDeleted(c, id)); err != nil {
			return err
		}
		return purge(tx)
	})
}

// deleteOnlyIn deletes the own files of an own knowledge base that are in no other one, in
// transactions of some files each: there may be thousands.
func (s *Service) deleteOnlyIn(ctx context.Context, c *op.Call, baseID string) error {
	for deleted := filesAtOnce; deleted == filesAtOnce; {
		err := s.store.Update(ctx, c.UserID, func(tx Tx) error {
			if _, err := ownBase(tx, baseID); err != nil {
				return err
			}
			ids, err := tx.OnlyIn(baseID, filesAtOnce)
			if err != nil {
				return err
			}
			deleted = len(ids)
			return deleteFiles(tx, c, ids...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// BaseFiles lists the files of a knowledge base that the user may read, newest first.
//
// Errors: NotFound.
func (s *Service) BaseFiles(ctx context.Context, userID, id, cursor string, limit int) (op.Page[*File], error) {
	return page(ctx, s, userID, limit, func(tx Tx, limit int) ([]*File, string, error) {
		b, err := tx.Base(id)
		if err != nil {
			return nil, "", err
		}
		return tx.BaseFiles(b, cursor, limit)
	})
}

// AddFile adds an own file to a knowledge base that the user may write; one that is in it
// stays as it is.
//
// Errors: NotFound for either; Forbidden for a knowledge base that may only be read, and for
// a file that is not the user's own.
func (s *Service) AddFile(ctx context.Context, c *op.Call, baseID, fileID string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		b, err := writableBase(tx, baseID)
		if err != nil {
			return err
		}
		f, err := ownFile(tx, fileID)
		if err != nil {
			return err
		}
		return addFile(tx, c, b, f, false)
	})
}

// addFile adds an own file to a knowledge base that may be written; nil = to none.
func addFile(tx Tx, c *op.Call, b *Base, f *File, synced bool) error {
	if b == nil {
		return nil
	}
	added, err := tx.AddToBase(b, f.ID, synced)
	if err != nil || !added {
		return err
	}
	return tx.Emit(baseUpdated(c, b))
}

// RemoveFile takes a file out of a knowledge base that the user may write, whoever has added
// it. The file stays its owner's; with unused, an own file is deleted if it is now in no knowledge
// base and no character has it.
//
// Errors: NotFound for either, also for a file that is not in it; Forbidden for a knowledge
// base that may only be read.
func (s *Service) RemoveFile(ctx context.Context, c *op.Call, baseID, fileID string, unused bool) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		b, err := writableBase(tx, baseID)
		if err != nil {
			return err
		}
		removed, err := tx.RemoveFromBase(b, fileID)
		if err != nil {
			return err
		}
		if !removed {
			return fault.New(fault.NotFound, "the knowledge base has no such file")
		}
		if err := tx.Emit(baseUpdated(c, b)); err != nil || !unused {
			return err
		}
		used, err := tx.InUse(fileID)
		if err != nil || used {
			return err
		}
		return deleteFiles(tx, c, fileID)
	})
}

// ownBase returns an own knowledge base: fault.Forbidden for one that was shared.
func ownBase(tx Tx, id string) (*Base, error) {
	b, err := tx.Base(id)
	if err == nil && b.Access != AccessOwner {
		return nil, fault.New(fault.Forbidden, "the knowledge base belongs to another user")
	}
	return b, err
}

// writableBase returns a knowledge base that the user may add files to: fault.Forbidden for
// one that was shared for reading.
func writableBase(tx Tx, id string) (*Base, error) {
	b, err := tx.Base(id)
	if err == nil && b.Access == AccessRead {
		return nil, fault.New(fault.Forbidden, "the knowledge base was shared with you for reading only")
	}
	return b, err
}
