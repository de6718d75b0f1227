package nodest

import (
	"context"
)

func (e *Engine) Swipe(ctx context.Context, c *Call, in SwipeInput) (*Changed, error) {
	return nil, errNotYet
}
