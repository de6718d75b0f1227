package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/store/sqldb"
)

// jobRow is a job. A running one belongs to its owner until LeaseUntil. NextAt is when
// the job that follows it is due, because it was enqueued after this one had begun; zero
// = none does. The attempt never falls while somebody holds it, so id, owner and attempt
// name a lease. NextAt stays when the job has ended.
type jobRow struct {
	jobs.Job    `db:"Owner=lease_owner -Next"`
	UserID      *string // nil = the server's own
	NextAt      time.Time
	NextPayload json.RawMessage
}

func (r *jobRow) job() *jobs.Job {
	if r.UserID != nil {
		r.Job.UserID = *r.UserID
	}
	if r.State == jobs.Queued || r.State == jobs.Running {
		r.Next = r.next()
	}
	return &r.Job
}

// next is what follows the job, or did when it ended; nil = nothing.
func (r *jobRow) next() *jobs.Spec {
	if r.NextAt.IsZero() {
		return nil
	}
	return &jobs.Spec{Kind: r.Kind, UserID: r.Job.UserID, Subject: r.Subject, Payload: r.NextPayload, NotBefore: r.NextAt}
}

// jobNews is what a transaction did to the queue that this process's runner
// should hear of.
type jobNews struct {
	enqueued  bool
	cancelled []string // ids
}

// jobTx stores the user's jobs.
type jobTx struct {
	*tx
	news jobNews // for the runner, after the commit
}

// tell is called after the commit.
func (db *DB) tell(news jobNews) {
	if news.enqueued || len(news.cancelled) > 0 {
		db.opts.Jobs(news.cancelled)
	}
}

// begun is true of an open job that has been claimed before: what is enqueued then follows
// it.
const begun = "(j.state = 'running' OR j.attempt > 0 OR j.next_at > 0)"

// requeue is what another Enqueue does to an open job, or to what follows it. Mostly that is
// nothing but the lock of the row: each message enqueues the same jobs again.
const requeue = `UPDATE SET updated_at = excluded.updated_at,
	payload = CASE WHEN ` + begun + ` THEN j.payload ELSE excluded.payload END,
	not_before = CASE WHEN ` + begun + ` OR j.not_before < excluded.not_before THEN j.not_before ELSE excluded.not_before END,
	next_payload = CASE WHEN ` + begun + ` THEN excluded.payload ELSE j.next_payload END,
	next_at = CASE WHEN ` + begun + ` AND (j.next_at = 0 OR j.next_at > excluded.not_before) THEN excluded.not_before ELSE j.next_at END
	WHERE ` + requeues

// requeues is true where requeue does something.
const requeues = `CASE WHEN ` + begun + ` THEN j.next_at = 0 OR j.next_at > excluded.not_before OR COALESCE(j.next_payload, '') <> COALESCE(excluded.payload, '')
		ELSE j.not_before > excluded.not_before OR COALESCE(j.payload, '') <> COALESCE(excluded.payload, '') END`

// owner is an expression for whose job it is that is not NULL for the server's own, as indexes have it.
func (s *session) owner(id string) string { return "COALESCE(" + id + ", " + s.NoID() + ")" }

// settled reports whether another Enqueue has nothing to do. PostgreSQL is not asked: there, an
// open job has to stay as it is until the transaction ends.
func (s *session) settled(spec jobs.Spec) (bool, error) {
	if s.Postgres {
		return false, nil
	}
	return s.Has("SELECT 1 FROM jobs j JOIN (SELECT ? AS not_before, ? AS payload) AS excluded"+
		" WHERE "+s.owner("j.user_id")+" = "+s.owner("?")+" AND j.kind = ? AND j.subject = ? AND j.state IN ('queued', 'running') AND NOT "+requeues,
		later(spec.NotBefore, s.Now()), spec.Payload, sqldb.ID(spec.UserID), spec.Kind, spec.Subject)
}

