package tavern

import (
	"context"

	"nodest/internal/op"
)

// Intake stores an archive while it arrives, in transactions of one part each. Nothing else holds it: a folder may be larger
// than the room for temporary files.
type Intake struct {
	svc    *Service
	ctx    context.Context //nolint:containedctx // io.Writer has none
	userID string
	id     string // the import's
	size   int64
	parts  int    // that are stored
	buffer []byte // the next part
	kept   bool   // an import has it
}

// Intake begins to store an archive. Whoever gets it calls Drop in the end.
func (s *Service) Intake(ctx context.Context, userID string) *Intake {
	return &Intake{svc: s, ctx: ctx, userID: userID, id: op.NewID(), buffer: make([]byte, 0, partSize)}
}

// Write implements io.Writer.
func (i *Intake) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		m := min(len(p)-n, partSize-len(i.buffer))
		i.buffer = append(i.buffer, p[n:n+m]...)
		n += m
		if len(i.buffer) == partSize {
			if err := i.store(); err != nil {
				return n, err
			}
		}
	}
	i.size += int64(len(p))
	return len(p), nil
}

// store stores the next part.
func (i *Intake) store() error {
	err := i.svc.store.Update(i.ctx, i.userID, func(tx Tx) error { return tx.PutUpload(i.id, i.parts, i.buffer) })
	i.parts, i.buffer = i.parts+1, i.buffer[:0]
	return err
}

// end stores the last part, and returns the archive.
func (i *Intake) end() (*parts, error) {
	if len(i.buffer) > 0 {
		if err := i.store(); err != nil {
			return nil, err
		}
	}
	return i.svc.upload(i.ctx, i.userID, i.id, i.size), nil
}

// Drop removes the archive, unless an import has it. Maintenance removes one that nobody drops.
func (i *Intake) Drop() {
	if !i.kept && i.parts > 0 {
		i.svc.dropParts(context.WithoutCancel(i.ctx), i.userID, i.id)
	}
}

// upload is the stored archive of an import.
func (s *Service) upload(ctx context.Context, userID, id string, size int64) *parts {
	return &parts{size: size, read: func(n int) ([]byte, error) {
		return op.Read(ctx, s.store, userID, func(tx Tx) ([]byte, error) { return tx.Upload(id, n) })
	}}
}
