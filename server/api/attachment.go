package api

import (
	"context"
	"net/http"

	"nodest/attachment"
	"nodest/op"
)

// attachmentOperations are about images that users upload. They exist in REST only.
var attachmentOperations = []Operation{
	{Route: "GET /attachments/:id", Data: takes(attachmentGet)},
	{Route: "DELETE /attachments/:id", Status: http.StatusNoContent, Data: takes(attachmentDelete)},
}

// attachmentBytes bounds the form with an image. The image itself is bounded by
// package attachment.
const attachmentBytes = 11 << 20

var attachmentUploads = []Upload{
	{Route: "POST /attachments", Name: "attachment.upload", Limit: attachmentBytes, Status: http.StatusCreated, Run: uploadAttachment},
}

// wireAttachment is an image without its content.
type wireAttachment struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	ContentType string  `json:"contentType"`
	Width       int     `json:"width"`  // in pixels
	Height      int     `json:"height"` // in pixels
	Size        int64   `json:"size"`   // in bytes
	CreatedAt   op.Time `json:"createdAt"`
}

var attachmentOf = Result(func(a *attachment.Attachment) wireAttachment {
	return wireAttachment{a.ID, a.Name, a.ContentType, a.Width, a.Height, int64(a.Size), op.Time(a.CreatedAt)}
})

func uploadAttachment(ctx context.Context, s *Services, c *op.Call, f File) (any, error) {
	return attachmentOf(s.Attachments.Put(ctx, c, f.Name, f.Data))
}

func attachmentGet(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return attachmentOf(s.Attachments.Get(ctx, c.UserID, in.ID))
}

func attachmentDelete(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return struct{}{}, s.Attachments.Delete(ctx, c, in.ID)
}
