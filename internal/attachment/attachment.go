// Package attachment keeps the images that users upload, with thumbnails.
package attachment

import (
	"cmp"
	"context"
	"time"

	"nodest/card/picture"
	"nodest/internal/fault"
	"nodest/internal/op"
)

const (
	maxName  = 200       // code points
	maxBytes = 500 << 20 // bytes of all attachments of a user
)

// Attachment is an image as it was uploaded.
type Attachment struct {
	ID          string
	Name        string // the file's name
	ContentType string
	Width       int // pixels
	Height      int
	Size        int64  // bytes
	ETag        string // identifies the bytes
	CreatedAt   time.Time
}

// Tx is what a transaction offers for attachments.
type Tx struct {
	op.Tx
	AttachmentTx
}

// AttachmentTx stores attachments.
type AttachmentTx interface {
	InsertAttachment(a *Attachment, data []byte) error
	Attachment(id string) (*Attachment, error)
	// AttachmentData returns the image as it was uploaded.
	AttachmentData(id string) ([]byte, error)
	// DeleteAttachment also takes the image out of the posts that have it.
	DeleteAttachment(id string) error
	// LockAttachments returns how many bytes all of the user's attachments have, with a
	// lock until the transaction ends, for InsertAttachment.
	LockAttachments() (int64, error)
}

// Store stores what a Service needs; package store implements it.
type Store = op.Store[Tx]

// Service has the operations on attachments. It is safe for concurrent use.
type Service struct {
	store      Store
	thumbnails *picture.Thumbnails
}

// New returns a Service.
func New(store Store) *Service { return &Service{store, picture.NewThumbnails()} }

// Put stores an image: PNG, JPEG, WebP or GIF by its content, at most 10 MiB and 8,192
// pixels on each side. One that nothing uses is removed after a day.
//
// Errors: TooLarge, also when the images of the user would have more than 500 MB together;
// UnsupportedMedia; Invalid for the name.
func (svc *Service) Put(ctx context.Context, c *op.Call, name string, data []byte) (*Attachment, error) {
	if err := op.CheckLine("name", name, maxName); err != nil {
		return nil, err
	}
	info, err := picture.Check(data)
	if err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Attachment, error) {
		stored, err := tx.LockAttachments()
		if err != nil {
			return nil, err
		}
		if stored+int64(len(data)) > maxBytes {
			return nil, fault.New(fault.TooLarge, "the images of a user may have %s together; delete some first", fault.Size(maxBytes))
		}
		a := &Attachment{
			ID: op.NewID(), Name: cmp.Or(name, "image"), ContentType: info.ContentType,
			Width: info.Width, Height: info.Height, Size: int64(len(data)), ETag: info.ETag, CreatedAt: tx.Now(),
		}
		return a, tx.InsertAttachment(a, data)
	})
}

// Get returns an attachment without its content.
//
// Errors: NotFound.
func (svc *Service) Get(ctx context.Context, userID, id string) (*Attachment, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Attachment, error) { return tx.Attachment(id) })
}

// Content is an image to show.
type Content struct {
	ContentType string
	Data        []byte
}

// Cached returns an image scaled by Content before, if that is still in the cache; nil
// otherwise. It takes little memory.
//
// Errors: those of Content.
func (svc *Service) Cached(ctx context.Context, userID, id string, size int) (*Content, error) {
	if _, err := svc.Get(ctx, userID, id); err != nil {
		return nil, err
	}
	small, contentType, failed, ok := svc.thumbnails.Cached(id, size)
	if ok = ok && failed == nil; !ok { // an image that cannot be scaled is served as it is
		return nil, nil
	}
	return &Content{contentType, small}, nil
}

// Content returns an image: as it was uploaded (size 0), or scaled down so that neither
// side has more than size pixels. An image of more than 16 million pixels, or one that cannot be
// decoded here, such as an animated WebP, is not scaled.
//
// Errors: NotFound.
func (svc *Service) Content(ctx context.Context, userID, id string, size int) (*Content, error) {
	c, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*Content, error) {
		a, err := tx.Attachment(id)
		if err != nil {
			return nil, err
		}
		data, err := tx.AttachmentData(id)
		return &Content{a.ContentType, data}, err
	})
	if err != nil || size == 0 {
		return c, err
	}
	small, contentType, err := svc.thumbnails.Of(ctx, id, c.Data, size) // the picture of an id never changes
	return &Content{contentType, small}, err
}

// Delete removes an attachment, also from the posts that have it.
//
// Errors: NotFound.
func (svc *Service) Delete(ctx context.Context, c *op.Call, id string) error {
	return op.Do(ctx, svc.store, c, func(tx Tx) error { return tx.DeleteAttachment(id) })
}

// wireAttachment is the wire format of an attachment.
type wireAttachment struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	ContentType string  `json:"contentType"`
	Width       int     `json:"width"`
	Height      int     `json:"height"`
	Size        int64   `json:"size"`
	CreatedAt   op.Time `json:"createdAt"`
}

// Wire returns a in its wire format.
func Wire(a *Attachment) any {
	return wireAttachment{a.ID, a.Name, a.ContentType, a.Width, a.Height, a.Size, op.Time(a.CreatedAt)}
}
