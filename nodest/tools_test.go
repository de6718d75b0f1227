package nodest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/nodest/tools"
)

// library is a toolbox with two tools, find and open, whose documents are sentences.
type library struct {
	mu    sync.Mutex
	calls []string // carried out
	kit   nodest.Toolkit
	find  func(ctx context.Context, query string) (*tools.Answer, error) // nil = it finds the harbour
	vectors,
	noInject bool
}

// fileF9 is the id of a document.
const fileF9 = "01a22000-0000-7000-8000-0000000000f9"

func (l *library) note(call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call)
}

func (l *library) carriedOut() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

const harbourFact = "The harbour of Lanternport was dug in 1402 by forty masons."

func passage(id, text string) cite.Source {
	return cite.Source{Kind: "knowledge", URL: "nodest:file/" + id, Title: id, FileID: id, ChunkID: id + ".1.0", Chunks: []cite.Chunk{{Text: text}}}
}

func answerOf(id, text string) *tools.Answer {
	return &tools.Answer{
		Hits: 1, Files: []tools.File{{ID: id, Name: id + ".md", Relevance: 0.5}}, Shown: []string{id + ".1.0"},
		Text: func(s *tools.Sheet) string {
			return fmt.Sprintf("<chunk ref=\"%d\">%s</chunk>", s.Ref(passage(id, text)), text)
		},
	}
}

func (l *library) box() nodest.Toolbox {
	return nodest.Toolbox{
		Name: "library", Limit: nodesttest.WaitLimit, Warning: framework.Warning{Code: "knowledge_unavailable"},
		Wanted: func(*nodest.Question) bool { return true },
		Open: func(context.Context, *nodest.Question) (*nodest.Toolkit, error) {
			kit := l.kit
			kit.Rules = "Search the library of {{char}} first."
			find := tools.Tool{
				Tool: llm.Tool{Name: "find", Description: "Finds.", Parameters: json.RawMessage(
					`{"type":"object","required":["query"],"properties":{"query":{"type":"string"},"topK":{"type":"integer"},"bases":{"type":"array"}}}`)},
				Query: "query", Scope: []string{"bases"},
				Call: func(ctx context.Context, c tools.Call) (*tools.Answer, error) {
					var in struct{ Query string }
					if err := json.Unmarshal(c.Arguments, &in); err != nil {
						return nil, err
					}
					l.note("find " + in.Query)
					if l.find != nil {
						return l.find(ctx, in.Query)
					}
					return answerOf("01a22000-0000-7000-8000-0000000000f1", harbourFact), nil
				},
			}
			if l.vectors {
				find.Vector = func(context.Context, string) ([]float32, error) { return []float32{1, 0}, nil }
			}
			kit.Tools = []tools.Tool{find, {
				Tool: llm.Tool{Name: "open", Description: "Opens.", Parameters: json.RawMessage(
					`{"type":"object","required":["fileIds"],"properties":{"fileIds":{"type":"array"}}}`)},
				Reads: "fileIds",
				Call: func(_ context.Context, c tools.Call) (*tools.Answer, error) {
					l.note("open " + string(c.Arguments))
					return answerOf("01a22000-0000-7000-8000-0000000000f1", harbourFact), nil
				},
			}}
			if !l.noInject {
				kit.Inject = func(context.Context) (*tools.Answer, error) {
					l.note("inject")
					a := answerOf("01a22000-0000-7000-8000-0000000000f1", harbourFact)
					a.Query = "the harbour"
					return a, nil
				}
			}
			return &kit, nil
		},
	}
}

func (l *library) fixture(t *testing.T) *fixture {
	return newFixture(t, nodest.Options{Tools: []nodest.Toolbox{l.box()}})
}

// asking is an answer of the model that asks for tools: pairs of a name and arguments.
func asking(text string, pairs ...string) *nodesttest.ScriptedReply {
	r := nodesttest.ReplyOfChunks()
	if text != "" {
		r.Chunks = append(r.Chunks, llm.Chunk{Text: text})
	}
	for i := 0; i < len(pairs); i += 2 {
		r.Calls = append(r.Calls, llm.ToolCall{ID: fmt.Sprintf("c%d", i/2), Name: pairs[i], Arguments: pairs[i+1]})
	}
	return r
}

func findArgs(query string) string { return fmt.Sprintf(`{"query":%q}`, query) }

