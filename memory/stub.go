package memory

import (
	"context"

	"nodest/index"
)

func (l loader) Parts(ctx context.Context, key, id string, parts []int) ([][]byte, error) { return nil, nil }
func (l loader) Rows(ctx context.Context, key string, ids []string) ([]index.Row, error)  { return nil, nil }
