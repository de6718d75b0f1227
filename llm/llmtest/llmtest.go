// Package llmtest has fake model providers.
//
// NewGemini and NewOpenAI start fakes on real sockets. They decode requests strictly,
// fail the test if the real service would reject the request, and reply by script:
// complete replies, and every way in which a provider's response can go wrong. A Reply's
// Gate lets a test decide when each piece is sent. The tests that every provider's
// adapter passes are in package llm.
//
// The package is for tests only.
package llmtest

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/llm"
)

// Finish is why a scripted reply ends.
type Finish string

// The finishes; each fake spells them as its provider does. Any other is a word of
// Gemini's own, such as RECITATION.
const (
	Stop   Finish = ""
	Length Finish = "length"
	Safety Finish = "safety" // OpenAI: content_filter
)

// End is how the body of a scripted reply ends.
type End int

// The ends.
const (
	Whole      End = iota // finish reason, usage, and the end mark of the format
	FinishOnly            // finish reason, but no end mark
	MarkOnly              // end mark, but no finish reason
	Truncated             // neither, and yet an orderly end of the HTTP body
	Cut                   // the connection breaks
	Stall                 // silence until the client goes away
	MidError              // an error object inside the stream
	Garbage               // JSON that breaks off
)

// Part is one piece of a reply, sent as a chunk of its own.
type Part struct {
	Text      string
	Reasoning string // hidden thoughts
	Signature bool   // Gemini: nothing but a thought signature
	Bare      bool   // Gemini: a chunk without candidates; OpenAI: one without choices
	Call      *Call
	Extra     map[string]any // OpenAI: further members of the delta
}

// Call is a tool that a reply asks for, or that a request says was asked for.
type Call struct {
	ID        string // empty = none is sent
	Name      string
	Args      string // JSON
	Signature string // signature of the thought; OpenAI: in extra_content, as Google sends it
	Pieces    int    // OpenAI: deltas for the arguments; 0 = the whole call in one
}

// Index is how an OpenAI-compatible server numbers the calls of a reply.
type Index int

// The ways to number calls.
const (
	Counted Index = iota
	NoIndex
	AllZero
)

// Usage is what the fake says it has counted.
type Usage struct {
	Prompt, Completion, Cached, Reasoning int
	Cost                                  float64 // OpenRouter only, in USD
}

// Reply is what a fake answers to one request. The zero value is a whole reply
// without text.
type Reply struct {
	Status     int           // 0 means 200; else Message and Reason form the error body
	Message    string        // the error's message; default: the status text
	Reason     string        // word for machines, e.g. API_KEY_INVALID
	RetryAfter time.Duration // as header, in whole seconds
	HTML       bool          // a web page with status 200 in place of the answer
	Plain      string        // the body of a refusal as it is, in place of an error body
	Location   string        // the address of a redirect

	Parts       []Part
	Finish      Finish
	Index       Index  // OpenAI
	SaysStop    bool   // OpenAI: the finish reason is stop although there are calls
	Model       string // Gemini: the version that answers; default: the model that was asked
	PromptBlock string // Gemini: the prompt is refused for this reason, no candidates
	Usage       Usage
	End         End

	Split int  // bytes per write; 0 sends a chunk in one write
	CRLF  bool // line ends of SSE

	// Gate is received from once before each part and once before the end. A
	// nil or closed Gate does not wait.
	Gate <-chan struct{}
}

// Say is a whole reply made of pieces.
func Say(pieces ...string) Reply {
	r := Reply{Usage: Usage{Prompt: 7, Completion: len(pieces)}}
	for _, p := range pieces {
		r.Parts = append(r.Parts, Part{Text: p})
	}
	return r
}

// Fail is a refusal with an HTTP status.
func Fail(status int) Reply { return Reply{Status: status} }

// Message is one message of a request, as the fake understood it.
type Message struct {
	Role   string // the provider's word: user, model, assistant, system, tool
	Text   string
	Images []llm.Image
	Calls  []Call
	Result *llm.ToolResult // Gemini: without CallID where the request names none
}

// Request is what a fake received.
type Request struct {
	Method    string
	Path      string // without query
	Query     string
	Header    http.Header
	Key       string // from the header in which the provider wants it
	Transport string // Gemini: "generative-ai-go" or "genai"
	Model     string
	System    string    // Gemini: the system instruction
	Messages  []Message // Gemini: each result is one of its own
	Tools     []llm.Tool
	NoCalls   bool // tools are not to be called
	Body      json.RawMessage
	From      string // the client's address: the same while a connection is used again
}

