package llm

import (
	"context"
	"fmt"
	"runtime/debug"

	"nodest/internal/fault"
)

// guarded turns a panic of an adapter or its SDK into fault.Internal, so that one strange answer
// ends one generation and not the program. Panics of the reader are the reader's.
func guarded(provider string, gen Generator) Generator {
	return stream(func(ctx context.Context, req Request, yield func(Chunk, error) bool) {
		reading, left := false, false // the reader's code runs; the reader is gone
		defer func() {
			if reading {
				return
			}
			if p := recover(); p != nil && !left {
				cause := fmt.Errorf("the adapter panicked: %v\n%s", p, debug.Stack())
				yield(Chunk{}, fault.Wrap(cause, fault.Internal, "%s failed", provider))
			}
		}()
		for c, err := range gen.Stream(ctx, req) {
			reading = true
			left = !yield(c, err)
			reading = false
			if left || err != nil || c.Last {
				left = true
				return
			}
		}
	})
}