// results are the results of all calls in the newest request.
func results(p *nodesttest.ScriptedModel) (list []string) {
	all := p.AllRequests()
	for _, m := range all[len(all)-1].Messages {
		if m.Result != nil {
			list = append(list, m.Result.Text)
		}
	}
	return list
}

// toolEvents are the events of calls, as "callId tool state" and more.
func (s *fixture) toolEvents(generationID string) (list []map[string]any) {
	s.T.Helper()
	for _, ev := range s.Events.OfGeneration(generationID) {
		if ev.Type == "gen.tool" {
			var d map[string]any
			s.Must(json.Unmarshal(ev.Data, &d))
			list = append(list, d)
		}
	}
	return list
}

func wantText(t *testing.T, m *chat.Message, want string) {
	t.Helper()
	if m.Status != chat.StatusComplete || m.Text() != want {
		t.Fatalf("the reply is %s: %q (error %v), want %q", m.Status, m.Text(), m.Error, want)
	}
}

func TestAModelSearchesReadsAndCites(t *testing.T) {
	t.Parallel()
	var l library
	s := l.fixture(t)
	s.Model.Enqueue(asking("", "find", findArgs("harbour of Lanternport")), asking("", "open", `{"fileIds":["01a22000-0000-7000-8000-0000000000f1","made up"]}`),
		nodesttest.Reply("The harbour was dug in 1402 by forty masons [1]."))
	reply := s.SayAndWait(s.Chat(), "Who dug the harbour?")
	wantText(t, reply, "The harbour was dug in 1402 by forty masons[^1].")
	swipe := reply.Chosen()
	if c := swipe.Citations; c == nil || len(c.References) != 1 || c.References[0].ExactQuote != harbourFact || c.References[0].FileID != "01a22000-0000-7000-8000-0000000000f1" {
		t.Errorf("the citations are %+v", c)
	}
	if got, _ := json.Marshal(swipe.Tools); string(got) != `{"rounds":3,"searches":[{"query":"harbour of Lanternport","hits":1}],"reads":["01a22000-0000-7000-8000-0000000000f1"],"path":"tools"}` {
		t.Errorf("the trace is %s", got)
	}
	if g := s.Generation(reply.GenerationID); g.Tools == nil || g.Tools.Rounds != 3 || g.Usage.PromptTokens != 30 {
		t.Errorf("the generation has the trace %+v and used %+v", g.Tools, g.Usage)
	}
	requests := s.Model.AllRequests()
	first, last := requests[0], requests[2]
	if len(requests) != 3 || len(first.Tools) != 2 || first.NoCalls || !strings.Contains(nodesttest.PromptText(first.Messages), "[system] Search the library of Alice first.") {
		t.Errorf("%d requests, the first with %+v", len(requests), first.Tools)
	}
	behind := last.Messages[len(first.Messages):]
	if len(behind) != 4 || behind[0].Calls[0].Name != "find" || behind[1].Result.CallID != "c0" || behind[1].Role != llm.ToolRole || behind[3].Result.Name != "open" {
		t.Errorf("behind the prompt: %+v", behind)
	}
	events := s.toolEvents(reply.GenerationID)
	if len(events) != 4 {
		t.Fatalf("the events are %v", events)
	}
	for i, want := range []string{
		`{"callId":"1.1","query":"harbour of Lanternport","round":1,"state":"started","tool":"find"}`,
		`"files":[{"id":"01a22000-0000-7000-8000-0000000000f1","name":"01a22000-0000-7000-8000-0000000000f1.md","relevance":0.5}],"hits":1`, `{"callId":"2.1","fileIds":["01a22000-0000-7000-8000-0000000000f1","made up"],"round":2,"state":"started","tool":"open"}`, `"state":"finished"`,
	} {
		if got, _ := json.Marshal(events[i]); !strings.Contains(string(got), want) || strings.Contains(string(got), "masons") {
			t.Errorf("event %d is %s, want %s", i, got, want)
		}
	}
}

