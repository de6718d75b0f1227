package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/store/first"
	"nodest/store/sqldb"
)

// RestoreOptions tune a restore.
type RestoreOptions struct {
	Force    bool              // replace data that is there; it is moved aside
	Files    map[string][]byte // for the data folder, by name
	Progress func(table string, rows int64)
}

// Restored says what a restore did.
type Restored struct {
	MovedTo string // folder or schema with what was there before; "" = nothing was
	Files   string // PostgreSQL: folder with the files that were there before; "" = none were
}

// Restore builds a database from a backup, in the data folder or in PostgreSQL, beside an
// existing one, and puts it in its place in one step when it is complete: a restore that
// fails, or is killed, changes nothing. It returns fault.Conflict, unless forced, if there
// is data already, and an error if a process uses the database.
func Restore(ctx context.Context, o Options, b *BackupFile, r RestoreOptions) (*Restored, error) {
	o = o.withDefaults()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the data folder: %w", err)
	}
	job := &restoring{options: o, backup: b, RestoreOptions: r, stamp: time.Now().UTC().Format("20060102T150405.000Z")}
	if o.URL == "" {
		return job.sqlite(ctx)
	}
	return job.postgres(ctx)
}

type restoring struct {
	RestoreOptions
	options Options
	backup  *BackupFile
	stamp   string
}

// insertRows stores rows of a table.
type insertRows func(ctx context.Context, s rowSource) error

// rowSource gives rows of a table, one after the other.
type rowSource interface {
	into() *table // that they are stored in
	next() bool
	values() cells  // values of the row that next has read; they are not used again
	failure() error // failure of next
	close() error   // says what was wrong with the rows, after the last
}

// load fills an empty database: with the schema that the backup had, which is then brought to the
// newest. Counters are of what is there then.
func (r *restoring) load(ctx context.Context, db *sql.DB, schema migrationFolder, insert insertRows) error {
	quiet := slog.New(slog.DiscardHandler) // hides the steps of an empty database
	version := r.backup.Manifest.SchemaVersion
	if r.backup.isFirst() {
		version = oldestVersion
	}
	if err := migrateTo(ctx, db, schema, version, quiet); err != nil {
		return err
	}
	tables, err := tablesAt(ctx, version)
	if err != nil {
		return err
	}
	for _, t := range tables {
		err := r.backup.eachSource(t, func(s rowSource) error {
			if err := insert(ctx, s); err != nil {
				return fmt.Errorf("cannot restore the table %s: %w", t.name, sqldb.Translate(err))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if r.backup.isFirst() {
		if err := r.loadUses(ctx, db, tables, insert); err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, first.HiddenStates); err != nil {
			return fmt.Errorf("store which messages were hidden: %w", err)
		}
	}
	if err := migrate(ctx, db, schema, r.options.Log); err != nil {
		return err
	}
	for _, statement := range []string{
		// Every event log gets another name: devices that were ahead of the backup must load
		// anew and not take what comes next for what they have missed.
		"UPDATE streams SET epoch = '" + newEpoch() + "'",
		"DELETE FROM quotas",
		fmt.Sprintf("INSERT INTO quotas (user_id, kind, used, counted_at) SELECT user_id, kind, CAST(SUM(n) AS BIGINT), %d FROM (%s) AS counted GROUP BY user_id, kind",
			sqldb.Millis(time.Now()), counted("")),
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// refuse is the answer when somebody would miss what is there.
func (r *restoring) refuse(where string) error {
	return fault.New(fault.Conflict, "%s already contains data; use --force to move it aside (nothing is deleted)", where)
}

// A restore into a data folder is made in restore-STAMP.tmp. Renaming that to
// restore-STAMP.ready is the step that counts: whoever has the lock of the folder
// next moves what is there to replaced-STAMP and what is ready into its place.
const (
	restorePrefix  = "restore-"
	stagedSuffix   = ".tmp"
	readySuffix    = ".ready"
	replacedPrefix = "replaced-"
)

// Exists reports whether a data folder has a SQLite database, or a restored one
// that the next Open puts in its place.
func Exists(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, sqldb.File)); err == nil {
		return true
	}
	ready, err := pendingRestores(dir)
	return err == nil && len(ready) > 0
}

func pendingRestores(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(escapeGlob(dir), restorePrefix+"*"+readySuffix))
}

// escapeGlob keeps the characters of a path from being a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "?", `\?`, "*", `\*`).Replace(path)
}

// completeRestores finishes restores that were killed after the step that counts.
// The caller has the lock of the folder. It can itself be killed and run again.
func completeRestores(dir string) error {
	ready, err := pendingRestores(dir)
	if err != nil {
		return err
	}
	for _, from := range ready {
		stamp := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(from), restorePrefix), readySuffix)
		if _, err := replaceFiles(dir, from, filepath.Join(dir, replacedPrefix+stamp)); err != nil {
			return fmt.Errorf("cannot complete a restore: %w", err)
		}
	}
	return nil
}

// replaceFiles moves the files of a folder into dir, and those that were there to
// aside; moved says whether there were any.
func replaceFiles(dir, from, aside string) (moved bool, err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		old := []string{e.Name()}
		if e.Name() == sqldb.File { // its log first: without it nobody takes the file for complete
			old = []string{sqldb.File + "-wal", sqldb.File + "-shm", sqldb.File}
		}
		for _, name := range old {
			was, err := moveAside(filepath.Join(dir, name), aside)
			if err != nil {
				return false, err
			}
			moved = moved || was
		}
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return false, err
		}
	}
	return moved, errors.Join(SyncFolder(dir), os.Remove(from))
}

// moveAside moves a file into a folder, which is made for it.
func moveAside(path, aside string) (moved bool, err error) {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return false, err
	}
	if err := os.Rename(path, filepath.Join(aside, filepath.Base(path))); err != nil {
		return false, err
	}
	return true, SyncFolder(aside)
}

// writeSynced makes a file that only its owner can read, and waits for the disk.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncFolder waits until the names in a folder are on the disk.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // some file systems have nothing to do here and say so
	return d.Close()
}
