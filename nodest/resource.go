package nodest

import (
	"context"

	"nodest/card"
	"nodest/framework"
)

func (e *Engine) CreateResource(ctx context.Context, c *Call, kind ResourceKind, in ResourceInput) (*Resource, error) {
	return nil, errNotYet
}

func (e *Engine) ImportResource(ctx context.Context, c *Call, kind ResourceKind, data []byte, filename string) (*Resource, []card.Warning, error) {
	return nil, nil, errNotYet
}

func (e *Engine) Resource(ctx context.Context, userID string, kind ResourceKind, id string) (*Resource, error) {
	return nil, errNotYet
}

func (e *Engine) Resources(ctx context.Context, userID string, kind ResourceKind, cursor string, limit int) (*Page[*Resource], error) {
	return nil, errNotYet
}

func (e *Engine) UpdateResource(ctx context.Context, c *Call, kind ResourceKind, id string, in ResourceInput, replace bool, ifVersion int64) (*Resource, error) {
	return nil, errNotYet
}

func (e *Engine) DeleteResource(ctx context.Context, c *Call, kind ResourceKind, id string) error {
	return errNotYet
}

func (e *Engine) ExportResource(ctx context.Context, userID string, kind ResourceKind, id string) (data []byte, filename string, err error) {
	err = errNotYet
	return
}

func (e *Engine) Lint(data []byte, filename string) ([]framework.Finding, error) {
	return nil, errNotYet
}
