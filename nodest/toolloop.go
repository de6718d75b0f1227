package nodest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nodest/chat"
	"nodest/fault"
	"nodest/framework"
	"nodest/index"
	"nodest/llm"
)

// ToolLimits bound the use of tools in one turn. The zero value is ready to use. When one is
// reached the model is asked once more, without calls, so that a turn always ends in a reply.
type ToolLimits struct {
	Rounds   int           // answers of the model that ask for tools; default 6
	Calls    int           // that are carried out of one tool, unless the tool says otherwise; default 4
	Text     int           // of all results, in code points; default 60,000
	Time     time.Duration // for all calls; default 90 s
	AtOnce   int           // calls; default 4
	CallTime time.Duration // for one call; default 10 s
}

func (l ToolLimits) withDefaults() ToolLimits {
	l.Rounds, l.Calls = cmp.Or(l.Rounds, 6), cmp.Or(l.Calls, 4)
	l.Text, l.AtOnce = cmp.Or(l.Text, 60_000), cmp.Or(l.AtOnce, 4)
	l.Time, l.CallTime = cmp.Or(l.Time, 90*time.Second), cmp.Or(l.CallTime, 10*time.Second)
	return l
}

// mostRepeats is how many repeated searches end the use of tools.
const mostRepeats = 2

// The paths by which found text reaches a model: ToolTrace.Path.
const (
	pathTools  = "tools"
	pathInject = "inject"
)

// converse has the model write the reply. As long as it asks for tools, their results are
// added to the same prompt and it is asked again. announced is the result of storing the
// start, which nothing is published before.
func (e *Engine) converse(ctx context.Context, t *task, turn *turn, announced <-chan error) error {
	stored := sync.OnceValue(func() error { return <-announced })
	l := newToolLoop(e, t, turn)
	defer e.settle(t)
	for {
		t.beginRequest(turn, l.tokens)
		said, err := e.speak(ctx, t, turn.setup.model, l.request(), stored)
		if again, err := l.next(ctx, said, err); !again || err != nil {
			return err
		}
		t.supersede()
	}
}

// toolLoop is the use of tools in a turn.
type toolLoop struct {
	e      *Engine
	t      *task
	turn   *turn
	limits ToolLimits
	words  toolWords
	begun  time.Time // the building of the prompt

	messages []llm.Message // behind the prompt: calls and their results
	tokens   int           // of these
	rounds   int           // answers with calls
	named    int           // searches so far
	closed   bool          // no more calls
	insisted bool          // it was asked a second time to write

	used     map[string]int // calls that were carried out, by tool
	searches []*pastSearch
	repeats  int
	text     int             // of all results, in code points
	spent    time.Duration   // on calls
	seen     map[string]bool // passages that were shown
}

func newToolLoop(e *Engine, t *task, turn *turn) *toolLoop {
	l := &toolLoop{
		e: e, t: t, turn: turn, limits: e.opts.ToolLimits, words: wordsForTools(turn.setup.Docs.Language), begun: time.Now().Add(-turn.buildTime),
		used: map[string]int{}, seen: map[string]bool{},
	}
	if len(turn.tools) > 0 {
		turn.trace.Path = pathTools
	}
	for _, s := range turn.search {
		for _, tool := range turn.tools {
			if tool.Web {
				past := &pastSearch{tool: tool.Name, terms: index.NormalForm(s.Query)}
				for _, p := range s.Pages {
					past.refs = append(past.refs, p.Marker)
				}
				l.remember(past)
			}
		}
	}
	return l
}

// request is what the model is asked next.
func (l *toolLoop) request() llm.Request {
	r := l.turn.request(l.tokens)
	r.Messages = slices.Concat(r.Messages, l.messages)
	for _, tool := range l.turn.tools {
		r.Tools = append(r.Tools, tool.Tool)
	}
	r.NoCalls = l.closed && len(r.Tools) > 0
	return r
}

