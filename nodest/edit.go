package nodest

import (
	"context"
)

func (e *Engine) Message(ctx context.Context, userID, id string) (*Message, error) {
	return nil, errNotYet
}

func (e *Engine) Edit(ctx context.Context, c *Call, in EditInput) (*Changed, error) {
	return nil, errNotYet
}
