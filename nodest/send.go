package nodest

import (
	"context"
)

func (e *Engine) Send(ctx context.Context, c *Call, in SendInput) (*Sent, error) {
	return nil, errNotYet
}
