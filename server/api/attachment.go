package api

import (
	"context"
	"net/http"

	"nodest/internal/attachment"
	"nodest/internal/op"
)

// attachmentOperations are about images that users upload. They exist in REST only.
var attachmentOperations = []Operation{
	{Route: "GET /attachments/:id", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return attachmentOf(c.Attachments.Get(ctx, c.UserID, in.ID))
	})},
	{Route: "DELETE /attachments/:id", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return struct{}{}, c.Attachments.Delete(ctx, c.Call, in.ID)
	})},
}

// attachmentBytes bounds the form with an image. The image itself is bounded by package attachment.
const attachmentBytes = 11 << 20

var attachmentUploads = []Upload{
	{Route: "POST /attachments", Name: "attachment.upload", Limit: attachmentBytes, Status: http.StatusCreated, Run: uploadAttachment},
}

var attachmentOf = Result(attachment.Wire)

func uploadAttachment(ctx context.Context, s *Services, c *op.Call, f File) (any, error) {
	return attachmentOf(s.Attachments.Put(ctx, c, f.Name, f.Data))
}