// A turn ends in a reply whatever the model does.
func TestLimitsEndTheUseOfTools(t *testing.T) {
	t.Parallel()
	searches := func(n int) (list []*nodesttest.ScriptedReply) {
		for i := range n {
			list = append(list, asking("", "find", findArgs(fmt.Sprintf("word%d thing%d", i, i))))
		}
		return list
	}
	for name, c := range map[string]struct {
		limits   tools.Limits
		script   []*nodesttest.ScriptedReply
		requests int // the last one without calls
	}{
		"rounds":    {tools.Limits{Rounds: 2, Calls: 9}, searches(2), 3},
		"text":      {tools.Limits{Text: 50}, searches(1), 2},
		"time":      {tools.Limits{Time: 1}, searches(1), 2},
		"one tool":  {tools.Limits{Calls: 1}, searches(2), 3},
		"all tools": {tools.Limits{Calls: 1}, []*nodesttest.ScriptedReply{asking("", "find", findArgs("a b"), "open", `{"fileIds":["01a22000-0000-7000-8000-0000000000f1"]}`)}, 2},
		"repeats":   {tools.Limits{}, []*nodesttest.ScriptedReply{asking("", "find", findArgs("old harbour"), "find", findArgs("the harbour, old"), "find", findArgs("Old harbour?"))}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var l library
			s := newFixture(t, nodest.Options{Tools: []nodest.Toolbox{l.box()}, ToolLimits: c.limits})
			s.Model.Enqueue(c.script...)
			wantText(t, s.SayAndWait(s.Chat(), "Well?"), "Fine.")
			requests := s.Model.AllRequests()
			if len(requests) != c.requests {
				t.Fatalf("%d requests, want %d", len(requests), c.requests)
			}
			for i, r := range requests {
				if last := i == len(requests)-1; r.NoCalls != last {
					t.Errorf("request %d: NoCalls is %t", i, r.NoCalls)
				}
			}
			results := results(s.Model)
			if !strings.Contains(results[len(results)-1], "<note>No more tools") {
				t.Errorf("the last result has no note: %q", results)
			}
		})
	}
}

// A model that calls tools although it must not is asked once more, and then without any.
func TestAModelThatDoesNotStopCallingIsAskedWithoutTools(t *testing.T) {
	t.Parallel()
	var l library
	s := newFixture(t, nodest.Options{Tools: []nodest.Toolbox{l.box()}, ToolLimits: tools.Limits{Rounds: 1}})
	again := func() *nodesttest.ScriptedReply { return asking("", "find", findArgs("more")) }
	s.Model.Enqueue(again(), again(), again(), nodesttest.Reply("The harbour was dug in 1402 by forty masons."))
	reply := s.SayAndWait(s.Chat(), "Who dug the harbour?")
	wantText(t, reply, "The harbour was dug in 1402 by forty masons[^1].")
	requests := s.Model.AllRequests()
	if len(requests) != 4 || !requests[1].NoCalls || !requests[2].NoCalls || requests[3].Tools != nil {
		t.Fatalf("%d requests: %+v", len(requests), requests)
	}
	if last := s.Model.LastRequest(); !strings.Contains(last, "<knowledge>") || !strings.Contains(last, harbourFact) || strings.Contains(last, "Search the library") {
		t.Errorf("the last request is %s", last)
	}
	if tr := reply.Chosen().Tools; tr.Path != "inject" || !slices.Equal(l.carriedOut(), []string{"find more", "inject"}) {
		t.Errorf("the trace is %+v, carried out were %q", tr, l.carriedOut())
	}
}

func TestARepeatedSearchIsNotMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second  string
		vectors bool
		repeats bool
	}{
		"other order and words without meaning": {findArgs("Where is the harbour of LANTERNPORT?"), false, true},
		"the same but for a number of hits":     {`{"query":"lanternport harbour","topK":50}`, false, true},
		"other words":                           {findArgs("lanternport masons"), false, false},
		"another scope":                         {`{"query":"lanternport harbour","bases":["b2"]}`, false, false},
		"the same meaning":                      {findArgs("Hafen von Lanternport"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := library{vectors: c.vectors}
			s := l.fixture(t)
			s.Model.Enqueue(asking("", "find", findArgs("lanternport harbour")), asking("", "find", c.second))
			reply := s.SayAndWait(s.Chat(), "Where?")
			wantText(t, reply, "Fine.")
			got := results(s.Model)[1]
			events := s.toolEvents(reply.GenerationID)
			suppressed, _ := events[3]["suppressed"].(bool)
			tr := reply.Chosen().Tools
			if repeated := strings.HasPrefix(got, `<repeated of="search 1" files="01a22000-0000-7000-8000-0000000000f1" refs="1"/>`); repeated != c.repeats || suppressed != c.repeats || len(l.carriedOut()) == 2 == c.repeats {
				t.Errorf("the second result is %q, suppressed %t, carried out %q", got, suppressed, l.carriedOut())
			}
			if !tr.Searches[1].Repeated { // it has shown nothing new in any case
				t.Errorf("the trace is %+v", tr)
			}
		})
	}
}

