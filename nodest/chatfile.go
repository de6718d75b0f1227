package nodest

import (
	"context"
)

func (e *Engine) ImportChat(ctx context.Context, c *Call, characterID string, data []byte, filename string) (*Conversation, error) {
	return nil, errNotYet
}

func (e *Engine) ExportChat(ctx context.Context, userID, conversationID string) (data []byte, filename string, err error) {
	err = errNotYet
	return
}
