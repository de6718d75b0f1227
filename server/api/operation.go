package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"reflect"

	"nodest/internal/op"
)

// Operation is one thing that a client can ask for, over both transports.
type Operation struct {
	Command string // the command of the WebSocket; "" = REST only
	As      string // the command that an idempotency key takes it for; "" = itself
	// Route is the same in REST, such as "PATCH /messages/:messageId": the method,
	// and the path below /api/v1 with the members of the data that it contains. A GET
	// and a DELETE take the other members as query parameters.
	Route   string
	IfMatch bool  // an If-Match header sets the member ifVersion
	Status  int   // status of a success in REST; 0 = 200
	Bytes   int64 // bytes of the body in REST, or of the document that a GET answers; 0 = the server's default
	Key     bool  // on the WebSocket it needs an idempotency key
	// Starts is set on operations that may begin a generation: in REST a request waits
	// for the reply, streams it or is answered at once.
	Starts   bool
	Attaches bool // in REST it can stream the generation that it answers
	Alone    bool // it may keep a processor busy, so a user's run one after the other
	Data     Input
}

// Name is what an idempotency key is bound to, besides the data.
func (o *Operation) Name() string { return cmp.Or(o.As, o.Command, o.Route) }

// Runner is an operation with its data.
type Runner = func(context.Context, *Services, *op.Call) (any, error)

// Input reads the data of an operation.
type Input struct {
	Members map[string]reflect.Type
	// Prepare decodes the data strictly and returns what will run, and the hash of name
	// and content for idempotency. Nothing has happened yet when it fails.
	Prepare func(name string, data []byte) (run Runner, hash string, err error)
}

// Call is a call of an operation, with the services that it may need.
type Call struct {
	*Services
	*op.Call
}

// takes is the input of an operation: In is the shape of its data, and f the one
// function behind both transports. Its result is encoded as JSON.
func takes[In any](f func(ctx context.Context, c *Call, in In) (any, error)) Input {
	return Input{MembersOf(reflect.TypeFor[In]()), func(name string, data []byte) (Runner, string, error) {
		var in In
		if err := Decode(OrObject(data), &in); err != nil {
			return nil, "", err
		}
		canonical, err := json.Marshal(in)
		if err != nil {
			return nil, "", err
		}
		run := func(ctx context.Context, s *Services, c *op.Call) (any, error) { return f(ctx, &Call{s, c}, in) }
		return run, Hash(name, canonical), nil
	}}
}

// Hash identifies the request that an idempotency key is bound to, with 72 bits: it is
// stored with each key.
func Hash(name string, content []byte) string {
	h := sha256.New()
	h.Write([]byte(name + "\n"))
	h.Write(content)
	return base64.RawStdEncoding.EncodeToString(h.Sum(nil)[:9])
}

// ByCommand indexes the operations for the WebSocket.
func ByCommand() map[string]*Operation {
	m := make(map[string]*Operation, len(Operations))
	for i := range Operations {
		if o := &Operations[i]; o.Command != "" {
			m[o.Command] = o
		}
	}
	return m
}
