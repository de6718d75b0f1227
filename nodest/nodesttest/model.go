package nodesttest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
)

// NoModels is what a user without a provider has.
type NoModels struct{}

// Resolve finds no provider.
func (NoModels) Resolve(context.Context, string, string, string, string) (nodest.Model, error) {
	return nodest.Model{}, fault.New(fault.NotConfigured, "no provider")
}

// ScriptedModel is a model that follows a script. A request without a scripted reply
// gets "Fine.".
type ScriptedModel struct {
	mu       sync.Mutex
	Script   []*ScriptedReply
	requests []llm.Request
	closed   int // requests whose reader went away or whose context ended
}

// ScriptedReply is one reply of a ScriptedModel.
type ScriptedReply struct {
	Chunks  []llm.Chunk
	Calls   []llm.ToolCall
	Err     error         // returned instead of the end
	Gate    chan struct{} // received from before each chunk and before the end; nil = no waiting
	Started chan struct{} // closed when the request arrives
	Ended   chan struct{} // closed when the reply has ended in any way
}

// Reply is a complete reply in the given pieces.
func Reply(pieces ...string) *ScriptedReply {
	l := ReplyOfChunks()
	for _, p := range pieces {
		l.Chunks = append(l.Chunks, llm.Chunk{Text: p})
	}
	return l
}

// ReplyOfChunks is a complete reply in the given chunks.
func ReplyOfChunks(chunks ...llm.Chunk) *ScriptedReply {
	return &ScriptedReply{Chunks: chunks, Started: make(chan struct{}), Ended: make(chan struct{})}
}

// Failing makes the reply end with an error.
func (l *ScriptedReply) Failing(err error) *ScriptedReply {
	l.Err = err
	return l
}

// Gated makes the reply wait for step or release.
func (l *ScriptedReply) Gated() *ScriptedReply {
	l.Gate = make(chan struct{})
	return l
}

// Step lets n pieces pass (the end counts as one), or fewer if the reader goes away.
func (l *ScriptedReply) Step(n int) {
	for range n {
		select {
		case l.Gate <- struct{}{}:
		case <-l.Ended:
		}
	}
}

// Release lets all pieces pass.
func (l *ScriptedReply) Release() { close(l.Gate) }

// Enqueue scripts the replies to the next requests.
func (p *ScriptedModel) Enqueue(lines ...*ScriptedReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Script = append(p.Script, lines...)
}

// AllRequests returns the requests so far.
func (p *ScriptedModel) AllRequests() []llm.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]llm.Request(nil), p.requests...)
}

// LastRequest is the newest request, as one text.
func (p *ScriptedModel) LastRequest() string {
	all := p.AllRequests()
	if len(all) == 0 {
		return ""
	}
	return PromptText(all[len(all)-1].Messages)
}

// PromptText is a prompt as one text.
func PromptText(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "[%s] %s\n", m.Role, m.Text)
	}
	return b.String()
}

// ClosedRequests counts the requests whose reader went away.
func (p *ScriptedModel) ClosedRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *ScriptedModel) take(req llm.Request) *ScriptedReply {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, req)
	if len(p.Script) == 0 {
		return Reply("Fine.")
	}
	l := p.Script[0]
	p.Script = p.Script[1:]
	return l
}

// Stream answers a request with the next scripted reply.
func (p *ScriptedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		l := p.take(req)
		close(l.Started)
		defer close(l.Ended)
		done := false
		defer func() {
			if !done {
				p.mu.Lock()
				p.closed++
				p.mu.Unlock()
			}
		}()
		for _, c := range l.Chunks {
			if err := l.awaitGate(ctx); err != nil {
				yield(llm.Chunk{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		if err := l.awaitGate(ctx); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		done = true
		if l.Err != nil {
			yield(llm.Chunk{}, l.Err)
			return
		}
		usage := &llm.Usage{PromptTokens: 10, CompletionTokens: len(l.Chunks)}
		yield(llm.Chunk{Last: true, Calls: l.Calls, Finish: llm.FinishStop, Model: "scripted-1", Usage: usage}, nil)
	}
}

func (l *ScriptedReply) awaitGate(ctx context.Context) error {
	if l.Gate == nil {
		if ctx.Err() != nil {
			return fault.Wrap(context.Cause(ctx), fault.Cancelled, "cancelled")
		}
		return nil
	}
	select {
	case <-l.Gate:
		return nil
	case <-ctx.Done():
		return fault.Wrap(context.Cause(ctx), fault.Cancelled, "cancelled")
	}
}

// Resolve returns the scripted model for every name, or the real model of the test.
func (s *Fixture) Resolve(_ context.Context, _, provider, model, _ string) (nodest.Model, error) {
	if s.RealModel != nil {
		return *s.RealModel, nil
	}
	if s.noModel {
		return NoModels{}.Resolve(context.Background(), "", provider, model, "")
	}
	return ScriptedModels{s.Model}.Resolve(context.Background(), "", provider, model, "")
}

// ScriptedModels resolves every model to the scripted one.
type ScriptedModels struct{ *ScriptedModel }

// Resolve returns the scripted model; the provider "missing" has no key.
func (p ScriptedModels) Resolve(_ context.Context, _, provider, model, _ string) (nodest.Model, error) {
	if provider == "missing" {
		return nodest.Model{}, fault.New(fault.NotConfigured, "no key").With("what", provider)
	}
	if model == "" {
		model = "scripted"
	}
	return nodest.Model{Generator: p.ScriptedModel, Provider: "scripted", Name: model, ContextTokens: 8000}, nil
}
