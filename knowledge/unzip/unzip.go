// Package unzip reads zip archives that nobody trusts: within limits, and without using a name in
// one as a path.
package unzip

import (
	"archive/zip"
	"bytes"
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

// Limits bound an archive.
type Limits struct {
	Entries   int
	Unpacked  int64 // bytes of all entries
	Directory int64 // bytes that are read to learn what is in it
	Junk      bool  // files that systems leave in archives are listed, too
}

// limits are those of Open.
var limits = Limits{Entries: 2000, Unpacked: 200 << 20, Directory: 4 << 20}

// maxRatio bounds unpacked to packed bytes of an entry of more than 1 MiB.
const maxRatio = 200

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
	entries, err := List(r, size, limits)
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

// Read returns the content of an entry, of at most so many bytes.
//
// Errors: UnsupportedMedia, TooLarge.
func (e *Entry) Read(most int64) ([]byte, error) {
	if e.file.UncompressedSize64 > uint64(most) {
		return nil, fault.New(fault.TooLarge, "it has more than %s", fault.Size(int(most))).With("limit", most)
	}
	return e.read(int64(e.file.UncompressedSize64), false)
}

// Head returns the first bytes of an entry, at most so many.
//
// Errors: those of Read.
func (e *Entry) Head(most int64) ([]byte, error) {
	size := e.file.UncompressedSize64
	return e.read(min(most, int64(min(size, math.MaxInt64))), uint64(most) < size)
}

// read reads so many bytes. Unless only the beginning is wanted, the entry must have no more.
func (e *Entry) read(size int64, beginning bool) ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	r, err := e.file.Open()
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedMedia, "it is packed in a way that is not supported")
	}
	defer r.Close() //nolint:errcheck // it was only read
	var b bytes.Buffer
	room := min(size, 1<<20+likelyRatio*e.packed()) // it may be shorter than it says
	b.Grow(int(room) + bytes.MinRead)
	most := size
	if !beginning {
		most++ // the end is read, which checks the sum
	}
	n, err := io.Copy(&b, io.LimitReader(r, most))
	if err != nil || n != size {
		return nil, fault.Wrap(err, fault.UnsupportedMedia, "it is damaged")
	}
	return b.Bytes(), nil
}

// likelyRatio is how well texts are packed.
const likelyRatio = 20

// packed is how many bytes an entry says to have in the archive, of those that a buffer may be made for at once.
func (e *Entry) packed() int64 { return int64(min(e.file.CompressedSize64, 16<<20)) }

// Size is how many bytes an entry says to have.
func (e *Entry) Size() int64 { return int64(min(e.file.UncompressedSize64, math.MaxInt64)) }

// Regular says that an entry is a file, and no link or device.
func (e *Entry) Regular() bool { return e.file.Mode().IsRegular() }

// List returns the files of an archive of so many bytes.
//
// Errors: UnsupportedMedia for what is no zip archive; TooLarge.
func List(r io.ReaderAt, size int64, l Limits) ([]*Entry, error) {
	bounded := &boundedReader{r: r, left: l.Directory, entries: 4 * l.Entries} // folders are listed, too
	z, err := zip.NewReader(bounded, size)
	switch {
	case bounded.left <= 0 || bounded.entries < 0:
		return nil, l.tooManyEntries()
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are never paths here
		return nil, fault.Wrap(err, fault.UnsupportedMedia, "the file is no zip archive, or it is damaged")
	}
	bounded.left, bounded.entries = math.MaxInt64, math.MaxInt // the unpacked bytes are bounded below
	entries := make([]*Entry, 0, len(z.File))
	total, most := uint64(0), uint64(l.Unpacked)
	for _, f := range z.File {
		if f.FileInfo().IsDir() || !l.Junk && isJunk(f.Name) {
			continue
		}
		f.Extra, f.Comment = nil, "" // they were read, and there may be many
		entries = append(entries, &Entry{nameOf(f), f})
		if f.UncompressedSize64 > most || total+f.UncompressedSize64 > most {
			return nil, fault.New(fault.TooLarge, "an archive may have %s unpacked", fault.Size(int(most))).With("limit", most)
		}
		total += f.UncompressedSize64
	}
	if len(entries) > l.Entries {
		return nil, l.tooManyEntries()
	}
	return entries, nil
}

func (l Limits) tooManyEntries() error {
	return fault.New(fault.TooLarge, "an archive may have %d files", l.Entries).With("limit", l.Entries)
}

// boundedReader reads at most so many bytes, and so many headers of entries: an archive of 100 MiB may
// list millions of them.
type boundedReader struct {
	r       io.ReaderAt
	left    int64
	entries int
}

// header begins each entry in the directory of an archive.
var header = []byte("PK\x01\x02")

// ReadAt implements io.ReaderAt.
func (b *boundedReader) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= int64(len(p)); b.left <= 0 || b.entries < 0 {
		return 0, errors.New("unzip: the archive is read too much")
	}
	n, err := b.r.ReadAt(p, at)
	if b.entries != math.MaxInt {
		b.entries -= bytes.Count(p[:n], header)
	}
	return n, err
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
