package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"sync"

	"nodest/fault"
	"nodest/op"
)

// operation is one thing that a client can ask for, over both transports.
type operation struct {
	command string // of the WebSocket; "" = REST only
	as      string // the command that an idempotency key takes it for; "" = itself
	// route is the same in REST, such as "PATCH /messages/:messageId": the method,
	// and the path below /api/v1 with the members of the data that it contains. A GET
	// and a DELETE take the other members as query parameters.
	route   string
	ifMatch bool  // an If-Match header sets the member ifVersion
	status  int   // of a success in REST; 0 = 200
	bytes   int64 // of the body in REST; 0 = Options.BodyBytes
	key     bool  // on the WebSocket it needs an idempotency key
	// starts is set on operations that may begin a generation: in REST a request waits
	// for the reply, streams it or is answered at once.
	starts   bool
	attaches bool // in REST it can stream the generation that it answers
	data     input
}

// name is what an idempotency key is bound to, besides the data.
func (o *operation) name() string { return cmp.Or(o.as, o.command, o.route) }

// runner is an operation with its data.
type runner = func(context.Context, *Server, *op.Call) (any, error)

// input reads the data of an operation.
type input struct {
	members map[string]reflect.Type
	// prepare decodes the data strictly and returns what will run, and the hash of name
	// and content for idempotency. Nothing has happened yet when it fails.
	prepare func(name string, data []byte) (run runner, hash string, err error)
}

// takes is the input of an operation: In is the shape of its data, and f the one
// function behind both transports. Its result is encoded as JSON.
func takes[In any](f func(ctx context.Context, s *Server, c *op.Call, in In) (any, error)) input {
	return input{membersOf(reflect.TypeFor[In]()), func(name string, data []byte) (runner, string, error) {
		var in In
		if err := decodeStrict(orObject(data), &in); err != nil {
			return nil, "", err
		}
		canonical, err := json.Marshal(in)
		if err != nil {
			return nil, "", err
		}
		run := func(ctx context.Context, s *Server, c *op.Call) (any, error) { return f(ctx, s, c, in) }
		return run, hashOf(name, canonical), nil
	}}
}

// hashOf identifies the request that an idempotency key is bound to.
func hashOf(name string, content []byte) string {
	h := sha256.New()
	h.Write([]byte(name + "\n"))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// operations is the one list of what both transports offer.
var operations = slices.Concat(chatOperations, historyOperations, saveOperations, memoryOperations)

// byCommand indexes the table for the WebSocket.
func byCommand(table []operation) map[string]*operation {
	m := make(map[string]*operation, len(table))
	for i := range table {
		if table[i].command != "" {
			m[table[i].command] = &table[i]
		}
	}
	return m
}

// perform runs an operation for one call and is where both transports meet. c.Hash
// is set here. If another call with the same key is running, this one waits for it with
// wait, and fails with fault.InProgress without.
func (s *Server) perform(ctx context.Context, o *operation, c *op.Call, data []byte, wait bool) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, panicked(r)
		}
	}()
	if c.Key != "" && !plainKey.MatchString(c.Key) {
		return nil, badKey()
	}
	if o.starts && s.draining.Load() {
		return nil, fault.New(fault.ShuttingDown, "the server is shutting down")
	}
	run, hash, err := o.data.prepare(o.name(), data)
	if err != nil {
		return nil, err
	}
	c.Hash = hash
	return s.once(ctx, c, wait, func() (any, error) { return run(ctx, s, c) })
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
