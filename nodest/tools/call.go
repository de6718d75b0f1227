package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/internal/markup"
	"nodest/internal/op"
	"nodest/llm"
)

// plannedCall is a call that the model asks for, and what became of it.
type plannedCall struct {
	call  llm.ToolCall
	id    string // for clients: unique in the turn
	round int

	tool  *Tool // nil = there is none of that name
	args  json.RawMessage
	query string
	ids   []string // ids of what is read

	admitted  bool        // it is carried out
	refusal   string      // the result of one that is not; "" = it repeats a search
	problem   string      // why it failed; "" = it did not
	overLimit bool        // the tool was called too often
	repeat    *pastSearch // that it repeats; nil = none
	search    *pastSearch // that it is; nil = none

	answer *Answer
	refs   []int // that the answer has shown
	took   time.Duration
	chars  int
}

// plan decides in the order of the calls which ones are carried out.
func (r *Run) plan(ctx context.Context, calls []llm.ToolCall) []*plannedCall {
	list := make([]*plannedCall, len(calls))
	for i, call := range calls {
		c := &plannedCall{call: call, id: strconv.Itoa(r.rounds) + "." + strconv.Itoa(i+1), round: r.rounds}
		if err := r.read(c); err != nil {
			c.problem = err.Error()
		} else {
			r.admit(ctx, c)
		}
		list[i] = c
	}
	return list
}

// read finds the tool of a call and reads its arguments. The error is for the model.
func (r *Run) read(c *plannedCall) error {
	i := slices.IndexFunc(r.Tools, func(t Tool) bool { return t.Name == c.call.Name })
	if i < 0 {
		var names []string
		for _, t := range r.Tools {
			names = append(names, t.Name)
		}
		return fmt.Errorf("there is no tool %q; the tools are %s", c.call.Name, strings.Join(names, ", "))
	}
	c.tool = &r.Tools[i]
	args, whole, err := llm.ReadArguments(c.tool.Parameters, c.call.Arguments)
	if err != nil {
		return err
	}
	c.args = whole
	c.query, _ = args[c.tool.Query].(string)
	if list, ok := args[c.tool.Reads].([]any); ok {
		for _, v := range list {
			if id, ok := v.(string); ok {
				c.ids = append(c.ids, op.Truncate(id, toldID))
			}
		}
	}
	if c.tool.Query != "" {
		c.search = &pastSearch{tool: c.tool.Name, scope: scopeOf(c.tool, args), terms: index.NormalForm(c.query)}
	}
	return nil
}

// scopeOf is what narrows a search.
func scopeOf(t *Tool, args map[string]any) string {
	var b strings.Builder
	for _, name := range t.Scope {
		if v, ok := args[name]; ok && !llm.IsEmptyArgument(v) {
			text, _ := json.Marshal(v) // it was JSON
			b.WriteString(name + string(text) + "\n")
		}
	}
	return b.String()
}

// admit refuses a call that repeats a search, or is beyond the limit of its tool.
func (r *Run) admit(ctx context.Context, c *plannedCall) {
	if s := c.search; s != nil {
		if c.tool.Vector != nil && r.used[c.tool.Name] < r.limitOf(*c.tool) {
			ctx, cancel := context.WithTimeout(ctx, r.Limits.CallTime)
			s.vector, _ = c.tool.Vector(ctx, c.query) // without it, words tell
			cancel()
		}
		if c.repeat = s.repeats(r.searches); c.repeat != nil {
			r.repeats++
			c.search = nil
			return
		}
	}
	if r.used[c.tool.Name] >= r.limitOf(*c.tool) {
		c.overLimit, c.search = true, nil
		c.refusal = "<limit>" + r.words.limit + "</limit>"
		return
	}
	c.admitted = true
	r.used[c.tool.Name]++
	if c.search != nil {
		r.remember(c.search)
	}
}

// carryOut carries out the calls that were admitted, several at once.
func (r *Run) carryOut(ctx context.Context, calls []*plannedCall) {
	slots := make(chan struct{}, r.Limits.AtOnce)
	var group sync.WaitGroup
	for _, c := range calls {
		r.Publish(c.started())
		if !c.admitted {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			begun := time.Now()
			var err error
			if c.answer, err = c.carryOut(ctx, cmp.Or(c.tool.Time, r.Limits.CallTime)); err != nil {
				public := fault.Public(err)
				c.answer, c.problem = nil, public.Message
				r.logFailure(ctx, c.call.Name, public.Code, err)
			}
			c.took = time.Since(begun)
		})
	}
	group.Wait()
	for _, c := range calls {
		if c.search != nil {
			c.search.problem = c.problem
		}
		if c.repeat != nil && c.repeat.problem != "" { // it repeats a search of the same answer
			c.problem, c.repeat = c.repeat.problem, nil
			r.repeats--
		}
	}
	r.searches = slices.DeleteFunc(r.searches, func(s *pastSearch) bool { return s.problem != "" }) // it may be made again
}

// logFailure notes why a tool failed. What a foreign server says of it may quote a chat, so only
// errors of our own are written in full.
func (r *Run) logFailure(ctx context.Context, tool string, code fault.Code, err error) {
	if code == fault.Internal {
		r.Log.WarnContext(ctx, "a tool failed", "tool", tool, "err", err)
		return
	}
	r.Log.WarnContext(ctx, "a tool failed", "tool", tool, "code", code)
}

// carryOut is Tool.Call within a limit; a panic is an error.
func (c *plannedCall) carryOut(ctx context.Context, limit time.Duration) (a *Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tool %s: panic: %v\n%s", c.tool.Name, p, debug.Stack())
		}
	}()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	a, err = c.tool.Call(ctx, Call{Round: c.round, Arguments: c.args})
	if err == nil && (a == nil || a.Text == nil) {
		err = fmt.Errorf("tool %s: no answer", c.tool.Name)
	}
	return a, err
}

// repeated is the result of a search that was made before: what it has found, without
// the text.
func (r *Run) repeated(s *pastSearch) string {
	var refs []string
	for _, n := range slices.Compact(slices.Sorted(slices.Values(s.refs))) {
		refs = append(refs, strconv.Itoa(n))
	}
	return `<repeated of="` + s.name + `" files="` + markup.Escape(strings.Join(s.files, " ")) + `" refs="` + strings.Join(refs, " ") + `"/>` + "\n" + r.words.repeated
}