func TestMalformedCallsAreAnsweredOrRepaired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, arguments, want string }{
		"a code fence":     {"find", "```json\n{\"query\":\"x\"}\n```", "masons"},
		"trailing commas":  {"find", `{"query":"x","bases":["a",],}`, "masons"},
		"single quotes":    {"find", `{'query':'it\'s "x"'}`, "masons"},
		"no JSON":          {"find", `{"query":"x`, "not valid JSON: unexpected EOF"},
		"no arguments":     {"find", ``, "argument &quot;query&quot; is required"},
		"a blank query":    {"find", `{"query":" "}`, "argument &quot;query&quot; is required"},
		"an empty list":    {"open", `{"fileIds":[""]}`, "argument &quot;fileIds&quot; is required"},
		"a wrong type":     {"find", `{"query":"x","topK":"many"}`, "argument &quot;topK&quot; must be of type integer"},
		"null is missing":  {"find", `{"query":"x","topK":null,"other":1}`, "masons"},
		"an unknown tool":  {"google", `{}`, "there is no tool &quot;google&quot;; the tools are find, open"},
		"more than an end": {"find", `{"query":"x"} {"query":"y"}`, "unexpected data"},
	} {
		t.Run(name, func(t *testing.T) {
			var l library
			s := l.fixture(t)
			s.Model.Enqueue(asking("", c.tool, c.arguments))
			reply := s.SayAndWait(s.Chat(), "Well?")
			wantText(t, reply, "Fine.")
			if got := results(s.Model)[0]; !strings.Contains(got, c.want) {
				t.Errorf("the result is %q, want %q", got, c.want)
			}
			if state := s.toolEvents(reply.GenerationID)[1]["state"]; (state == "failed") == (c.want == "masons") {
				t.Errorf("the call is %v", state)
			}
		})
	}
}

func TestAToolThatFailsIsAResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		find func(ctx context.Context) (*tools.Answer, error)
		want string
	}{
		"an error of ours": {func(context.Context) (*tools.Answer, error) { return nil, errors.New("secret") }, "internal error"},
		"a public error":   {func(context.Context) (*tools.Answer, error) { return nil, fault.New(fault.NotFound, "no such base") }, "no such base"},
		"a panic":          {func(context.Context) (*tools.Answer, error) { panic("secret") }, "internal error"},
		"no answer":        {func(context.Context) (*tools.Answer, error) { return nil, nil }, "internal error"},
		"it is too slow":   {func(ctx context.Context) (*tools.Answer, error) { <-ctx.Done(); return nil, ctx.Err() }, "timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			l := library{find: func(ctx context.Context, _ string) (*tools.Answer, error) { return c.find(ctx) }}
			s := newFixture(t, nodest.Options{Tools: []nodest.Toolbox{l.box()}, ToolLimits: tools.Limits{CallTime: 20 * time.Millisecond}})
			s.Model.Enqueue(asking("", "find", findArgs("x")), asking("", "find", findArgs("x")))
			wantText(t, s.SayAndWait(s.Chat(), "Well?"), "Fine.")
			results := results(s.Model)
			if got := results[0]; !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
				t.Errorf("the result is %q", got)
			}
			if len(l.carriedOut()) != 2 {
				t.Errorf("a search that failed was not made again: %q", results)
			}
		})
	}
}

// The text that a model writes before its calls is shown until more comes, and is the reply if
// nothing does.
func TestTextBeforeACallIsInterim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last *nodesttest.ScriptedReply
		want string
		told string // by deltas and rewinds
	}{
		"more comes":    {nodesttest.Reply("Found", " it."), "Found it.", "Found it."},
		"nothing comes": {nodesttest.Reply().Failing(fault.New(fault.EmptyReply, "no text")), "Let me look…", "Let me look…"},
	} {
		t.Run(name, func(t *testing.T) {
			var l library
			s := l.fixture(t)
			first := asking("Let me look…", "find", findArgs("x"))
			first.Chunks = append([]llm.Chunk{{Reasoning: "A search."}}, first.Chunks...)
			c.last.Chunks = append([]llm.Chunk{{Reasoning: "Good."}}, c.last.Chunks...)
			s.Model.Enqueue(first, c.last)
			reply := s.SayAndWait(s.Chat(), "Well?")
			wantText(t, reply, c.want)
			if got := s.Events.Deltas(t, reply.GenerationID, "text", 0); got != c.told {
				t.Errorf("clients have %q, want %q", got, c.told)
			}
			if got := reply.Chosen().Reasoning; got != "A search.\n\nGood." {
				t.Errorf("the reasoning is %q", got)
			}
			if said := s.Model.AllRequests()[1].Messages; said[len(said)-2].Text != "Let me look…" {
				t.Errorf("the model does not see what it said: %+v", said)
			}
		})
	}
}

