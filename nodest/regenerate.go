package nodest

import (
	"context"
)

func (e *Engine) Regenerate(ctx context.Context, c *Call, in GenerateInput) (*Changed, error) {
	return nil, errNotYet
}

func (e *Engine) Continue(ctx context.Context, c *Call, in GenerateInput) (*Changed, error) {
	return nil, errNotYet
}

func (e *Engine) Impersonate(ctx context.Context, c *Call, in GenerateInput) (generationID string, err error) {
	err = errNotYet
	return
}
