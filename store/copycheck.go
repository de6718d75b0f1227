package store

import (
	"context"
	"fmt"
	"path/filepath"

	"nodest/internal/jobs"
	"nodest/store/sqldb"
)

// recounted are tables whose rows a restore makes itself.
var recounted = map[string]bool{"quotas": true}

// CheckCopy compares a database of SQLite that was just restored with the backup that it was made of:
// it must be undamaged, of the schema of this program, and have as many rows in each table.
func CheckCopy(ctx context.Context, o Options, m *Manifest) error {
	_, err := examine(ctx, o, func(s *session) (struct{}, error) {
		return struct{}{}, s.matches(ctx, m, filepath.Join(o.Dir, sqldb.File))
	})
	return err
}

func (s *session) matches(ctx context.Context, m *Manifest, path string) error {
	found, err := sqldb.All[string](s, "PRAGMA integrity_check(3)")
	if err != nil {
		return err
	}
	if len(found) != 1 || found[0] != "ok" {
		return fmt.Errorf("%s is damaged: %v", path, found)
	}
	version, err := sqldb.Value[int64](s, "SELECT MAX(version_id) FROM "+versionTable+" WHERE is_applied")
	if err != nil {
		return err
	}
	if newest := newestVersion(); version != newest {
		return fmt.Errorf("its schema version is %d instead of %d", version, newest)
	}
	for _, t := range m.Tables {
		if recounted[t.Name] || m.SchemaVersion != version { // a migration may move rows
			continue
		}
		n, err := sqldb.Value[int64](s, `SELECT COUNT(*) FROM "`+t.Name+`"`)
		if err != nil {
			return err
		}
		if n != t.Rows {
			return fmt.Errorf("the table %s has %d rows instead of %d", t.Name, n, t.Rows)
		}
	}
	return ctx.Err()
}

// ServerJobs returns the jobs of a kind that are the server's own, the newest first. Those that have
// failed are kept for some days, and of those that are done the last.
func (db *DB) ServerJobs(ctx context.Context, kind string) (found []*jobs.Job, err error) {
	err = db.read(ctx, func(s *session) error {
		found, err = s.serverJobs(kind)
		return err
	})
	return found, err
}

// ServerJobs is DB.ServerJobs for a database that a server may be using.
func ServerJobs(ctx context.Context, o Options, kind string) ([]*jobs.Job, error) {
	return examine(ctx, o, func(s *session) ([]*jobs.Job, error) { return s.serverJobs(kind) })
}

func (s *session) serverJobs(kind string) ([]*jobs.Job, error) {
	return sqldb.Map(s, (*jobRow).job, "SELECT * FROM jobs WHERE user_id IS NULL AND kind = ? ORDER BY created_at DESC, id DESC LIMIT 50", kind)
}

// NoteServerJob stores how far a running job of the server itself is, encoded as JSON. It returns
// jobs.ErrLost when another process has taken the job over.
func (db *DB) NoteServerJob(ctx context.Context, j *jobs.Job, progress any) error {
	_, err := writing(ctx, db, func(s *session) (struct{}, error) { return struct{}{}, s.noteJob(j, "", progress) })
	return err
}
