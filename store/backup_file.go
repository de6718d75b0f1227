package store

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// Bounds of what is read from a backup into memory at once.
const (
	maxManifest = 16 << 20
	maxFile     = 1 << 20
)

// BackupFile is an opened backup.
type BackupFile struct {
	Manifest Manifest
	reader   *zip.ReadCloser
	entries  map[string]*zip.File
	tables   []*table // tables of its schema version
}

// OpenBackup opens a backup and checks its manifest against what a database of
// its version has. What the entries hold is checked as they are read: Verify.
func OpenBackup(ctx context.Context, path string) (_ *BackupFile, err error) {
	b := &BackupFile{entries: map[string]*zip.File{}}
	if b.reader, err = zip.OpenReader(path); err != nil {
		if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, damaged("not a zip file, or truncated")
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = b.reader.Close()
		}
	}()
	for _, f := range b.reader.File {
		if b.entries[f.Name] != nil {
			return nil, damaged("duplicate file %q", f.Name)
		}
		b.entries[f.Name] = f
	}
	text, err := b.small(manifestName, maxManifest)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &b.Manifest); err != nil || b.Manifest.Format != backupFormat {
		return nil, damaged("its manifest cannot be read")
	}
	m := &b.Manifest
	if m.FormatVersion > backupVersion {
		return nil, fault.New(fault.NewerVersion, "the backup has format version %d; this nodest reads up to %d. Use a newer nodest", m.FormatVersion, backupVersion)
	}
	if m.SchemaVersion < 1 {
		return nil, damaged("invalid schema version %d", m.SchemaVersion)
	}
	if err := knownVersion("backup", m.SchemaVersion); err != nil {
		return nil, err
	}
	if b.isFirst() {
		b.tables, err = firstTables(m)
	} else {
		b.tables, err = tablesAt(ctx, m.SchemaVersion)
	}
	if err != nil {
		return nil, err
	}
	return b, b.hasAll()
}

// Close closes the file.
func (b *BackupFile) Close() error { return b.reader.Close() }

func damaged(format string, args ...any) error {
	return fault.New(fault.Invalid, "not a complete NodeST backup: %s", fmt.Sprintf(format, args...))
}

// hasAll compares the tables and entries with those that there must be.
func (b *BackupFile) hasAll() error {
	m := &b.Manifest
	if len(m.Tables) != len(b.tables) {
		return damaged("%d tables instead of %d", len(m.Tables), len(b.tables))
	}
	for i, t := range b.tables {
		if m.Tables[i].Name != t.name || !slices.Equal(m.Tables[i].Columns, t.columns) {
			return damaged("the table %s does not match schema version %d", t.name, m.SchemaVersion)
		}
		if b.entries[tableFolder+t.name+".jsonl"] == nil {
			return damaged("the table %s is missing", t.name)
		}
	}
	for _, f := range m.Files {
		if f.Name == "" || f.Name != filepath.Base(f.Name) || f.Name[0] == '.' || f.Name == sqldb.File {
			return damaged("unexpected file %q", f.Name)
		}
	}
	return nil
}

