package server

import (
	"context"
	"net/http"

	"nodest/chat"
	"nodest/op"
)

// historyOperations change and read the tree of a conversation: edits, branches,
// forks, resets and search.
var historyOperations = []operation{
	{command: "message.edit", route: "PATCH /messages/:messageId", key: true, starts: true, data: takes(messageEdit)},
	{command: "chat.fork", route: "POST /conversations/:conversationId/fork", status: http.StatusCreated, key: true, data: takes(chatFork)},
	{command: "chat.reset", route: "POST /conversations/:conversationId/reset", key: true, data: takes(chatReset)},
	{command: "chat.branches", route: "GET /conversations/:conversationId/branches", data: takes(chatBranches)},
	{command: "chat.tree", route: "GET /conversations/:conversationId/tree", data: takes(chatTree)},
	{command: "chat.search", route: "GET /messages/search", data: takes(chatSearch)},
}

func messageEdit(ctx context.Context, s *Server, c *op.Call, in chat.EditInput) (any, error) {
	got, err := s.Engine.Edit(ctx, c, in)
	if err != nil {
		return nil, err
	}
	a := &sent{GenerationID: got.GenerationID}
	a.has(&a.Message, got.Message)
	a.writes(&a.Reply, got.Reply)
	return a, nil
}

func chatFork(ctx context.Context, s *Server, c *op.Call, in chat.ForkInput) (any, error) {
	return conversationOf(s.Chats.Fork(ctx, c, in))
}

func chatReset(ctx context.Context, s *Server, c *op.Call, in conversationData) (any, error) {
	return conversationOf(s.Chats.Reset(ctx, c, in.ConversationID))
}

type branchesData struct {
	ConversationID string `json:"conversationId"`
	pageData
}

func chatBranches(ctx context.Context, s *Server, c *op.Call, in branchesData) (any, error) {
	return pages(chat.WireBranch)(s.Chats.Branches(ctx, c.UserID, in.ConversationID, in.Cursor, int(in.Limit)))
}

func chatTree(ctx context.Context, s *Server, c *op.Call, in conversationData) (any, error) {
	return result(chat.WireTree)(s.Chats.Tree(ctx, c.UserID, in.ConversationID))
}

type searchData struct {
	Query          string `json:"q"`
	ConversationID string `json:"conversationId,omitempty"`
	CharacterID    string `json:"characterId,omitempty"`
	pageData
}

func chatSearch(ctx context.Context, s *Server, c *op.Call, in searchData) (any, error) {
	return pages(chat.WireHit)(s.Chats.Search(ctx, c.UserID, chat.SearchInput{
		Query: in.Query, ConversationID: in.ConversationID, CharacterID: in.CharacterID, Cursor: in.Cursor, Limit: int(in.Limit),
	}))
}
