package bench

import (
	"context"
	"io"
)

func fit(ctx context.Context, out io.Writer, sets []*questions) error { return nil }
