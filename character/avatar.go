package character

import (
	"context"

	"nodest/card/picture"
	"nodest/internal/op"
)

// Avatar returns a character's picture; NotFound without one.
func (svc *Service) Avatar(ctx context.Context, userID, id string) (*Avatar, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Avatar, error) { return tx.Avatar(id) })
}

// AvatarTag returns the ETag of a character's picture.
//
// Errors: NotFound.
func (svc *Service) AvatarTag(ctx context.Context, userID, id string) (string, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (string, error) { return tx.AvatarTag(id) })
}

// PutAvatar replaces a character's picture: PNG, JPEG, WebP or GIF by its
// content, at most 10 MiB and 8,192 pixels on each side.
//
// Errors: TooLarge, UnsupportedMedia.
func (svc *Service) PutAvatar(ctx context.Context, c *op.Call, id string, data []byte) (*Character, error) {
	avatar, err := newAvatar(data)
	if err != nil {
		return nil, err
	}
	return op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (*Character, error) {
		ch, err := tx.Character(id)
		if err != nil {
			return nil, err
		}
		if err := tx.PutAvatar(id, avatar); err != nil {
			return nil, err
		}
		ch.HasAvatar = true
		return ch, Put(tx, c, ch)
	})
}

func newAvatar(data []byte) (*Avatar, error) {
	info, err := picture.Check(data)
	if err != nil {
		return nil, err
	}
	return &Avatar{ContentType: info.ContentType, ETag: info.ETag, Data: data}, nil
}
