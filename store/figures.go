package store

import (
	"context"
	"io/fs"
	"path/filepath"

	"nodest/store/sqldb"
)

// Figures describe the whole server.
type Figures struct {
	Users       int64
	Generations int64 // queued and running ones, of all processes
	QueuedJobs  int64
	FailedJobs  int64 // those of the last 7 days

	DatabaseBytes int64 // on SQLite with its log
	DataBytes     int64 // all files of the data folder
	DiskFreeBytes int64 // where the data folder is; -1 = unknown
}

// Figures counts what there is.
func (db *DB) Figures(ctx context.Context) (*Figures, error) {
	f := &Figures{DiskFreeBytes: diskFree(db.opts.Dir)}
	f.measure(db.opts.Dir)
	err := db.read(ctx, func(s *session) error {
		counts := map[*int64]string{
			&f.Users:       "SELECT COUNT(*) FROM users",
			&f.Generations: "SELECT COUNT(*) FROM generations WHERE is_open",
			&f.QueuedJobs:  "SELECT COUNT(*) FROM jobs WHERE state = 'queued'",
			&f.FailedJobs:  "SELECT COUNT(*) FROM jobs WHERE state = 'failed'",
		}
		if db.opts.URL != "" {
			counts[&f.DatabaseBytes] = "SELECT pg_database_size(current_database())"
		}
		for into, query := range counts {
			n, err := sqldb.Value[int64](s, query)
			if err != nil {
				return err
			}
			*into = n
		}
		return nil
	})
	return f, err
}

// measure adds up the files of the data folder, and those of SQLite. Files that have just
// been removed, and folders that this program may not read, do not count.
func (f *Figures) measure(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			f.add(path, entry, dir)
		}
		return nil
	}) // no step fails
}

func (f *Figures) add(path string, entry fs.DirEntry, dir string) {
	info, err := entry.Info()
	if err != nil {
		return
	}
	f.DataBytes += info.Size()
	switch path {
	case filepath.Join(dir, sqldb.File), filepath.Join(dir, sqldb.File+"-wal"), filepath.Join(dir, sqldb.File+"-shm"):
		f.DatabaseBytes += info.Size()
	}
}
