package knowledge

import (
	"context"
	"nodest/op"
)

// Unzip stores the files of a zip archive.
func (s *Service) Unzip(ctx context.Context, c *op.Call, in NewFile) ([]*File, map[string]string, error) {
	return nil, nil, errTodo
}

// Fetch stores a page of the web as a file.
func (s *Service) Fetch(ctx context.Context, c *op.Call, url, baseID string) (*File, error) {
	return nil, errTodo
}
