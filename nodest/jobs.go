package nodest

import (
	"context"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// Jobs lists the user's background jobs of all kinds, newest first; state "" = in any
// state.
//
// Errors: Invalid for the state, the cursor or the limit.
func (e *Engine) Jobs(ctx context.Context, userID string, state jobs.State, cursor string, limit int) (*op.Page[*jobs.Job], error) {
	if state != "" && !slices.Contains(jobs.States, state) {
		return nil, fault.InvalidField("state", "value", "must be queued, running, done, failed or cancelled")
	}
	return op.List(ctx, e.store, userID, limit, func(tx Tx, limit int) ([]*jobs.Job, string, error) {
		return tx.Jobs.Jobs(jobs.Filter{State: state}, cursor, limit)
	})
}

// RetryJob enqueues a failed job again and returns the new one, or the one that is already
// open for the same work. The failed one stays in the list.
//
// Errors: NotFound; Conflict if it has not failed.
func (e *Engine) RetryJob(ctx context.Context, c *op.Call, id string) (*jobs.Job, error) {
	return op.Once(ctx, e.store, c, func(tx Tx) (*jobs.Job, error) {
		j, err := tx.Jobs.Job(id)
		if err != nil {
			return nil, err
		}
		if j.State != jobs.Failed {
			return nil, fault.New(fault.Conflict, "only a failed job can be retried; this one is %s", j.State)
		}
		err = tx.Jobs.Enqueue(jobs.Spec{Kind: j.Kind, Subject: j.Subject, Payload: j.Payload, Once: true})
		if err != nil {
			return nil, err
		}
		open, _, err := tx.Jobs.Jobs(jobs.Filter{Kind: j.Kind, Subject: j.Subject, Open: true}, "", 1)
		if err != nil {
			return nil, err
		}
		return open[0], nil
	})
}
