package nodest

import (
	"context"
)

func (e *Engine) Cancel(ctx context.Context, userID, generationID string) (status string, err error) {
	err = errNotYet
	return
}

func (e *Engine) Attach(ctx context.Context, userID, generationID string, off int) (*Attached, error) {
	return nil, errNotYet
}

func (e *Engine) Wait(ctx context.Context, userID, generationID string) (*Generation, error) {
	return nil, errNotYet
}

func (e *Engine) Active(ctx context.Context, userID string) ([]*Attached, error) {
	return nil, errNotYet
}
