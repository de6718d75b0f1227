package api

import (
	"context"
	"net/http"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/nodest"
)

// saveOperations are about save points.
var saveOperations = []Operation{
	{Command: "save.create", Route: "POST /conversations/:conversationId/saves", Status: http.StatusCreated, Key: true, Data: takes(func(ctx context.Context, c *Call, in chat.SaveInput) (any, error) {
		return Result(chat.WireSave)(c.Chats.CreateSave(ctx, c.Call, in))
	})},
	{Command: "save.list", Route: "GET /conversations/:conversationId/saves", Data: takes(func(ctx context.Context, c *Call, in saveListData) (any, error) {
		return Pages(chat.WireSave)(c.Chats.Saves(ctx, c.UserID, in.ConversationID, in.Automatic, in.Cursor, int(in.Limit)))
	})},
	{Command: "save.get", Route: "GET /saves/:saveId", Bytes: DocumentBytes, Data: takes(func(ctx context.Context, c *Call, in saveGetData) (any, error) {
		return Result(archive.WireChatSave)(c.Chats.Save(ctx, c.UserID, in.SaveID, in.Before, int(in.Limit)))
	})},
	{Command: "save.restore", Route: "POST /saves/:saveId/restore", Key: true, Data: takes(saveRestore)},
	{Command: "save.delete", Route: "DELETE /saves/:saveId", Status: http.StatusNoContent, Key: true, Data: takes(func(ctx context.Context, c *Call, in saveData) (any, error) {
		return struct{}{}, c.Chats.DeleteSave(ctx, c.Call, in.SaveID)
	})},
	{Command: "save.preview", Route: "POST /saves/:saveId/prompt", Alone: true, Data: takes(func(ctx context.Context, c *Call, in savePreviewData) (any, error) {
		return Result(explainedOf)(c.Engine.PreviewSave(ctx, c.UserID, in.SaveID, nodest.PreviewInput{Text: in.Text, Options: in.Options}))
	})},
}

type saveListData struct {
	ConversationID string `json:"conversationId"`
	Automatic      bool   `json:"automatic,omitempty"`
	pageData
}

type saveGetData struct {
	SaveID string `json:"saveId"`
	Before string `json:"before,omitempty"`
	Limit  limit  `json:"limit,omitempty"`
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

func saveRestore(ctx context.Context, c *Call, in saveData) (any, error) {
	got, err := c.Chats.RestoreSave(ctx, c.Call, in.SaveID)
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

type savePreviewData struct {
	SaveID  string                `json:"saveId"`
	Text    string                `json:"text,omitempty"`
	Options character.TurnOptions `json:"options"`
}
