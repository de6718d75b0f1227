// Package spool keeps what is written until it is read, in memory while that is small, else in a temporary file. So a
// client who reads slowly does not keep a transaction open.
package spool

import (
	"io"
	"os"

	"nodest/internal/fault"
)

// Spool keeps what is written to it. The zero value uses the folder of the system for temporary files.
type Spool struct {
	Dir   string
	Size  int64 // bytes that were written
	small []byte
	file  *os.File
}

const smallSize = 1 << 20 // bytes

// Write implements io.Writer.
//
// Errors: StorageFull.
func (s *Spool) Write(p []byte) (n int, err error) {
	defer func() { s.Size += int64(n) }()
	if s.file == nil && len(s.small)+len(p) <= smallSize {
		s.small = append(s.small, p...)
		return len(p), nil
	}
	if s.file == nil {
		f, err := os.CreateTemp(s.Dir, "export-*")
		if err != nil {
			return 0, full(err)
		}
		_ = os.Remove(f.Name()) // Drop does it again, for systems that do not remove open files
		s.file = f
		if _, err := f.Write(s.small); err != nil {
			return 0, full(err)
		}
		s.small = nil
	}
	n, err = s.file.Write(p)
	return n, full(err)
}

func full(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.StorageFull, "the folder for temporary files is full or cannot be written")
}

// CopyTo writes everything to w.
func (s *Spool) CopyTo(w io.Writer) error {
	_, err := io.Copy(w, s.Part(0, s.Size))
	return err
}

// Part reads so many bytes from a place on.
func (s *Spool) Part(at, size int64) io.Reader {
	if s.file == nil {
		return io.NewSectionReader(inMemory(s.small), at, size)
	}
	return io.NewSectionReader(s.file, at, size)
}

type inMemory []byte

// ReadAt implements io.ReaderAt.
func (m inMemory) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Drop gives back what the spool uses.
func (s *Spool) Drop() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
	*s = Spool{Dir: s.Dir}
}
