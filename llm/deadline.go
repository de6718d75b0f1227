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
			total := startAlarm(d.Total, cancel, errTotal)
			defer total.stop()
			wait := startAlarm(d.First, cancel, errFirst)
			defer func() { wait.stop() }()
			first := true
			for c, err := range gen.Stream(ctx, req) {
				wait.stop()
				if err != nil {
					yield(Chunk{}, asTimeout(ctx, provider, err))
					return
				}
				if !yield(c, nil) || c.Last {
					return
				}
				if first {
					first = false
					wait = startAlarm(d.Between, cancel, errBetween)
				} else {
					wait.restart()
				}
			}
		}
	})
}

// alarm cancels a context with a cause when its time has passed; the zero alarm
// never does.
type alarm struct {
	timer *time.Timer
	after time.Duration
}

func startAlarm(after time.Duration, cancel context.CancelCauseFunc, cause error) alarm {
	if after < 0 {
		return alarm{}
	}
	return alarm{time.AfterFunc(after, func() { cancel(cause) }), after}
}

func (a alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

func (a alarm) restart() {
	if a.timer != nil {
		a.timer.Reset(a.after)
	}
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
