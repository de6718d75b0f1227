// Package unzip reads zip archives that nobody trusts: within limits, and without using a name in
// one as a path.
package unzip

import (
	"archive/zip"
	"errors"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"

	"nodest/internal/fault"
)

// Limits of a zip archive.
const (
	maxEntries   = 2000
	maxUnpacked  = 200 << 20 // bytes of all entries
	maxRatio     = 200       // unpacked to packed, for an entry of more than 1 MiB
	maxDirectory = 4 << 20   // bytes that are read to learn what is in it
)

// nested are the extensions of archives. Documents that are archives have others.
var nested = []string{".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".jar"}

// Archive is an open archive.
type Archive struct {
	Entries []*Entry // files, without those that systems leave in archives

	spool *spool
}

// Entry is a file of an archive.
type Entry struct {
	Name string // as it is in the archive, as text: not a path
	file *zip.File
}

// Open reads what is in an archive of so many bytes, and makes a temporary file to unpack to.
//
// Errors: UnsupportedMedia for what is no zip archive; TooLarge for more than 2,000 files or
// 200 MiB unpacked.
func Open(r io.ReaderAt, size int64) (*Archive, error) {
	entries, err := list(r, size)
	if err != nil {
		return nil, err
	}
	spool, err := newSpool()
	if err != nil {
		return nil, err
	}
	return &Archive{entries, spool}, nil
}

// Close removes the temporary file.
func (a *Archive) Close() error { return a.spool.Close() }

// Unpack returns the content of an entry and its length in bytes; the next call replaces it.
//
// Errors: UnsupportedMedia, TooLarge, StorageFull.
func (a *Archive) Unpack(e *Entry) (io.ReaderAt, int64, error) {
	if err := e.check(); err != nil {
		return nil, 0, err
	}
	r, err := e.file.Open()
	if err != nil {
		return nil, 0, fault.Wrap(err, fault.UnsupportedMedia, "it is packed in a way that is not supported")
	}
	defer r.Close() //nolint:errcheck // it was only read
	size, err := a.spool.fill(r, int64(e.file.UncompressedSize64))
	return a.spool.f, size, err
}

// list returns the files of an archive.
func list(r io.ReaderAt, size int64) ([]*Entry, error) {
	bounded := &boundedReader{r: r, left: maxDirectory}
	z, err := zip.NewReader(bounded, size)
	switch {
	case bounded.left <= 0:
		return nil, tooManyEntries()
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are never paths here
		return nil, fault.Wrap(err, fault.UnsupportedMedia, "the file is no zip archive, or it is damaged")
	}
	bounded.left = math.MaxInt64 // the unpacked bytes are bounded below
	var entries []*Entry
	total := uint64(0)
	for _, f := range z.File {
		if f.FileInfo().IsDir() || isJunk(f.Name) {
			continue
		}
		entries = append(entries, &Entry{nameOf(f), f})
		if f.UncompressedSize64 > maxUnpacked || total+f.UncompressedSize64 > maxUnpacked {
			return nil, fault.New(fault.TooLarge, "an archive may have %s unpacked", fault.Size(maxUnpacked)).With("limit", maxUnpacked)
		}
		total += f.UncompressedSize64
	}
	if len(entries) > maxEntries {
		return nil, tooManyEntries()
	}
	return entries, nil
}

func tooManyEntries() error {
	return fault.New(fault.TooLarge, "an archive may have %d files", maxEntries).With("limit", maxEntries)
}

// boundedReader reads at most so many bytes: an archive of 100 MiB may list millions of
// entries.
type boundedReader struct {
	r    io.ReaderAt
	left int64
}

// ReadAt implements io.ReaderAt.
func (b *boundedReader) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= int64(len(p)); b.left <= 0 {
		return 0, errors.New("unzip: the archive is read too much")
	}
	return b.r.ReadAt(p, at)
}

// isJunk says that a name is of what systems leave in archives.
func isJunk(name string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		if part == "__MACOSX" || part == ".git" {
			return true
		}
	}
	base := path.Base(name)
	return base == ".DS_Store" || base == "Thumbs.db" || base == "desktop.ini" || strings.HasPrefix(base, "._")
}

// nameOf is the name of an entry as text: archives of some systems have it in the
// character set of their country.
func nameOf(f *zip.File) string {
	if utf8.ValidString(f.Name) {
		return f.Name
	}
	name, err := simplifiedchinese.GB18030.NewDecoder().String(f.Name)
	if err == nil && !strings.ContainsRune(name, utf8.RuneError) {
		return name
	}
	name, _ = charmap.CodePage437.NewDecoder().String(f.Name) // knows every byte
	return name
}

// check refuses an entry by what its archive says of it.
func (e *Entry) check() error {
	packed, unpacked := e.file.CompressedSize64, e.file.UncompressedSize64
	ext := strings.ToLower(path.Ext(e.Name))
	if slices.Contains(nested, ext) {
		return fault.New(fault.UnsupportedMedia, "archives in archives are not unpacked")
	}
	switch {
	case e.file.Flags&1 != 0:
		return fault.New(fault.UnsupportedMedia, "it needs a password")
	case !e.file.Mode().IsRegular():
		return fault.New(fault.UnsupportedMedia, "it is no file")
	case unpacked > 1<<20 && unpacked/max(packed, 1) > maxRatio:
		return fault.New(fault.TooLarge, "it is packed more than %d to 1", maxRatio)
	}
	return nil
}

// spool is a temporary file that entries are unpacked to, one after the other. It has no name
// where the system allows that.
type spool struct {
	f     *os.File
	named bool
}

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "nodest-*")
	if err != nil {
		return nil, err
	}
	return &spool{f, os.Remove(f.Name()) != nil}, nil // Windows refuses
}

// fill stores what r has, which must be as long as was declared.
func (s *spool) fill(r io.Reader, declared int64) (int64, error) {
	if err := s.f.Truncate(0); err != nil {
		return 0, err
	}
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	out := &spoolWriter{f: s.f}
	n, err := io.Copy(out, io.LimitReader(r, declared+1))
	switch {
	case out.err != nil:
		return 0, fault.Wrap(out.err, fault.StorageFull, "the folder for temporary files is full or cannot be written")
	case err != nil, n != declared:
		return 0, fault.Wrap(err, fault.UnsupportedMedia, "it is damaged")
	}
	return n, nil
}

// Close removes the file.
func (s *spool) Close() error {
	err := s.f.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.f.Name()))
	}
	return err
}

// spoolWriter remembers what went wrong with writing.
type spoolWriter struct {
	f   *os.File
	err error
}

// Write implements io.Writer.
func (w *spoolWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	w.err = err
	return n, err
}
