package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"nodest/cognition"
	"nodest/cognition/side"
)

// cognitionOperations are about the logs of conversations, which keep the names of their documents.
var cognitionOperations = []Operation{
	{Route: "GET /conversations/:conversationId/cognition-log", Data: takes(cognitionLog)},
	{Route: "POST /conversations/:conversationId/cognition-log/import", Bytes: 16 << 20, Alone: true, Data: takes(func(ctx context.Context, c *Call, in cognitionImportData) (any, error) {
		return c.Cognition.Import(ctx, c.Call, in.ConversationID, in.Events, in.Entries)
	})},
	{Route: "GET /conversations/:conversationId/goals", Data: takes(func(ctx context.Context, c *Call, in goalsData) (any, error) {
		return Pages(cognition.WireGoal)(c.Cognition.Goals(ctx, c.UserID, in.ConversationID, in.Status, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /conversations/:conversationId/goals", Status: http.StatusCreated, Data: takes(func(ctx context.Context, c *Call, in goalCreateData) (any, error) {
		return goalOf(c.Side.CreateGoal(ctx, c.Call, cognition.Goal{
			ConversationID: in.ConversationID, ParentID: in.ParentID, Kind: in.Kind, Description: in.Description, Status: in.Status,
		}))
	})},
	{Route: "PATCH /goals/:goalId", IfMatch: true, Data: takes(func(ctx context.Context, c *Call, in goalPatchData) (any, error) {
		return goalOf(c.Side.ChangeGoal(ctx, c.Call, in.GoalID, side.GoalPatch{Description: in.Description, Status: in.Status, IfVersion: in.IfVersion}))
	})},
	{Route: "GET /conversations/:conversationId/extractions", Data: takes(func(ctx context.Context, c *Call, in extractionsData) (any, error) {
		return c.Side.List(ctx, c.UserID, in.ConversationID, in.State, in.After, int(in.Limit))
	})},
	{Route: "POST /conversations/:conversationId/extractions/:extractionId/review", Data: takes(func(ctx context.Context, c *Call, in side.Review) (any, error) {
		return c.Side.ReviewOne(ctx, c.Call, in)
	})},
	{Route: "POST /api/traces/:conversationId/extractions/:extractionId/review", Data: takes(func(ctx context.Context, c *Call, in traceReviewData) (any, error) {
		if in.EditedPayload == nil {
			in.EditedPayload = in.Edited
		}
		return c.Side.ReviewOne(ctx, c.Call, in.Review)
	})},
	{Route: "POST /conversations/:conversationId/extractions/commit", Data: takes(func(ctx context.Context, c *Call, in conversationData) (any, error) {
		return c.Side.Commit(ctx, c.Call, in.ConversationID)
	})},
}

var goalOf = Result(cognition.WireGoal)

type goalsData struct {
	ConversationID string `json:"conversationId"`
	Status         string `json:"status,omitempty"`
	pageData
}

type goalCreateData struct {
	ConversationID string `json:"conversationId"`
	ParentID       string `json:"parentId,omitempty"`
	Kind           string `json:"kind,omitempty"`
	Description    string `json:"description"`
	Status         string `json:"status,omitempty"`
}

type goalPatchData struct {
	GoalID      string  `json:"goalId"`
	Description *string `json:"description,omitempty"`
	Status      *string `json:"status,omitempty"`
	IfVersion   int64   `json:"ifVersion,omitempty"`
}

// traceReviewData is a review with the names of the log's format, too.
type traceReviewData struct {
	side.Review
	Edited json.RawMessage `json:"edited_payload,omitempty"`
}

type extractionsData struct {
	ConversationID string `json:"conversationId"`
	State          string `json:"state,omitempty"`
	After          int64  `json:"after,omitempty"`
	Limit          int64  `json:"limit,omitempty"`
}

type cognitionLogData struct {
	ConversationID string `json:"conversationId"`
	Type           string `json:"type,omitempty"`
	After          int64  `json:"after,omitempty"`
	Limit          int64  `json:"limit,omitempty"`
}

func cognitionLog(ctx context.Context, c *Call, in cognitionLogData) (any, error) {
	var types []string
	if in.Type != "" {
		types = strings.Split(in.Type, ",")
	}
	if err := cognition.CheckTypes(types); err != nil {
		return nil, err
	}
	return c.Cognition.Log(ctx, c.UserID, in.ConversationID, in.After, int(in.Limit), types...)
}

type cognitionImportData struct {
	ConversationID string            `json:"conversationId"`
	TraceID        string            `json:"trace_id,omitempty"`
	Events         []json.RawMessage `json:"events,omitempty"`
	Entries        []json.RawMessage `json:"entries,omitempty"`
	NextAfter      int64             `json:"next_after,omitempty"`
}
