package knowledge

import (
	"context"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// Limits of what a character knows.
const (
	maxBoundFiles = 100
	maxBoundBases = 100
	maxPosition   = 100_000
)

// Bound returns what a character of the user has, as far as the user may read it now.
//
// Errors: NotFound.
func (s *Service) Bound(ctx context.Context, userID, characterID string) (*Bound, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (*Bound, error) { return tx.Bound(characterID) })
}

// BindBase gives a character of the user a knowledge base that the user may read, or switches
// it on or off; nil = as it is, and on at first.
//
// Errors: NotFound for either; Conflict for more than 100 knowledge bases.
func (s *Service) BindBase(ctx context.Context, c *op.Call, characterID, baseID string, enabled *bool) (*BoundBase, error) {
	return op.Once(ctx, s.store, c, func(tx Tx) (*BoundBase, error) {
		bound, err := tx.Bound(characterID)
		if err != nil {
			return nil, err
		}
		b, err := tx.Base(baseID)
		if err != nil {
			return nil, err
		}
		out := &BoundBase{Base: *b, Enabled: true}
		known := false
		for _, old := range bound.Bases {
			if old.ID == b.ID && old.OwnerID == b.OwnerID {
				out.Enabled, known = old.Enabled, true
			}
		}
		if !known && len(bound.Bases) >= maxBoundBases {
			return nil, fault.New(fault.Conflict, "a character may have %d knowledge bases", maxBoundBases)
		}
		if enabled != nil {
			out.Enabled = *enabled
		}
		return out, tx.PutBoundBase(characterID, b, out.Enabled)
	})
}

// UnbindBase takes a knowledge base from a character.
//
// Errors: NotFound for the character, or if it does not have the knowledge base.
func (s *Service) UnbindBase(ctx context.Context, c *op.Call, characterID, baseID string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error { return tx.DropBoundBase(characterID, baseID) })
}

// BindFile gives a character of the user a file that the user may read, switches it on or off,
// or moves it; nil = as it is, and on and last at first.
//
// Errors: Invalid for the position; NotFound for either; Conflict for more than 100 files.
func (s *Service) BindFile(ctx context.Context, c *op.Call, characterID, fileID string, enabled *bool, position *int) (*BoundFile, error) {
	var check op.Checks
	op.Between(&check, "position", position, 0, maxPosition)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return op.Once(ctx, s.store, c, func(tx Tx) (*BoundFile, error) {
		bound, err := tx.Bound(characterID)
		if err != nil {
			return nil, err
		}
		f, err := tx.File(fileID)
		if err != nil {
			return nil, err
		}
		out := bindingOf(bound.Files, f)
		if out == nil {
			if len(bound.Files) >= maxBoundFiles {
				return nil, fault.New(fault.Conflict, "a character may have %d files", maxBoundFiles)
			}
			out = &BoundFile{File: *f, Enabled: true}
			if n := len(bound.Files); n > 0 {
				out.Position = min(bound.Files[n-1].Position+1, maxPosition)
			}
		}
		if enabled != nil {
			out.Enabled = *enabled
		}
		if position != nil {
			out.Position = *position
		}
		return out, tx.PutBoundFile(characterID, f, out.Enabled, out.Position)
	})
}

// bindingOf is how a character has a file; nil if it does not.
func bindingOf(bound []BoundFile, f *File) *BoundFile {
	for i := range bound {
		if bound[i].ID == f.ID && bound[i].OwnerID == f.OwnerID {
			return &bound[i]
		}
	}
	return nil
}

// UnbindFile takes a file from a character.
//
// Errors: NotFound for the character, or if it does not have the file.
func (s *Service) UnbindFile(ctx context.Context, c *op.Call, characterID, fileID string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error { return tx.DropBoundFile(characterID, fileID) })
}
