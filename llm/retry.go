package llm

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"

	"nodest/internal/fault"
)

// How often and when WithRetry sends a request.
const (
	attempts   = 3                      // in all, the first included
	firstPause = 500 * time.Millisecond // after the first failure, doubled after the second, ± 50 %
	patience   = 15 * time.Second       // a provider that asks for more (Retry-After) is not asked again
)

// Dependable wraps a provider in everything that it needs to be used. From the inside
// out: a reply must be complete, must not keep us waiting, and is requested again where
// that helps. Chain goes around it. Each of watch goes around every single request.
func Dependable(provider string, gen Generator, watch ...func(Generator) Generator) Generator {
	gen = WithDeadlines(provider, Checked(provider, gen))
	for _, w := range watch {
		gen = w(gen)
	}
	return WithRetry(gen)
}

// WithRetry sends a request again when it failed in a way that passes by itself: the provider
// limits us (429), is down (5xx, no connection), broke its protocol or answered nothing. It waits
// longer each time, at least as long as the provider asks for, and only as long as no text was
// passed on. Requests that were refused (400, 401, 403), sent to a wrong address, blocked,
// cancelled or cut off by WithDeadlines are not repeated, nor are those with Once set.
func WithRetry(gen Generator) Generator {
	return stream(func(ctx context.Context, req Request, yield func(Chunk, error) bool) {
		pause := pauses()
		for attempt := 1; ; attempt++ {
			repeatable, err := pass(gen.Stream(ctx, req), yield)
			if err == nil || errors.Is(err, errBroken) {
				return
			}
			wait := pause(err)
			if !repeatable || req.Once || attempt == attempts || !Passes(err) || wait > patience || ctx.Err() != nil {
				yield(Chunk{}, err)
				return
			}
			if Sleep(ctx, wait) != nil {
				yield(Chunk{}, contextError(ctx, providerOf(err)))
				return
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
func pauses() func(error) time.Duration {
	b := &backoff.ExponentialBackOff{InitialInterval: firstPause, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: patience}
	return func(err error) time.Duration {
		own := b.NextBackOff()
		var e *fault.Error
		if !errors.As(err, &e) || e.RetryAfter <= 0 {
			return own
		}
		if e.RetryAfter > patience {
			return e.RetryAfter
		}
		// A little later than asked for, so that many waiting requests do not
		// come back in the same moment.
		asked := e.RetryAfter + rand.N(e.RetryAfter/10+1)
		return min(max(own, asked), patience)
	}
}

// Passes reports whether err may be gone after a while.
func Passes(err error) bool {
	if aboutTools(err) {
		return false
	}
	status := ProviderStatus(err)
	switch fault.Public(err).Code {
	case fault.UpstreamRate, fault.UpstreamDown:
		return true
	case fault.UpstreamTimeout:
		return !isDeadline(err)
	case fault.UpstreamBadAnswer:
		return status == 0 || status >= 500
	case fault.EmptyReply:
		return !errors.Is(err, errNoRoom)
	}
	return false
}

// Sleep waits for d, or until ctx ends, whose cause it returns.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func providerOf(err error) string {
	name, _ := fault.Public(err).Details["provider"].(string)
	return cmp.Or(name, "the provider")
}
