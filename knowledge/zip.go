package knowledge

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"

	"nodest/fault"
	"nodest/op"
)

// Limits of a zip archive.
const (
	maxEntries   = 2000
	maxUnpacked  = 200 << 20 // bytes of all entries
	maxRatio     = 200       // of an entry of more than 1 MiB, unpacked to packed
	maxDirectory = 4 << 20   // bytes that are read to learn what is in it
)

// nested are the extensions of archives. Documents that are archives have others.
var nested = []string{".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".jar"}

// Unzip stores the files of a zip archive, with its folders in their names. It returns those
// that were stored or were there already, and why others were not, by name: one bad entry
// keeps no other out. Folders, and files that systems leave in archives, are passed over. A
// client that repeats the call gets the same files.
//
// Errors: UnsupportedMedia for what is no zip archive; TooLarge for an archive of more than
// 100 MiB, 2,000 entries or 200 MiB unpacked; NotFound and Forbidden for the knowledge base;
// KeyReused for another archive under the same key.
func (s *Service) Unzip(ctx context.Context, c *op.Call, in NewFile) ([]*File, map[string]string, error) {
	if err := s.checkSize(in); err != nil {
		return nil, nil, err
	}
	if in.BaseID != "" {
		_, err := op.Read(ctx, s.store, c.UserID, func(tx Tx) (*Base, error) { return writableBase(tx, in.BaseID) })
		if err != nil {
			return nil, nil, err
		}
	}
	entries, err := openZip(in)
	if err != nil {
		return nil, nil, err
	}
	// The key belongs to this archive, whatever becomes of its entries.
	if err := op.Do(ctx, s.store, c.Part("archive"), func(Tx) error { return nil }); err != nil {
		return nil, nil, err
	}
	spool, err := newSpool()
	if err != nil {
		return nil, nil, err
	}
	defer spool.Close() //nolint:errcheck // its content is not needed any more
	files, refused := []*File{}, map[string]string{}
	for i, entry := range entries {
		name := CleanName(entryName(entry))
		f, err := s.storeEntry(ctx, c.Part(fmt.Sprintf("entry %d", i)), in.BaseID, name, entry, spool)
		switch {
		case err == nil:
			files = append(files, f)
		case fault.Is(err, fault.Internal), fault.Is(err, fault.StorageFull), ctx.Err() != nil:
			return nil, nil, err // ours to fix, or the whole call's
		default:
			refused[name] = fault.Public(err).Message
		}
	}
	return files, refused, nil
}

// openZip returns the entries of an archive that are files to store.
func openZip(in NewFile) ([]*zip.File, error) {
	bounded := &boundedReader{r: in.Body, left: maxDirectory}
	z, err := zip.NewReader(bounded, in.Size)
	switch {
	case bounded.left <= 0:
		return nil, tooManyEntries()
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are never paths here
		return nil, fault.Wrap(err, fault.UnsupportedMedia, "the file is no zip archive, or it is damaged")
	}
	bounded.left = math.MaxInt64 // what is unpacked is bounded below
	var entries []*zip.File
	total := uint64(0)
	for _, f := range z.File {
		if f.FileInfo().IsDir() || isJunk(f.Name) {
			continue
		}
		entries = append(entries, f)
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
		return 0, errors.New("knowledge: the archive is read too much")
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

// entryName is the name of an entry as text: archives of some systems have it in the
// character set of their country.
func entryName(f *zip.File) string {
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

// storeEntry stores one file of an archive.
func (s *Service) storeEntry(ctx context.Context, c *op.Call, baseID, name string, entry *zip.File, spool *spool) (*File, error) {
	if err := checkEntry(name, entry); err != nil {
		return nil, err
	}
	r, err := entry.Open()
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedMedia, "it is packed in a way that is not supported")
	}
	defer r.Close() //nolint:errcheck // it was only read
	size, err := spool.fill(r, int64(entry.UncompressedSize64))
	if err != nil {
		return nil, err
	}
	return s.Upload(ctx, c, NewFile{Name: name, Body: spool.f, Size: size, BaseID: baseID})
}

// checkEntry refuses an entry by what its archive says of it.
func checkEntry(name string, entry *zip.File) error {
	packed, unpacked := entry.CompressedSize64, entry.UncompressedSize64
	ext := strings.ToLower(path.Ext(name))
	for _, e := range nested {
		if ext == e {
			return fault.New(fault.UnsupportedMedia, "archives in archives are not unpacked")
		}
	}
	switch {
	case entry.Flags&1 != 0:
		return fault.New(fault.UnsupportedMedia, "it needs a password")
	case !entry.Mode().IsRegular():
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
