package api

import (
	"context"
	"net/http"

	"nodest/internal/op"
	"nodest/internal/rights"
)

// rightsUploads bring everything of a user in. The export is a route of package server, because it has no end in memory.
var rightsUploads = []Upload{
	{Route: "POST /me/import", Name: "account.import", Limit: rights.MaxFile, Spooled: true, Run: importAccount},
}

func importAccount(ctx context.Context, s *Services, c *op.Call, f File) (any, error) {
	if f.DryRun != "" && f.DryRun != "true" && f.DryRun != "false" {
		check := &op.Checks{}
		check.That(false, "dryRun", "value", "must be true or false")
		return nil, check.Err()
	}
	return s.Rights.Import(ctx, c, f.Body, f.Size, f.DryRun == "true")
}

// chatDeletion is the operation of deleting a chat, for good or so that maintenance does it later.
var chatDeletion = Operation{
	Command: "chat.delete", Route: "DELETE /conversations/:conversationId", Status: http.StatusNoContent, Key: true,
	Data: takes(func(ctx context.Context, c *Call, in chatDeleteData) (any, error) {
		if in.Purge {
			return struct{}{}, c.Rights.PurgeChat(ctx, c.Call, in.ConversationID)
		}
		return struct{}{}, c.Engine.DeleteConversation(ctx, c.Call, in.ConversationID)
	}),
}

type chatDeleteData struct {
	conversationData
	Purge bool `json:"purge,omitempty"`
}
