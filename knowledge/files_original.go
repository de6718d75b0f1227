package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// partSize is how many bytes of an original a row has; the last one has the rest.
const partSize = 1 << 20

// hashOf is the SHA-256 of what a client sent, in hexadecimal.
func hashOf(ctx context.Context, in NewFile) (string, error) {
	h := sha256.New()
	buffer := make([]byte, partSize)
	for r := io.NewSectionReader(in.Body, 0, in.Size); ; {
		n, err := r.Read(buffer)
		h.Write(buffer[:n])
		switch {
		case errors.Is(err, io.EOF):
			if n, _ := r.Seek(0, io.SeekCurrent); n != in.Size {
				return "", fault.New(fault.BadRequest, "the file ended after %d of %d bytes", n, in.Size)
			}
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}

// storeParts writes an original in transactions of one part each, and returns its id. Upkeep
// removes it if no file comes of it.
func (s *Service) storeParts(ctx context.Context, userID string, in NewFile) (contentID string, err error) {
	contentID = op.NewID()
	for part, at := 0, int64(0); at < in.Size; part, at = part+1, at+partSize {
		data := make([]byte, min(partSize, in.Size-at))
		if _, err := in.Body.ReadAt(data, at); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		err := s.store.Update(ctx, userID, func(tx Tx) error { return tx.PutPart(contentID, part, data) })
		if err != nil {
			s.dropParts(ctx, userID, contentID)
			return "", err
		}
	}
	return contentID, nil
}

// dropParts removes an original unless a file has it; what remains of it is for upkeep.
func (s *Service) dropParts(ctx context.Context, userID, contentID string) {
	if contentID == "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	for removed := 1; removed > 0; {
		err := s.store.Update(ctx, userID, func(tx Tx) (err error) {
			removed, err = tx.DropParts(contentID, partsAtOnce)
			return err
		})
		if err != nil {
			return
		}
	}
}

// original reads the content of a file part by part, each time only if the user may still
// read the file and it still has this content. It is for one goroutine.
type original struct {
	ctx    context.Context //nolint:containedctx // io.Reader has none
	store  Store
	userID string
	file   *File

	at   int64
	part int // that data is of; -1 = none
	data []byte
}

func (s *Service) original(ctx context.Context, userID string, f *File) *original {
	return &original{ctx: ctx, store: s.store, userID: userID, file: f, part: -1}
}

// Read implements io.Reader.
func (o *original) Read(p []byte) (int, error) {
	n, err := o.ReadAt(p[:min(len(p), partSize)], o.at)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	o.at += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (o *original) ReadAt(p []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, fs.ErrInvalid
	}
	for n < len(p) {
		if at >= o.file.Size {
			return n, io.EOF
		}
		if err := o.load(int(at / partSize)); err != nil {
			return n, err
		}
		if at%partSize >= int64(len(o.data)) {
			return n, io.ErrUnexpectedEOF
		}
		some := copy(p[n:], o.data[at%partSize:])
		n, at = n+some, at+int64(some)
	}
	return n, nil
}

func (o *original) load(part int) error {
	if o.part == part {
		return nil
	}
	data, err := op.Read(o.ctx, o.store, o.userID, func(tx Tx) ([]byte, error) { return tx.FilePart(o.file, part) })
	if err != nil {
		return err
	}
	o.part, o.data = part, data
	return nil
}

// Seek implements io.Seeker.
func (o *original) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.file.Size
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	o.at = offset
	return offset, nil
}

// Close implements io.Closer.
func (o *original) Close() error {
	o.data, o.part = nil, -1
	return nil
}
