// Package picture checks image files of strangers and makes thumbnails of them, within limits of
// memory and time.
package picture

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"io"
	"slices"

	"nodest/internal/fault"
)

// Limits of pictures that are stored as received. The size in pixels keeps a small file
// from taking gigabytes in a viewer.
const (
	maxPictureBytes = 10 << 20
	maxPictureSide  = 8192 // pixels
)

// formats are those that every browser shows as pictures and nothing else.
var formats = []string{"png", "jpeg", "webp", "gif"}

// headBytes is how much of a file says what it is.
const headBytes = 1 << 20

// Kind is the content type of a PNG, JPEG, WebP or GIF of at most 8,192 pixels on each side, by its content; "" = it is
// none. The file is read from its beginning, and stands there again.
func Kind(file io.ReadSeeker) (string, error) {
	head, err := io.ReadAll(io.LimitReader(file, headBytes))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", err
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(head))
	if err != nil || !slices.Contains(formats, format) || max(config.Width, config.Height) > maxPictureSide {
		return "", nil //nolint:nilerr // another kind of file
	}
	return "image/" + format, nil
}

// Info describes an image file.
type Info struct {
	ContentType   string
	Width, Height int    // pixels
	ETag          string // identifies the bytes
}

// Check describes a PNG, JPEG, WebP or GIF by its content: at most 10 MiB and
// 8,192 pixels on each side. It does not decode the pixels.
//
// Errors: TooLarge, UnsupportedMedia.
func Check(data []byte) (*Info, error) {
	if len(data) > maxPictureBytes {
		return nil, fault.New(fault.TooLarge, "image too large: %s", fault.OverLimit(len(data), maxPictureBytes))
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || !slices.Contains(formats, format) {
		return nil, fault.New(fault.UnsupportedMedia, "not a PNG, JPEG, WebP or GIF image")
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxPictureSide || config.Height > maxPictureSide {
		return nil, fault.New(fault.TooLarge, "image too large: %d x %d pixels, limit %d per side", config.Width, config.Height, maxPictureSide)
	}
	sum := sha256.Sum256(data)
	return &Info{"image/" + format, config.Width, config.Height, hex.EncodeToString(sum[:16])}, nil
}