// enqueue stores jobs, in the order of their keys, so that two transactions that
// enqueue the same ones do not wait for each other. changed reports whether a job is new or
// due at another time.
func (s *session) enqueue(specs []jobs.Spec) (changed bool, err error) {
	var ordered []jobs.Spec
	for _, spec := range specs {
		if err := spec.Check(); err != nil {
			return false, err
		}
		if done, err := s.settled(spec); err != nil {
			return false, err
		} else if !done {
			ordered = append(ordered, spec)
		}
	}
	slices.SortStableFunc(ordered, compareSpecs)
	for len(ordered) > 0 {
		n := 1 // that one statement can store: it must not find a row twice
		for n < len(ordered) && ordered[n].Once == ordered[0].Once && compareSpecs(ordered[n], ordered[n-1]) != 0 {
			n++
		}
		more := requeue
		if ordered[0].Once {
			more = "NOTHING"
		}
		rows := make([]*jobRow, n)
		for i := range rows {
			rows[i] = s.newJob(&ordered[i])
		}
		stored, err := s.InsertNew("jobs AS j", rows, "ON CONFLICT ("+s.owner("user_id")+", kind, subject) WHERE state IN ('queued', 'running') DO", more)
		if err != nil {
			return false, err
		}
		changed, ordered = changed || stored > 0, ordered[n:]
	}
	return changed, nil
}

// compareSpecs orders jobs by their keys.
func compareSpecs(a, b jobs.Spec) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.UserID, b.UserID), strings.Compare(a.Subject, b.Subject))
}

