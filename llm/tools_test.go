package llm_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
)

func rolled(ids ...string) (messages []llm.Message) {
	m := llm.Message{Role: llm.Assistant, Echo: &llm.Echo{Provider: "test", Raw: json.RawMessage(`{}`)}}
	for _, id := range ids {
		m.Calls = append(m.Calls, llm.ToolCall{ID: id, Name: "roll", Arguments: `{}`})
		messages = append(messages, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{CallID: id, Name: "roll", Text: "six"}})
	}
	return slices.Insert(messages, 0, m)
}

func TestStrictTurnsLeavesCallsAndResultsAlone(t *testing.T) {
	in := slices.Concat(prompt("s:card|u:Hi|a:Ho|u:a|u:b"), rolled("1", "2"), rolled("3"), prompt("a:Six.|a:Twice.|s:Go on."))
	got, places := llm.StrictTurns(in, "[Start]")
	var roles strings.Builder
	for _, m := range got {
		roles.WriteByte(m.Role[0])
	}
	if roles.String() != "suauattatau" || !reflect.DeepEqual(got[4], in[5]) || !reflect.DeepEqual(got[6], in[7]) {
		t.Errorf("%s %+v", roles.String(), got)
	}
	if got[9].Text != "Six.\n\nTwice." || places[len(in)-2] != (llm.Place{Message: 9, At: 6}) {
		t.Errorf("%q, places %v", got[9].Text, places)
	}
	again, _ := llm.StrictTurns(got, "[Start]")
	if !reflect.DeepEqual(again, got) {
		t.Error("what is strict already was changed")
	}
}

func TestCallsAndResultsCountAsTokens(t *testing.T) {
	m := rolled("1")
	before := llm.EstimatePrompt(m)
	m[0].Calls[0].Arguments, m[1].Result.Text = strings.Repeat("word ", 80), strings.Repeat("茶", 50)
	if more := llm.EstimatePrompt(m) - before; more < 140 || more > 160 {
		t.Errorf("400 letters and 50 characters count as %d tokens", more)
	}
}

func TestAPromptIsStoredWithoutCalls(t *testing.T) {
	b, err := json.Marshal(rolled("secret"))
	if err != nil || strings.Contains(string(b), "secret") || strings.Contains(string(b), "six") {
		t.Errorf("%s, %v", b, err)
	}
}

func TestCheckedCalls(t *testing.T) {
	calls := rolled(strings.Split(strings.Repeat("x", llm.MaxCalls+1), "")...)[0].Calls
	offered := llm.Request{Tools: []llm.Tool{{Name: "roll"}}}
	finished := func(c llm.Chunk, f llm.Finish) []step {
		c.Last, c.Finish = true, f
		return []step{{chunk: c}}
	}
	large := llm.ToolCall{Name: "roll", Arguments: strings.Repeat("x", llm.MaxArguments)}
	larger := llm.ToolCall{Name: "roll", Arguments: large.Arguments + "x"}
	for name, c := range map[string]struct {
		req    llm.Request
		script []step
		calls  int
		code   fault.Code
	}{
		"need no text":             {offered, finished(llm.Chunk{Calls: calls[:2]}, llm.FinishStop), 2, ""},
		"cut off by the length":    {offered, finished(llm.Chunk{Calls: calls[:2]}, llm.FinishLength), 2, ""},
		"without a word for it":    {offered, finished(llm.Chunk{Calls: calls[:2]}, ""), 0, fault.EmptyReply},
		"blocked":                  {offered, finished(llm.Chunk{Calls: calls[:2]}, llm.FinishBlocked), 0, fault.Blocked},
		"as many as allowed":       {offered, finished(llm.Chunk{Calls: calls[:llm.MaxCalls]}, llm.FinishStop), llm.MaxCalls, ""},
		"too many":                 {offered, finished(llm.Chunk{Calls: calls, Text: "x"}, llm.FinishStop), 0, fault.UpstreamBadAnswer},
		"as large as allowed":      {offered, finished(llm.Chunk{Calls: []llm.ToolCall{large}}, llm.FinishStop), 1, ""},
		"too large":                {offered, finished(llm.Chunk{Calls: []llm.ToolCall{larger}}, llm.FinishStop), 0, fault.UpstreamBadAnswer},
		"nameless":                 {offered, finished(llm.Chunk{Calls: []llm.ToolCall{{ID: "1"}}}, llm.FinishStop), 0, fault.UpstreamBadAnswer},
		"a large name":             {offered, finished(llm.Chunk{Calls: []llm.ToolCall{{Name: strings.Repeat("x", 600)}}}, llm.FinishStop), 0, fault.UpstreamBadAnswer},
		"a huge echo":              {offered, finished(llm.Chunk{Calls: calls[:1], Echo: &llm.Echo{Raw: make([]byte, 5<<20)}}, llm.FinishStop), 0, fault.UpstreamBadAnswer},
		"not offered":              {llm.Request{}, finished(llm.Chunk{Calls: calls[:2]}, llm.FinishStop), 0, fault.EmptyReply},
		"not offered, with a text": {llm.Request{}, finished(llm.Chunk{Calls: calls[:2], Text: "x"}, llm.FinishStop), 0, ""},
		"not allowed":              {llm.Request{Tools: offered.Tools, NoCalls: true}, finished(llm.Chunk{Calls: calls[:2]}, llm.FinishStop), 0, fault.EmptyReply},
	} {
		t.Run(name, func(t *testing.T) {
			_, last, err := read(llm.Checked("test", script(c.script)).Stream(t.Context(), c.req))
			wantCode(t, err, c.code)
			if len(last.Calls) != c.calls || err != nil && last.Last {
				t.Errorf("%d calls, want %d; last %v", len(last.Calls), c.calls, last.Last)
			}
		})
	}
}

func TestOnlyItsOwnProviderGetsAnEcho(t *testing.T) {
	m := rolled("1")[0]
	if m.EchoFor("test") == nil || m.EchoFor("other") != nil || (llm.Message{}).EchoFor("") != nil {
		t.Error("an echo goes to the wrong provider, or is lost")
	}
}

func TestWhatSaysThatToolsAreNotSupported(t *testing.T) {
	for says, want := range map[string]bool{
		`"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`: true,
		"This model doesn't support function calling":                                            true,
		"Unrecognized request argument supplied: tools":                                          true,
		"No endpoints found that support the provided 'tool_choice' value.":                      true,
		"Tool use with function calling is unsupported by the model.":                            true,
		"tools: Extra inputs are not permitted":                                                  true,
		"Function call is missing a thought_signature in functionCall parts.":                    false,
		"messages with role 'tool' must be a response to a preceding message with 'tool_calls'":  false,
		"This model does not support temperature":                                                false,
		"The tooling department is closed and not available":                                     false,
	} {
		if got := llm.SaysNoTools(400, says); got != want {
			t.Errorf("%q: %v, want %v", says, got, want)
		}
	}
	if llm.SaysNoTools(429, "tools are not supported") {
		t.Error("a limit counts as missing tools")
	}
	for _, err := range []error{llm.NoToolsError("test", 500), llm.EchoError("test", 400)} {
		if llm.Passes(err) {
			t.Errorf("%v is repeated", err)
		}
	}
}
