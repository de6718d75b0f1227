package character

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"image"
	_ "image/gif" // formats that DecodeConfig knows
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
	format, width, height := pictureSize(data)
	if format == "" {
		return nil, fault.New(fault.UnsupportedMedia, "not a PNG, JPEG, WebP or GIF image")
	}
	if width < 1 || height < 1 || width > maxAvatarSide || height > maxAvatarSide {
		return nil, fault.New(fault.TooLarge, "image too large: %d x %d pixels, limit %d per side", width, height, maxAvatarSide)
	}
	sum := sha256.Sum256(data)
	return &Avatar{ContentType: "image/" + format, ETag: hex.EncodeToString(sum[:16]), Data: data}, nil
}

// pictureSize reads the format and the size in pixels from the first bytes; ""
// for what is none of the four formats.
func pictureSize(data []byte) (format string, width, height int) {
	if len(data) >= 30 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		width, height = webpSize(data)
		return "webp", width, height
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || !slices.Contains([]string{"png", "jpeg", "gif"}, format) {
		return "", 0, 0
	}
	return format, config.Width, config.Height
}

// webpSize reads the size out of the first chunk of a WebP file of at least 30
// bytes: lossy, lossless or extended. 0 for any other chunk.
func webpSize(data []byte) (width, height int) {
	body := data[20:]
	switch string(data[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(body[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(body[8:]) & 0x3fff)
	case "VP8L":
		bits := binary.LittleEndian.Uint32(body[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		return int24(body[4:]) + 1, int24(body[7:]) + 1
	}
	return 0, 0
}

func int24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