// next decides what follows an answer of the model, or its error: another request, or the
// end of the reply.
func (l *toolLoop) next(ctx context.Context, said modelAnswer, err error) (again bool, _ error) {
	switch {
	case len(l.turn.tools) == 0, err == nil && len(said.calls) == 0:
		return false, err
	case err != nil:
		return l.afterError(ctx, err)
	case l.closed && l.insisted:
		return true, l.withoutTools(ctx)
	case l.closed:
		l.insisted = true
		return true, nil
	}
	l.answer(ctx, said)
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
		if l.rounds == 0 && fault.Public(err).Details["provider"] == l.turn.setup.model.Provider {
			l.e.toolless.note(l.turn.modelKey(), time.Now())
		}
		return true, l.withoutTools(ctx)
	case llm.EchoRejected(err), l.rounds > 0 && llm.ProviderStatus(err) == 400:
		return true, l.withoutTools(ctx)
	case empty && l.rounds > 0 && l.t.hasText():
		l.t.finish(llm.FinishStop) // what it wrote before its calls is the reply
		return false, nil
	case (empty || fault.Is(err, fault.UpstreamBadAnswer)) && !l.t.hasText():
		// Servers refuse tools, and models fail with them, in many ways.
		return true, l.withoutTools(ctx)
	}
	return false, err
}

// withoutTools makes the prompt anew for a model that does not call tools: one search
// before the request takes their place.
func (l *toolLoop) withoutTools(ctx context.Context) error {
	t := l.turn
	l.messages, l.tokens = nil, 0
	t.trace.Path = pathInject
	found := make([]*Answer, len(t.kits))
	var group sync.WaitGroup
	for i, kit := range t.kits {
		if kit.Inject != nil {
			group.Go(func() { found[i] = l.e.injectNow(ctx, kit) })
		}
	}
	group.Wait()
	t.tools, t.input.Rules = nil, ""
	t.input.Options.Reserve = t.replyReserve
	for _, a := range found {
		t.inject(a)
	}
	prompt, err := framework.Build(t.input)
	if err != nil {
		return err
	}
	t.prompt = prompt
	l.t.noteSources(t)
	return nil
}

// remember adds a search of this turn.
func (l *toolLoop) remember(s *pastSearch) {
	l.named++
	s.name = "search " + itoa(l.named)
	l.searches = append(l.searches, s)
}

// answer carries out the calls of an answer of the model and adds their results.
func (l *toolLoop) answer(ctx context.Context, said modelAnswer) {
	l.rounds++
	l.e.publishStage(l.t, stageTools, l.begun)
	calls := l.plan(ctx, said.calls)
	begun := time.Now()
	l.carryOut(ctx, calls)
	l.spent += time.Since(begun)

	l.messages = append(l.messages, llm.Message{Role: llm.Assistant, Text: said.text, Calls: said.calls, Echo: said.echo})
	l.tokens += tokensOf(said)
	results := make([]llm.Message, len(calls))
	for i, c := range calls {
		results[i] = llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{CallID: c.call.ID, Name: c.call.Name, Text: l.write(c)}}
		l.trace(c)
		l.e.publishTool(l.t, c.finished())
	}
	if l.closed = l.atLimit(calls); l.closed && len(results) > 0 {
		r := results[len(results)-1].Result
		r.Text += "\n<note>" + l.words.write + "</note>"
	}
	l.messages = append(l.messages, results...)
	l.t.noteSources(l.turn)
}

// tokensOf are the tokens of an answer with calls.
func tokensOf(said modelAnswer) int {
	n := llm.EstimateTokens(said.text) + callOverhead
	for _, c := range said.calls {
		n += llm.EstimateTokens(c.Arguments) + llm.EstimateTokens(c.Name) + callOverhead
	}
	return n
}

// callOverhead is what a message, call or result costs besides its text, in tokens.
const callOverhead = 8

// tokensLeft is how many tokens further results may have.
func (l *toolLoop) tokensLeft() int {
	return l.turn.input.Options.Context - l.turn.replyReserve - l.turn.prompt.Tokens - l.tokens
}

