package character

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"image"
	_ "image/gif" // formats that DecodeConfig knows; package card adds WebP
	_ "image/jpeg"
	_ "image/png"
	"slices"

	"nodest/fault"
	"nodest/op"
)

// Limits of an avatar. Pictures are stored as received and never decoded here; the
// size in pixels keeps a small file from taking gigabytes in a viewer.
const (
	maxAvatarBytes = 10 << 20
	maxAvatarSide  = 8192 // pixels
)

// Avatar returns a character's picture; NotFound without one.
func (svc *Service) Avatar(ctx context.Context, userID, id string) (*Avatar, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Avatar, error) { return tx.Avatar(id) })
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

// newAvatar checks a picture.
func newAvatar(data []byte) (*Avatar, error) {
	if len(data) > maxAvatarBytes {
		return nil, fault.New(fault.TooLarge, "image too large: %s", fault.OverLimit(len(data), maxAvatarBytes))
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || !slices.Contains([]string{"png", "jpeg", "webp", "gif"}, format) {
		return nil, fault.New(fault.UnsupportedMedia, "not a PNG, JPEG, WebP or GIF image")
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxAvatarSide || config.Height > maxAvatarSide {
		return nil, fault.New(fault.TooLarge, "image too large: %d x %d pixels, limit %d per side", config.Width, config.Height, maxAvatarSide)
	}
	sum := sha256.Sum256(data)
	return &Avatar{ContentType: "image/" + format, ETag: hex.EncodeToString(sum[:16]), Data: data}, nil
}
