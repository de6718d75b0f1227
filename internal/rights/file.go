package rights

import (
	"archive/zip"
	"cmp"
	"compress/flate"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op/id"
	"nodest/internal/spool"
)

// The file of an account is a zip archive. TABLE/ID.jsonl has the rows of a bundle, a line each; TABLE.jsonl those
// of a table with one row of each user. TABLE/ID/NAME is the file of a bundle, as it was uploaded. manifest.json is
// written last and says how many rows there are. docs/your-data.md describes it.
const (
	format        = "nodest.account"
	formatVersion = 1
	manifestName  = "manifest.json"
	rowsExt       = ".jsonl"
)

// Bounds of a file that nobody trusts.
const (
	MaxFile      = 1 << 30  // bytes of the archive
	maxManifest  = 1 << 20  // bytes
	maxDirectory = 64 << 20 // bytes that are read to learn what is in it
	maxEntries   = 200_000
	maxUnpacked  = 16 << 30 // bytes of all entries
	maxRatio     = 300      // unpacked to packed, for an entry of more than 1 MiB
)

// manifest says what a file has.
type manifest struct {
	Format        string    `json:"format"`
	FormatVersion int       `json:"formatVersion"`
	Program       string    `json:"program"` // version that wrote it
	CreatedAt     time.Time `json:"createdAt"`
	Username      string    `json:"username"`
	Rows          Counts    `json:"rows"` // by table
}

// writer writes a file.
type writer struct {
	zip    *zip.Writer
	temp   string // folder of temporary files
	counts Counts
}

func newWriter(w io.Writer, temp string) *writer {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	return &writer{z, temp, Counts{}}
}

// entry adds an entry.
func (w *writer) entry(name string) (io.Writer, error) {
	return w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Unix(0, 0).UTC()})
}

// add writes what read gives of a bundle. It is read whole first, so that a client who reads slowly does not keep
// a transaction open.
func (w *writer) add(b Bundle, read func(lines io.Writer, file func(name string) io.Writer) (Counts, error)) error {
	lines, file := &spool.Spool{Dir: w.temp}, &spool.Spool{Dir: w.temp}
	defer lines.Drop()
	defer file.Drop()
	name := ""
	counts, err := read(lines, func(n string) io.Writer { name = n; return file })
	if fault.Is(err, fault.NotFound) { // it was deleted meanwhile
		return nil
	}
	if err == nil {
		err = w.copy(b.path()+rowsExt, lines)
	}
	if err == nil && name != "" {
		err = w.copy(b.path()+"/"+plainName(name), file)
	}
	w.counts.add(counts)
	return err
}

func (w *writer) copy(name string, s *spool.Spool) error {
	entry, err := w.entry(name)
	if err != nil {
		return err
	}
	return s.CopyTo(entry)
}

// close writes the manifest and ends the file.
func (w *writer) close(m *manifest) error {
	m.Rows = w.counts
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	entry, err := w.entry(manifestName)
	if err == nil {
		_, err = entry.Write(append(text, '\n'))
	}
	if err != nil {
		return err
	}
	return w.zip.Close()
}

// path is where a file has a bundle.
func (b Bundle) path() string {
	if b.ID == "" {
		return b.Table
	}
	return b.Table + "/" + b.ID
}

// plainName is a name as it may stand in an archive.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)
	if strings.Trim(name, ".") == "" {
		return "file"
	}
	return name
}

// opened is a file that is read.
type opened struct {
	manifest manifest
	bundles  []*Content
}

func bad(text string, args ...any) error {
	return fault.New(fault.InvalidImport, "not a complete file of an account: "+text, args...)
}

// open reads what is in a file of so many bytes.
func open(r io.ReaderAt, size int64) (*opened, error) {
	z, err := unzip(r, size)
	if err != nil {
		return nil, err
	}
	f, byPath, total := &opened{}, map[string]*Content{}, uint64(0)
	var beside []*zip.File // files of bundles
	for _, entry := range z.File {
		if total += entry.UncompressedSize64; total > maxUnpacked || entry.UncompressedSize64 > maxUnpacked {
			return nil, fault.New(fault.TooLarge, "a file of an account may have %s unpacked", fault.Size(maxUnpacked)).With("limit", maxUnpacked)
		}
		if n := entry.UncompressedSize64; n > 1<<20 && n/max(entry.CompressedSize64, 1) > maxRatio {
			return nil, fault.New(fault.TooLarge, "%q is packed more than %d to 1", entry.Name, maxRatio)
		}
		known, err := f.note(entry, byPath)
		if err != nil {
			return nil, err
		}
		if !known {
			beside = append(beside, entry)
		}
	}
	for _, entry := range beside {
		c := byPath[path.Dir(entry.Name)]
		if c == nil || c.ID == "" || c.File != nil {
			return nil, bad("unexpected entry %q", entry.Name)
		}
		c.File, c.Size = func() (io.ReadCloser, error) { return unpacked(entry) }, int64(entry.UncompressedSize64) //nolint:gosec // bounded by maxUnpacked
	}
	return f, f.check()
}

