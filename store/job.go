package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"nodest/fault"
	"nodest/jobs"
	"nodest/op"
)

// jobRow is a job. A running one belongs to LeaseOwner until LeaseUntil. NextAt is
// when the job that follows it is due, because it was enqueued after this one had
// begun; 0 = none does. The attempt never falls while somebody holds it, so id, owner
// and attempt name a lease.
type jobRow struct {
	bun.BaseModel `bun:"table:jobs,alias:j"`
	ID            string `bun:"id,pk"`
	Kind          text
	UserID        *text // nil = the server's own
	Subject       text
	Payload       document
	State         string
	Progress      document
	Attempt       int
	NotBefore     int64
	NextAt        int64
	NextPayload   document
	LeaseOwner    text
	LeaseUntil    int64
	Error         document
	CreatedAt     int64
	UpdatedAt     int64
}

func (r *jobRow) job() (*jobs.Job, error) {
	j := &jobs.Job{
		ID: r.ID, Kind: string(r.Kind), Subject: string(r.Subject), Payload: json.RawMessage(r.Payload),
		State: jobs.State(r.State), Progress: json.RawMessage(r.Progress), Attempt: r.Attempt,
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt),
		Owner: string(r.LeaseOwner), LeaseUntil: moment(r.LeaseUntil),
	}
	if r.UserID != nil {
		j.UserID = string(*r.UserID)
	}
	if j.State == jobs.Queued {
		j.NotBefore = moment(r.NotBefore)
	}
	if r.NextAt > 0 {
		j.Next = &jobs.Spec{
			Kind: j.Kind, UserID: j.UserID, Subject: j.Subject, Payload: json.RawMessage(r.NextPayload), NotBefore: moment(r.NextAt),
		}
	}
	return j, decode(r.Error, &j.Error)
}

func jobsOf(rows []*jobRow) ([]*jobs.Job, error) {
	items := make([]*jobs.Job, len(rows))
	for i, row := range rows {
		var err error
		if items[i], err = row.job(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// jobNews is what a transaction did to the queue that this process's runner
// should hear of.
type jobNews struct {
	enqueued  bool
	cancelled []string // ids
}

// tell is called after the commit.
func (db *DB) tell(news jobNews) {
	if news.enqueued || len(news.cancelled) > 0 {
		db.opts.Jobs(news.cancelled)
	}
}

// orNull is a user in the column: the server's own jobs have none.
func orNull(userID string) *text {
	if userID == "" {
		return nil
	}
	t := text(userID)
	return &t
}

// begun says that an open job has been claimed before: what is enqueued follows it.
const begun = "(j.state = 'running' OR j.attempt > 0 OR j.next_at > 0)"

// requeue is what another Enqueue does to an open job, or to what follows it.
const requeue = `UPDATE SET updated_at = excluded.updated_at,
	payload = CASE WHEN ` + begun + ` THEN j.payload ELSE excluded.payload END,
	not_before = CASE WHEN ` + begun + ` OR j.not_before < excluded.not_before THEN j.not_before ELSE excluded.not_before END,
	next_payload = CASE WHEN ` + begun + ` THEN excluded.payload ELSE j.next_payload END,
	next_at = CASE WHEN ` + begun + ` AND (j.next_at = 0 OR j.next_at > excluded.not_before) THEN excluded.not_before ELSE j.next_at END`

// enqueue stores jobs, in the order of their keys, so that two transactions that
// enqueue the same ones do not wait for each other.
func (s *session) enqueue(specs []jobs.Spec) error {
	for _, spec := range specs {
		if err := spec.Check(); err != nil {
			return err
		}
	}
	ordered := slices.SortedStableFunc(slices.Values(specs), func(a, b jobs.Spec) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.UserID, b.UserID), strings.Compare(a.Subject, b.Subject))
	})
	for _, spec := range ordered {
		more := requeue
		if spec.Once {
			more = "NOTHING"
		}
		err := s.insert(&jobRow{
			ID: op.NewID(), Kind: text(spec.Kind), UserID: orNull(spec.UserID), Subject: text(spec.Subject),
			Payload: document(spec.Payload), State: string(jobs.Queued), NotBefore: max(millis(spec.NotBefore), s.now),
			CreatedAt: s.now, UpdatedAt: s.now,
		}, "ON CONFLICT (COALESCE(user_id, ''), kind, subject) WHERE state IN ('queued', 'running') DO", more)
		if err != nil {
			return err
		}
	}
	return nil
}

// ours is the condition that an attempt is its holder's still, and its arguments;
// userID "" stands for the server, that may end everybody's.
func ours(j *jobs.Job, userID string) (string, []any) {
	where, args := " WHERE id = ? AND state = ? AND lease_owner = ? AND attempt = ?",
		[]any{text(j.ID), string(jobs.Running), text(j.Owner), j.Attempt}
	if userID != "" {
		where += " AND user_id = ?"
		args = append(args, text(userID))
	}
	return where, args
}

func (s *session) noteJob(j *jobs.Job, userID string, progress json.RawMessage) error {
	where, args := ours(j, userID)
	n, err := s.exec(s.raw("UPDATE jobs SET progress = ?, updated_at = ?"+where,
		append([]any{document(progress), s.now}, args...)...))
	if err == nil && n == 0 {
		return jobs.ErrLost
	}
	return err
}

