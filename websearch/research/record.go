package research

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"nodest/internal/jobs"
	"nodest/websearch/research/agent"
)

// recorder keeps the calls of a run, and with each the step that it ends: agent.Recorder.
type recorder struct {
	svc *Service
	job *jobs.Job
	run *Run

	mu    sync.Mutex // held while a call is stored
	calls map[string]*Call
	lost  agent.Cost
	cost  agent.Cost // all answers, and those that were lost

	reading sync.Mutex
	files   []string // whose words the run has since the last call
}

// newRecorder returns the recorder of a run with the calls that earlier attempts have made.
func newRecorder(svc *Service, job *jobs.Job, run *Run, calls []*Call) *recorder {
	r := &recorder{svc: svc, job: job, run: run, calls: map[string]*Call{}}
	for _, c := range calls {
		r.calls[c.Key] = c
		r.lost = plus(r.lost, c.Lost)
		if c.Answer == nil {
			r.lost = plus(r.lost, c.Reserved)
			c.Lost, c.Reserved = plus(c.Lost, c.Reserved), agent.Cost{}
		}
		r.cost = plus(r.cost, c.Cost)
	}
	r.cost = plus(r.cost, r.lost)
	return r
}

func plus(a, b agent.Cost) agent.Cost {
	return agent.Cost{
		Calls: a.Calls + b.Calls, PromptTokens: a.PromptTokens + b.PromptTokens, CompletionTokens: a.CompletionTokens + b.CompletionTokens,
		USD: a.USD + b.USD, Ms: a.Ms + b.Ms,
	}
}

// Recorded returns the answer of a call that was made before.
func (r *recorder) Recorded(key string) (json.RawMessage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[key]
	if c == nil || c.Answer == nil {
		return nil, false
	}
	return c.Answer, true
}

// Begin stores that a call is being made.
func (r *recorder) Begin(ctx context.Context, key string, most agent.Cost) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := Call{Key: key, Reserved: most}
	again := agent.Cost{}
	if c := r.calls[key]; c != nil { // its answer was lost
		next.Lost, again = plus(c.Lost, c.Reserved), c.Reserved
	}
	if err := r.keep(ctx, &next, plus(r.cost, again)); err != nil {
		return err
	}
	r.lost = plus(r.lost, again)
	return nil
}

// Record stores the answer of a call.
func (r *recorder) Record(ctx context.Context, key string, answer json.RawMessage, cost agent.Cost) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := Call{Key: key, Answer: answer, Cost: cost}
	if c := r.calls[key]; c != nil {
		next.Reserved, next.Lost = c.Reserved, c.Lost
	}
	return r.keep(ctx, &next, plus(r.cost, cost))
}

// Lost is what calls may have cost whose answers were lost.
func (r *recorder) Lost() agent.Cost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// recordError says that a call could not be stored: another attempt may do it.
type recordError struct{ error }

func (e *recordError) Unwrap() error { return e.error }

// keep stores a call, as long as the run is ours.
func (r *recorder) keep(ctx context.Context, c *Call, cost agent.Cost) error {
	files := r.read()
	err := r.svc.store.Update(ctx, r.job.UserID, func(tx Tx) error {
		run, err := tx.Research(r.run.ID)
		if err != nil {
			return err
		}
		if run.State != Running {
			return jobs.ErrLost
		}
		run.Cost = cost
		if c.Answer != nil {
			run.Attempt = r.job.Attempt
		}
		var steps []agent.Step
		if step, ok := agent.StepOf(c.Key, c.Answer); ok {
			steps = append(steps, step)
		}
		return first(
			func() error { return tx.PutResearch(run) },
			func() error { return tx.PutResearchCall(run.ID, c) },
			func() error { return tx.PutResearchSteps(run.ID, steps...) },
			func() error { return tx.PutResearchFiles(run.ID, files...) },
			func() error { return tx.Jobs.NoteJob(r.job, progress{Calls: len(r.calls)}) },
		)
	})
	if err != nil {
		return &recordError{err}
	}
	r.calls[c.Key], r.cost = c, cost
	if c.Answer != nil {
		r.run.Attempt = r.job.Attempt
	}
	r.reading.Lock()
	defer r.reading.Unlock()
	r.files = r.files[len(files):]
	return nil
}

// read returns the files whose words the run has since the last call.
func (r *recorder) read() []string {
	r.reading.Lock()
	defer r.reading.Unlock()
	return slices.Clone(r.files)
}

// reads notes that the run now has words of a file.
func (r *recorder) reads(fileID string) {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.files = append(r.files, fileID)
}

// progress is what the job of a run shows.
type progress struct {
	Calls int `json:"calls"`
}

// first does one thing after another until one fails.
func first(all ...func() error) error {
	for _, do := range all {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}