// Servers refuse two messages of the assistant in a row, and the beginning of a reply is lost
// in front of calls.
func TestWhatAReplyBeginsWithStaysBehindTheResults(t *testing.T) {
	t.Parallel()
	var l library
	s := l.fixture(t)
	ch, err := s.Characters.Create(t.Context(), s.Call(), character.Input{
		RoleCard: json.RawMessage(nodesttest.PlainAlice), AuthorNote: json.RawMessage(`{"content":"*smiles*","role":"assistant","injection_depth":0}`),
	})
	s.Must(err)
	s.Model.Enqueue(asking("", "find", findArgs("x")))
	wantText(t, s.SayAndWait(s.ChatWith(ch.ID), "Well?"), "Fine.")
	var roles []llm.Role
	said := s.Model.AllRequests()[1].Messages
	for _, m := range said[len(said)-4:] {
		roles = append(roles, m.Role)
	}
	if want := []llm.Role{llm.User, llm.Assistant, llm.ToolRole, llm.Assistant}; !slices.Equal(roles, want) || said[len(said)-1].Text != "*smiles*" {
		t.Errorf("the roles are %q, want %q: %+v", roles, want, said)
	}
}

func TestCallsOfARoundRunSideBySideUpToALimit(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	l := library{find: func(ctx context.Context, query string) (*tools.Answer, error) {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return answerOf(query, query), ctx.Err()
	}}
	s := newFixture(t, nodest.Options{Tools: []nodest.Toolbox{l.box()}, ToolLimits: tools.Limits{AtOnce: 2, CallTime: nodesttest.WaitLimit}})
	s.Model.Enqueue(asking("", "find", findArgs("alpha"), "find", findArgs("beta"), "find", findArgs("gamma")))
	sent := s.Say(s.Chat(), "Well?")
	<-started
	<-started
	if n := len(l.carriedOut()); n != 2 {
		t.Errorf("%d calls run at once", n)
	}
	close(release)
	<-started
	s.Await(sent.GenerationID)
	if got := strings.Join(results(s.Model), ""); got != `<chunk ref="1">alpha</chunk><chunk ref="2">beta</chunk><chunk ref="3">gamma</chunk>` {
		t.Errorf("the results are %s", got)
	}
}

func TestCancellingEndsTheTools(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan error, 1)
	l := library{find: func(ctx context.Context, _ string) (*tools.Answer, error) {
		close(started)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}}
	s := newFixture(t, nodest.Options{Tools: []nodest.Toolbox{l.box()}, ToolLimits: tools.Limits{CallTime: nodesttest.WaitLimit}})
	s.Model.Enqueue(asking("Let me look…", "find", findArgs("x")))
	sent := s.Say(s.Chat(), "Well?")
	<-started
	status, err := s.Cancel(t.Context(), nodesttest.Ann, sent.GenerationID)
	s.Must(err)
	<-ended
	reply := s.Message(sent.Message.ID)
	if status != chat.GenCancelled || reply.Text() != "Let me look…" || reply.Status != chat.StatusCancelled || len(s.Model.AllRequests()) != 1 {
		t.Errorf("%s: %s %q", status, reply.Status, reply.Text())
	}
}

// Where the model is not given tools, one search is made before the request.
func TestWithoutToolsASearchIsMadeBefore(t *testing.T) {
	t.Parallel()
	off := false
	for name, set := range map[string]func(*fixture) character.TurnOptions{
		"the user does not want them": func(*fixture) character.TurnOptions { return character.TurnOptions{UseToolCalls: &off} },
		"the model is known to call none": func(s *fixture) character.TurnOptions {
			m, _ := nodesttest.ScriptedModels{ScriptedModel: s.Model}.Resolve(context.Background(), "", "", "", "")
			m.Calls = func(context.Context) bool { return false }
			s.RealModel = &m
			return character.TurnOptions{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l library
			s := l.fixture(t)
			options := set(s)
			s.Model.Enqueue(nodesttest.Reply("It was dug in 1402 by forty masons [1]."))
			sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: s.Chat().ID, Text: "Who dug the harbour?", Options: options})
			s.Must(err)
			s.Await(sent.GenerationID)
			reply := s.Message(sent.Message.ID)
			wantText(t, reply, "It was dug in 1402 by forty masons[^1].")
			r := s.Model.AllRequests()[0]
			if r.Tools != nil || !strings.Contains(s.Model.LastRequest(), "<knowledge>") || reply.Chosen().Tools.Path != "inject" || reply.Chosen().Tools.Searches[0].Query != "the harbour" {
				t.Errorf("the request has %+v: %s", r.Tools, s.Model.LastRequest())
			}
		})
	}
}