// small reads a whole entry.
func (b *BackupFile) small(name string, limit int64) ([]byte, error) {
	f := b.entries[name]
	if f == nil {
		return nil, damaged("%s is missing", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, damaged("%s: %v", name, err)
	}
	defer r.Close() //nolint:errcheck // it is only read
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil || int64(len(data)) > limit {
		return nil, damaged("%s cannot be read", name)
	}
	return data, nil
}

// File returns a file of the data folder; nil if the backup has none of that name.
func (b *BackupFile) File(name string) ([]byte, error) {
	for _, f := range b.Manifest.Files {
		if f.Name != name {
			continue
		}
		data, err := b.small(fileFolder+name, maxFile)
		if err == nil && sum(data) != f.SHA256 {
			err = damaged("the checksum of %s is wrong", name)
		}
		return data, err
	}
	return nil, nil
}

// Verify reads everything, and returns an error unless each entry has the rows and the checksum that
// the manifest states, and rows of today can be made of those of schema 1.
func (b *BackupFile) Verify(ctx context.Context) error {
	for i := range b.tables {
		r, err := b.rows(i)
		if err != nil {
			return err
		}
		for r.next() && ctx.Err() == nil {
		}
		if err := errors.Join(ctx.Err(), r.close()); err != nil {
			return err
		}
	}
	for _, f := range b.Manifest.Files {
		if _, err := b.File(f.Name); err != nil {
			return err
		}
	}
	if !b.isFirst() {
		return nil
	}
	tables, err := tablesAt(ctx, oldestVersion)
	if err != nil {
		return err
	}
	for _, t := range append(tables, usesOf(tables)) {
		err := b.eachSource(t, func(s rowSource) error {
			for s.next() && ctx.Err() == nil {
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Each calls f with the rows of a table, in the order of columns.
func (b *BackupFile) Each(name string, f func(row map[string]any) error) error {
	i := slices.IndexFunc(b.tables, func(t *table) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	r, err := b.rows(i)
	if err != nil {
		return err
	}
	for r.next() {
		row := make(map[string]any, len(r.row))
		for j, c := range r.table.columns {
			row[c.Name] = r.row[j]
		}
		if err := f(row); err != nil {
			_ = r.entry.Close()
			return err
		}
	}
	return r.close()
}

// rowReader reads the rows of a table one after the other.
type rowReader struct {
	table *table
	want  ManifestTable
	entry io.ReadCloser
	lines *bufio.Scanner
	hash  interface{ Sum([]byte) []byte }
	raw   []json.RawMessage
	row   cells // the one that next has read; its values are not used again
	rows  int64
	err   error
}

func (b *BackupFile) rows(i int) (*rowReader, error) {
	t := b.tables[i]
	entry, err := b.entries[tableFolder+t.name+".jsonl"].Open()
	if err != nil {
		return nil, damaged("the table %s: %v", t.name, err)
	}
	h := sha256.New()
	r := &rowReader{table: t, want: b.Manifest.Tables[i], entry: entry, hash: h, row: make(cells, len(t.columns))}
	r.lines = bufio.NewScanner(io.TeeReader(entry, h))
	r.lines.Buffer(make([]byte, 64<<10), maxLine)
	r.lines.Split(wholeLines)
	return r, nil
}

// wholeLines is bufio.ScanLines for lines that all have an end.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

func (r *rowReader) next() bool {
	if r.err != nil || !r.lines.Scan() {
		return false
	}
	r.err = r.decode(r.lines.Bytes())
	r.rows++
	return r.err == nil
}

func (r *rowReader) into() *table { return r.table }

func (r *rowReader) values() cells { return r.row }

func (r *rowReader) failure() error { return r.err }

// close says what was wrong with the rows. It is to be called after the last.
func (r *rowReader) close() error {
	closed := r.entry.Close() // repeats what reading has found
	err := cmp.Or(r.err, r.lines.Err(), closed)
	switch {
	case err != nil:
		return damaged("row %d of the table %s: %v", r.rows, r.table.name, err)
	case r.rows != r.want.Rows:
		return damaged("the table %s has %d rows instead of %d", r.table.name, r.rows, r.want.Rows)
	case hex.EncodeToString(r.hash.Sum(nil)) != r.want.SHA256:
		return damaged("the checksum of the table %s is wrong", r.table.name)
	}
	return nil
}

func (r *rowReader) decode(line []byte) error {
	r.raw = r.raw[:0]
	if err := json.Unmarshal(line, &r.raw); err != nil {
		return err
	}
	if len(r.raw) != len(r.table.columns) {
		return fmt.Errorf("%d values instead of %d", len(r.raw), len(r.table.columns))
	}
	for i, c := range r.table.columns {
		v, err := decodeCell(c.Kind, r.raw[i])
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		r.row[i] = v
	}
	return nil
}

func decodeCell(kind columnKind, raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	switch kind {
	case kindInt:
		return strconv.ParseInt(string(raw), 10, 64)
	case kindBool:
		return strconv.ParseBool(string(raw))
	case kindReal:
		return strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	if kind == kindBlob {
		return base64.StdEncoding.DecodeString(text)
	}
	return text, nil
}
