package server

import (
	"context"
	"regexp"
	"sync"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/server/api"
)

// perform runs an operation for one call and is where both transports meet. c.Hash
// is set here. caller is who waits for the answer: see once.
func (s *Server) perform(ctx, caller context.Context, o *api.Operation, c *op.Call, data []byte) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, panicked(r)
		}
	}()
	if c.Key != "" && !plainKey.MatchString(c.Key) {
		return nil, badKey()
	}
	if o.Starts && s.draining.Load() {
		return nil, fault.New(fault.ShuttingDown, "the server is shutting down")
	}
	run, hash, err := o.Data.Prepare(o.Name(), data)
	if err != nil {
		return nil, err
	}
	c.Hash = hash
	return s.once(ctx, caller, c, func() (any, error) { return run(ctx, &s.Services, c) })
}

// keyWait is how long a call waits for another one with the same key.
const keyWait = 10 * time.Second

// once runs f, which writes under the key of c. Calls with the same key run one at a time in this
// process: the second waits for at most keyWait, or until its caller goes away, and finds the
// answer of the first in the database. Calls in other processes wait in the database.
//
// f may fail because the same call in another process has just changed what f read before its
// transaction. Then f runs again and finds the answer.
func (s *Server) once(ctx, caller context.Context, c *op.Call, f func() (any, error)) (any, error) {
	if c.Key == "" {
		return f()
	}
	done, err := s.calls.enter(caller, c.UserID+"/"+c.Key)
	if err != nil {
		return nil, err
	}
	defer done()
	result, err := f()
	if err == nil {
		return result, nil
	}
	if known, failed := s.Archives.Answered(ctx, c); known && failed == nil {
		return f()
	}
	return nil, err
}

// inflight tracks the keys of running calls.
type inflight struct {
	mu   sync.Mutex
	keys map[string]chan struct{} // closed when the work is done
}

// enter waits for the turn of a call with a key; done ends it.
func (i *inflight) enter(ctx context.Context, key string) (done func(), err error) {
	late := time.NewTimer(keyWait)
	defer late.Stop()
	for {
		i.mu.Lock()
		busy, ok := i.keys[key]
		if !ok {
			if i.keys == nil {
				i.keys = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			i.keys[key] = mine
			i.mu.Unlock()
			return func() {
				i.mu.Lock()
				delete(i.keys, key)
				i.mu.Unlock()
				close(mine)
			}, nil
		}
		i.mu.Unlock()
		select {
		case <-busy:
		case <-late.C:
			return nil, fault.New(fault.InProgress, "a request with this idempotency key is still running")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func badKey() error {
	return fault.InvalidField("key", "range", "must be 1 to 64 printable ASCII characters without spaces")
}

// plainKey matches what can be an idempotency key: printable ASCII characters.
var plainKey = regexp.MustCompile(`^[!-~]{1,64}$`)