// A model that refuses tools is asked again at once, and not offered any for a day.
func TestAModelThatRefusesToolsIsRemembered(t *testing.T) {
	t.Parallel()
	var l library
	s := l.fixture(t)
	s.Model.Enqueue(nodesttest.Reply().Failing(llm.NoToolsError("scripted", 400)), nodesttest.Reply("So."))
	c := s.Chat()
	reply := s.SayAndWait(c, "Who?")
	wantText(t, reply, "So.")
	p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(reply.GenerationID).PromptID)
	s.Must(err)
	if sent := nodesttest.PromptText(p.Prompt.Messages); !strings.Contains(sent, harbourFact) || strings.Contains(sent, "Search the library") {
		t.Errorf("the stored prompt is not the one that was answered: %s", sent)
	}
	wantText(t, s.SayAndWait(c, "And?"), "Fine.")
	requests := s.Model.AllRequests()
	if len(requests) != 3 || requests[0].Tools == nil || requests[1].Tools != nil || requests[2].Tools != nil {
		t.Errorf("%d requests", len(requests))
	}
	if !slices.Equal(l.carriedOut(), []string{"inject", "inject"}) {
		t.Errorf("carried out: %q", l.carriedOut())
	}
}

// A refusal by a fallback of the same provider is not remembered as the model's own.
func TestAFallbackThatRefusesToolsIsNotTheModel(t *testing.T) {
	t.Parallel()
	var l library
	s := l.fixture(t)
	down := &nodesttest.ScriptedModel{}
	down.Enqueue(nodesttest.Reply().Failing(fault.New(fault.UpstreamDown, "down")))
	s.RealModel = &nodest.Model{Provider: "scripted", Name: "m", ContextTokens: 8000, Generator: llm.Chain(nodesttest.DiscardLog,
		llm.Link{Provider: "scripted", Generator: down}, llm.Link{Provider: "scripted", Model: "old", Generator: s.Model})}
	s.Model.Enqueue(nodesttest.Reply().Failing(llm.NoToolsError("scripted", 400)))
	c := s.Chat()
	s.SayAndWait(c, "Who?")
	s.SayAndWait(c, "And?")
	if requests := down.AllRequests(); len(requests) != 3 || requests[2].Tools == nil {
		t.Errorf("%d requests: %+v", len(requests), requests)
	}
}

// A provider that misses a part of its own message gets the prompt without that message.
func TestARejectedEchoIsRepeatedWithoutTools(t *testing.T) {
	t.Parallel()
	var l library
	s := l.fixture(t)
	s.Model.Enqueue(asking("", "find", findArgs("x")), nodesttest.Reply().Failing(llm.EchoError("scripted", 400)), nodesttest.Reply("So."))
	c := s.Chat()
	wantText(t, s.SayAndWait(c, "Who?"), "So.")
	s.SayAndWait(c, "And?")
	if requests := s.Model.AllRequests(); len(requests) != 4 || requests[2].Tools != nil || requests[3].Tools == nil {
		t.Errorf("%d requests", len(requests))
	}
}

func TestATurnGoesOnWithoutAToolbox(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(context.Context) (*nodest.Toolkit, error){
		"it fails":          func(context.Context) (*nodest.Toolkit, error) { return nil, errors.New("down") },
		"it panics":         func(context.Context) (*nodest.Toolkit, error) { panic("nil map") },
		"it takes too long": func(ctx context.Context) (*nodest.Toolkit, error) { <-ctx.Done(); return nil, ctx.Err() },
		"it has nothing":    func(context.Context) (*nodest.Toolkit, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			var l library
			box := l.box()
			box.Limit = 10 * time.Millisecond
			box.Open = func(ctx context.Context, _ *nodest.Question) (*nodest.Toolkit, error) { return open(ctx) }
			s := newFixture(t, nodest.Options{Tools: []nodest.Toolbox{box}})
			reply := s.SayAndWait(s.Chat(), "Well?")
			wantText(t, reply, "Fine.")
			_, warnings, _ := s.ContextOf(reply.GenerationID)
			if fails := name != "it has nothing"; slices.Contains(warnings, "knowledge_unavailable") != fails || reply.Chosen().Tools != nil {
				t.Errorf("warnings %v, trace %+v", warnings, reply.Chosen().Tools)
			}
		})
	}
}

