package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"nodest/internal/fault"
)

// kindOfEnd is the kind of the key under which a finished step is recorded.
const kindOfEnd = "end"

// record is an answer as the recorder keeps it.
type record[T any] struct {
	At    int64 `json:"at"` // on the clock of the run, in ms
	Value T     `json:"value"`
}

// failure is why a call of the outside has failed. The run goes on.
type failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Late    bool       `json:"late,omitempty"` // the time of the run was over
}

func (f *failure) Error() string { return string(f.Code) + ": " + f.Message }

// fault is the failure as the error that it was.
func (f *failure) fault() error { return fault.Retell(f.Code, f.Message) }

func failureOf(err error) *failure {
	public := fault.Public(err)
	return &failure{public.Code, public.Message, errors.Is(err, errLate)}
}

// isLate reports whether a call was given up because the time of the run was over.
func isLate(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.Late
}

// never is a limit for what takes no time.
const never = 1 << 62

// errSpent says that a call does not fit into the budget. It was not made.
var errSpent = errors.New("the call does not fit into the budget")

// fatal returns err if it ends the run, and nil if only one call has failed or was refused.
func fatal(err error) error {
	var f *failure
	if errors.As(err, &f) || errors.Is(err, errSpent) {
		return nil
	}
	return err
}

// call returns the answer of a key, which do gives at the first time. do returns an error if its answer
// tells of a failure; the failure is recorded as well, unless ctx has ended. limit is the time on the run's
// clock at which the call is given up. The error of call ends the run.
func call[T any](ctx context.Context, m *member, key string, limit time.Duration, most Cost, do func(context.Context) (T, Cost, error)) (T, error) {
	return once(ctx, m, key, limit, &most, do)
}

// once is call; a nil most says that nothing outside is called.
func once[T any](ctx context.Context, m *member, key string, limit time.Duration, most *Cost, do func(context.Context) (T, Cost, error)) (T, error) {
	if kept, ok := m.rec.Recorded(key); ok {
		var r record[T]
		if json.Unmarshal(kept, &r) == nil {
			m.clock.advance(r.At)
			return r.Value, nil
		}
	}
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	m.live.Store(true)
	if most != nil {
		if err := m.rec.Begin(ctx, key, *most); err != nil {
			return none, err
		}
	}
	begun := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, limit-m.clock.now(), errLate)
	defer cancel()
	value, cost, err := do(limited)
	if err != nil && ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	cost.Ms = time.Since(begun).Milliseconds()
	answer, err := json.Marshal(record[T]{m.clock.now().Milliseconds(), value})
	if err != nil {
		return none, fmt.Errorf("record %s: %w", key, err)
	}
	// An answer that is there was paid for: it is kept even if the run is being cancelled.
	if err := m.rec.Record(context.WithoutCancel(ctx), key, answer, cost); err != nil {
		return none, err
	}
	return value, nil
}

// errLate is the cause of a call that took longer than the run may.
var errLate = fault.New(fault.UpstreamTimeout, "the time of the research was over")

// panicked is a panic as an error, for the log.
type panicked struct{ says string }

func (p *panicked) Error() string { return "research: panic: " + p.says }

// Guard does a part of the work whose text others have written. A panic in it is its error: in a goroutine it
// would end the server. The error says where it was. Of a value that is not an error of the Go runtime it says
// the type alone, because the value may have words of the user or of a page.
func Guard(do func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			err = &panicked{fmt.Sprintf("%v\n%s", p, debug.Stack())}
		default:
			err = &panicked{fmt.Sprintf("a value of type %T\n%s", p, debug.Stack())}
		}
	}()
	return do()
}

// notePanic logs an error that is a panic and ends no run.
func (r *run) notePanic(ctx context.Context, err error) {
	var p *panicked
	if r.o.Log != nil && errors.As(err, &p) {
		r.o.Log.WarnContext(ctx, "a part of a research was given up", "err", p)
	}
}

// key names the next call of a kind in the step that is played.
func (m *member) key(kind string) string {
	n := m.ordinals[kind]
	m.ordinals[kind]++
	return fmt.Sprintf("%d/%d/%s/%d", m.n, m.total, kind, n)
}

// decide records a decision that depends on the time or on what else happens, so that it is the same when
// the run is played again.
func decide[T any](ctx context.Context, m *member, kind string, what func(context.Context) T) (T, error) {
	return once(ctx, m, m.key(kind), never, nil, func(ctx context.Context) (T, Cost, error) {
		value := what(ctx)
		return value, Cost{}, context.Cause(ctx)
	})
}

// StepOf returns the step that was recorded under a key. ok is false for the keys of calls.
func StepOf(key string, answer json.RawMessage) (step Step, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[2] != kindOfEnd {
		return Step{}, false
	}
	var r record[Step]
	err := json.Unmarshal(answer, &r)
	return r.Value, err == nil
}

// clock counts the time of work. When a run is played again it goes on from its last answer, so that the
// time in which the process was down does not count.
type clock struct {
	mu   sync.Mutex
	base time.Duration
	at   time.Time
}

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base + time.Since(c.at)
}

// advance sets the clock to the time of a recorded answer.
func (c *clock) advance(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := time.Duration(ms) * time.Millisecond; d > c.base+time.Since(c.at) {
		c.base, c.at = d, time.Now()
	}
}
