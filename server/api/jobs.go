package api

import (
	"context"
	"encoding/json"
	"net/http"

	"nodest/internal/jobs"
	"nodest/internal/op"
)

// jobOperations are about background work.
var jobOperations = []Operation{
	{Route: "GET /jobs", Data: takes(func(ctx context.Context, c *Call, in jobListData) (any, error) {
		return Pages(wireJobOf)(c.Engine.Jobs(ctx, c.UserID, in.State, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /jobs/:id/retry", Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return Result(wireJobOf)(c.Engine.RetryJob(ctx, c.Call, in.ID))
	})},
}

// wireJob is a piece of background work. What it works with stays inside.
type wireJob struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Subject   string          `json:"subject"`
	State     jobs.State      `json:"state"`
	Attempt   int             `json:"attempt"`
	Progress  json.RawMessage `json:"progress,omitempty"`
	NotBefore *op.Time        `json:"notBefore,omitempty"`
	Error     *jobs.Failure   `json:"error,omitempty"`
	CreatedAt op.Time         `json:"createdAt"`
	UpdatedAt op.Time         `json:"updatedAt"`
}

func wireJobOf(j *jobs.Job) wireJob {
	w := wireJob{
		ID: j.ID, Kind: j.Kind, Subject: j.Subject, State: j.State, Attempt: j.Attempt, Progress: j.Progress, Error: j.Error,
		CreatedAt: op.Time(j.CreatedAt), UpdatedAt: op.Time(j.UpdatedAt),
	}
	if j.State == jobs.Queued && !j.NotBefore.IsZero() {
		at := op.Time(j.NotBefore)
		w.NotBefore = &at
	}
	return w
}

type jobListData struct {
	pageData
	State jobs.State `json:"state,omitempty"`
}