// Fake is a provider under the test's control. Its methods are safe for
// concurrent use.
type Fake struct {
	// URL is what goes into an adapter's base URL option.
	URL string

	t      testing.TB
	server *httptest.Server
	quit   chan struct{}
	render renderer
	closed chan time.Time
	arrive chan Request

	mu       sync.Mutex
	script   []Reply
	always   func(Request) Reply
	byKey    map[string]Reply
	requests []Request
	dims     int
	badVec   bool
	models   []string
	context  int
}

// renderer is the part of a fake that knows a provider's format.
type renderer interface {
	// decode reads a request strictly; an error means that the real service
	// would refuse it.
	decode(r *http.Request, body []byte) (Request, error)
	// answer writes everything but a refusal.
	answer(f *Fake, out *writer, req Request, reply Reply)
	// refusal is the body of an error answer.
	refusal(reply Reply) any
}

func newFake(t testing.TB, render renderer, suffix string) *Fake {
	t.Helper()
	f := &Fake{
		t: t, render: render, quit: make(chan struct{}),
		closed: make(chan time.Time, 4096), arrive: make(chan Request, 4096),
		always: func(Request) Reply { return Say("Hello", " there", ".") },
		dims:   8, byKey: map[string]Reply{},
	}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.server.Config.ErrorLog = nil
	f.server.Start()
	f.URL = f.server.URL + suffix
	t.Cleanup(func() {
		close(f.quit)
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

// set changes what the fake answers.
func (f *Fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Script queues replies; each answers one request, and a list of models only if it is a failure. When none is left,
// Always answers.
func (f *Fake) Script(replies ...Reply) { f.set(func() { f.script = append(f.script, replies...) }) }

// Always sets the reply to requests that no script waits for. Without it the
// fake says "Hello there.".
func (f *Fake) Always(reply func(Request) Reply) { f.set(func() { f.always = reply }) }

// ForKey sets the reply to every request that carries this key, before any
// script.
func (f *Fake) ForKey(key string, reply Reply) { f.set(func() { f.byKey[key] = reply }) }

// SetModels sets the answer to the list of models.
func (f *Fake) SetModels(names ...string) { f.set(func() { f.models = names }) }

// SetContext has the list of models of an OpenAI-compatible server tell the size of their context in tokens.
func (f *Fake) SetContext(tokens int) { f.set(func() { f.context = tokens }) }

// SetDimension sets the length of vectors when a request names none; default 8.
func (f *Fake) SetDimension(n int) { f.set(func() { f.dims = n }) }

// LoseVectors makes the fake answer embeddings with one vector too few.
func (f *Fake) LoseVectors() { f.set(func() { f.badVec = true }) }

// Stop closes the fake's server, so that nothing listens at its address.
func (f *Fake) Stop() { f.server.Close() }

// Requests returns what has arrived so far, oldest first.
func (f *Fake) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Arrived delivers each request as it arrives.
func (f *Fake) Arrived() <-chan Request { return f.arrive }

// Closed delivers the time when a client went away before its reply ended.
func (f *Fake) Closed() <-chan time.Time { return f.closed }

// bodyLimit bounds what a fake reads of a request.
const bodyLimit = 32 << 20

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit))
	if err != nil {
		return // the client is gone
	}
	req, err := f.render.decode(r, body)
	req.Method, req.Path, req.Query = r.Method, r.URL.Path, r.URL.RawQuery
	req.Header, req.Body = r.Header.Clone(), body
	req.From = r.RemoteAddr
	f.note(req)
	out := &writer{fake: f, w: w, ctx: r.Context()}
	if err != nil {
		f.t.Errorf("llmtest: %s refuses the request: %v\n%s", r.URL.Path, err, body)
		out.refuse(Reply{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	reply := f.next(req)
	if reply.Status != 0 && reply.Status != http.StatusOK {
		out.refuse(reply)
		return
	}
	if reply.HTML {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Sign in to the hotel network</title>")
		return
	}
	f.render.answer(f, out, req, reply)
}

func (f *Fake) note(req Request) {
	f.set(func() { f.requests = append(f.requests, req) })
	select {
	case f.arrive <- req:
	default:
	}
}

// next is the reply to a request. Always is called without the lock: it may wait.
func (f *Fake) next(req Request) Reply {
	f.mu.Lock()
	reply, ok := f.byKey[req.Key]
	if !ok && len(f.script) > 0 && (f.script[0].Status != 0 || !strings.HasSuffix(req.Path, "/models")) {
		reply, f.script, ok = f.script[0], f.script[1:], true
	}
	always := f.always
	f.mu.Unlock()
	if ok {
		return reply
	}
	return always(req)
}

// vectors are those of texts, without the last one after LoseVectors.
func (f *Fake) vectors(texts []string, dims int) [][]float32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.badVec {
		texts = texts[:len(texts)-1]
	}
	var out [][]float32
	for _, text := range texts {
		out = append(out, Vector(text, cmp.Or(dims, f.dims)))
	}
	return out
}

// Vector is what a fake answers for a text: a unit vector that depends on the text only.
func Vector(text string, dims int) []float32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	v := make([]float32, dims)
	v[int(h.Sum32()%uint32(dims))] = 1
	return v
}

func (f *Fake) modelNames() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.models)
}

