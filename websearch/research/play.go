package research

import (
	"context"
	"errors"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/websearch/research/agent"
)

// JobRun is the kind of the jobs of runs. Their subject is a run.
const JobRun = "research.run"

// Limits of attempts at a run.
const (
	mostAttempts = 4    // without a recorded call between them, after which the run has failed
	allAttempts  = 1000 // attempts of its job
	closing      = 10 * time.Minute
	pause        = 10 * time.Second // before an attempt after one that could not store something
)

// Kinds are the jobs of the service, for jobs.Runner.Handle.
func (s *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{
		Name: JobRun, Run: s.play, AtOnce: 4 * s.opts.PerUser, PerUser: s.opts.PerUser, Attempts: allAttempts, Timeout: mostSeconds*time.Second + closing,
	}}
}

// job is the job of a run.
func (r *Run) job() jobs.Spec { return jobs.Spec{Kind: JobRun, Subject: r.ID} }

// errDied ends a run of which the process has died again and again.
var errDied = fault.New(fault.Internal, "the server stopped in the middle of it, several times")

// play is the job. An attempt makes no call whose answer an earlier one has stored.
func (s *Service) play(ctx context.Context, j *jobs.Job) error {
	rec, err := s.load(ctx, j)
	switch {
	case err != nil && ctx.Err() == nil && isOfStorage(err):
		return later(err)
	case err != nil || rec == nil:
		return err
	}
	result, err := s.attempt(ctx, rec)
	if err == nil {
		err = s.finish(ctx, rec, result)
	}
	if err == nil {
		return nil
	}
	return s.failed(ctx, rec, err)
}

// failed decides what follows from an attempt that has failed: nothing, another one, or the end of the run.
func (s *Service) failed(ctx context.Context, rec *recorder, err error) error {
	var kept *recordError
	switch {
	case fault.Is(err, fault.NotFound) && s.gone(ctx, rec):
		return nil
	case ctx.Err() != nil, errors.Is(err, jobs.ErrLost):
		return err
	case errors.As(err, &kept) && isOfStorage(err):
		return later(err)
	case errors.As(err, &kept) && fault.Public(err).Retry() != "no":
		return err
	}
	if err := s.fail(ctx, rec, err); err != nil && !errors.Is(err, jobs.ErrLost) {
		return later(err) // a job that ended here would leave its run open for ever
	}
	return nil
}

// isOfStorage reports whether the database could not store something now, which is no fault of the run.
func isOfStorage(err error) bool {
	return fault.Is(err, fault.StorageBusy) || fault.Is(err, fault.StorageDown) || fault.Is(err, fault.StorageFull)
}

// later has the job go on after a pause, in an attempt that does not count as a crash.
func later(err error) error {
	return errors.Join(fault.Wrap(err, fault.Public(err).Code, "the research goes on later").After(pause), jobs.ErrLater)
}

// attempt plays a run from where it is. A panic is an error that ends it: it would be one of every attempt.
func (s *Service) attempt(ctx context.Context, rec *recorder) (result *agent.Result, err error) {
	if rec.job.Attempt-rec.run.Attempt > mostAttempts {
		return nil, errDied
	}
	err = agent.Guard(func() error {
		plan, err := s.withHistory(ctx, rec.job.UserID, rec.run)
		if err != nil {
			return &recordError{err}
		}
		outside, err := s.outside(ctx, rec)
		if err != nil {
			return &recordError{err}
		}
		result, err = agent.Run(ctx, plan, outside, rec)
		return err
	})
	return result, err
}

// load reads a run with its calls, and says that it runs; nil = it is over, or gone.
func (s *Service) load(ctx context.Context, j *jobs.Job) (*recorder, error) {
	return op.Write(ctx, s.store, j.UserID, func(tx Tx) (*recorder, error) {
		run, err := tx.Research(j.Subject)
		if fault.Is(err, fault.NotFound) || err == nil && !run.Open() {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if run.State = Running; run.StartedAt == nil {
			now := tx.Now()
			run.StartedAt = &now
		}
		calls, err := tx.ResearchCalls(run.ID)
		if err != nil {
			return nil, err
		}
		if run.Attempt > j.Attempt { // it is of a job that was lost
			run.Attempt = 0
		}
		return newRecorder(s, j, run, calls), tx.PutResearch(run)
	})
}

// gone reports whether a run was removed, or its conversation was.
func (s *Service) gone(ctx context.Context, rec *recorder) bool {
	_, err := s.Get(ctx, rec.job.UserID, rec.run.ID)
	return fault.Is(err, fault.NotFound)
}

// finish stores the result of a run, what follows from it, and the end of its job.
func (s *Service) finish(ctx context.Context, rec *recorder, result *agent.Result) error {
	files := rec.read()
	return s.end(ctx, rec, func(tx Tx, run *Run) error {
		run.end(Done, tx.Now())
		run.Result, run.Cost, run.Steps = result, result.Cost, result.Steps
		return first(
			func() error { return tx.PutResearchFiles(run.ID, files...) },
			func() error { return tx.PutResearchSteps(run.ID, result.Steps...) },
			func() error { return s.ended(tx, run) },
			func() error { return tx.Emit(run.over("server")) },
		)
	})
}

// ended does what follows for the conversation that asks.
func (s *Service) ended(tx Tx, run *Run) error {
	if run.ConversationID == "" {
		return nil
	}
	for _, do := range s.opts.Ended {
		if err := do(tx, run); err != nil {
			return err
		}
	}
	return nil
}

// fail ends a run without an answer.
func (s *Service) fail(ctx context.Context, rec *recorder, cause error) error {
	public := fault.Public(cause)
	if errors.Is(cause, errDied) { // whose words may be shown
		public = errDied
	}
	log := []any{"run", rec.run.ID, "code", public.Code}
	if public.Code == fault.Internal { // other errors may quote a provider, which may quote the prompt
		log = append(log, "err", cause)
	}
	s.opts.Log.WarnContext(ctx, "research failed", log...)
	err := s.end(ctx, rec, func(tx Tx, run *Run) error {
		run.end(Failed, tx.Now())
		run.Failure = &jobs.Failure{Code: public.Code, Message: public.Message}
		return first(func() error { return s.ended(tx, run) }, func() error { return tx.Emit(run.failed()) })
	})
	if fault.Is(err, fault.NotFound) && s.gone(ctx, rec) {
		return nil
	}
	return err
}

// end ends a run and its job in one transaction.
func (s *Service) end(ctx context.Context, rec *recorder, write func(tx Tx, run *Run) error) error {
	err := s.store.Update(ctx, rec.job.UserID, func(tx Tx) error {
		run, err := tx.Research(rec.run.ID)
		if err != nil {
			return err
		}
		if run.State != Running {
			return jobs.ErrLost
		}
		return first(
			func() error { return write(tx, run) },
			func() error { return tx.DropResearchCalls(run.ID) },
			func() error { return tx.PutResearch(run) },
			func() error { return tx.Jobs.FinishJob(rec.job) },
		)
	})
	if err != nil {
		return &recordError{err}
	}
	return nil
}
