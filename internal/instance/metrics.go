package instance

import (
	"context"
	"errors"
	"time"

	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/internal/metrics"
	"nodest/nodest"
)

// metered counts what was added to meters.
func (r *Instance) metered(rows []nodest.UsageRow) {
	for _, u := range rows {
		r.metrics.Metered(u.Provider, u.PromptTokens, u.CompletionTokens, u.CostUSD)
	}
}

// generated counts a generation whose end is stored.
func (r *Instance) generated(g *chat.Generation) {
	code := metrics.OK
	if g.Error != nil {
		code = string(g.Error.Code)
	}
	var first, took time.Duration
	if g.FirstTokenAt != nil {
		first = max(g.FirstTokenAt.Sub(g.CreatedAt), time.Millisecond) // on PostgreSQL, whose clock may be ahead, too
	}
	if g.EndedAt != nil {
		took = max(g.EndedAt.Sub(g.CreatedAt), 0)
	}
	r.metrics.Generated(g.Status, code, first, took)
}

// timed counts what a source of memories finds, and how long it takes.
func (r *Instance) timed(memories nodest.Source) nodest.Source {
	find := memories.Find
	memories.Find = func(ctx context.Context, q *nodest.Question) (nodest.Findings, error) {
		began := time.Now()
		f, err := find(ctx, q)
		result := metrics.RecallNone
		switch {
		case err != nil:
			result = metrics.RecallFailed
		case len(f.Memories) > 0:
			result = metrics.RecallMemories
		case len(f.Profile.Facts) > 0:
			result = metrics.RecallProfile
		}
		r.metrics.Recalled(time.Since(began), result)
		return f, err
	}
	return memories
}

// handle registers kinds of jobs, whose attempts are counted.
func (r *Instance) handle(kinds ...jobs.Kind) {
	for _, k := range kinds {
		run := k.Run
		k.Run = func(ctx context.Context, j *jobs.Job) error {
			began, outcome := time.Now(), metrics.JobFailed // also of one that panics
			defer func() { r.metrics.Worked(j.Kind, time.Since(began), outcome) }()
			err := run(ctx, j)
			outcome = outcomeOf(ctx, err)
			return err
		}
		r.jobs.Handle(k)
	}
}

// outcomeOf says how an attempt at a job has ended, which ran in ctx.
func outcomeOf(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return metrics.JobDone
	case errors.Is(err, jobs.ErrLater):
		return metrics.JobLater
	case errors.Is(err, jobs.ErrLost), errors.Is(ctx.Err(), context.Canceled):
		return metrics.JobLost
	}
	return metrics.JobFailed
}
