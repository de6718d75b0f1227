package tools

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/index"
	"nodest/internal/op"
	"nodest/llm"
)

// Limits bound the use of tools in one turn. When one is reached the model is asked once more,
// without calls, so that a turn always ends in a reply.
type Limits struct {
	Rounds   int           // answers of the model that ask for tools; default 6
	Calls    int           // that are carried out of one tool, unless the tool says otherwise; default 4
	Text     int           // text of all results, in code points; default 60,000
	Time     time.Duration // for all calls; default 90 s
	AtOnce   int           // calls; default 4
	CallTime time.Duration // for one call; default 10 s
}

// WithDefaults replaces what is 0.
func (l Limits) WithDefaults() Limits {
	l.Rounds, l.Calls = cmp.Or(l.Rounds, 6), cmp.Or(l.Calls, 4)
	l.Text, l.AtOnce = cmp.Or(l.Text, 60_000), cmp.Or(l.AtOnce, 4)
	l.Time, l.CallTime = cmp.Or(l.Time, 90*time.Second), cmp.Or(l.CallTime, 10*time.Second)
	return l
}

// mostRepeats is how many repeated searches end the use of tools.
const mostRepeats = 2

// Options say what a Run works with. All of them are needed.
type Options struct {
	Tools    []Tool // may be none
	Limits   Limits // with defaults
	Language framework.Language
	Room     int                   // tokens behind the prompt: for definitions, calls and their results
	Count    func(text string) int // its tokens
	Numbers  *Numbers              // the turn's numbers
	Trace    *chat.ToolTrace       // gets what was searched for and read
	Lookups  *[]Lookup             // gets what was searched for or read, and shown; nil = nobody wants to know
	Publish  func(Event)           // tells clients about a call
	Log      *slog.Logger
}

// Run is the use of tools in one turn. It is for one goroutine.
type Run struct {
	Options
	words words

	messages []llm.Message // calls and their results
	tokens   int           // tokens of these, and of the definitions of the tools
	rounds   int           // answers with calls
	named    int           // searches so far
	closed   bool          // no more calls

	used     map[string]int // calls that were carried out, by tool
	searches []*pastSearch
	repeats  int
	text     int             // text of all results, in code points
	spent    time.Duration   // on calls
	seen     map[string]bool // passages that were shown
}

// New returns a Run in which nothing was called.
func New(o Options) *Run {
	return &Run{Options: o, words: wordsFor(o.Language), tokens: Tokens(o.Tools, o.Count), used: map[string]int{}, seen: map[string]bool{}}
}

// Tokens are those of the definitions of tools, which are part of each request that has them.
func Tokens(list []Tool, count func(text string) int) (n int) {
	for _, t := range list {
		n += count(t.Name+" "+t.Description+" "+string(t.Parameters)) + callOverhead
	}
	return n
}

// Messages go behind the prompt: the calls so far and their results.
func (r *Run) Messages() []llm.Message { return r.messages }

// Tokens are those of Messages and of the definitions of the tools.
func (r *Run) Tokens() int { return r.tokens }

// Rounds is how many answers of the model had calls.
func (r *Run) Rounds() int { return r.rounds }

// Closed reports whether the model may call nothing more.
func (r *Run) Closed() bool { return r.closed }

// Searched notes a search of the web that was made before the model was asked. refs are the
// numbers of what it has found.
func (r *Run) Searched(query string, refs []int) {
	for _, tool := range r.Tools {
		if tool.Web {
			r.remember(&pastSearch{tool: tool.Name, terms: index.NormalForm(query), refs: refs})
		}
	}
}

func (r *Run) remember(s *pastSearch) {
	r.named++
	s.name = "search " + strconv.Itoa(r.named)
	r.searches = append(r.searches, s)
}

// Answer carries out the calls of an answer of the model, and adds both the answer and the
// results to the messages.
func (r *Run) Answer(ctx context.Context, said llm.Message) {
	r.rounds++
	begun := time.Now()
	calls := r.lookUp(ctx, said.Calls)
	r.spent += time.Since(begun)

	r.messages = append(r.messages, said)
	r.tokens += r.tokensOf(said)
	results := make([]llm.Message, len(calls))
	for i, c := range calls {
		results[i] = llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{CallID: c.call.ID, Name: c.call.Name, Text: r.write(c)}}
		r.trace(c)
		r.Publish(c.finished())
	}
	if r.closed = r.atLimit(calls); r.closed && len(results) > 0 {
		last := results[len(results)-1].Result
		last.Text += "\n<note>" + r.words.write + "</note>"
	}
	r.messages = append(r.messages, results...)
}

// lookUp carries out calls in the time that is left for all of them.
func (r *Run) lookUp(ctx context.Context, calls []llm.ToolCall) []*plannedCall {
	ctx, cancel := context.WithTimeout(ctx, r.Limits.Time-r.spent)
	defer cancel()
	planned := r.plan(ctx, calls)
	r.carryOut(ctx, planned)
	return planned
}

