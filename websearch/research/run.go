package research

import (
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/websearch/research/agent"
)

// State is how far a run has come.
type State string

// The states of a run. The last three are final.
const (
	Planned   State = "planned"
	Queued    State = "queued"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Run is a question, how it is researched, and what came of it.
type Run struct {
	ID             string
	ConversationID string // that asks; "" = none
	HeadID         string // the message at the end of the conversation when it asked; "" = none
	MessageID      string // the message of the conversation with the answer; "" = none
	State          State
	Plan           agent.Plan // without the history, which is read when the run begins
	Estimate       Estimate
	Attempt        int // attempt of the job, at which something was recorded last
	Cost           agent.Cost
	Failure        *jobs.Failure // nil = none
	Result         *agent.Result // nil = there is none; its steps are Steps
	Steps          []agent.Step  // in the order of their numbers
	CreatedAt      time.Time
	StartedAt      *time.Time // nil = it has not run yet
	FinishedAt     *time.Time
}

// Open reports whether the run waits for its turn, or runs.
func (r *Run) Open() bool { return r.State == Queued || r.State == Running }

// Failed is why the run has failed, as an error; nil = it has not.
func (r *Run) Failed() *fault.Error {
	if r.Failure == nil {
		return nil
	}
	return fault.Retell(r.Failure.Code, r.Failure.Message)
}

// end moves a run into a final state.
func (r *Run) end(state State, now time.Time) { r.State, r.FinishedAt = state, &now }
