package nodest

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"nodest/cite"
	"nodest/fault"
	"nodest/framework"
	"nodest/llm"
)

// Toolbox offers tools for the turns of an engine. The toolboxes are opened side by side with
// the sources, before the request is built. None of them fails a turn: it goes on without
// the tools of one that cannot be opened, and its prompt has a warning.
type Toolbox struct {
	Name    string            // for the log
	Limit   time.Duration     // for Open and Inject together, after which the turn goes on without it
	Warning framework.Warning // of a prompt that has to do without it

	// Open returns what a turn gets, nil for nothing. It is called for every kind of turn and
	// for previews; tools and rules are only used where Question.MayCall is true. It ends soon
	// after ctx does.
	Open func(ctx context.Context, q *Question) (*Toolkit, error)
}

// Toolkit is what a toolbox offers for one turn. Everything in it may be missing.
type Toolkit struct {
	Tools []Tool
	Rules string // how to use the tools, for the system, at most 120 words; sent with them alone

	// Block returns documents that go before the chat, whether or not the model calls tools.
	// Their numbers are the first ones of the turn, so that the block is the same in the next.
	Block func(s *Sheet) []framework.KnowledgePart

	// Inject searches once, before the request, for a model that does not call tools. The text
	// of its answer goes into the user's message; a nil answer adds nothing.
	Inject func(ctx context.Context) (*Answer, error)
}

// Tool is a function that the model may call while it writes a reply.
type Tool struct {
	llm.Tool
	Limit int           // calls that are carried out in a turn; 0 = ToolLimits.Calls
	Time  time.Duration // for one call; 0 = ToolLimits.CallTime

	Query string   // the argument that says what to search for; "" = the tool does not search
	Scope []string // arguments that narrow the search: with other values it is another one
	Reads string   // the argument that lists the ids of what is read; "" = the tool does not read
	Web   bool     // it searches the web: what was searched for before the request counts

	// Vector returns the vector of a query, by which repeated searches are recognised too;
	// nil, and a nil vector, mean that words alone are compared.
	Vector func(ctx context.Context, query string) ([]float32, error)

	// Call carries out a call. It ends soon after ctx does. Of an error, the model is told the
	// public message.
	Call func(ctx context.Context, c Call) (*Answer, error)
}

// Call is a call of a tool. Arguments is a JSON object that has the members that the tool's
// Parameters require, of the types that they name. Ranges are the tool's to check.
type Call struct {
	Round     int // from 1
	Arguments json.RawMessage
}

// Answer is what a call has found.
type Answer struct {
	// Text writes the answer for the model. It may be called several times, with less room each
	// time; what is on the last sheet counts.
	Text func(s *Sheet) string

	Query    string     // what was searched for; "" = as the call says
	Hits     int        // of a search
	Files    []ToolFile // for clients, best first
	Shown    []string   // ids of the passages in it; nil = it has none
	Degraded []string   // kinds of search that could not be done
}

// ToolFile is a file that a call has found or read.
type ToolFile struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Relevance float64 `json:"relevance"` // at most 1
}

// Sheet is what an answer is written on. It numbers the sources that the model is shown.
type Sheet struct {
	Room int // code points that the text may have

	numbers *numbers
	refs    []int // that this text has
}

// Ref is the number of a source, by which the reply cites it. A source that the turn has
// shown already keeps its number. Sources are told apart by kind, URL, file and chunk.
func (s *Sheet) Ref(source cite.Source) int {
	n := s.numbers.of(source)
	s.refs = append(s.refs, n)
	return n
}

// numbers are the sources that a turn has shown; the n-th is known to the model as [n].
type numbers struct {
	list  []cite.Source
	where []place
}

// place is where the model is shown a source.
type place int

const (
	inBlock place = iota // of documents
	inWeb
	inPassages
	inAnswer // of a tool
)

func (n *numbers) copy() *numbers {
	c := numbers{append([]cite.Source(nil), n.list...), append([]place(nil), n.where...)}
	return &c
}