// A provider may have to be asked whether its model calls tools.
func TestAProviderThatDoesNotAnswerDelaysNoToolbox(t *testing.T) {
	t.Parallel()
	var l library
	box := l.box()
	box.Limit = 20 * time.Millisecond
	s := newFixture(t, nodest.Options{Tools: []nodest.Toolbox{box}})
	s.RealModel = &nodest.Model{
		Generator: s.Model, Provider: "scripted", Name: "m", ContextTokens: 8000,
		Calls: func(ctx context.Context) bool { <-ctx.Done(); return true },
	}
	wantText(t, s.SayAndWait(s.Chat(), "Well?"), "Fine.")
	if r := s.Model.AllRequests()[0]; len(r.Tools) != 2 {
		t.Errorf("the model has %d tools", len(r.Tools))
	}
}

// Only replies and regenerated ones use tools; the documents are in every prompt. Previews
// show both and run nothing.
func TestWhereToolsAreUsed(t *testing.T) {
	t.Parallel()
	l := library{kit: nodest.Toolkit{Block: func(s *tools.Sheet) []framework.KnowledgePart {
		n := s.Ref(cite.Source{Kind: "file", URL: "nodest:file/f9", FileID: fileF9, Chunks: []cite.Chunk{{Text: "Tea is at five."}}})
		return []framework.KnowledgePart{{ID: fileF9, Name: "tea.md", Text: fmt.Sprintf(`<file ref="%d">Tea is at five.</file>`, n)}}
	}}}
	s := l.fixture(t)
	c := s.Chat()
	reply := s.SayAndWait(c, "Well?")
	if reply.Chosen().Citations != nil {
		t.Errorf("small talk cites %+v", reply.Chosen().Citations)
	}
	last := func() llm.Request { all := s.Model.AllRequests(); return all[len(all)-1] }
	check := func(what string, tools bool) {
		t.Helper()
		if r := last(); len(r.Tools) > 0 != tools || !strings.Contains(nodesttest.PromptText(r.Messages), "<character_knowledge>") {
			t.Errorf("%s: tools %+v in %s", what, r.Tools, nodesttest.PromptText(r.Messages))
		}
	}
	check("a reply", true)
	again, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.Must(err)
	s.Await(again.GenerationID)
	check("a regenerated reply", true)
	more, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.Must(err)
	s.Await(more.GenerationID)
	check("a continued reply", false)

	before := len(s.Model.AllRequests())
	p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "And?"})
	s.Must(err)
	tokens := map[framework.Source]int{}
	for _, e := range p.Entries {
		tokens[e.Source] += e.Tokens
	}
	if tokens[framework.SourceTools] == 0 || tokens[framework.SourceKnowledge] == 0 || len(s.Model.AllRequests()) != before || len(l.carriedOut()) != 0 {
		t.Errorf("the preview has %v; carried out were %q", tokens, l.carriedOut())
	}
}

// The setting of the character decides what a reply shows of its sources.
func TestCitationsAreShownAsTheCharacterWants(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"inline": "It was dug in 1402 by forty masons[^1].", "hidden": "It was dug in 1402 by forty masons.", "off": "It was dug in 1402 by forty masons."} {
		t.Run(mode, func(t *testing.T) {
			var l library
			s := l.fixture(t)
			ch := s.Character(nodesttest.PlainAlice)
			_, _, err := s.Characters.PutSettings(t.Context(), s.Call(), ch.ID, json.RawMessage(`{"knowledge":{"citations":"`+mode+`"}}`), 0)
			s.Must(err)
			c := s.ChatWith(ch.ID)
			s.Model.Enqueue(asking("", "find", findArgs("x")), nodesttest.Reply("It was dug in 1402 by forty masons [1]."))
			reply := s.SayAndWait(c, "Who dug it?")
			wantText(t, reply, want)
			if got := reply.Chosen().Citations; (got == nil) != (mode == "off") || got != nil && len(got.References) != 1 {
				t.Errorf("the citations are %+v", got)
			}
			s.SayAndWait(c, "Thanks.")
			if last := s.Model.LastRequest(); strings.Contains(last, "[^1]") || !strings.Contains(last, "forty masons.") {
				t.Errorf("marks go back to the model: %s", last)
			}
			_, err = s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: reply.ID, Text: want + " So they say."})
			s.Must(err)
			if got := s.Message(reply.ID).Chosen().Citations; (got == nil) != (mode == "off") {
				t.Errorf("after an edit, the citations are %+v", got)
			}
		})
	}
}

