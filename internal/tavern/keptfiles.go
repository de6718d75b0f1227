package tavern

import (
	"context"
	"io"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// KeptFiles lists the files that are kept byte for byte, newest first: of a kind, and of the object that they are with; ""
// = of all. limit is 1 to 200, 0 = 50.
//
// Errors: Invalid for an unknown kind.
func (s *Service) KeptFiles(ctx context.Context, userID string, kind folder.Kind, objectID, cursor string, limit int) (*op.Page[*Known], error) {
	if kind != "" {
		check := &op.Checks{}
		if op.OneOf(check, "kind", kind, folder.Kinds()); check.Err() != nil {
			return nil, check.Err()
		}
	}
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]*Known, string, error) {
		return tx.KnownFiles(kind, objectID, true, cursor, limit)
	})
}

// KeptFile returns a file that is kept, and its content. Whoever gets it closes it.
//
// Errors: NotFound.
func (s *Service) KeptFile(ctx context.Context, userID, id string) (*Known, io.ReadSeekCloser, error) {
	k, err := op.Read(ctx, s.store, userID, func(tx Tx) (*Known, error) { return keptFile(tx, id) })
	if err != nil {
		return nil, nil, err
	}
	read := func(n int) ([]byte, error) {
		return op.Read(ctx, s.store, userID, func(tx Tx) ([]byte, error) { return tx.KnownPart(id, n) })
	}
	return k, content{io.NewSectionReader(&parts{read: read, size: k.Size}, 0, k.Size)}, nil
}

func keptFile(tx Tx, id string) (*Known, error) {
	k, err := tx.KnownID(id)
	if err != nil {
		return nil, err
	}
	alive, err := k.alive(tx)
	if err == nil && (k.Parts == 0 || !alive) {
		err = fault.New(fault.NotFound, "no such file")
	}
	return k, err
}

// DeleteKept removes a file that is kept; the object that it is with stays. The next import takes it again.
//
// Errors: NotFound.
func (s *Service) DeleteKept(ctx context.Context, c *op.Call, id string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		if _, err := keptFile(tx, id); err != nil {
			return err
		}
		return tx.DeleteKnown(id)
	})
}

// content is a file that is read in parts.
type content struct{ *io.SectionReader }

// Close implements io.Closer.
func (content) Close() error { return nil }

type wireKept struct {
	ID         string      `json:"id"`
	Path       string      `json:"path"`
	Kind       folder.Kind `json:"kind"`
	Size       int64       `json:"size"`
	SHA256     string      `json:"sha256"`
	ObjectKind string      `json:"objectKind,omitempty"`
	ObjectID   string      `json:"objectId,omitempty"`
	CreatedAt  op.Time     `json:"createdAt"`
}

// WireKept returns k in its wire format.
func WireKept(k *Known) any {
	return wireKept{k.ID, k.Path, k.Kind, k.Size, k.Digest, k.ObjectKind, k.ObjectID, op.Time(k.CreatedAt)}
}
