package nodest

import (
	"context"
)

func (e *Engine) CreateCharacter(ctx context.Context, c *Call, in CharacterInput) (*Character, error) {
	return nil, errNotYet
}

func (e *Engine) ImportCharacter(ctx context.Context, c *Call, data []byte, filename string) (*Imported, error) {
	return nil, errNotYet
}

func (e *Engine) Character(ctx context.Context, userID, id string) (*Character, error) {
	return nil, errNotYet
}

func (e *Engine) Characters(ctx context.Context, userID, cursor string, limit int) (*Page[*Character], error) {
	return nil, errNotYet
}

func (e *Engine) UpdateCharacter(ctx context.Context, c *Call, id string, in CharacterInput, replace bool, ifVersion int64) (*Character, error) {
	return nil, errNotYet
}

func (e *Engine) DeleteCharacter(ctx context.Context, c *Call, id string) error { return errNotYet }

func (e *Engine) ExportCharacter(ctx context.Context, userID, id, format, spec string) (data []byte, contentType, filename string, err error) {
	err = errNotYet
	return
}

func (e *Engine) Avatar(ctx context.Context, userID, id string) (*Avatar, error) {
	return nil, errNotYet
}

func (e *Engine) PutAvatar(ctx context.Context, c *Call, id string, data []byte) (*Character, error) {
	return nil, errNotYet
}
