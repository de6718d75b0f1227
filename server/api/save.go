package api

import (
	"context"
	"net/http"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/op"
	"nodest/nodest"
)

// saveOperations are about save points.
var saveOperations = []Operation{
	{Command: "save.create", Route: "POST /conversations/:conversationId/saves", Status: http.StatusCreated, Key: true, Data: takes(saveCreate)},
	{Command: "save.list", Route: "GET /conversations/:conversationId/saves", Data: takes(saveList)},
	{Command: "save.get", Route: "GET /saves/:saveId", Bytes: DocumentBytes, Data: takes(saveGet)},
	{Command: "save.restore", Route: "POST /saves/:saveId/restore", Key: true, Data: takes(saveRestore)},
	{Command: "save.delete", Route: "DELETE /saves/:saveId", Status: http.StatusNoContent, Key: true, Data: takes(saveDelete)},
	{Command: "save.preview", Route: "POST /saves/:saveId/prompt", Alone: true, Data: takes(savePreview)},
}

func saveCreate(ctx context.Context, s *Services, c *op.Call, in chat.SaveInput) (any, error) {
	return Result(chat.WireSave)(s.Chats.CreateSave(ctx, c, in))
}

type saveListData struct {
	ConversationID string `json:"conversationId"`
	Automatic      bool   `json:"automatic,omitempty"`
	pageData
}

func saveList(ctx context.Context, s *Services, c *op.Call, in saveListData) (any, error) {
	return Pages(chat.WireSave)(s.Chats.Saves(ctx, c.UserID, in.ConversationID, in.Automatic, in.Cursor, int(in.Limit)))
}

type saveGetData struct {
	SaveID string `json:"saveId"`
	Before string `json:"before,omitempty"`
	Limit  limit  `json:"limit,omitempty"`
}

func saveGet(ctx context.Context, s *Services, c *op.Call, in saveGetData) (any, error) {
	return Result(archive.WireChatSave)(s.Chats.Save(ctx, c.UserID, in.SaveID, in.Before, int(in.Limit)))
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

func saveRestore(ctx context.Context, s *Services, c *op.Call, in saveData) (any, error) {
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

func saveDelete(ctx context.Context, s *Services, c *op.Call, in saveData) (any, error) {
	return struct{}{}, s.Chats.DeleteSave(ctx, c, in.SaveID)
}

type savePreviewData struct {
	SaveID  string                `json:"saveId"`
	Text    string                `json:"text,omitempty"`
	Options character.TurnOptions `json:"options"`
}

func savePreview(ctx context.Context, s *Services, c *op.Call, in savePreviewData) (any, error) {
	return Result(promptOf)(s.Engine.PreviewSave(ctx, c.UserID, in.SaveID, nodest.PreviewInput{Text: in.Text, Options: in.Options}))
}