func (f *Fake) contextTokens() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.context
}

// writer sends a body piece by piece and notices when the client goes away.
type writer struct {
	fake *Fake
	w    http.ResponseWriter
	ctx  context.Context
	gone bool
}

func (o *writer) refuse(reply Reply) {
	if reply.RetryAfter > 0 {
		o.w.Header().Set("Retry-After", strconv.Itoa(int(reply.RetryAfter.Seconds())))
	}
	if reply.Location != "" {
		o.w.Header().Set("Location", reply.Location)
	}
	if reply.Plain != "" {
		o.w.WriteHeader(reply.Status)
		_, _ = io.WriteString(o.w, reply.Plain) // the client may be gone
		return
	}
	reply.Message = cmp.Or(reply.Message, http.StatusText(reply.Status))
	o.json(reply.Status, o.fake.render.refusal(reply))
}

func (o *writer) json(status int, v any) {
	o.w.Header().Set("Content-Type", "application/json")
	o.w.WriteHeader(status)
	_ = json.NewEncoder(o.w).Encode(v) // the client may be gone
}

// pass waits at the gate. It is false when the client or the test is gone.
func (o *writer) pass(gate <-chan struct{}) bool {
	if gate == nil {
		return !o.gone
	}
	select {
	case <-gate:
		return true
	case <-o.ctx.Done():
		o.lost()
	case <-o.fake.quit:
	}
	return false
}

// send writes s, split bytes at a time.
func (o *writer) send(s string, split int) {
	if split <= 0 {
		split = len(s)
	}
	for len(s) > 0 && !o.gone {
		n := min(split, len(s))
		if _, err := io.WriteString(o.w, s[:n]); err != nil {
			o.lost()
			return
		}
		if err := http.NewResponseController(o.w).Flush(); err != nil {
			o.lost()
			return
		}
		s = s[n:]
	}
}

// format is a provider's format of a stream.
type format interface {
	part(p Part)
	end() // ends a reply that is not truncated
}

// stream sends a reply in pieces.
func (o *writer) stream(r Reply, f format) {
	for _, p := range r.Parts {
		if !o.pass(r.Gate) {
			return
		}
		f.part(p)
	}
	if !o.pass(r.Gate) {
		return
	}
	switch r.End {
	case Stall:
		o.stall()
	case Cut:
		o.cut()
	case Truncated:
	default:
		f.end()
	}
}

// line sends a line of server-sent events and the empty one behind it.
func (o *writer) line(r Reply, text string) {
	end := "\n\n"
	if r.CRLF {
		end = "\r\n\r\n"
	}
	o.send(text+end, r.Split)
}

// stall is silent until the client or the test goes away.
func (o *writer) stall() {
	select {
	case <-o.ctx.Done():
		o.lost()
	case <-o.fake.quit:
	}
}

// cut breaks the connection without an orderly end.
func (o *writer) cut() {
	conn, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close() // not reset: what was sent before arrives
}

func (o *writer) lost() {
	if o.gone {
		return
	}
	o.gone = true
	select {
	case o.fake.closed <- time.Now():
	default:
	}
}
