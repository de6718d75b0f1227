package nodest

import (
	"context"
	"slices"
	"sync"
	"time"

	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest/recent"
	"nodest/nodest/tools"
)

// The paths by which found text reaches a model: ToolTrace.Path.
const (
	pathTools  = "tools"
	pathInject = "inject"
)

// speak has the model write the reply. As long as it asks for tools, their results are
// added to the same prompt and it is asked again.
func (e *Engine) speak(ctx context.Context, t *task, turn *turn) error {
	l := newToolLoop(e, t, turn)
	defer e.settle(t)
	for {
		t.nextRequest(turn, l.run.Tokens())
		said, err := e.stream(ctx, t, turn, l.request())
		if again, err := l.next(ctx, said, err); !again || err != nil {
			return err
		}
		t.text.Supersede()
	}
}

// toolLoop asks the model again as long as it calls tools.
type toolLoop struct {
	e        *Engine
	t        *task
	turn     *turn
	run      *tools.Run
	insisted bool // it was asked a second time to write
}

func newToolLoop(e *Engine, t *task, turn *turn) *toolLoop {
	l := &toolLoop{e: e, t: t, turn: turn}
	l.run = l.newRun()
	if len(turn.offer.tools) > 0 {
		turn.offer.trace.Path = pathTools
	}
	for _, s := range turn.found.search {
		var refs []int
		for _, p := range s.Pages {
			refs = append(refs, p.Marker)
		}
		l.run.Searched(s.Query, refs)
	}
	return l
}

// newRun is a use of the tools of the turn, behind its prompt.
func (l *toolLoop) newRun() *tools.Run {
	return tools.New(tools.Options{
		Tools: l.turn.offer.tools, Limits: l.e.opts.ToolLimits, Language: l.turn.setup.Docs.Language,
		Room:    l.turn.input.Options.Context - l.turn.offer.reserve - l.turn.prompt.Tokens,
		Count:   l.turn.count,
		Numbers: &l.turn.found.numbers, Trace: &l.turn.offer.trace, Lookups: &l.turn.found.lookups,
		Publish: func(ev tools.Event) { l.e.publish(l.t, "gen.tool", ev) },
		Log:     l.e.opts.Log.With("generation", l.t.id),
	})
}

// request is what the model is asked next.
func (l *toolLoop) request() llm.Request {
	r := l.turn.request(l.run.Tokens())
	behind := len(r.Messages)
	for behind > 0 && r.Messages[behind-1].Role == llm.Assistant { // the beginning of the reply stays last
		behind--
	}
	r.Messages = slices.Concat(r.Messages[:behind], l.run.Messages(), r.Messages[behind:])
	for _, tool := range l.turn.offer.tools {
		r.Tools = append(r.Tools, tool.Tool)
	}
	r.MaxBytes = l.t.text.Room(l.e.opts.MaxReply)
	r.NoCalls = l.run.Closed() && len(r.Tools) > 0
	return r
}

// next decides what follows an answer of the model, or its error: another request, or the
// end of the reply.
func (l *toolLoop) next(ctx context.Context, said modelAnswer, err error) (again bool, _ error) {
	switch {
	case len(l.turn.offer.tools) == 0, err == nil && len(said.calls) == 0:
		return false, err
	case err != nil:
		return l.afterError(ctx, err)
	case l.run.Closed() && l.insisted:
		return true, l.withoutTools(ctx)
	case l.run.Closed():
		l.insisted = true
		return true, nil
	}
	l.e.publishStage(l.t, stageTools, l.turn.since)
	l.run.Answer(ctx, llm.Message{Role: llm.Assistant, Text: said.text, Calls: said.calls, Echo: said.echo})
	l.t.shown.note(l.turn)
	return true, context.Cause(ctx)
}

// afterError decides what follows an error of a model that has tools.
func (l *toolLoop) afterError(ctx context.Context, err error) (again bool, _ error) {
	empty := fault.Is(err, fault.EmptyReply)
	switch {
	case ctx.Err() != nil:
		return false, err
	case llm.ToolsUnsupported(err):
		// It is remembered of a model that has called none, and not for what a fallback said.
		if l.run.Rounds() == 0 && !llm.OfFallback(err) {
			l.e.toolless.note(l.turn.modelKey(), time.Now())
		}
		return true, l.withoutTools(ctx)
	case llm.EchoRejected(err), l.run.Rounds() > 0 && llm.ProviderStatus(err) == 400:
		return true, l.withoutTools(ctx)
	case empty && l.run.Rounds() > 0 && l.t.text.HasText():
		l.t.text.End(llm.FinishStop) // the text before its calls is the reply
		return false, nil
	case (empty || fault.Is(err, fault.UpstreamBadAnswer)) && !l.t.text.HasText():
		// Servers refuse tools, and models fail with them, in many ways.
		return true, l.withoutTools(ctx)
	}
	return false, err
}

// withoutTools makes the prompt anew for a model that does not call tools: one search
// before the request takes their place.
func (l *toolLoop) withoutTools(ctx context.Context) error {
	t := l.turn
	t.offer.trace.Path = pathInject
	found := make([]*tools.Answer, len(t.offer.kits))
	var group sync.WaitGroup
	for i, kit := range t.offer.kits {
		if kit.Inject != nil {
			group.Go(func() { found[i] = l.e.injectNow(ctx, kit) })
		}
	}
	group.Wait()
	t.dropTools()
	for _, a := range found {
		t.inject(a)
	}
	prompt, err := t.make(ctx)
	if err != nil {
		return err
	}
	t.built(prompt, t.buildTime)
	l.run = l.newRun()
	l.t.shown.note(t)
	return l.e.storePrompt(ctx, l.t, t)
}

// addWarnings adds those of a reply to the stored prompt.
func (e *Engine) addWarnings(ctx context.Context, t *task, turn *turn, warnings []llm.Warning) {
	before := len(turn.prompt.Warnings)
	for _, w := range warnings {
		if w := (framework.Warning{Code: w.Code, Detail: w.Detail}); !slices.Contains(turn.prompt.Warnings, w) {
			turn.prompt.Warnings = append(turn.prompt.Warnings, w)
		}
	}
	if len(turn.prompt.Warnings) > before && e.storePrompt(ctx, t, turn) != nil {
		e.opts.Log.WarnContext(ctx, "warnings could not be stored", "generation", t.id, "warnings", warnings)
	}
}

// storePrompt stores what a generation sends in place of its first prompt.
func (e *Engine) storePrompt(ctx context.Context, t *task, turn *turn) error {
	id := op.NewID()
	body, err := turn.pack()
	if err != nil {
		return err
	}
	err = e.store.Update(ctx, t.userID, func(tx Tx) error {
		return tx.PutPrompt(&StoredPrompt{
			ID: id, ConversationID: t.conversationID, GenerationID: t.id, Body: body, FileIDs: turn.fileIDs(), CreatedAt: tx.Now(),
		})
	})
	if err == nil {
		t.setPrompt(id)
		e.histories.NoteSent(t.chat(), recent.Sent{PromptID: id, GenerationID: t.id, Hashes: turn.prompt.Hashes})
	}
	return err
}
