package server

import (
	"context"
	"regexp"
	"sync"

	"nodest/fault"
	"nodest/op"
	"nodest/server/api"
)

// perform runs an operation for one call and is where both transports meet. c.Hash
// is set here. If another call with the same key is running, this one waits for it with
// wait, and fails with fault.InProgress without.
func (s *Server) perform(ctx context.Context, o *api.Operation, c *op.Call, data []byte, wait bool) (result any, err error) {
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
	return s.once(ctx, c, wait, func() (any, error) { return run(ctx, &s.Services, c) })
}

// once runs f, which writes under the key of c. Calls with the same key run one at a
// time in this process; the second finds the answer of the first in the database.
func (s *Server) once(ctx context.Context, c *op.Call, wait bool, f func() (any, error)) (any, error) {
	if c.Key == "" {
		return f()
	}
	done, err := s.calls.enter(ctx, c.UserID+"/"+c.Key, wait)
	if err != nil {
		return nil, err
	}
	defer done()
	return f()
}

// inflight tracks the keys of running calls.
type inflight struct {
	mu   sync.Mutex
	keys map[string]chan struct{} // closed when the work is done
}

func (i *inflight) enter(ctx context.Context, key string, wait bool) (done func(), err error) {
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
		if !wait {
			return nil, fault.New(fault.InProgress, "a request with this idempotency key is still running")
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func badKey() error {
	return fault.InvalidField("key", "range", "must be 1 to 64 printable characters")
}

// plainKey matches what can be an idempotency key: printable ASCII characters.
var plainKey = regexp.MustCompile(`^[!-~]{1,64}$`)
