package store

import (
	"context"
	"time"

	"nodest/internal/metrics"
	"nodest/store/sqldb"
)

// backlogRow is a queue: how many wait, and for how many milliseconds the oldest one has.
type backlogRow struct {
	What, Name    string
	Count, Oldest int64
}

// Backlog says what waits, of all processes, with one statement that reads partial indexes of what is open.
func (db *DB) Backlog(ctx context.Context) (*metrics.Backlog, error) {
	return glancing(ctx, db, func(s *session) (*metrics.Backlog, error) {
		b := &metrics.Backlog{
			Generations: map[string]metrics.Queue{}, Due: map[string]metrics.Queue{}, RunningJobs: map[string]int64{}, DiskFreeBytes: diskFree(db.opts.Dir),
		}
		clock, now := s.Clock()
		var args []any
		for range 3 {
			args = append(args, now...)
		}
		return b, sqldb.Each(s, func(row *backlogRow) error { row.add(b); return nil }, backlogQuery(clock), args...)
	})
}

func backlogQuery(clock string) string {
	return "SELECT 'generation' AS what, status AS name, COUNT(*) AS count, " + clock + " - MIN(created_at) AS oldest FROM generations WHERE is_open GROUP BY status" +
		" UNION ALL SELECT 'due', kind, COUNT(*), " + clock + " - MIN(not_before) FROM jobs WHERE state = 'queued' AND not_before <= " + clock + " GROUP BY kind" +
		" UNION ALL SELECT 'running', kind, COUNT(*), 0 FROM jobs WHERE state = 'running' GROUP BY kind" +
		" UNION ALL SELECT 'failed', '', COUNT(*), 0 FROM jobs WHERE state = 'failed'"
}

func (r *backlogRow) add(b *metrics.Backlog) {
	q := metrics.Queue{Count: r.Count, Oldest: max(time.Duration(r.Oldest)*time.Millisecond, 0)}
	switch r.What {
	case "generation":
		b.Generations[r.Name] = q
	case "due":
		b.Due[r.Name] = q
	case "running":
		b.RunningJobs[r.Name] = r.Count
	case "failed":
		b.FailedJobs = r.Count
	}
}
