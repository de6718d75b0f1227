package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nodest/store/sqldb"
)

func (r *restoring) sqlite(ctx context.Context) (_ *Restored, err error) {
	dir := r.options.Dir
	lock, err := sqldb.LockFolder(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := completeRestores(dir); err != nil {
		return nil, err
	}
	if !r.Force && folderHasData(ctx, dir) {
		return nil, r.refuse("the data folder " + dir)
	}
	staged, err := r.stageFolder(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(staged) }() // nothing after the rename
	if err := r.stageSQLite(ctx, filepath.Join(staged, sqldb.File)); err != nil {
		return nil, err
	}
	if err := errors.Join(ctx.Err(), SyncFolder(staged)); err != nil {
		return nil, err
	}
	ready := strings.TrimSuffix(staged, stagedSuffix) + readySuffix
	if err := errors.Join(os.Rename(staged, ready), SyncFolder(dir)); err != nil {
		return nil, err
	}
	aside := filepath.Join(dir, replacedPrefix+r.stamp)
	moved, err := replaceFiles(dir, ready, aside)
	if err != nil {
		return nil, fmt.Errorf("cannot complete the restore: %w; the next start of the server tries again", err)
	}
	if !moved {
		aside = ""
	}
	return &Restored{MovedTo: aside}, nil
}

// stageFolder makes the folder for what is restored, with the files of the data
// folder in it, and removes those that killed restores have left.
func (r *restoring) stageFolder(dir string) (string, error) {
	old, err := filepath.Glob(filepath.Join(escapeGlob(dir), restorePrefix+"*"+stagedSuffix))
	if err != nil {
		return "", err
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			return "", err
		}
	}
	staged := filepath.Join(dir, restorePrefix+r.stamp+stagedSuffix)
	if err := os.Mkdir(staged, 0o700); err != nil {
		return "", err
	}
	for name, data := range r.Files {
		if err := writeSynced(filepath.Join(staged, name), data); err != nil {
			return staged, errors.Join(err, os.RemoveAll(staged))
		}
	}
	return staged, nil
}

// folderHasData says whether a data folder has a database with users, or one that
// cannot be read.
func folderHasData(ctx context.Context, dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, sqldb.File)); errors.Is(err, os.ErrNotExist) {
		return false
	}
	db, err := openForReading(dir)
	if err != nil {
		return true
	}
	defer db.Close() //nolint:errcheck // nothing was written
	var tables, users int
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'users'").Scan(&tables)
	if err != nil || tables == 0 {
		return err != nil
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM users").Scan(&users)
	return err != nil || users > 0
}

// stageSQLite makes a complete database file that is on the disk. It is copied once rows and indexes
// are there, because they were stored in the order of no index: the copy has its pages full and in
// order, and needs no more room than the file that the backup was made of.
func (r *restoring) stageSQLite(ctx context.Context, path string) error {
	loose := path + ".loose"
	if err := r.fillSQLite(ctx, loose, path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close(), os.Remove(loose))
}

// fillSQLite makes a database at loose, and a copy of it at path.
func (r *restoring) fillSQLite(ctx context.Context, loose, path string) error {
	// Nobody reads it before it is complete, so nothing waits for the disk until then.
	dsn := strings.NewReplacer("_journal_mode=WAL", "_journal_mode=MEMORY", "_synchronous=FULL", "_synchronous=OFF").Replace(sqldb.SQLiteDSN(loose, false))
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	err = r.load(ctx, db, sqliteSchema, func(ctx context.Context, rows rowSource) error {
		return insertSQLite(ctx, db, rows, r.Progress)
	})
	if err == nil {
		err = checkSQLite(ctx, db)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "VACUUM INTO ?", path)
	}
	return errors.Join(err, db.Close())
}

func insertSQLite(ctx context.Context, db *sql.DB, rows rowSource, progress func(string, int64)) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after a commit
	t := rows.into()
	names := t.columnNames()
	insert, err := tx.PrepareContext(ctx, `INSERT INTO "`+t.name+`" ("`+strings.Join(names, `", "`)+`") VALUES (?`+strings.Repeat(", ?", len(names)-1)+")")
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // ends with the transaction
	for n := int64(1); rows.next(); n++ {
		row := rows.values()
		if err := row.placeIDs(t.columns, false); err != nil {
			return err
		}
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return err
		}
		tell(progress, t.name, n)
	}
	return tx.Commit()
}

// checkSQLite looks at a database file as a whole.
func checkSQLite(ctx context.Context, db *sql.DB) error {
	damage, err := damageOf(ctx, db)
	if err != nil {
		return err
	}
	if damage != nil {
		return fmt.Errorf("the restored database is damaged: %w", damage)
	}
	orphans, err := queryTexts(ctx, db, `SELECT DISTINCT "table" FROM pragma_foreign_key_check`)
	if err == nil && len(orphans) > 0 {
		err = damaged("rows of %s refer to rows that do not exist", strings.Join(orphans, ", "))
	}
	return err
}
