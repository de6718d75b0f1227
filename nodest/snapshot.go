package nodest

import (
	"context"
)

func (e *Engine) Ack(ctx context.Context, c *Call, seq int64, read map[string]string) error {
	return errNotYet
}

func (e *Engine) Typing(c *Call, conversationID string) {}

func (e *Engine) Snapshot(ctx context.Context, userID string) (*Snapshot, error) {
	return nil, errNotYet
}
