package nodest

import (
	"context"

	"nodest/fault"
	"nodest/framework"
)

// Operations that are not built yet. This file goes when the last one is there.

func notBuilt() error { return fault.New(fault.Internal, "not built yet") }

// B
func (e *Engine) CreateSave(ctx context.Context, c *Call, in SaveInput) (*Save, error) {
	return nil, notBuilt()
}
func (e *Engine) Saves(ctx context.Context, userID, conversationID string, automatic bool, cursor string, limit int) (*Page[*Save], error) {
	return nil, notBuilt()
}
func (e *Engine) Save(ctx context.Context, userID, saveID, before string, limit int) (*SaveView, error) {
	return nil, notBuilt()
}
func (e *Engine) RestoreSave(ctx context.Context, c *Call, saveID string) (*Restored, error) {
	return nil, notBuilt()
}
func (e *Engine) PreviewSave(ctx context.Context, userID, saveID string, in PreviewInput) (*framework.Prompt, error) {
	return nil, notBuilt()
}
func (e *Engine) DeleteSave(ctx context.Context, c *Call, saveID string) error { return notBuilt() }
func (e *Engine) ExportSave(ctx context.Context, userID, saveID string) ([]byte, string, error) {
	return nil, "", notBuilt()
}
func (e *Engine) ImportSave(ctx context.Context, c *Call, conversationID string, data []byte) (*Save, error) {
	return nil, notBuilt()
}

// WireSave is s as clients see it in lists, answers and events: the seed's
// ChatSave without messages.
func WireSave(s *Save) any { return nil }

// WireChatSave is a save point with its messages: the seed's ChatSave.
func WireChatSave(v *SaveView) any { return nil }
