package llm

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"

	"nodest/fault"
)

// Retry tunes WithRetry. The zero value is ready to use.
type Retry struct {
	Attempts int           // in all, the first included; default 3
	Base     time.Duration // wait after the first failure, doubled after each further one, ± 50 %; default 500 ms
	Longest  time.Duration // no wait of ours is longer; default 10 s
	Patience time.Duration // a provider that asks for more (Retry-After) is not asked again; default 15 s
}

func (r Retry) withDefaults() Retry {
	r.Attempts = cmp.Or(r.Attempts, 3)
	r.Base = cmp.Or(r.Base, 500*time.Millisecond)
	r.Longest = cmp.Or(r.Longest, 10*time.Second)
	r.Patience = cmp.Or(r.Patience, 15*time.Second)
	return r
}

// WithRetry sends a request again when it failed in a way that passes by itself:
// the provider limits us (429), is down (5xx, no connection), broke its protocol
// or answered nothing. It waits longer each time, at least as long as the provider
// asks for, and only as long as no text was passed on. Requests that were refused
// (400, 401, 403), sent to a wrong address, blocked, cancelled or cut off by WithDeadlines are not repeated,
// nor is one that is to be sent once.
func WithRetry(gen Generator, r Retry) Generator {
	r = r.withDefaults()
	return GeneratorFunc(func(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
		return func(yield func(Chunk, error) bool) {
			pause := r.pauses()
			for attempt := 1; ; attempt++ {
				repeatable, err := pass(gen.Stream(ctx, req), yield)
				if err == nil || errors.Is(err, errBroken) {
					return
				}
				wait := pause(err)
				if !repeatable || req.Once || attempt == r.Attempts || !Passes(err) || wait > r.Patience || ctx.Err() != nil {
					yield(Chunk{}, err)
					return
				}
				if sleep(ctx, wait) != nil {
					yield(Chunk{}, contextError(ctx, providerOf(err)))
					return
				}
			}
		}
	})
}

// pass yields the chunks of reply. It returns the error that reply ended with,
// errBroken if the reader broke off, and whether a repetition would go unnoticed.
func pass(reply iter.Seq2[Chunk, error], yield func(Chunk, error) bool) (repeatable bool, err error) {
	repeatable = true
	for c, err := range reply {
		if err != nil {
			return repeatable, err
		}
		repeatable = repeatable && !delivers(c)
		if !yield(c, nil) {
			return false, errBroken
		}
	}
	return repeatable, nil
}

// pauses returns a function that tells how long to wait after each failure.
func (r Retry) pauses() func(error) time.Duration {
	b := &backoff.ExponentialBackOff{
		InitialInterval:     r.Base,
		RandomizationFactor: 0.5,
		Multiplier:          2,
		MaxInterval:         r.Longest,
	}
	return func(err error) time.Duration {
		own := b.NextBackOff()
		var e *fault.Error
		if !errors.As(err, &e) || e.RetryAfter <= 0 {
			return own
		}
		if e.RetryAfter > r.Patience {
			return e.RetryAfter
		}
		// A little later than asked for, so that many waiting requests do not
		// come back in the same moment.
		asked := e.RetryAfter + rand.N(e.RetryAfter/10+1)
		return min(max(own, asked), r.Patience)
	}
}

// Passes reports whether err may be gone after a while.
func Passes(err error) bool {
	status := ProviderStatus(err)
	switch fault.Public(err).Code {
	case fault.UpstreamRate, fault.UpstreamDown:
		return true
	case fault.UpstreamTimeout:
		return !ours(err)
	case fault.UpstreamBadAnswer:
		return status == 0 || status >= 500
	case fault.EmptyReply:
		return !errors.Is(err, errNoRoom)
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func providerOf(err error) string {
	name, _ := fault.Public(err).Details["provider"].(string)
	return cmp.Or(name, "the provider")
}
