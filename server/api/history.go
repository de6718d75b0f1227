package api

import (
	"context"
	"net/http"

	"nodest/chat"
	"nodest/internal/op"
)

// historyOperations change and read the tree of a conversation: edits, branches,
// forks, resets and search.
var historyOperations = []Operation{
	{Command: "message.edit", Route: "PATCH /messages/:messageId", Key: true, Starts: true, Data: takes(messageEdit)},
	{Command: "chat.fork", Route: "POST /conversations/:conversationId/fork", Status: http.StatusCreated, Key: true, Data: takes(chatFork)},
	{Command: "chat.reset", Route: "POST /conversations/:conversationId/reset", Key: true, Data: takes(chatReset)},
	{Command: "chat.branches", Route: "GET /conversations/:conversationId/branches", Data: takes(chatBranches)},
	{Command: "chat.tree", Route: "GET /conversations/:conversationId/tree", Data: takes(chatTree)},
	{Command: "chat.search", Route: "GET /messages/search", Data: takes(chatSearch)},
}

func messageEdit(ctx context.Context, s *Services, c *op.Call, in chat.EditInput) (any, error) {
	got, err := s.Engine.Edit(ctx, c, in)
	if err != nil {
		return nil, err
	}
	a := &Sent{GenerationID: got.GenerationID}
	a.has(&a.Message, got.Message)
	a.writes(&a.Reply, got.Reply)
	return a, nil
}

func chatFork(ctx context.Context, s *Services, c *op.Call, in chat.ForkInput) (any, error) {
	return conversationOf(s.Chats.Fork(ctx, c, in))
}

func chatReset(ctx context.Context, s *Services, c *op.Call, in conversationData) (any, error) {
	return conversationOf(s.Chats.Reset(ctx, c, in.ConversationID))
}

type branchesData struct {
	ConversationID string `json:"conversationId"`
	pageData
}

func chatBranches(ctx context.Context, s *Services, c *op.Call, in branchesData) (any, error) {
	return Pages(chat.WireBranch)(s.Chats.Branches(ctx, c.UserID, in.ConversationID, in.Cursor, int(in.Limit)))
}

func chatTree(ctx context.Context, s *Services, c *op.Call, in conversationData) (any, error) {
	return Result(chat.WireTree)(s.Chats.Tree(ctx, c.UserID, in.ConversationID))
}

type searchData struct {
	Query          string `json:"q"`
	ConversationID string `json:"conversationId,omitempty"`
	CharacterID    string `json:"characterId,omitempty"`
	pageData
}

func chatSearch(ctx context.Context, s *Services, c *op.Call, in searchData) (any, error) {
	return Pages(chat.WireHit)(s.Chats.Search(ctx, c.UserID, chat.SearchInput{
		Query: in.Query, ConversationID: in.ConversationID, CharacterID: in.CharacterID, Cursor: in.Cursor, Limit: int(in.Limit),
	}))
}
