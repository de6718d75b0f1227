package store

import (
	"time"

	"github.com/uptrace/bun"
)

// States of jobs.
const (
	jobQueued  = "queued"
	jobRunning = "running"
	jobDone    = "done"
	jobFailed  = "failed"
)

// jobRow is work in the background. Of one kind and subject at most one is open
// (queued or running). A running job belongs to LeaseOwner until LeaseUntil; who
// finds a lease that is over takes the job, with the next attempt.
type jobRow struct {
	bun.BaseModel `bun:"table:jobs"`
	ID            string  `bun:"id,pk"`
	Kind          string  // area.verb
	UserID        *string // nil = the server's own
	Subject       string
	Payload       document
	State         string
	Progress      document
	Attempt       int
	NotBefore     int64
	LeaseOwner    string
	LeaseUntil    int64
	Error         *text
	CreatedAt     int64
	UpdatedAt     int64
}

// openJob makes sure that there is an open job of the kind and subject.
func (s *session) openJob(kind, subject string) error {
	_, err := s.exec(s.db.NewInsert().Model(&jobRow{
		ID: newID(), Kind: kind, Subject: subject, State: jobQueued, NotBefore: s.now, CreatedAt: s.now, UpdatedAt: s.now,
	}).On("CONFLICT (kind, subject) WHERE state IN ('queued', 'running') DO NOTHING"))
	return err
}

// claimJob takes the open job of a kind and subject for owner; nil when another
// process holds it or it is not yet due.
func (s *session) claimJob(kind, subject, owner string, lease time.Duration) (*jobRow, error) {
	var job jobRow
	found, err := s.scan(s.raw(`UPDATE jobs SET state = ?, attempt = attempt + 1, lease_owner = ?, lease_until = ?, updated_at = ?
		WHERE kind = ? AND subject = ? AND not_before <= ?
			AND (state = ? OR state = ? AND lease_until < ?)
		RETURNING *`,
		jobRunning, text(owner), s.now+lease.Milliseconds(), s.now, kind, subject, s.now, jobQueued, jobRunning, s.now), &job)
	if err != nil || !found {
		return nil, err
	}
	return &job, nil
}

// keepJob notes the progress and renews the lease; false when it was lost.
func (s *session) keepJob(job *jobRow, progress any, lease time.Duration) (bool, error) {
	doc, err := encode(progress)
	if err != nil {
		return false, err
	}
	n, err := s.exec(s.raw("UPDATE jobs SET progress = ?, lease_until = ?, updated_at = ?"+
		" WHERE id = ? AND state = ? AND lease_owner = ? AND attempt = ?",
		doc, s.now+lease.Milliseconds(), s.now, job.ID, jobRunning, text(job.LeaseOwner), job.Attempt))
	return n == 1, err
}

// endJob closes a job that is still the caller's.
func (s *session) endJob(job *jobRow, failure error) error {
	state, message := jobDone, (*text)(nil)
	if failure != nil {
		m := text(failure.Error())
		state, message = jobFailed, &m
	}
	_, err := s.exec(s.raw("UPDATE jobs SET state = ?, error = ?, updated_at = ?"+
		" WHERE id = ? AND state = ? AND lease_owner = ? AND attempt = ?",
		state, message, s.now, job.ID, jobRunning, text(job.LeaseOwner), job.Attempt))
	return err
}
