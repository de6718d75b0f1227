package openai

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/loose"
)

// readWhole reads events as a server streams them.
func readWhole(t *testing.T, provider string, events ...string) llmtest.Result {
	t.Helper()
	return llmtest.Read(t, func(yield func(llm.Chunk, error) bool) {
		s := stream{ctx: t.Context(), provider: provider, yield: yield, tools: true}
		s.events(strings.NewReader("data: " + strings.Join(events, "\n\ndata: ") + "\n\ndata: [DONE]\n"))
	})
}

func delta(members string) string { return `{"choices":[{"delta":{` + members + `}}]}` }

func TestAMessageWithCallsComesBackWithAllItsMembers(t *testing.T) {
	r := readWhole(t, OpenRouter,
		delta(`"role":"assistant","content":null,"reasoning":"Let ","reasoning_details":[{"type":"reasoning.text","text":"Let ","format":"f-1","index":0}]`),
		delta(`"reasoning":"me.","reasoning_details":[{"type":"reasoning.text","text":"me.","format":"f-1","index":0}]`),
		delta(`"reasoning_details":[{"type":"reasoning.text","signature":"c2ln","format":"f-1","index":0}]`),
		delta(`"reasoning_details":[{"type":"reasoning.encrypted","data":"gA","id":"r-1","index":1}]`),
		delta(`"content":"I "`), delta(`"content":"look."`),
		delta(`"tool_calls":[{"index":0,"id":"c-1","type":"function","function":{"name":"roll","arguments":""},"extra_content":{"google":{"thought_signature":"c2ln+/=","n":12345678901234567890}}}]`),
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"n\""}}]`),
		delta(`"tool_calls":[{"index":0,"function":{"arguments":":6}"}}]`),
		`{"choices":[{"delta":{"annotations":[1],"custom":"<x>"},"finish_reason":"tool_calls"}]}`)
	if r.Err != nil || r.Text != "I look." || r.Reasoning != "Let me." || len(r.Last.Calls) != 1 || r.Last.Calls[0] != (llm.ToolCall{ID: "c-1", Name: "roll", Arguments: `{"n":6}`}) {
		t.Fatalf("%+v", r)
	}
	want := `{"role":"assistant","content":"I look.","custom":"<x>",
		"reasoning_details":[{"type":"reasoning.text","text":"Let me.","signature":"c2ln","format":"f-1","index":0},{"type":"reasoning.encrypted","data":"gA","id":"r-1","index":1}],
		"tool_calls":[{"id":"c-1","type":"function","function":{"name":"roll","arguments":"{\"n\":6}"},"extra_content":{"google":{"thought_signature":"c2ln+/=","n":12345678901234567890}}}]}`
	if got := string(r.Last.Echo.Raw); !sameJSON(t, got, want) {
		t.Errorf("the message is %s\nwant %s", got, want)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	read := func(s string) (v any) {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	return reflect.DeepEqual(read(a), read(b))
}

func TestCallsInStrangeForms(t *testing.T) {
	for name, tt := range map[string]struct {
		events []string
		calls  string // name and arguments of each
	}{
		"arguments as an object": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"roll","arguments":{"n":6}}}]`)}, `roll{"n":6}`},
		"no arguments":           {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"roll"}}]`)}, `roll`},
		"the name in each piece": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"roll","arguments":"{\"n\":"}}]`),
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"roll","arguments":"6}"}}]`)}, `roll{"n":6}`},
		"two in one delta": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}}]`)}, `x{} y{}`},
		"pieces in turn": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":""}},{"index":1,"id":"b","function":{"name":"y","arguments":""}}]`),
			delta(`"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]`), delta(`"tool_calls":[{"index":0,"function":{"arguments":"[]"}}]`)}, `x[] y{}`},
		"null in every place": {[]string{delta(`"tool_calls":null,"content":null`), delta(`"tool_calls":[{"index":0,"id":null,"type":null,"function":{"name":"x","arguments":null}}]`)}, `x`},
		"a code point in two": {[]string{delta("\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"x\",\"arguments\":\"\xe8\x8c\"}}]"),
			delta("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\xb6\"}}]")}, `x茶`},
		"whole calls once more at the end": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":"}}]`),
			delta(`"tool_calls":[{"index":0,"function":{"arguments":"6}"}}]`), delta(`"tool_calls":[{"index":1,"id":"b","function":{"name":"x","arguments":"{\"n\":6}"}}]`),
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":6}"}},{"index":1,"id":"b","function":{"name":"x","arguments":"{\"n\":6}"}}]`)}, `x{"n":6} x{"n":6}`},
		"the arguments once more": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":6}"}}]`),
			delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":6}"}}]`)}, `x{"n":6}`},
		"cut off": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n"}}]`), `{"choices":[{"delta":{},"finish_reason":"length"}]}`}, `x{"n`},
	} {
		t.Run(name, func(t *testing.T) {
			r := readWhole(t, OpenAI, tt.events...)
			var got []string
			for _, c := range r.Last.Calls {
				got = append(got, c.Name+c.Arguments)
			}
			if r.Err != nil || strings.Join(got, " ") != tt.calls {
				t.Errorf("%q, %v; want %s", got, r.Err, tt.calls)
			}
		})
	}
}

// Malformed calls fail a reply only if the request had tools.
func TestCallsThatCannotBeRead(t *testing.T) {
	for _, calls := range []string{`"none"`, `[{"index":"0","function":"x"}]`, `[["x"]]`, `[{"function":{"name":"x"}},5]`, `5`} {
		r := readWhole(t, OpenAI, delta(`"content":"So","tool_calls":`+calls))
		if r.Err == nil {
			t.Errorf("%s is read as %+v", calls, r.Last.Calls)
		}
		r = llmtest.Read(t, func(yield func(llm.Chunk, error) bool) {
			s := stream{ctx: t.Context(), provider: OpenAI, yield: yield}
			s.events(strings.NewReader("data: " + delta(`"content":"So","tool_calls":`+calls) + "\n\ndata: [DONE]\n"))
		})
		if r.Err != nil || r.Text != "So" {
			t.Errorf("without tools, %s fails a reply: %+v", calls, r)
		}
	}
}

func TestACallInAnAnswerThatIsNotStreamed(t *testing.T) {
	r := llmtest.Read(t, func(yield func(llm.Chunk, error) bool) {
		s := stream{ctx: t.Context(), provider: OpenAI, yield: yield, tools: true}
		s.events(strings.NewReader(`{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"","tool_calls":[
			{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"x","arguments":"{}"}}]}}]}`))
	})
	if r.Err != nil || len(r.Last.Calls) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestModelsThatTellWhetherTheyCallTools(t *testing.T) {
	for listed, want := range map[string]bool{
		`{"id":"a"}`: false,
		`{"id":"a","supported_parameters":["temperature","tools"]}`: false,
		`{"id":"a","supported_parameters":["temperature"]}`:         true,
		`{"id":"a","supported_parameters":[]}`:                      false,
		`{"id":"a","supported_parameters":"all"}`:                   false,
		`{"id":"a","capabilities":{"function_calling":false}}`:      true,
		`{"id":"a","capabilities":{"function_calling":true}}`:       false,
		`{"id":"a","capabilities":["chat"]}`:                        false,
	} {
		var m wireModel
		if err := loose.Unmarshal([]byte(listed), &m); err != nil {
			t.Fatal(err)
		}
		if got := m.noTools(); got != want {
			t.Errorf("%s: NoTools %v, want %v", listed, got, want)
		}
	}
}