// unzip reads the directory of a zip file, which is bounded.
func unzip(r io.ReaderAt, size int64) (*zip.Reader, error) {
	if size > MaxFile {
		return nil, fault.New(fault.TooLarge, "a file of an account may have %s", fault.Size(MaxFile)).With("limit", MaxFile)
	}
	bounded := &boundedReader{r: r, left: maxDirectory}
	z, err := zip.NewReader(bounded, size)
	switch {
	case bounded.left <= 0:
		return nil, tooMany()
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are never paths here
		return nil, fault.Wrap(err, fault.UnsupportedMedia, "the file is no zip archive, or it is damaged")
	case len(z.File) > maxEntries:
		return nil, tooMany()
	}
	bounded.left = math.MaxInt64
	return z, nil
}

func tooMany() error {
	return fault.New(fault.TooLarge, "a file of an account may have %d entries", maxEntries).With("limit", maxEntries)
}

// note adds an entry to f; known is false for one that may be the file of a bundle.
func (f *opened) note(entry *zip.File, byPath map[string]*Content) (known bool, err error) {
	name := entry.Name
	if strings.HasSuffix(name, "/") { // a folder
		return true, nil
	}
	if name == manifestName {
		return true, f.readManifest(entry)
	}
	if at, ok := strings.CutSuffix(name, rowsExt); ok && strings.Count(at, "/") < 2 {
		b, ok := bundleAt(at)
		if !ok || byPath[at] != nil {
			return false, bad("unexpected entry %q", name)
		}
		c := &Content{Bundle: b, Lines: func() (io.ReadCloser, error) { return unpacked(entry) }}
		byPath[at], f.bundles = c, append(f.bundles, c)
		return true, nil
	}
	return false, nil
}

// order puts bundles behind those that they may refer to.
func (f *opened) order(tables []string) error {
	places := map[string]int{}
	for i, table := range tables {
		places[table] = i
	}
	for _, b := range f.bundles {
		if _, ok := places[b.Table]; !ok {
			return bad("nothing can be stored as %q", b.Table)
		}
	}
	slices.SortStableFunc(f.bundles, func(a, b *Content) int { return cmp.Or(places[a.Table]-places[b.Table], cmp.Compare(a.ID, b.ID)) })
	return nil
}

// bundleAt is the bundle of a path.
func bundleAt(at string) (b Bundle, ok bool) {
	b.Table, b.ID, ok = strings.Cut(at, "/")
	if !ok {
		return b, b.Table != ""
	}
	_, ok = id.Parse(b.ID)
	return b, ok && b.Table != ""
}

// unpacked is the content of an entry, which ends where the archive says that it does.
func unpacked(entry *zip.File) (io.ReadCloser, error) {
	r, err := entry.Open()
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedMedia, "%q is packed in a way that is not supported", entry.Name)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r, int64(entry.UncompressedSize64)+1), r}, nil //nolint:gosec // bounded by maxUnpacked
}

func (f *opened) readManifest(entry *zip.File) error {
	r, err := unpacked(entry)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it is only read
	text, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err != nil || json.Unmarshal(text, &f.manifest) != nil {
		return bad("its manifest cannot be read")
	}
	return nil
}

func (f *opened) check() error {
	switch m := &f.manifest; {
	case m.Format != format:
		return bad("its manifest is missing, or of another program")
	case m.FormatVersion > formatVersion:
		return fault.New(fault.NewerVersion, "the file has format version %d; this server reads up to %d", m.FormatVersion, formatVersion)
	}
	return nil
}

// counted refuses a file that has other rows than its manifest says.
func (f *opened) counted(counts Counts) error {
	for table, n := range f.manifest.Rows {
		if counts[table] != n {
			return bad("%s has %d rows instead of %d", table, counts[table], n)
		}
	}
	for table, n := range counts {
		if f.manifest.Rows[table] != n {
			return bad("%s has %d rows instead of %d", table, n, f.manifest.Rows[table])
		}
	}
	return nil
}

// boundedReader reads at most so many bytes: an archive may list millions of entries.
type boundedReader struct {
	r    io.ReaderAt
	left int64
}

// ReadAt implements io.ReaderAt.
func (b *boundedReader) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= int64(len(p)); b.left <= 0 {
		return 0, errors.New("rights: the archive is read too much")
	}
	return b.r.ReadAt(p, at)
}
