package nodest

import (
	"context"
)

func (e *Engine) DeleteMessage(ctx context.Context, c *Call, id, scope string) (*Deleted, error) {
	return nil, errNotYet
}

func (e *Engine) RestoreMessage(ctx context.Context, c *Call, id string) (*Deleted, error) {
	return nil, errNotYet
}
