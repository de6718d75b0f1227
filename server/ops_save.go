package server

import (
	"context"
	"net/http"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/nodest"
	"nodest/op"
)

// saveOperations are about save points.
var saveOperations = []operation{
	{command: "save.create", route: "POST /conversations/:conversationId/saves", status: http.StatusCreated, key: true, data: takes(saveCreate)},
	{command: "save.list", route: "GET /conversations/:conversationId/saves", data: takes(saveList)},
	{command: "save.get", route: "GET /saves/:saveId", data: takes(saveGet)},
	{command: "save.restore", route: "POST /saves/:saveId/restore", key: true, data: takes(saveRestore)},
	{command: "save.delete", route: "DELETE /saves/:saveId", status: http.StatusNoContent, key: true, data: takes(saveDelete)},
	{command: "save.preview", route: "POST /saves/:saveId/prompt", data: takes(savePreview)},
}

func saveCreate(ctx context.Context, s *Server, c *op.Call, in chat.SaveInput) (any, error) {
	return result(chat.WireSave)(s.Chats.CreateSave(ctx, c, in))
}

type saveListData struct {
	ConversationID string `json:"conversationId"`
	Automatic      bool   `json:"automatic,omitempty"`
	pageData
}

func saveList(ctx context.Context, s *Server, c *op.Call, in saveListData) (any, error) {
	return pages(chat.WireSave)(s.Chats.Saves(ctx, c.UserID, in.ConversationID, in.Automatic, in.Cursor, int(in.Limit)))
}

type saveGetData struct {
	SaveID string `json:"saveId"`
	Before string `json:"before,omitempty"`
	Limit  limit  `json:"limit,omitempty"`
}

// saveGet answers all messages where no limit is given: that is what the
// ChatSave of the NodeST app holds.
func saveGet(ctx context.Context, s *Server, c *op.Call, in saveGetData) (any, error) {
	return result(archive.WireChatSave)(s.Chats.Save(ctx, c.UserID, in.SaveID, in.Before, int(in.Limit)))
}

type saveData struct {
	SaveID string `json:"saveId"`
}

// restored is the answer to save.restore.
type restored struct {
	Conversation any     `json:"conversation"`
	Head         *string `json:"head"`             // null = the save point was of an empty conversation
	Before       any     `json:"before,omitempty"` // the automatic save point
}

func saveRestore(ctx context.Context, s *Server, c *op.Call, in saveData) (any, error) {
	got, err := s.Chats.RestoreSave(ctx, c, in.SaveID)
	if err != nil {
		return nil, err
	}
	a := restored{Conversation: chat.WireConversation(got.Conversation)}
	if got.HeadID != "" {
		a.Head = &got.HeadID
	}
	if got.Before != nil {
		a.Before = chat.WireSave(got.Before)
	}
	return a, nil
}

func saveDelete(ctx context.Context, s *Server, c *op.Call, in saveData) (any, error) {
	return struct{}{}, s.Chats.DeleteSave(ctx, c, in.SaveID)
}

type savePreviewData struct {
	SaveID  string                `json:"saveId"`
	Text    string                `json:"text,omitempty"`
	Options character.TurnOptions `json:"options"`
}

func savePreview(ctx context.Context, s *Server, c *op.Call, in savePreviewData) (any, error) {
	return result(promptOf)(s.Engine.PreviewSave(ctx, c.UserID, in.SaveID, nodest.PreviewInput{Text: in.Text, Options: in.Options}))
}