func (s *session) newJob(spec *jobs.Spec) *jobRow {
	row := &jobRow{Job: jobs.Job{
		ID: op.NewID(), Kind: spec.Kind, Subject: spec.Subject, Payload: spec.Payload, State: jobs.Queued,
		NotBefore: later(spec.NotBefore, s.Now()), CreatedAt: s.Now(), UpdatedAt: s.Now(),
	}}
	if spec.UserID != "" {
		row.UserID = &spec.UserID
	}
	return row
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ours is the condition, with its arguments, that an attempt still belongs to its holder;
// userID "" is the server, which may end anybody's jobs.
func ours(j *jobs.Job, userID string) (string, []any) {
	where, args := " WHERE id = ? AND state = ? AND lease_owner = ? AND attempt = ?", []any{j.ID, jobs.Running, j.Owner, j.Attempt}
	if userID != "" {
		where, args = where+" AND user_id = ?", append(args, userID)
	}
	return where, args
}

func (s *session) noteJob(j *jobs.Job, userID string, progress any) error {
	where, args := ours(j, userID)
	n, err := s.Exec("UPDATE jobs SET progress = ?, updated_at = ?"+where, append([]any{progress, s.Now()}, args...)...)
	if err == nil && n == 0 {
		return jobs.ErrLost
	}
	return err
}

// endJob ends an attempt and enqueues what follows; again says that the job itself
// was enqueued while it ran. Of the jobs about one thing that are done, the newest is kept.
func (s *session) endJob(j *jobs.Job, userID string, o jobs.Outcome) (again bool, err error) {
	set, args := "UPDATE jobs SET state = ?, not_before = ?, lease_owner = '', lease_until = 0, updated_at = ?", []any{o.State, time.Time{}, s.Now()}
	if o.State == jobs.Queued {
		args[1] = s.Now().Add(o.After)
	}
	if o.State == jobs.Queued && o.Uncounted {
		set += ", attempt = attempt - 1"
	}
	if o.Error != nil || o.State == jobs.Done {
		set, args = set+", error = ?", append(args, o.Error)
	}
	where, holder := ours(j, userID)
	row, err := sqldb.One[jobRow](s, set+where+" RETURNING *", append(args, holder...)...)
	if err != nil {
		return false, err
	}
	if row == nil {
		return false, jobs.ErrLost
	}
	ended := row.job()
	if o.State == jobs.Done {
		err = s.Run("DELETE FROM jobs WHERE subject = ? AND kind = ? AND user_id IS NOT DISTINCT FROM ? AND state = ? AND id <> ?",
			ended.Subject, ended.Kind, ended.UserID, jobs.Done, ended.ID)
	}
	if err != nil {
		return false, err
	}
	next, after := o.Next, row.next()
	if again = after != nil && o.State != jobs.Queued; again {
		next = append([]jobs.Spec{*after}, next...)
	}
	_, err = s.enqueue(next)
	return again, err
}

// Enqueue puts jobs of any owners into the queue: jobs.Store.
func (db *DB) Enqueue(ctx context.Context, specs ...jobs.Spec) error {
	if len(specs) == 0 {
		return nil
	}
	changed, err := writing(ctx, db, func(s *session) (bool, error) { return s.enqueue(specs) })
	if err == nil {
		db.tell(jobNews{enqueued: changed})
	}
	return err
}

// EndJob ends an attempt: jobs.Store.
func (db *DB) EndJob(ctx context.Context, j *jobs.Job, o jobs.Outcome) error {
	again, err := writing(ctx, db, func(s *session) (bool, error) { return s.endJob(j, "", o) })
	if err == nil {
		db.tell(jobNews{enqueued: again || len(o.Next) > 0})
	}
	return err
}

func (t *jobTx) Enqueue(specs ...jobs.Spec) error {
	own := slices.Clone(specs)
	for i := range own {
		own[i].UserID = t.userID
	}
	changed, err := t.enqueue(own)
	t.news.enqueued = t.news.enqueued || changed
	return err
}

func (t *jobTx) NoteJob(j *jobs.Job, progress any) error { return t.noteJob(j, t.userID, progress) }

func (t *jobTx) FinishJob(j *jobs.Job) error {
	again, err := t.endJob(j, t.userID, jobs.Outcome{State: jobs.Done})
	t.news.enqueued = t.news.enqueued || again
	if err == nil {
		j.Finish()
	}
	return err
}

// cancel ends the open jobs of the user that a condition selects.
func (t *jobTx) cancel(where string, args ...any) error {
	ids, err := sqldb.All[string](t, "UPDATE jobs SET state = ?, not_before = 0, next_at = 0, next_payload = NULL, lease_owner = '', lease_until = 0, updated_at = ?"+
		" WHERE user_id = ? AND state IN ('queued', 'running') AND "+where+" RETURNING id",
		append([]any{jobs.Cancelled, t.Now(), t.userID}, args...)...)
	t.news.cancelled = append(t.news.cancelled, ids...)
	return err
}

// openOf is a condition on jobs of a user that are open, in the words of the index
// that holds those alone: how many have ended does not matter to it.
func (s *session) openOf() string {
	return s.owner("user_id") + " = ? AND state IN ('queued', 'running')"
}

func (t *jobTx) Jobs(f jobs.Filter, cursor string, limit int) ([]*jobs.Job, string, error) {
	where, args := "user_id = ?", []any{t.userID}
	switch {
	case f.Open && f.Kind != "":
		where = t.openOf()
	case f.Open:
		where += " AND state IN ('queued', 'running')"
	}
	if f.Kind != "" {
		where, args = where+" AND kind = ?", append(args, f.Kind)
	}
	if f.Subject != "" {
		where, args = where+" AND subject = ?", append(args, f.Subject)
	}
	if f.State != "" {
		where, args = where+" AND state = ?", append(args, f.State)
	}
	return sqldb.Page(t, (*jobRow).job, "created_at", cursor, limit, "SELECT * FROM jobs WHERE "+where, args...)
}

func (t *jobTx) CancelJobs(subject string, kinds ...string) error {
	if len(kinds) > 0 {
		return t.cancel("subject = ? AND kind IN (?)", subject, kinds)
	}
	return t.cancel("subject = ?", subject)
}

func (t *jobTx) Job(id string) (*jobs.Job, error) {
	return sqldb.Find(t, "job", (*jobRow).job, "SELECT * FROM jobs WHERE user_id = ? AND id = ?", t.userID, id)
}