// tokensOf are the tokens of an answer with calls. What its provider gets back as it was sent
// may have more than text and calls.
func (r *Run) tokensOf(said llm.Message) int {
	n := r.Count(said.Text) + callOverhead
	for _, c := range said.Calls {
		n += r.Count(c.Arguments) + r.Count(c.Name) + callOverhead
	}
	if said.Echo != nil {
		n = max(n, r.Count(string(said.Echo.Raw))+callOverhead)
	}
	return n
}

// callOverhead is what a definition, message, call or result costs besides its text, in tokens.
const callOverhead = 8

func (r *Run) tokensLeft() int { return r.Room - r.tokens }

// atLimit reports whether the model may call nothing more after these calls.
func (r *Run) atLimit(calls []*plannedCall) bool {
	exhausted := !slices.ContainsFunc(r.Tools, func(t Tool) bool { return r.used[t.Name] < r.limitOf(t) })
	carriedOut := slices.ContainsFunc(calls, func(c *plannedCall) bool { return c.admitted })
	overLimit := slices.ContainsFunc(calls, func(c *plannedCall) bool { return c.overLimit })
	return r.rounds >= r.Limits.Rounds || r.repeats >= mostRepeats || r.text >= r.Limits.Text || r.spent >= r.Limits.Time ||
		exhausted || overLimit && !carriedOut || r.tokensLeft() < fewestTokens
}

// fewestTokens is what must be left for another round.
const fewestTokens = 256

func (r *Run) limitOf(t Tool) int { return cmp.Or(t.Limit, r.Limits.Calls) }

// write writes the result of a call, within what is left for results.
func (r *Run) write(c *plannedCall) string {
	var text string
	switch {
	case c.answer != nil:
		text = r.writeAnswer(c)
	case c.repeat != nil:
		text = r.repeated(c.repeat)
	case c.problem != "":
		text = failed(c.problem)
	default:
		text = c.refusal
	}
	c.chars = utf8.RuneCountInString(text)
	r.text += c.chars
	r.tokens += r.Count(text) + callOverhead
	return text
}

// writeAnswer lets a tool write its answer. If that has more tokens than are left, it
// writes once more with less room, and is cut if it does not keep to it.
func (r *Run) writeAnswer(c *plannedCall) string {
	room := max(min(r.Limits.Text-r.text, r.tokensLeft()*4), 0)
	var text string
	var sheet *Sheet
	for range 3 {
		sheet = r.Numbers.draft(room, InAnswer)
		text = strings.ToValidUTF8(c.answer.Text(sheet), "\uFFFD")
		tokens, left := r.Count(text), max(r.tokensLeft(), 0)
		if tokens <= left {
			break
		}
		room = int(float64(min(room, utf8.RuneCountInString(text))) * float64(left) / float64(tokens) * 0.9)
	}
	text = op.Truncate(text, room)
	*r.Numbers = *sheet.numbers
	c.refs = sheet.refs
	if s := c.search; s != nil {
		s.refs = sheet.refs
		for _, f := range c.answer.Files {
			s.files = append(s.files, f.ID)
		}
	}
	return text
}

func (r *Run) trace(c *plannedCall) {
	tr := r.Trace
	switch {
	case c.admitted && c.tool.Query == "" && c.tool.Reads == "":
		if len(tr.Calls) < mostTraced {
			tr.Calls = append(tr.Calls, chat.ToolUse{Tool: c.tool.Name, Chars: c.chars, Ms: c.took.Milliseconds(), Failed: c.problem != ""})
		}
	case c.tool == nil || c.problem != "" || c.overLimit:
	case c.repeat != nil:
		tr.Searches = append(tr.Searches, SearchTrace(c.query, len(c.repeat.refs), true))
	case c.search != nil:
		r.lookedUp(c)
		tr.Searches = append(tr.Searches, SearchTrace(c.query, c.answer.Hits, !r.showsNew(c.answer)))
	default:
		r.lookedUp(c)
		for _, f := range c.answer.Files { // not what the model has made up
			if !slices.Contains(tr.Reads, f.ID) && len(tr.Reads) < mostTraced {
				tr.Reads = append(tr.Reads, f.ID)
			}
		}
	}
}

func (r *Run) lookedUp(c *plannedCall) {
	if r.Lookups != nil {
		*r.Lookups = append(*r.Lookups, Lookup{c.query, c.refs})
	}
}

// showsNew reports whether an answer has a passage that was not shown before.
func (r *Run) showsNew(a *Answer) bool {
	fresh := len(a.Shown) == 0
	for _, id := range a.Shown {
		fresh = fresh || !r.seen[id]
		r.seen[id] = true
	}
	return fresh
}

// mostTraced bounds the lists of a trace, tracedQuery the length of a query in code points.
const (
	mostTraced  = 50
	tracedQuery = 300
)

// SearchTrace is the entry of a search in a trace.
func SearchTrace(query string, hits int, repeated bool) chat.ToolSearch {
	return chat.ToolSearch{Query: op.Truncate(query, tracedQuery), Hits: hits, Repeated: repeated}
}
