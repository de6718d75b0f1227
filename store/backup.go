package store

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"nodest/store/sqldb"
)

// A backup is a zip file. tables/NAME.jsonl holds the rows of a table, each a
// JSON array; blobs are base64. files/NAME holds files of the data folder.
// manifest.json is written last and says what the others must hold. The format
// is that of neither database, so a backup of one can be restored into the other.
const (
	backupFormat  = "nodest-backup"
	backupVersion = 1
	manifestName  = "manifest.json"
	tableFolder   = "tables/"
	fileFolder    = "files/"
)

// Manifest says what a backup holds.
type Manifest struct {
	Format        string          `json:"format"`
	FormatVersion int             `json:"formatVersion"`
	Program       string          `json:"program"` // version that wrote it
	CreatedAt     time.Time       `json:"createdAt"`
	Database      string          `json:"database"` // sqlite or postgres
	SchemaVersion int64           `json:"schemaVersion"`
	Tables        []ManifestTable `json:"tables"` // each after those that it refers to
	Files         []ManifestFile  `json:"files"`
}

// ManifestTable is a table of a backup.
type ManifestTable struct {
	Name    string   `json:"name"`
	Columns []column `json:"columns"`
	Rows    int64    `json:"rows"`
	SHA256  string   `json:"sha256"` // hash of the entry, uncompressed
}

// ManifestFile is a file of the data folder in a backup.
type ManifestFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Rows is how many rows of a table the backup holds.
func (m *Manifest) Rows(table string) int64 {
	for _, t := range m.Tables {
		if t.Name == table {
			return t.Rows
		}
	}
	return 0
}

// BackupOptions are what a backup contains besides the database.
type BackupOptions struct {
	Program  string            // version of the program
	Files    map[string][]byte // files of the data folder, by name
	Progress func(table string, rows int64)
}

// Backup writes everything in the database to w. The rows are those of one
// moment, and a server may use the database meanwhile: it is neither locked nor
// slowed down more than by any other reader. Nothing is migrated; a database
// without tables, or of a newer program, is refused.
func Backup(ctx context.Context, o Options, w io.Writer, b BackupOptions) (_ *Manifest, err error) {
	defer func() { err = sqldb.ExplainSQLite(o.Dir, err) }()
	snap, err := openSnapshot(ctx, o.withDefaults())
	if err != nil {
		return nil, err
	}
	defer snap.close()
	m := &Manifest{
		Format: backupFormat, FormatVersion: backupVersion, Program: b.Program,
		CreatedAt: time.Now().UTC().Truncate(time.Second), Database: "sqlite",
		Tables: []ManifestTable{}, Files: []ManifestFile{},
	}
	if snap.postgres {
		m.Database = "postgres"
	}
	if m.SchemaVersion, err = snap.version(ctx); err != nil {
		return nil, err
	}
	tables, err := tablesAt(ctx, m.SchemaVersion)
	if err != nil {
		return nil, err
	}
	if err := snap.check(ctx); err != nil {
		return nil, err
	}
	out := zip.NewWriter(w)
	out.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for _, t := range tables {
		written, err := snap.write(ctx, out, t, b.Progress)
		if err != nil {
			return nil, fmt.Errorf("cannot back up the table %s: %w", t.name, err)
		}
		m.Tables = append(m.Tables, *written)
	}
	for name, data := range b.Files {
		if err := writeEntry(out, fileFolder+name, data); err != nil {
			return nil, err
		}
		m.Files = append(m.Files, ManifestFile{Name: name, SHA256: sum(data)})
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := writeEntry(out, manifestName, append(text, '\n')); err != nil {
		return nil, err
	}
	return m, out.Close()
}

func newEntry(out *zip.Writer, name string) (io.Writer, error) {
	return out.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now()})
}

func writeEntry(out *zip.Writer, name string, data []byte) error {
	entry, err := newEntry(out, name)
	if err != nil {
		return err
	}
	_, err = entry.Write(data)
	return err
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// snapshot is a database as it was at one moment.
type snapshot struct {
	db       *sql.DB
	tx       *sql.Tx
	dir      string // the data folder
	postgres bool
}

func openSnapshot(ctx context.Context, o Options) (*snapshot, error) {
	s := &snapshot{dir: o.Dir, postgres: o.URL != ""}
	var moment *sql.TxOptions // all statements see one; those of SQLite always do
	var err error
	if s.postgres {
		moment = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
		var config *pgx.ConnConfig
		if config, err = sqldb.PostgresConfig(o.URL); err != nil {
			return nil, err
		}
		s.db = stdlib.OpenDB(*config)
	} else if s.db, err = openForReading(o.Dir); err != nil {
		return nil, err
	}
	s.tx, err = s.db.BeginTx(ctx, moment)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the database: %w", err), s.db.Close())
	}
	return s, nil
}

