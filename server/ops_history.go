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
	{command: "chat.search", route: "GET /messages/search", data: takes(chatSearch)},
}

type editData struct {
	MessageID  string `json:"messageId"`
	Text       string `json:"text"`
	IfRev      int64  `json:"ifRev,omitempty"`
	Mode       string `json:"mode,omitempty"`
	Regenerate bool   `json:"regenerate,omitempty"`
}

func messageEdit(ctx context.Context, s *Server, c *op.Call, in editData) (any, error) {
	got, err := s.Engine.Edit(ctx, c, chat.EditInput(in))
	if err != nil {
		return nil, err
	}
	a := &sent{GenerationID: got.GenerationID}
	a.has(&a.Message, got.Message)
	a.writes(&a.Reply, got.Reply)
	return a, nil
}

type forkData struct {
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId,omitempty"`
	Title          string `json:"title,omitempty"`
}

func chatFork(ctx context.Context, s *Server, c *op.Call, in forkData) (any, error) {
	return conversationOf(s.Chats.Fork(ctx, c, chat.ForkInput(in)))
}

func chatReset(ctx context.Context, s *Server, c *op.Call, in conversationData) (any, error) {
	return conversationOf(s.Chats.Reset(ctx, c, in.ConversationID))
}

type branchesData struct {
	ConversationID string `json:"conversationId"`
	cursorData
}

func chatBranches(ctx context.Context, s *Server, c *op.Call, in branchesData) (any, error) {
	return listPage(in.Limit, chat.WireBranch, func(limit int) (*op.Page[*chat.Branch], error) {
		return s.Chats.Branches(ctx, c.UserID, in.ConversationID, in.Cursor, limit)
	})
}

type searchData struct {
	Query          string `json:"q"`
	ConversationID string `json:"conversationId,omitempty"`
	CharacterID    string `json:"characterId,omitempty"`
	cursorData
}

func chatSearch(ctx context.Context, s *Server, c *op.Call, in searchData) (any, error) {
	return listPage(in.Limit, chat.WireHit, func(limit int) (*op.Page[*chat.Hit], error) {
		return s.Chats.Search(ctx, c.UserID, chat.SearchInput{
			Query: in.Query, ConversationID: in.ConversationID, CharacterID: in.CharacterID, Cursor: in.Cursor, Limit: limit,
		})
	})
}