// atLimit reports whether the model may call nothing more after these calls.
func (l *toolLoop) atLimit(calls []*plannedCall) bool {
	exhausted := !slices.ContainsFunc(l.turn.tools, func(t Tool) bool { return l.used[t.Name] < l.limitOf(t) })
	carriedOut := slices.ContainsFunc(calls, func(c *plannedCall) bool { return c.admitted })
	overLimit := slices.ContainsFunc(calls, func(c *plannedCall) bool { return c.overLimit })
	return l.rounds >= l.limits.Rounds || l.repeats >= mostRepeats || l.text >= l.limits.Text || l.spent >= l.limits.Time ||
		exhausted || overLimit && !carriedOut || l.tokensLeft() < fewestTokens
}

// fewestTokens is what must be left for another round.
const fewestTokens = 256

func (l *toolLoop) limitOf(t Tool) int { return cmp.Or(t.Limit, l.limits.Calls) }

// write writes the result of a call, within what is left for results.
func (l *toolLoop) write(c *plannedCall) string {
	var text string
	switch {
	case c.answer != nil:
		text = l.writeAnswer(c)
	case c.repeat != nil:
		text = l.repeated(c.repeat)
	case c.problem != "":
		text = toolError(c.problem)
	default:
		text = c.refusal
	}
	c.chars = utf8.RuneCountInString(text)
	l.text += c.chars
	l.tokens += llm.EstimateTokens(text) + callOverhead
	return text
}

// writeAnswer lets a tool write its answer. If that has more tokens than are left, it
// writes once more with less room, and is cut if it does not keep to it.
func (l *toolLoop) writeAnswer(c *plannedCall) string {
	room := max(min(l.limits.Text-l.text, l.tokensLeft()*4), 0)
	var text string
	var sheet *Sheet
	for range 3 {
		sheet = &Sheet{Room: room, numbers: l.turn.numbers.copy()}
		text = strings.ToValidUTF8(c.answer.Text(sheet), "\uFFFD")
		tokens, left := llm.EstimateTokens(text), max(l.tokensLeft(), 0)
		if tokens <= left {
			break
		}
		room = int(float64(min(room, utf8.RuneCountInString(text))) * float64(left) / float64(tokens) * 0.9)
	}
	text = firstRunes(text, room)
	l.turn.numbers = *sheet.numbers
	if s := c.search; s != nil {
		s.refs = sheet.refs
		for _, f := range c.answer.Files {
			s.files = append(s.files, f.ID)
		}
	}
	return text
}

// trace notes a call in the trace of the text.
func (l *toolLoop) trace(c *plannedCall) {
	if c.tool == nil || c.problem != "" || c.overLimit {
		return
	}
	tr := &l.turn.trace
	switch {
	case c.repeat != nil:
		tr.Searches = append(tr.Searches, searchTrace(c.query, len(c.repeat.refs), true))
	case c.search != nil:
		tr.Searches = append(tr.Searches, searchTrace(c.query, c.answer.Hits, !l.showsNew(c.answer)))
	default:
		for _, id := range c.ids {
			if !slices.Contains(tr.Reads, id) && len(tr.Reads) < mostTraced {
				tr.Reads = append(tr.Reads, id)
			}
		}
	}
}

// showsNew reports whether an answer has a passage that was not shown before.
func (l *toolLoop) showsNew(a *Answer) bool {
	fresh := len(a.Shown) == 0
	for _, id := range a.Shown {
		fresh = fresh || !l.seen[id]
		l.seen[id] = true
	}
	return fresh
}

// mostTraced bounds the files in a trace, tracedQuery the length of a query in code points.
const (
	mostTraced  = 50
	tracedQuery = 300
)

func searchTrace(query string, hits int, repeated bool) chat.ToolSearch {
	return chat.ToolSearch{Query: firstRunes(query, tracedQuery), Hits: hits, Repeated: repeated}
}

// firstRunes is the beginning of s, at most n code points.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
