package llm

import (
	"context"
	"errors"
	"time"

	"nodest/internal/fault"
)

// How long a provider may keep us waiting. The time that the reader takes with a chunk
// counts for the whole reply only.
const (
	waitFirst   = 90 * time.Second // from the request to the first chunk, connecting included
	waitBetween = 45 * time.Second // from one chunk to the next
	waitTotal   = 15 * time.Minute // for the whole reply
)

// deadline is the cause of a context that WithDeadlines ended.
type deadline string

func (d deadline) Error() string { return string(d) }

// WithDeadlines ends a request with fault.UpstreamTimeout when gen is too slow. It
// cancels gen's context and relies on gen to obey.
func WithDeadlines(provider string, gen Generator) Generator {
	return stream(func(ctx context.Context, req Request, yield func(Chunk, error) bool) {
		ctx, stop := context.WithTimeoutCause(ctx, waitTotal, deadline("the reply took too long"))
		defer stop()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		first := time.AfterFunc(waitFirst, func() { cancel(deadline("no first chunk in time")) })
		defer first.Stop()
		var next *time.Timer // one for the whole reply
		for c, err := range gen.Stream(ctx, req) {
			if first.Stop(); next != nil {
				next.Stop()
			}
			if err != nil {
				if cause := context.Cause(ctx); isDeadline(cause) {
					err = Upstream(provider, fault.UpstreamTimeout, 0, cause)
				}
				yield(Chunk{}, err)
				return
			}
			if !yield(c, nil) || c.Last {
				return
			}
			if next == nil {
				next = time.AfterFunc(waitBetween, func() { cancel(deadline("the stream stalled")) })
				defer next.Stop()
			} else {
				next.Reset(waitBetween)
			}
		}
	})
}

func isDeadline(err error) bool { return errors.As(err, new(deadline)) }
