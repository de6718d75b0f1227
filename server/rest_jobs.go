package server

import (
	"context"
	"encoding/json"

	"nodest/jobs"
	"nodest/op"
)

// wireJob is a piece of background work. What it works with stays inside.
type wireJob struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Subject   string          `json:"subject"`
	State     jobs.State      `json:"state"`
	Attempt   int             `json:"attempt"`
	Progress  json.RawMessage `json:"progress,omitempty"`
	NotBefore *wireTime       `json:"notBefore,omitempty"`
	Error     *jobs.Failure   `json:"error,omitempty"`
	CreatedAt wireTime        `json:"createdAt"`
	UpdatedAt wireTime        `json:"updatedAt"`
}

func wireJobOf(j *jobs.Job) wireJob {
	w := wireJob{
		ID: j.ID, Kind: j.Kind, Subject: j.Subject, State: j.State, Attempt: j.Attempt, Progress: j.Progress, Error: j.Error,
		CreatedAt: wireTime(j.CreatedAt), UpdatedAt: wireTime(j.UpdatedAt),
	}
	if j.State == jobs.Queued && !j.NotBefore.IsZero() {
		at := wireTime(j.NotBefore)
		w.NotBefore = &at
	}
	return w
}

type jobListData struct {
	pageData
	State jobs.State `json:"state,omitempty"`
}

func jobList(ctx context.Context, s *Server, c *op.Call, in jobListData) (any, error) {
	return pages(wireJobOf)(s.Engine.Jobs(ctx, c.UserID, in.State, in.Cursor, int(in.Limit)))
}

func jobRetry(ctx context.Context, s *Server, c *op.Call, in idData) (any, error) {
	return result(wireJobOf)(s.Engine.RetryJob(ctx, c, in.ID))
}
