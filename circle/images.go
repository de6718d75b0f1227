package circle

import (
	"context"

	"nodest/internal/attachment"
	"nodest/llm"
)

// shownSide is the longest side of an image that a model sees, in pixels.
const shownSide = 1024

// ImagesOf is the Options.Image that reads attachments.
func ImagesOf(attachments *attachment.Service) func(ctx context.Context, userID, id string, data bool) (string, llm.Image, error) {
	return func(ctx context.Context, userID, id string, data bool) (string, llm.Image, error) {
		a, err := attachments.Get(ctx, userID, id)
		if err != nil {
			return "", llm.Image{}, err
		}
		if !data {
			return a.Name, llm.Image{}, nil
		}
		c, err := attachments.Content(ctx, userID, id, shownSide)
		if err != nil {
			return "", llm.Image{}, err
		}
		return a.Name, llm.Image{ContentType: c.ContentType, Data: c.Data}, nil
	}
}
