package nodest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/nodest/tools"
)

// Toolbox offers tools for the turns of an engine. The toolboxes are opened side by side with
// the sources, before the request is built. None of them fails a turn: it goes on without
// the tools of one that cannot be opened, and its prompt has a warning.
type Toolbox struct {
	Name    string            // for the log
	Limit   time.Duration     // for Open and Inject together, after which the turn goes on without it
	Warning framework.Warning // the warning in a prompt that has to do without it

	// Wanted says whether a turn has it opened.
	Wanted func(q *Question) bool
	// Open returns what a turn gets, nil for nothing. It is called for every kind of turn and
	// for previews; tools and rules are only used where Question.MayCall is true. With an error
	// too: then a part is missing. It ends soon after ctx does.
	Open func(ctx context.Context, q *Question) (*Toolkit, error)
}

// Toolkit is what a toolbox offers for one turn. Everything in it may be missing.
type Toolkit struct {
	Tools []tools.Tool
	Rules string // how to use the tools, for the system, at most 120 words; sent with them alone

	// Block returns documents that go before the chat, whether or not the model calls tools.
	// Their numbers are the first ones of the turn, so that the block is the same in the next.
	Block func(s *tools.Sheet) []framework.KnowledgePart

	// Inject searches once, before the request, for a model that does not call tools. The text
	// of its answer goes into the user's message; a nil answer adds nothing.
	Inject func(ctx context.Context) (*tools.Answer, error)
}

// offer is what toolboxes offer to the model of a turn.
type offer struct {
	kits    []*Toolkit
	tools   []tools.Tool   // that the model may call
	reserve int            // with tools: the tokens that are kept for the reply
	trace   chat.ToolTrace // Path is "" while nothing was offered
}

type opened struct {
	kit      *Toolkit
	calls    bool          // the model may call its tools
	injected *tools.Answer // for a model that does not call tools; nil = nothing
	err      error
}

// open is Open, and Inject where the model of the turn does not call tools, within the
// limit; a panic is an error. What was there before it counts.
func (b Toolbox) open(ctx context.Context, q *Question, asked func(name string) (answered func())) (o opened) {
	ctx, cancel := context.WithTimeout(ctx, b.Limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("toolbox %s: panic: %v\n%s", b.Name, p, debug.Stack())
		}
	}()
	if o.kit, o.err = b.Open(ctx, q); o.kit == nil {
		return o
	}
	o.calls = len(o.kit.Tools) > 0 && q.MayCall(ctx)
	if o.kit.Inject != nil && q.Answers() && !o.calls {
		defer asked(stageTools)()
		var err error
		o.injected, err = o.kit.Inject(ctx)
		o.err = errors.Join(o.err, err)
	}
	return o
}

// addKits puts what the toolboxes offer into the input of the build, in two steps: the
// documents before the findings of the sources, so that their numbers are the same in every
// turn, and the rest behind them.
func (t *turn) addKits(list []opened) (rest func()) {
	for _, o := range list {
		if o.kit != nil && o.kit.Block != nil {
			t.input.Knowledge = append(t.input.Knowledge, o.kit.Block(t.found.numbers.Sheet(t.input.Options.Context, tools.InBlock))...)
		}
	}
	return func() {
		var rules []string
		for _, o := range list {
			if o.kit == nil {
				continue
			}
			t.offer.kits = append(t.offer.kits, o.kit)
			t.inject(o.injected)
			if o.calls {
				t.offer.tools = append(t.offer.tools, o.kit.Tools...)
				rules = append(rules, o.kit.Rules)
			}
		}
		if len(t.offer.tools) > 0 {
			t.input.Rules = strings.Join(rules, "\n\n")
			t.offer.reserve = t.input.Options.Reserve
			t.input.Options.Reserve += tools.Tokens(t.offer.tools, t.count) + min(toolReserve, t.input.Options.Context/4)
		}
	}
}

// build is the prompt of the turn. One that leaves no room for tools goes without the room, and
// if that does not help without the tools: whoever has documents must not lose a reply by them.
func (t *turn) build(ctx context.Context) (*framework.Prompt, error) {
	p, err := t.make(ctx)
	if len(t.offer.tools) == 0 || !fault.Is(err, fault.ContextTooLarge) {
		return p, err
	}
	t.input.Options.Reserve = t.offer.reserve + tools.Tokens(t.offer.tools, t.count)
	if p, err = t.make(ctx); fault.Is(err, fault.ContextTooLarge) {
		t.dropTools()
		return t.make(ctx)
	}
	return p, err
}

// dropTools takes the tools out of the input of the build.
func (t *turn) dropTools() {
	t.offer.tools, t.input.Rules, t.input.Options.Reserve = nil, "", t.offer.reserve
}

// count is the number of tokens of a text, as the prompt is measured.
func (t *turn) count(text string) int { return framework.CountTokens(t.input.Options.Tokenizer, text) }

// toolReserve is how many tokens a prompt leaves for calls and their results, at most.
const toolReserve = 16_384

// inject adds the passages that were found for a model without tools.
func (t *turn) inject(a *tools.Answer) {
	if a == nil {
		return
	}
	sheet := t.found.numbers.Sheet(injectedRoom, tools.InPassages)
	text := a.Text(sheet)
	t.found.looked(a.Query, sheet.Refs())
	t.input.Findings.Passages = strings.TrimSpace(t.input.Findings.Passages + "\n" + text)
	t.offer.trace.Path = pathInject
	if a.Query != "" {
		t.offer.trace.Searches = append(t.offer.trace.Searches, tools.SearchTrace(a.Query, a.Hits, false))
	}
}

// injectedRoom bounds the passages for a model without tools, in code points.
const injectedRoom = 6000

// injectNow is Toolkit.Inject in the middle of a turn; its failure costs only what it would
// have found.
func (e *Engine) injectNow(ctx context.Context, kit *Toolkit) (a *tools.Answer) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.ToolLimits.CallTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			e.opts.Log.ErrorContext(ctx, "a search for a reply panicked", "err", p, "stack", string(debug.Stack()))
		}
	}()
	a, err := kit.Inject(ctx)
	if err != nil {
		e.opts.Log.WarnContext(ctx, "turn continues without a search", "err", err)
	}
	return a
}
