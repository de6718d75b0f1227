package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"nodest/internal/fault"
)

// State is where a job is in its life.
type State string

// The states. The last three are final.
const (
	Queued    State = "queued"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// States are all states.
var States = []State{Queued, Running, Done, Failed, Cancelled}

// Spec is a job to be put into the queue.
type Spec struct {
	Kind      string          // area.verb
	UserID    string          // "" = the server's own; in a Tx always the acting user
	Subject   string          // id of what it is about; may be ""
	Payload   json.RawMessage // for the handler; nil = none
	NotBefore time.Time       // zero = at once
	Once      bool            // where one is open, nothing changes
}

// Check returns fault.Invalid for a spec that cannot be stored.
func (s Spec) Check() error {
	if s.Kind == "" {
		return fault.InvalidField("kind", "required", "required: the job's kind")
	}
	if s.Payload != nil && !json.Valid(s.Payload) {
		return fault.InvalidField("payload", "type", "the payload of %s is not valid JSON", s.Kind)
	}
	return nil
}

// Job is a row of the queue.
type Job struct {
	ID, Kind, UserID, Subject string
	Payload                   json.RawMessage
	State                     State
	Progress                  json.RawMessage // the handler's last note; nil = nothing
	Attempt                   int             // from 1; 0 = was never claimed
	NotBefore                 time.Time       // a queued one waits until then
	Next                      *Spec           // follows when it has ended; nil = nothing
	Error                     *Failure        // from the last attempt that failed
	CreatedAt, UpdatedAt      time.Time

	Owner      string    // runner that holds the lease; "" = none
	LeaseUntil time.Time // zero without an owner

	finished bool
}

// Finish notes that Tx.FinishJob has ended the job, in a transaction that may still fail: where
// the handler returns no error, there is nothing left to end. The store calls it.
func (j *Job) Finish() { j.finished = true }

// Ref returns the name of this attempt.
func (j *Job) Ref() Ref { return Ref{j.ID, j.Attempt} }

// Ref names one attempt at a job. An attempt that was lost never comes back.
type Ref struct {
	ID      string
	Attempt int
}

// Failure is why an attempt failed, in words that the user may see.
type Failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// ErrLost says that a job is no longer the caller's: its lease expired and another
// process has taken it over, it was cancelled, or it has ended.
var ErrLost = fault.New(fault.Conflict, "the job has ended or was taken over by another process")

// ErrLater is what a handler returns that can go on later from where it is, so that others have
// their turn: the job is queued again behind those that are due, and the attempt does not count.
var ErrLater = errors.New("jobs: it goes on later")

// Filter selects jobs; the zero value selects all.
type Filter struct {
	Kind    string
	Subject string
	State   State
	Open    bool // queued and running ones only
}

// Tx is what a transaction of the store offers for the acting user's jobs; the Tx
// of a subject embeds it. Another user's job, or the server's, does not exist: Job
// returns fault.NotFound for it, NoteJob and FinishJob ErrLost.
type Tx interface {
	// Enqueue puts jobs into the queue; see the package comment for one that is
	// open already. It returns fault.Invalid for a spec that cannot be stored.
	Enqueue(specs ...Spec) error
	// NoteJob stores how far a running job is, encoded as JSON. ErrLost when it is
	// no longer the caller's.
	NoteJob(j *Job, progress any) error
	// FinishJob ends a running job as done, so that its effect and its end commit
	// together; jobs that follow from it are enqueued in the same transaction. It
	// returns ErrLost when the job is no longer the caller's: the transaction must
	// fail then.
	FinishJob(j *Job) error
	// CancelJobs ends all open jobs about a subject, or those of some kinds. The
	// context of one that runs ends: in this process at once, in others within
	// Options.Poll.
	CancelJobs(subject string, kinds ...string) error
	// Job returns one.
	Job(id string) (*Job, error)
	// Jobs lists them newest first, at most limit (0 = 50), beginning after cursor
	// ("" = start); next is "" at the end.
	Jobs(f Filter, cursor string, limit int) (items []*Job, next string, err error)
}

// Store is the queue; package store provides it on SQLite and PostgreSQL. Methods
// of one Job act only while the attempt is its owner's, else they return ErrLost
// and change nothing. After a commit that enqueued or cancelled jobs the store
// calls Runner.Changed of its process.
type Store interface {
	// Enqueue is Tx.Enqueue for any owners, in a transaction of its own.
	// fault.NotFound when a user does not exist.
	Enqueue(ctx context.Context, specs ...Spec) error
	// LookAtJobs says what there is to do for a runner that has room for some kinds. It
	// writes nothing.
	LookAtJobs(ctx context.Context, owner string, kinds []string) (*View, error)
	// RecoverJobs puts running jobs whose lease has expired back into the queue, to be
	// claimed at once, and ends those as failed that have used up their attempts.
	// attempts names the kinds to look at and how often each is tried. With alone
	// set, leases of other owners than that one count as over.
	RecoverJobs(ctx context.Context, attempts map[string]int, alone string) error
	// ClaimJobs leases jobs that are due to owner, for the length of lease.
	ClaimJobs(ctx context.Context, owner string, lease time.Duration, wants []Want) ([]*Job, error)
	// RenewJobs lets the leases of owner last for lease from now, late or not. Jobs that
	// are not owner's are left out; so may be some that a transaction is just working
	// on.
	RenewJobs(ctx context.Context, owner string, ids []string, lease time.Duration) error
	// EndJob ends an attempt.
	EndJob(ctx context.Context, j *Job, o Outcome) error
}

// View is what a runner sees when it looks at the queue.
type View struct {
	Due  []string      // kinds of which something can be claimed
	Next time.Duration // from now until something else is due; 0 = nothing else is queued
	Over bool          // the lease of a running job has expired
	Held []Ref         // jobs that the runner runs
}

// Want is how many jobs of a kind a runner has room for. Users follow one another
// in the order of their ids, and the server itself, beginning after After.
type Want struct {
	Kind    string
	Free    int
	After   *string        // the user served last; nil = none yet
	PerUser int            // how many of one user's may run
	Shared  bool           // one user never gets all places; see Allows
	Running map[string]int // how many of each user's run already; the server's own under ""
}

// Allows reports whether one more job of a user may be claimed who runs some, besides those that
// were claimed just now. Of a shared kind, who runs n leaves n places free for others: two members
// with many jobs do not take all places, and who is alone has PerUser.
func (w Want) Allows(running, claimed int) bool {
	return running < w.PerUser && (!w.Shared || running < w.Free-claimed)
}

// Outcome is how an attempt ended: Done, Failed, or Queued for another one.
type Outcome struct {
	State     State
	Error     *Failure      // nil = what is stored
	After     time.Duration // only with Queued: how long to wait for the next attempt
	Uncounted bool          // only with Queued: this attempt does not count
	Next      []Spec        // are enqueued in the same transaction
}
