package nodest

import (
	"context"
	"encoding/json"
)

func (e *Engine) CharacterSettings(ctx context.Context, userID, id string) (settings json.RawMessage, version int64, err error) {
	err = errNotYet
	return
}

func (e *Engine) PutCharacterSettings(ctx context.Context, c *Call, id string, settings json.RawMessage, ifVersion int64) (json.RawMessage, int64, error) {
	return nil, 0, errNotYet
}

func (e *Engine) Settings(ctx context.Context, userID string) (*Settings, error) {
	return nil, errNotYet
}

func (e *Engine) PutSettings(ctx context.Context, c *Call, s Settings, ifVersion int64) (*Settings, error) {
	return nil, errNotYet
}

func (e *Engine) Usage(ctx context.Context, userID, from, to string) ([]UsageRow, error) {
	return nil, errNotYet
}