// openForReading opens the database of a data folder that a server may be using.
func openForReading(dir string) (*sql.DB, error) {
	if pending, err := pendingRestores(dir); err != nil || len(pending) > 0 {
		return nil, errors.Join(err, fmt.Errorf("a restore in %s was interrupted: start the server once, which completes it", dir))
	}
	path := filepath.Join(dir, sqldb.File)
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("no database at %s", path)
		}
		return nil, err
	}
	// Not mode=ro: after a crash the log must be read into memory that is shared
	// through a file.
	dsn := strings.Replace(sqldb.SQLiteDSN(path, true), "mode=ro", "mode=rw", 1)
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func (s *snapshot) close() {
	_ = s.tx.Rollback() // nothing was written
	_ = s.db.Close()
}

// version is that of the schema; an error if there is none, or a newer one.
func (s *snapshot) version(ctx context.Context) (int64, error) {
	var version sql.NullInt64
	err := s.tx.QueryRowContext(ctx, "SELECT MAX(version_id) FROM "+versionTable+" WHERE is_applied").Scan(&version)
	if err != nil || version.Int64 == 0 {
		return 0, errors.Join(errors.New("not a NodeST database, or it is empty"), err)
	}
	return version.Int64, supported(version.Int64)
}

// examine returns what fn reads in a database that a server may be using.
func examine[T any](ctx context.Context, o Options, fn func(*session) (T, error)) (found T, err error) {
	defer func() { err = sqldb.ExplainSQLite(o.Dir, err) }()
	snap, err := openSnapshot(ctx, o.withDefaults())
	if err != nil {
		return found, err
	}
	defer snap.close()
	if _, err := snap.version(ctx); err != nil {
		return found, err
	}
	return fn(&session{sqldb.Reading(ctx, snap.tx, snap.postgres)})
}

// check looks for damage: rows that an index of SQLite has lost would be missing.
func (s *snapshot) check(ctx context.Context) error {
	if s.postgres { // it has checksums of its own
		return nil
	}
	damage, err := damageOf(ctx, s.tx)
	if damage != nil {
		return sqldb.DamagedFile(filepath.Join(s.dir, sqldb.File), damage)
	}
	return err
}

// damageOf looks at a database of SQLite as a whole.
func damageOf(ctx context.Context, db sqldb.Queryer) (damage, err error) {
	found, err := queryTexts(ctx, db, "PRAGMA integrity_check(3)")
	if err != nil {
		return nil, fmt.Errorf("cannot check the database: %w", err)
	}
	if len(found) != 1 || found[0] != "ok" {
		damage = errors.New(strings.Join(found, "; "))
	}
	return damage, nil
}

// write streams a table into an entry.
func (s *snapshot) write(ctx context.Context, out *zip.Writer, t *table, progress func(string, int64)) (*ManifestTable, error) {
	entry, err := newEntry(out, tableFolder+t.name+".jsonl")
	if err != nil {
		return nil, err
	}
	lines := newRowWriter(entry)
	rows, err := s.tx.QueryContext(ctx, `SELECT "`+strings.Join(t.columnNames(), `", "`)+`" FROM "`+t.name+`"`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // read to the end
	row, targets := make(cells, len(t.columns)), make([]any, len(t.columns))
	for i := range row {
		targets[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row.nameOdd()
		if err := row.nameIDs(t.columns); err != nil {
			return nil, err
		}
		if err := lines.add(row); err != nil {
			return nil, err
		}
		tell(progress, t.name, lines.rows)
	}
	if err := errors.Join(rows.Err(), lines.out.Flush()); err != nil {
		return nil, err
	}
	return &ManifestTable{Name: t.name, Columns: t.columns, Rows: lines.rows, SHA256: hex.EncodeToString(lines.hash.Sum(nil))}, nil
}

// tell reports progress now and then.
func tell(progress func(string, int64), table string, rows int64) {
	if progress != nil && rows%10_000 == 0 {
		progress(table, rows)
	}
}

// rowWriter writes rows and sums them up.
type rowWriter struct {
	out  *bufio.Writer
	hash hash.Hash
	enc  *json.Encoder
	line bytes.Buffer
	rows int64
}

func newRowWriter(w io.Writer) *rowWriter {
	r := &rowWriter{hash: sha256.New()}
	r.out = bufio.NewWriterSize(io.MultiWriter(w, r.hash), 64<<10)
	r.enc = json.NewEncoder(&r.line)
	r.enc.SetEscapeHTML(false)
	return r
}

func (r *rowWriter) add(row cells) error {
	r.line.Reset()
	if err := r.enc.Encode([]any(row)); err != nil {
		return err
	}
	if r.line.Len() > maxLine {
		return fmt.Errorf("a row has more than %d MB", maxLine>>20)
	}
	r.rows++
	_, err := r.line.WriteTo(r.out)
	return err
}

// maxLine bounds a row of a backup, so that a bad file cannot take all memory.
const maxLine = 256 << 20
