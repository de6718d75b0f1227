package api

import (
	"context"
	"net/http"

	"nodest/chat"
)

// historyOperations change and read the tree of a conversation: edits, branches,
// forks, resets and search.
var historyOperations = []Operation{
	{Command: "message.edit", Route: "PATCH /messages/:messageId", Key: true, Starts: true, Data: takes(messageEdit)},
	{Command: "chat.fork", Route: "POST /conversations/:conversationId/fork", Status: http.StatusCreated, Key: true, Data: takes(func(ctx context.Context, c *Call, in chat.ForkInput) (any, error) {
		return conversationOf(c.Chats.Fork(ctx, c.Call, in))
	})},
	{Command: "chat.reset", Route: "POST /conversations/:conversationId/reset", Key: true, Data: takes(func(ctx context.Context, c *Call, in conversationData) (any, error) {
		return conversationOf(c.Chats.Reset(ctx, c.Call, in.ConversationID))
	})},
	{Command: "chat.branches", Route: "GET /conversations/:conversationId/branches", Data: takes(func(ctx context.Context, c *Call, in branchesData) (any, error) {
		return Pages(chat.WireBranch)(c.Chats.Branches(ctx, c.UserID, in.ConversationID, in.Cursor, int(in.Limit)))
	})},
	{Command: "chat.tree", Route: "GET /conversations/:conversationId/tree", Data: takes(func(ctx context.Context, c *Call, in conversationData) (any, error) {
		return Result(chat.WireTree)(c.Chats.Tree(ctx, c.UserID, in.ConversationID))
	})},
	{Command: "chat.search", Route: "GET /messages/search", Data: takes(chatSearch)},
}

func messageEdit(ctx context.Context, c *Call, in chat.EditInput) (any, error) {
	got, err := c.Engine.Edit(ctx, c.Call, in)
	if err != nil {
		return nil, err
	}
	a := &Sent{GenerationID: got.GenerationID}
	a.has(&a.Message, got.Message)
	a.writes(&a.Reply, got.Reply)
	return a, nil
}

type branchesData struct {
	ConversationID string `json:"conversationId"`
	pageData
}

type searchData struct {
	Query          string `json:"q"`
	ConversationID string `json:"conversationId,omitempty"`
	CharacterID    string `json:"characterId,omitempty"`
	pageData
}

func chatSearch(ctx context.Context, c *Call, in searchData) (any, error) {
	return Pages(chat.WireHit)(c.Chats.Search(ctx, c.UserID, chat.SearchInput{
		Query: in.Query, ConversationID: in.ConversationID, CharacterID: in.CharacterID, Cursor: in.Cursor, Limit: int(in.Limit),
	}))
}
