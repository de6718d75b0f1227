package store

import (
	"context"
	"maps"
	"strings"
	"time"

	"nodest/fault"
	"nodest/jobs"
)

// LookAtJobs says what there is to do: jobs.Store. Each kind costs a search in an
// index, however long the queue is.
func (db *DB) LookAtJobs(ctx context.Context, owner string, kinds []string) (*jobs.View, error) {
	var view *jobs.View
	err := db.backend.read(ctx, func(s *session) (err error) {
		view = &jobs.View{}
		if err := s.nextDue(kinds, view); err != nil {
			return err
		}
		var over int
		view.Over, err = s.scan(s.raw("SELECT 1 FROM jobs WHERE state = 'running' AND lease_until < ? LIMIT 1", s.now), &over)
		if err != nil {
			return err
		}
		var held []jobs.Ref
		_, err = s.scan(s.raw("SELECT id, attempt FROM jobs WHERE state = 'running' AND lease_owner = ?", text(owner)), &held)
		view.Held = held
		return err
	})
	return view, err
}

// nextDue finds out when the first job of some kinds is due.
func (s *session) nextDue(kinds []string, view *jobs.View) error {
	if len(kinds) == 0 {
		return nil
	}
	const next = "SELECT COALESCE(MIN(not_before), 0) FROM jobs WHERE state = 'queued' AND kind = ?"
	args := make([]any, len(kinds))
	for i, kind := range kinds {
		args[i] = text(kind)
	}
	var times []int64
	if _, err := s.scan(s.raw(strings.Repeat(" UNION ALL "+next, len(kinds))[len(" UNION ALL "):], args...), &times); err != nil {
		return err
	}
	first := int64(0)
	for _, at := range times {
		if at > 0 && (first == 0 || at < first) {
			first = at
		}
	}
	switch {
	case first == 0:
	case first <= s.now:
		view.Due = true
	default:
		view.Next = time.Duration(first-s.now) * time.Millisecond
	}
	return nil
}

// errAbandoned is what the user reads of a job that no attempt survived.
var errAbandoned = &jobs.Failure{Code: fault.Internal, Message: "the server stopped each time it was tried"}

// RecoverJobs puts running jobs without a living owner into the queue: jobs.Store.
func (db *DB) RecoverJobs(ctx context.Context, attempts map[string]int, alone string) error {
	failure, err := encode(errAbandoned)
	if err != nil {
		return err
	}
	return db.backend.write(ctx, func(s *session) error {
		over, args := "lease_until < ?", []any{s.now}
		if alone != "" {
			over = "(lease_until < ? OR lease_owner <> ?)"
			args = append(args, text(alone))
		}
		var rows []*jobRow
		if _, err := s.scan(s.raw("SELECT * FROM jobs WHERE state = 'running' AND "+over+" ORDER BY id"+s.skipLocked(), args...), &rows); err != nil {
			return err
		}
		for _, row := range rows {
			limit, known := attempts[string(row.Kind)]
			if !known {
				continue
			}
			if err := s.recoverJob(row, limit, failure); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *session) recoverJob(row *jobRow, limit int, failure document) error {
	j, err := row.job()
	if err != nil {
		return err
	}
	if row.Attempt >= limit {
		_, err := s.endJob(j, "", jobs.Outcome{State: jobs.Failed, Error: errAbandoned})
		return err
	}
	_, err = s.exec(s.raw("UPDATE jobs SET state = 'queued', not_before = ?, lease_owner = '', lease_until = 0,"+
		" error = ?, updated_at = ? WHERE id = ?", s.now, failure, s.now, row.ID))
	return err
}

// skipLocked ends a SELECT of rows to be taken: those that another transaction is
// working on are left to it.
func (s *session) skipLocked() string {
	if s.postgres {
		return " FOR UPDATE SKIP LOCKED"
	}
	return ""
}

// ClaimJobs leases jobs to owner: jobs.Store.
func (db *DB) ClaimJobs(ctx context.Context, owner string, lease time.Duration, wants []jobs.Want) (claimed []*jobs.Job, err error) {
	err = db.backend.write(ctx, func(s *session) error {
		claimed = nil
		for _, w := range wants {
			some, err := s.claimKind(owner, lease, w)
			if err != nil {
				return err
			}
			claimed = append(claimed, some...)
		}
		return nil
	})
	return claimed, err
}

// claimKind takes jobs of a kind, one of each user in turn, until there is no room
// or a whole round through the users brought nothing.
func (s *session) claimKind(owner string, lease time.Duration, w jobs.Want) (claimed []*jobs.Job, err error) {
	running := map[string]int{}
	maps.Copy(running, w.Running)
	after, whole, taken := w.After, w.After == nil, false // of this round
	for len(claimed) < w.Free {
		turn, err := s.nextTurn(w.Kind, after)
		switch {
		case err != nil:
			return nil, err
		case turn == nil && whole && !taken:
			return claimed, nil
		case turn == nil:
			after, whole, taken = nil, true, false
			continue
		}
		if after = &turn.User; running[turn.User] >= w.PerUser {
			continue
		}
		job, err := s.leaseJob(turn.ID, owner, lease)
		if err != nil {
			return nil, err
		}
		claimed, taken = append(claimed, job), true
		running[turn.User]++
	}
	return claimed, nil
}

// jobTurn is a job that can be claimed and whose it is.
type jobTurn struct{ ID, User string }

// nextTurn returns the first due job of the first user after one, nil when there
// is none.
func (s *session) nextTurn(kind string, after *string) (*jobTurn, error) {
	// The plus keeps SQLite from the index jobs_next, after which it had to sort.
	query, args := "SELECT id, COALESCE(user_id, '') FROM jobs WHERE state = 'queued' AND kind = ? AND +not_before <= ?",
		[]any{text(kind), s.now}
	if after != nil {
		query += " AND COALESCE(user_id, '') > ?"
		args = append(args, text(*after))
	}
	var t jobTurn
	found, err := s.scan(s.raw(query+" ORDER BY COALESCE(user_id, ''), not_before, id LIMIT 1"+s.skipLocked(), args...), &t.ID, &t.User)
	if err != nil || !found {
		return nil, err
	}
	return &t, nil
}

func (s *session) leaseJob(id, owner string, lease time.Duration) (*jobs.Job, error) {
	var row jobRow
	_, err := s.scan(s.raw("UPDATE jobs SET state = 'running', attempt = attempt + 1, not_before = 0, lease_owner = ?,"+
		" lease_until = ?, updated_at = ? WHERE id = ? RETURNING *",
		text(owner), s.now+lease.Milliseconds(), s.now, text(id)), &row)
	if err != nil {
		return nil, err
	}
	return row.job()
}

// RenewJobs lets leases of owner last longer: jobs.Store. Rows in work are left out,
// so that it never waits, and nobody for it.
func (db *DB) RenewJobs(ctx context.Context, owner string, ids []string, lease time.Duration) error {
	if len(ids) == 0 {
		return nil
	}
	return db.backend.write(ctx, func(s *session) error {
		_, err := s.exec(s.raw("UPDATE jobs SET lease_until = ? WHERE id IN (SELECT id FROM jobs"+
			" WHERE id IN (?) AND state = 'running' AND lease_owner = ?"+s.skipLocked()+")",
			s.now+lease.Milliseconds(), list(ids), text(owner)))
		return err
	})
}