// Documents, the web and tools share one numbering, in this order.
func TestAShortenedDocumentIsNotCited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		length int // words of the document
		want   string
	}{"a whole document": {10, "Tea is at five[^1]."}, "a shortened one": {10_000, "Tea is at five."}} {
		t.Run(name, func(t *testing.T) {
			l := library{kit: nodest.Toolkit{Block: func(s *tools.Sheet) []framework.KnowledgePart {
				n := s.Ref(cite.Source{Kind: "file", URL: "nodest:file/f9", FileID: fileF9, Chunks: []cite.Chunk{{Text: "Tea is at five."}}})
				text := fmt.Sprintf(`<file ref="%d">%sTea is at five.</file>`, n, strings.Repeat("word ", c.length))
				return []framework.KnowledgePart{{ID: fileF9, Name: "tea.md", Text: text, Short: `<file shortened="true">word</file>`}}
			}}}
			s := l.fixture(t)
			s.Model.Enqueue(nodesttest.Reply("Tea is at five [^1]."))
			wantText(t, s.SayAndWait(s.Chat(), "When is tea?"), c.want)
			if last := s.Model.LastRequest(); strings.Contains(last, "shortened") != (c.length > 10) {
				t.Errorf("the request is %s", last)
			}
		})
	}
}

func TestSourcesShareOneNumbering(t *testing.T) {
	t.Parallel()
	l := library{kit: nodest.Toolkit{Block: func(s *tools.Sheet) []framework.KnowledgePart {
		return []framework.KnowledgePart{{ID: fileF9, Text: fmt.Sprintf("ref=%d", s.Ref(cite.Source{Kind: "file", FileID: fileF9}))}}
	}}}
	web := testSource("websearch", func(context.Context, *nodest.Question) (nodest.Findings, error) {
		return nodest.Findings{
			Sources: []cite.Source{{URL: "https://a.test"}}, Web: func(first int) string { return fmt.Sprintf("[%d] a", first) },
			Search: []nodest.Search{{Query: "q", Pages: []nodest.SearchPage{{Marker: 1}}}},
		}, nil
	})
	s := newFixture(t, nodest.Options{Tools: []nodest.Toolbox{l.box()}, Sources: []nodest.Source{web}})
	s.Model.Enqueue(asking("", "find", findArgs("x"), "open", `{"fileIds":["01a22000-0000-7000-8000-0000000000f1"]}`))
	s.SayAndWait(s.Chat(), "Well?")
	last := s.Model.LastRequest()
	if !strings.Contains(last, "ref=1") || !strings.Contains(last, "[2] a") {
		t.Errorf("the prompt is %s", last)
	}
	for _, r := range results(s.Model) {
		if !strings.Contains(r, `ref="3"`) {
			t.Errorf("a result is %s", r)
		}
	}
}

// The results of tools stay within what the context of the model has left.
func TestResultsFitTheContext(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("harbour ", 20_000)
	l := library{find: func(context.Context, string) (*tools.Answer, error) {
		return &tools.Answer{Hits: 1, Text: func(s *tools.Sheet) string { return long[:min(s.Room, len(long))] }}, nil
	}}
	s := l.fixture(t)
	s.Model.Enqueue(asking("", "find", findArgs("x")))
	wantText(t, s.SayAndWait(s.Chat(), "Well?"), "Fine.")
	requests := s.Model.AllRequests()
	tokens := 0
	for _, m := range requests[1].Messages {
		tokens += llm.EstimateTokens(m.Text)
	}
	result := results(s.Model)[0]
	if tokens += llm.EstimateTokens(result); tokens > 6100 || len(result) < 8000 || !requests[1].NoCalls {
		t.Errorf("%d tokens in a context of 8,000, %d of the result, NoCalls %t", tokens, len(result), requests[1].NoCalls)
	}
}
