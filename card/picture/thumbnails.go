package picture

import (
	"context"
	"fmt"

	"nodest/internal/fault"
	"nodest/internal/lru"
)

// Limits of a Thumbnails.
const (
	picturesAtOnce = 2        // each takes up to 128 MiB while it is decoded
	keptThumbnails = 16 << 20 // bytes
)

// Thumbnails makes thumbnails of pictures and caches the most recently used ones, up to
// 16 MiB. It decodes two pictures at a time. It is safe for concurrent use.
type Thumbnails struct {
	places chan struct{}
	kept   *lru.Cache[string, thumbnailMade]
}

type thumbnailMade struct {
	data        []byte
	contentType string
	err         error
}

// NewThumbnails returns a Thumbnails that has made none yet.
func NewThumbnails() *Thumbnails {
	return &Thumbnails{make(chan struct{}, picturesAtOnce), lru.New[string, thumbnailMade](keptThumbnails)}
}

// Cached returns what Of has made before, if it is still in the cache.
func (t *Thumbnails) Cached(id string, size int) (thumbnail []byte, contentType string, err error, ok bool) {
	made, ok := t.kept.Get(thumbnailKey(id, size))
	return made.data, made.contentType, made.err, ok
}

func thumbnailKey(id string, size int) string { return fmt.Sprintf("%s/%d", id, size) }

// Of is Thumbnail with a cache. An id always names the same picture. One that Check
// takes and Thumbnail cannot scale, such as an animated WebP or one of more than 16 million
// pixels, is returned as it is: browsers show it.
//
// Errors: UnsupportedMedia for what is no picture; that of ctx if it ends while Of waits for
// its turn.
func (t *Thumbnails) Of(ctx context.Context, id string, data []byte, size int) (thumbnail []byte, contentType string, err error) {
	if thumbnail, contentType, err, ok := t.Cached(id, size); ok {
		return asItIs(data, thumbnail, contentType, err)
	}
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	key := thumbnailKey(id, size)
	made, ok := t.kept.Get(key)
	if !ok { // somebody else may have made it meanwhile
		made.data, made.contentType, made.err = Thumbnail(data, size)
		t.kept.Put(key, made, len(made.data)+1<<10)
	}
	return asItIs(data, made.data, made.contentType, made.err)
}

// asItIs replaces a thumbnail that could not be made by the picture, if it is one.
func asItIs(picture, thumbnail []byte, contentType string, err error) ([]byte, string, error) {
	if !fault.Is(err, fault.UnsupportedMedia) && !fault.Is(err, fault.TooLarge) {
		return thumbnail, contentType, err
	}
	if p, wrong := Check(picture); wrong == nil {
		return picture, p.ContentType, nil
	}
	return nil, "", err
}
