package circle

import (
	"context"
	"errors"
	"time"

	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// How turns end that are not simply carried out.

// endTurn ends a turn.
func endTurn(tx Tx, t *Turn, state TurnState, note rules.Note, c cost) error {
	t.State, t.Note, t.EndedAt = state, note, new(tx.Now())
	t.Calls += c.calls
	t.Tokens += c.tokens
	if state != TurnFailed {
		t.Error = nil
	}
	if note == rules.NoteBudget {
		if err := countLeftOut(tx); err != nil {
			return err
		}
	}
	return tx.UpdateTurn(t)
}

// leaveOut ends the turn of a job as left out, and the job. A missing model is told once
// per post.
func (svc *Service) leaveOut(ctx context.Context, j *jobs.Job, note rules.Note, c cost) error {
	return svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		t, err := tx.Turn(j.Subject)
		if err == nil && t.State == TurnPlanned {
			err = leaveOutTurn(tx, t, note, c)
		}
		if goneOr(err) != nil {
			return err
		}
		return tx.Jobs.FinishJob(j)
	})
}

func leaveOutTurn(tx Tx, t *Turn, note rules.Note, c cost) error {
	if note == rules.NoteNoModel {
		told, err := toldOfNoModel(tx, t.PostID)
		if err != nil {
			return err
		}
		if !told {
			cause := fault.New(fault.NotConfigured, "no model is available to the circle: no provider is configured, or the day's tokens are used up")
			if err := emitFailed(tx, t, cause); err != nil {
				return err
			}
		}
	}
	return endTurn(tx, t, TurnLeftOut, note, c)
}

// toldOfNoModel reports whether another turn of a post was left out for want of a model.
func toldOfNoModel(tx Tx, postID string) (bool, error) {
	if postID == "" {
		return false, nil
	}
	turns, _, err := tx.Turns(TurnFilter{PostID: postID, State: TurnLeftOut}, "", maxDaily)
	for _, t := range turns {
		if t.Note == rules.NoteNoModel {
			return true, nil
		}
	}
	return false, err
}

func (svc *Service) postpone(ctx context.Context, j *jobs.Job, until time.Time) error {
	return svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		t, err := tx.Turn(j.Subject)
		if err != nil {
			return goneOr(err)
		}
		t.DueAt = until
		if err := tx.UpdateTurn(t); err != nil {
			return err
		}
		if err := tx.Jobs.FinishJob(j); err != nil {
			return err
		}
		return tx.Jobs.Enqueue(jobs.Spec{Kind: j.Kind, Subject: j.Subject, NotBefore: until})
	})
}

// failed notes why an attempt at the turn of a job failed, and tells the user. It returns
// cause where another attempt can help; otherwise it ends the turn and the job.
func (svc *Service) failed(ctx context.Context, j *jobs.Job, attempts int, c cost, cause error) error {
	switch {
	case errors.Is(cause, errBudget):
		return svc.leaveOut(ctx, j, rules.NoteBudget, c)
	case errors.Is(cause, errNoModel):
		return svc.leaveOut(ctx, j, rules.NoteNoModel, c)
	case ctx.Err() != nil || errors.Is(cause, jobs.ErrLost):
		return cause // not the fault of the turn
	}
	public := fault.Public(cause)
	last := public.Retry() == "no" || j.Attempt >= attempts
	err := svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		t, err := tx.Turn(j.Subject)
		if err == nil && t.State == TurnPlanned {
			err = noteFailure(tx, t, public, last, c)
		}
		if goneOr(err) != nil || !last {
			return goneOr(err)
		}
		return tx.Jobs.FinishJob(j)
	})
	if err != nil || !last {
		return errors.Join(cause, err)
	}
	svc.opts.Log.WarnContext(ctx, "a turn of the circle failed", "turn", j.Subject, "err", cause)
	return nil
}

func noteFailure(tx Tx, t *Turn, cause *fault.Error, last bool, c cost) error {
	t.Error = op.FailureOf(cause)
	if err := emitFailed(tx, t, cause); err != nil {
		return err
	}
	if last {
		return endTurn(tx, t, TurnFailed, "", c)
	}
	t.Calls += c.calls
	t.Tokens += c.tokens
	return tx.UpdateTurn(t)
}

func emitFailed(tx Tx, t *Turn, cause *fault.Error) error {
	data := map[string]any{"characterId": t.CharacterID, "error": op.FailureOf(cause)}
	if t.PostID != "" {
		data["postId"] = t.PostID
	}
	return emit(tx, server, "circle.failed", data)
}

// Retry carries out a turn at once: one that is planned, or has failed. A reaction that was
// planned for later does not wait for the end of the quiet hours either.
//
// Errors: Conflict for a turn in any other state.
func (svc *Service) Retry(ctx context.Context, c *op.Call, turnID string) (*Turn, error) {
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Turn, error) {
		t, err := tx.Turn(turnID)
		if err != nil {
			return nil, err
		}
		if t.State != TurnFailed && t.State != TurnPlanned {
			return nil, fault.New(fault.Conflict, "the turn is %s; only one that is planned or has failed can be carried out now", t.State)
		}
		if t.Slot == "" && t.DueAt.After(tx.Now()) {
			t.Reason = rules.AskedFor
		}
		t.State, t.Note, t.Error, t.EndedAt, t.DueAt = TurnPlanned, "", nil, nil, tx.Now()
		if err := tx.UpdateTurn(t); err != nil {
			return nil, err
		}
		return t, tx.Jobs.Enqueue(jobs.Spec{Kind: t.job(), Subject: t.ID})
	})
}

// job is the kind of job that carries out a turn.
func (t *Turn) job() string {
	if t.Slot != "" {
		return JobPost
	}
	return JobReact
}

// resume lets turns that are overdue be carried out: their jobs were lost with processes
// that were killed again and again.
func resume(tx Tx) error {
	planned, err := allTurns(tx, TurnFilter{State: TurnPlanned})
	if err != nil {
		return err
	}
	for _, t := range planned {
		if tx.Now().Sub(t.DueAt) <= lateAfter {
			continue
		}
		if err := tx.Jobs.Enqueue(jobs.Spec{Kind: t.job(), Subject: t.ID, Once: true}); err != nil {
			return err
		}
	}
	return nil
}
