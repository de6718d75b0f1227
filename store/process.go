package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"nodest/store/sqldb"
)

// lostAfter is how long the lock of a process must be missing before its leases end. A living
// process takes its lock again sooner: at once when its connection is cut, and otherwise
// when its own ExpireLost finds the lock missing.
const lostAfter = 1400 * time.Millisecond

// lostProcesses records since when the lock of each process has been missing.
type lostProcesses struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// note records which processes are missing, and returns those that count as dead.
func (l *lostProcesses) note(missing []string, now time.Time) (dead []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := make(map[string]time.Time, len(missing))
	for _, process := range missing {
		first, known := l.since[process]
		if !known {
			first = now
		}
		since[process] = first
		if now.Sub(first) >= lostAfter {
			dead = append(dead, process)
		}
	}
	l.since = since
	return dead
}

// Process is the name of this process in leases: it holds a lock of that name, and the
// leases of a process without its lock are ended by ExpireLost.
func (db *DB) Process() string { return db.process }

// ExpireLost ends the leases of processes that have died, so that what they were doing need
// not wait for the leases to run out. It is called about every 750 ms, and returns true
// when it has ended some. On SQLite, which has one process, it does nothing.
//
// A process counts as dead when its lock has been missing for 1.4 seconds. If it is alive after
// all, nothing that was stored is lost: its next checkpoint renews the lease or, if another
// process was faster, reports that the reply or job is no longer its own.
func (db *DB) ExpireLost(ctx context.Context) (some bool, err error) {
	backend, shared := db.backend.(*sqldb.Postgres)
	if !shared {
		return false, nil
	}
	missing, err := glancing(ctx, db, func(s *session) ([]string, error) {
		return sqldb.All[string](s, "SELECT process FROM (SELECT CAST(? AS TEXT) AS process"+
			" UNION SELECT lease_owner FROM generations WHERE is_open AND lease_until > 0"+
			" UNION SELECT lease_owner FROM jobs WHERE state = 'running' AND lease_until > 0) leasing"+
			" WHERE "+sqldb.Gone("process"), db.process)
	})
	if err != nil {
		db.lost.note(nil, time.Now()) // they may have had their locks in the meantime
		return false, err
	}
	if i := slices.Index(missing, db.process); i >= 0 {
		backend.Renew()
		missing = slices.Delete(missing, i, i+1)
	}
	dead := db.lost.note(missing, time.Now())
	if len(dead) == 0 {
		return false, nil
	}
	err = db.write(ctx, func(s *session) error {
		some = false
		replies, err := s.expire("generations", "is_open", dead)
		if err != nil {
			return err
		}
		jobs, err := s.expire("jobs", "state = 'running'", dead)
		some = replies+jobs > 0
		return err
	})
	return some && err == nil, err
}

// expire ends the leases of processes that are still without their locks.
func (s *session) expire(table, open string, processes []string) (int64, error) {
	return s.Exec("UPDATE "+table+" SET lease_until = 0 WHERE id IN (SELECT id FROM "+table+
		" WHERE "+open+" AND lease_until > 0 AND lease_owner IN (?) AND "+sqldb.Gone("lease_owner")+s.SkipLocked()+")", processes)
}