// endJob ends an attempt and enqueues what follows; again says that the job itself
// was enqueued while it ran.
func (s *session) endJob(j *jobs.Job, userID string, o jobs.Outcome) (again bool, err error) {
	var row jobRow
	where, args := ours(j, userID)
	found, err := s.scan(s.raw("SELECT * FROM jobs"+where+s.forUpdate(), args...), &row)
	if err != nil {
		return false, err
	}
	if !found {
		return false, jobs.ErrLost
	}
	failure := row.Error
	if o.Error != nil {
		if failure, err = encode(o.Error); err != nil {
			return false, err
		}
	} else if o.State == jobs.Done {
		failure = nil
	}
	ended, err := row.job()
	if err != nil {
		return false, err
	}
	row.NotBefore = 0
	if o.State == jobs.Queued {
		row.NotBefore = max(millis(o.NotBefore), s.now)
		if o.Uncounted {
			row.Attempt--
		}
	} else {
		row.NextAt, row.NextPayload = 0, nil
	}
	_, err = s.exec(s.raw("UPDATE jobs SET state = ?, attempt = ?, not_before = ?, next_at = ?, next_payload = ?,"+
		" lease_owner = '', lease_until = 0, error = ?, updated_at = ? WHERE id = ?",
		string(o.State), row.Attempt, row.NotBefore, row.NextAt, row.NextPayload, failure, s.now, row.ID))
	if err != nil {
		return false, err
	}
	next := o.Next
	if again = ended.Next != nil && o.State != jobs.Queued; again {
		next = append([]jobs.Spec{*ended.Next}, next...)
	}
	return again, s.enqueue(next)
}

// Enqueue puts jobs of any owners into the queue: jobs.Store.
func (db *DB) Enqueue(ctx context.Context, specs ...jobs.Spec) error {
	if len(specs) == 0 {
		return nil
	}
	err := db.backend.write(ctx, func(s *session) error { return s.enqueue(specs) })
	if err == nil {
		db.tell(jobNews{enqueued: true})
	}
	return err
}

// EndJob ends an attempt: jobs.Store.
func (db *DB) EndJob(ctx context.Context, j *jobs.Job, o jobs.Outcome) error {
	var again bool
	err := db.backend.write(ctx, func(s *session) (err error) {
		again, err = s.endJob(j, "", o)
		return err
	})
	if err == nil {
		db.tell(jobNews{enqueued: again || len(o.Next) > 0})
	}
	return err
}

// Enqueue puts jobs of the user into the queue.
func (t *tx) Enqueue(specs ...jobs.Spec) error {
	if err := t.writable(); err != nil {
		return err
	}
	own := slices.Clone(specs)
	for i := range own {
		own[i].UserID = t.userID
	}
	t.jobs.enqueued = t.jobs.enqueued || len(own) > 0
	return t.enqueue(own)
}

// NoteJob stores the progress of a running job of the user.
func (t *tx) NoteJob(j *jobs.Job, progress any) error {
	if err := t.writable(); err != nil {
		return err
	}
	doc, err := encode(progress)
	if err != nil {
		return err
	}
	return t.noteJob(j, t.userID, json.RawMessage(doc))
}

// FinishJob ends a running job of the user as done.
func (t *tx) FinishJob(j *jobs.Job) error {
	if err := t.writable(); err != nil {
		return err
	}
	again, err := t.endJob(j, t.userID, jobs.Outcome{State: jobs.Done})
	t.jobs.enqueued = t.jobs.enqueued || again
	return err
}

// CancelJobs ends the open jobs of the user about a subject.
func (t *tx) CancelJobs(subject string, kinds ...string) error {
	if err := t.writable(); err != nil {
		return err
	}
	if len(kinds) > 0 {
		return t.cancel("subject = ? AND kind IN (?)", text(subject), list(kinds))
	}
	return t.cancel("subject = ?", text(subject))
}

// cancel ends the open jobs of the user that a condition selects.
func (t *tx) cancel(where string, args ...any) error {
	var ids []string
	_, err := t.scan(t.raw("UPDATE jobs SET state = ?, not_before = 0, next_at = 0, next_payload = NULL, lease_owner = '', lease_until = 0, updated_at = ?"+
		" WHERE user_id = ? AND state IN ('queued', 'running') AND "+where+" RETURNING id",
		append([]any{string(jobs.Cancelled), t.now, text(t.userID)}, args...)...), &ids)
	t.jobs.cancelled = append(t.jobs.cancelled, ids...)
	return err
}

// Job returns one of the user.
func (t *tx) Job(id string) (*jobs.Job, error) {
	var row jobRow
	found, err := t.scan(t.raw("SELECT * FROM jobs WHERE user_id = ? AND id = ?", text(t.userID), text(id)), &row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "no such job")
	}
	return row.job()
}

// openOf is a condition on jobs of a user that are open, in the words of the index
// that holds those alone: how many have ended does not matter to it.
const openOf = "COALESCE(user_id, '') = ? AND state IN ('queued', 'running')"

// Jobs lists those of the user, newest first.
func (t *tx) Jobs(f jobs.Filter, cursor string, limit int) ([]*jobs.Job, string, error) {
	var rows []*jobRow
	q := t.db.NewSelect().Model(&rows)
	if f.Open && f.Kind != "" {
		q.Where(openOf, text(t.userID))
	} else {
		q.Where("user_id = ?", text(t.userID))
	}
	if f.Kind != "" {
		q.Where("kind = ?", text(f.Kind))
	}
	if f.Subject != "" {
		q.Where("subject = ?", text(f.Subject))
	}
	if f.Open && f.Kind == "" {
		q.Where("state IN ('queued', 'running')")
	}
	limit = pageLength(limit)
	if err := page(q, "created_at", cursor, limit); err != nil {
		return nil, "", err
	}
	if _, err := t.scan(q); err != nil {
		return nil, "", err
	}
	rows, next := cut(rows, limit, func(r *jobRow) place { return place{r.CreatedAt, r.ID} })
	items, err := jobsOf(rows)
	return items, next, err
}
