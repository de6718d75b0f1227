package store

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/store/sqldb"
)

// LookAtJobs implements jobs.Store with one statement. Each kind costs one index search,
// however long the queue is.
func (db *DB) LookAtJobs(ctx context.Context, owner string, kinds []string) (*jobs.View, error) {
	return glancing(ctx, db, func(s *session) (*jobs.View, error) {
		view := &jobs.View{}
		clock, now := s.Clock()
		return view, sqldb.Each(s, func(sight *jobSight) error { return sight.add(view, kinds) }, lookAtJobs(clock, len(kinds)), lookArgs(owner, now, kinds)...)
	})
}

// jobSight is a row that LookAtJobs reads: a running job, an expired lease, or the time until
// the first queued job of a kind is due, whose place among the kinds is in Attempt.
type jobSight struct {
	What    string
	ID      string
	Attempt int
	Wait    int64 // milliseconds from now
}

func (j *jobSight) add(view *jobs.View, kinds []string) error {
	switch {
	case j.What == "held":
		view.Held = append(view.Held, jobs.Ref{ID: j.ID, Attempt: j.Attempt})
	case j.What == "over":
		view.Over = true
	case j.Wait <= 0:
		view.Due = append(view.Due, kinds[j.Attempt])
	case view.Next == 0 || view.Next > time.Duration(j.Wait)*time.Millisecond:
		view.Next = time.Duration(j.Wait) * time.Millisecond
	}
	return nil
}

func lookAtJobs(clock string, kinds int) string {
	query := "SELECT 'held' AS what, id, attempt, CAST(0 AS BIGINT) AS wait FROM jobs WHERE state = 'running' AND lease_owner = ?" +
		" UNION ALL SELECT 'over', NULL, 0, 0 WHERE EXISTS (SELECT 1 FROM jobs WHERE state = 'running' AND lease_until < " + clock + ")"
	if kinds == 0 {
		return query
	}
	firsts := make([]string, kinds)
	for i := range firsts {
		firsts[i] = fmt.Sprintf("SELECT %d AS place, MIN(not_before) AS due FROM jobs WHERE state = 'queued' AND kind = ?", i)
	}
	return query + " UNION ALL SELECT 'next', NULL, place, due - " + clock + " FROM (" + strings.Join(firsts, " UNION ALL ") + ") firsts WHERE due IS NOT NULL"
}

func lookArgs(owner string, now []any, kinds []string) []any {
	args := append([]any{owner}, now...)
	if len(kinds) > 0 {
		args = append(args, now...)
	}
	for _, kind := range kinds {
		args = append(args, kind)
	}
	return args
}

// errAbandoned is what the user reads of a job that no attempt survived.
var errAbandoned = &jobs.Failure{Code: fault.Internal, Message: "the server stopped each time it was tried"}

// RecoverJobs puts running jobs without a living owner into the queue: jobs.Store.
func (db *DB) RecoverJobs(ctx context.Context, attempts map[string]int, alone string) error {
	return db.write(ctx, func(s *session) error {
		rows, err := sqldb.All[jobRow](s, "SELECT * FROM jobs WHERE state = 'running' AND (lease_until < ? OR ? <> '' AND lease_owner <> ?)"+
			" ORDER BY id"+s.SkipLocked(), s.Now(), alone, alone)
		if err != nil {
			return err
		}
		for i := range rows {
			j := rows[i].job()
			limit, known := attempts[j.Kind]
			if !known {
				continue
			}
			if err := s.recoverJob(j, limit); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *session) recoverJob(j *jobs.Job, limit int) error {
	if j.Attempt >= limit {
		_, err := s.endJob(j, "", jobs.Outcome{State: jobs.Failed, Error: errAbandoned})
		return err
	}
	return s.Run("UPDATE jobs SET state = 'queued', not_before = ?, lease_owner = '', lease_until = 0,"+
		" error = ?, updated_at = ? WHERE id = ?", s.Now(), errAbandoned, s.Now(), j.ID)
}

// ClaimJobs leases jobs to owner: jobs.Store.
func (db *DB) ClaimJobs(ctx context.Context, owner string, lease time.Duration, wants []jobs.Want) ([]*jobs.Job, error) {
	return writing(ctx, db, func(s *session) (claimed []*jobs.Job, err error) {
		for _, w := range wants {
			some, err := s.claimKind(owner, lease, w)
			if err != nil {
				return nil, err
			}
			claimed = append(claimed, some...)
		}
		return claimed, nil
	})
}

// claimKind takes jobs of a kind, one of each user in turn, until there is no room
// or a whole round through the users brought nothing.
func (s *session) claimKind(owner string, lease time.Duration, w jobs.Want) (claimed []*jobs.Job, err error) {
	running := map[string]int{}
	maps.Copy(running, w.Running)
	after, whole, taken := w.After, w.After == nil, false // state of this round
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
		if after = &turn.UserID; !w.Allows(running[turn.UserID], len(claimed)) {
			continue
		}
		job, err := s.leaseJob(turn.ID, owner, lease)
		if err != nil {
			return nil, err
		}
		claimed, taken = append(claimed, job), true
		running[turn.UserID]++
	}
	return claimed, nil
}

// jobTurn is a job that can be claimed and whose it is.
type jobTurn struct{ ID, UserID string }

// nextTurn returns the first due job of the first user after one, nil when there
// is none.
func (s *session) nextTurn(kind string, after *string) (*jobTurn, error) {
	// The plus keeps SQLite from the index jobs_next, after which it had to sort.
	query, args := "SELECT id, user_id FROM jobs WHERE state = 'queued' AND kind = ? AND +not_before <= ?",
		[]any{kind, s.Now()}
	if after != nil {
		query, args = query+" AND "+s.owner("user_id")+" > "+s.owner("?"), append(args, sqldb.ID(*after))
	}
	return sqldb.One[jobTurn](s, query+" ORDER BY "+s.owner("user_id")+", not_before, id LIMIT 1"+s.SkipLocked(), args...)
}

func (s *session) leaseJob(id, owner string, lease time.Duration) (*jobs.Job, error) {
	return sqldb.Find(s, "job", (*jobRow).job, "UPDATE jobs SET state = 'running', attempt = attempt + 1, not_before = 0, lease_owner = ?,"+
		" lease_until = ?, updated_at = ? WHERE id = ? RETURNING *", owner, s.Now().Add(lease), s.Now(), id)
}

// RenewJobs lets leases of owner last longer: jobs.Store. Rows in work are left out,
// so that it never waits, and nobody for it.
func (db *DB) RenewJobs(ctx context.Context, owner string, ids []string, lease time.Duration) error {
	if len(ids) == 0 {
		return nil
	}
	return db.write(ctx, func(s *session) error {
		return s.Run("UPDATE jobs SET lease_until = ? WHERE id IN (SELECT id FROM jobs"+
			" WHERE id IN (?) AND state = 'running' AND lease_owner = ?"+s.SkipLocked()+")", s.Now().Add(lease), ids, owner)
	})
}
