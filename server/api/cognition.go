package api

import (
	"context"
	"encoding/json"
	"strings"

	"nodest/cognition"
)

// cognitionOperations are about the logs of conversations, which keep the names of their documents.
var cognitionOperations = []Operation{
	{Route: "GET /conversations/:conversationId/cognition-log", Data: takes(cognitionLog)},
	{Route: "POST /conversations/:conversationId/cognition-log/import", Bytes: 16 << 20, Alone: true, Data: takes(func(ctx context.Context, c *Call, in cognitionImportData) (any, error) {
		return c.Cognition.Import(ctx, c.Call, in.ConversationID, in.Events, in.Entries)
	})},
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