// add numbers a source that is new.
func (n *numbers) add(source cite.Source, at place) int {
	n.list, n.where = append(n.list, source), append(n.where, at)
	return len(n.list)
}

// of is the number of a source; what can be quoted of it is added.
func (n *numbers) of(source cite.Source) int {
	for i := range n.list {
		if known := &n.list[i]; known.Kind == source.Kind && known.URL == source.URL && known.FileID == source.FileID && known.ChunkID == source.ChunkID {
			known.Add(&source)
			n.where[i] = inAnswer
			return i + 1
		}
	}
	return n.add(source, inAnswer)
}

// opened is a toolbox that was opened.
type opened struct {
	kit      *Toolkit
	injected *Answer // for a model that does not call tools; nil = nothing
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
	if o.kit, o.err = b.Open(ctx, q); o.err != nil || o.kit == nil {
		return o
	}
	if o.kit.Inject != nil && q.task == llm.Reply && !q.preview && !q.MayCall() {
		defer asked(stageTools)()
		o.injected, o.err = o.kit.Inject(ctx)
	}
	return o
}

// addKits puts what the toolboxes offer into the input of the build, in two steps: the
// documents before the findings of the sources, so that their numbers are the same in every
// turn, and the rest behind them.
func (t *turn) addKits(list []opened) (rest func()) {
	for _, o := range list {
		if o.kit != nil && o.kit.Block != nil {
			before := len(t.numbers.list)
			t.input.Knowledge = append(t.input.Knowledge, o.kit.Block(&Sheet{Room: t.input.Options.Context, numbers: &t.numbers})...)
			for i := range t.numbers.where[before:] {
				t.numbers.where[before+i] = inBlock
			}
		}
	}
	return func() {
		var rules []string
		for _, o := range list {
			if o.kit == nil {
				continue
			}
			t.kits = append(t.kits, o.kit)
			t.inject(o.injected)
			if len(o.kit.Tools) > 0 && t.question.MayCall() {
				t.tools = append(t.tools, o.kit.Tools...)
				rules = append(rules, o.kit.Rules)
			}
		}
		if len(t.tools) > 0 {
			t.input.Rules = strings.Join(rules, "\n\n")
			t.replyReserve = t.input.Options.Reserve
			t.input.Options.Reserve += min(toolReserve, t.input.Options.Context/4)
		}
	}
}

// build is the prompt of the turn. One that leaves no room for tools goes without the room, and
// if that does not help without the tools: whoever has documents must not lose a reply by them.
func (t *turn) build() (*framework.Prompt, error) {
	p, err := framework.Build(t.input)
	if len(t.tools) == 0 || !fault.Is(err, fault.ContextTooLarge) {
		return p, err
	}
	t.input.Options.Reserve = t.replyReserve
	if p, err = framework.Build(t.input); fault.Is(err, fault.ContextTooLarge) {
		t.tools, t.input.Rules = nil, ""
		return framework.Build(t.input)
	}
	return p, err
}

// toolReserve is how many tokens a prompt leaves for calls and their results, at most.
const toolReserve = 16_384

// inject adds the passages that were found for a model without tools.
func (t *turn) inject(a *Answer) {
	if a == nil {
		return
	}
	s := &Sheet{Room: injectedRoom, numbers: &t.numbers}
	before := len(t.numbers.list)
	text := a.Text(s)
	for i := range t.numbers.where[before:] {
		t.numbers.where[before+i] = inPassages
	}
	t.input.Findings.Passages = strings.TrimSpace(t.input.Findings.Passages + "\n" + text)
	t.trace.Path = pathInject
	if a.Query != "" {
		t.trace.Searches = append(t.trace.Searches, searchTrace(a.Query, a.Hits, false))
	}
}

// injectedRoom bounds the passages for a model without tools, in code points.
const injectedRoom = 6000

// injectNow is Toolkit.Inject in the middle of a turn; its failure costs only what it would
// have found.
func (e *Engine) injectNow(ctx context.Context, kit *Toolkit) (a *Answer) {
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
