package llm

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"nodest/fault"
)

// Deadlines limit how long a provider may keep us waiting. The zero value is
// ready to use; a negative limit is none. The time that the reader takes with a
// chunk counts for Total only.
type Deadlines struct {
	First   time.Duration // from the request to the first chunk, connecting included; default 90 s
	Between time.Duration // from one chunk to the next; default 45 s
	Total   time.Duration // for the whole reply; default 15 min
}

func (d Deadlines) withDefaults() Deadlines {
	d.First = cmp.Or(d.First, 90*time.Second)
	d.Between = cmp.Or(d.Between, 45*time.Second)
	d.Total = cmp.Or(d.Total, 15*time.Minute)
	return d
}

var (
	errFirst   = errors.New("no first chunk in time")
	errBetween = errors.New("the stream stalled")
	errTotal   = errors.New("the reply took too long")
)

// WithDeadlines ends a request with fault.UpstreamTimeout when gen is too slow. It
// cancels gen's context and relies on gen to obey.
func WithDeadlines(provider string, gen Generator, d Deadlines) Generator {
	d = d.withDefaults()
	return GeneratorFunc(func(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
		return func(yield func(Chunk, error) bool) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer after(d.Total, cancel, errTotal)()
			stop := after(d.First, cancel, errFirst)
			defer func() { stop() }()
			for c, err := range gen.Stream(ctx, req) {
				stop()
				if err != nil {
					yield(Chunk{}, asTimeout(ctx, provider, err))
					return
				}
				if !yield(c, nil) || c.Last {
					return
				}
				stop = after(d.Between, cancel, errBetween)
			}
		}
	})
}

// after cancels with cause when d has passed, unless the function that it returns
// is called before.
func after(d time.Duration, cancel context.CancelCauseFunc, cause error) (stop func()) {
	if d < 0 {
		return func() {}
	}
	t := time.AfterFunc(d, func() { cancel(cause) })
	return func() { t.Stop() }
}

// asTimeout replaces err if one of our deadlines made it happen.
func asTimeout(ctx context.Context, provider string, err error) error {
	cause := context.Cause(ctx)
	if !ours(cause) {
		return err
	}
	return Upstream(provider, fault.UpstreamTimeout, 0, cause)
}

func ours(err error) bool {
	return errors.Is(err, errFirst) || errors.Is(err, errBetween) || errors.Is(err, errTotal)
}
