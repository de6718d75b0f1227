package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
)

// told is what a test wants to be told of a reply.
type told struct {
	text, reasoning string
	usage           llm.Usage // the zero value: none
	cost            float64   // the usage's cost
	code            fault.Code
	requests        int64 // 0 = one
}

// answers is a server whose answers are these bytes, with a client that repeats what fails.
func answers(t testing.TB, kind, body string) (gen llm.Generator, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body) // the client may be gone
	}))
	t.Cleanup(s.Close)
	c, err := New(nil, Options{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return llm.Dependable(OpenAI, c), asked
}

func checkAnswer(t *testing.T, kind, body string, want told) {
	t.Helper()
	gen, asked := answers(t, kind, body)
	req := llmtest.Ask("hi")
	req.Once = want.code != "" // the waits between attempts are tested elsewhere
	r := llmtest.Read(t, gen.Stream(t.Context(), req))
	if r.Text != want.text || r.Reasoning != want.reasoning {
		t.Errorf("text %q, reasoning %q; want %q, %q", r.Text, r.Reasoning, want.text, want.reasoning)
	}
	if want.code == "" && r.Err != nil || want.code != "" && !fault.Is(r.Err, want.code) {
		t.Errorf("error %v, want %q", r.Err, want.code)
	}
	var usage llm.Usage
	cost := 0.0
	if r.Usage != nil {
		if usage = *r.Usage; usage.CostUSD != nil {
			cost = *usage.CostUSD
		}
		usage.CostUSD = nil
	}
	if usage != want.usage || cost != want.cost {
		t.Errorf("usage %+v at %v USD, want %+v at %v", usage, cost, want.usage, want.cost)
	}
	if n := asked.Load(); n != max(want.requests, 1) {
		t.Errorf("%d requests", n)
	}
}

const (
	eventStream = "text/event-stream"
	twoWords    = `data: {"choices":[{"index":0,"delta":{"content":"One two."},"finish_reason":"stop"}]}` + "\n\n"
	theEnd      = "data: [DONE]\n\n"
)

// say is an event with a delta.
func say(delta string) string { return `data: {"choices":[{"index":0,"delta":` + delta + "}]}\n\n" }

const stop = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"

func TestOddUsageIsReadOrUnknown(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]told{
		`{"prompt_tokens":12.0,"completion_tokens":3.0}`:                                              {usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3}},
		`{"prompt_tokens":"12"}`:                                                                      {usage: llm.Usage{PromptTokens: 12}},
		`{"prompt_tokens":12,"cost":"0.0001"}`:                                                        {usage: llm.Usage{PromptTokens: 12}, cost: 0.0001},
		`{"prompt_tokens":12,"cost":{"usd":1}}`:                                                       {usage: llm.Usage{PromptTokens: 12}},
		`{"prompt_tokens":12,"prompt_tokens_details":[]}`:                                             {usage: llm.Usage{PromptTokens: 12}},
		`{"prompt_tokens":12,"prompt_tokens_details":"none"}`:                                         {usage: llm.Usage{PromptTokens: 12}},
		`{"prompt_tokens":1.2e1,"completion_tokens":"3.0","total_tokens":"all"}`:                      {usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3}},
		`{"prompt_tokens":99999999999999999999,"completion_tokens":3}`:                                {usage: llm.Usage{CompletionTokens: 3}},
		`{"prompt_tokens":12,"completion_tokens":[],"total_tokens":15}`:                               {usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3}},
		`{"input_tokens":12,"output_tokens":3}`:                                                       {usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3}},
		`{"input_tokens":12,"output_tokens":3,"input_tokens_details":{"cached_tokens":"5"}}`:          {usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3, CachedTokens: 5}},
		`{"prompt_tokens":0,"completion_tokens":0,"input_tokens":12,"output_tokens":3}`:               {usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3}},
		`{"prompt_tokens":12,"completion_tokens":3,"prompt_cache_hit_tokens":5}`:                      {usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3, CachedTokens: 5}},
		`{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":"many"}}`: {usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3}},
		`[]`: {}, `false`: {}, `1.2e1`: {}, `99999999999999999999`: {}, `1e999`: {}, `"x"`: {}, `{}`: {}, `null`: {}, `[{"prompt_tokens":1}]`: {},
	} {
		want.text = "One two."
		report := `data: {"choices":[],"usage":` + usage + "}\n\n"
		inEach := strings.Replace(twoWords, `{"choices"`, `{"usage":`+usage+`,"choices"`, 1)
		inChoice := `data: {"choices":[{"index":0,"delta":{},"usage":` + usage + "}]}\n\n"
		for place, body := range map[string]string{
			"at the end": twoWords + report + theEnd, "first": report + twoWords + theEnd, "several times": report + twoWords + report + report + theEnd,
			"beside the text": inEach + theEnd, "in the choice": twoWords + inChoice + theEnd,
		} {
			t.Run(place+" "+usage, func(t *testing.T) { checkAnswer(t, eventStream, body, want) })
		}
		t.Run("not streamed "+usage, func(t *testing.T) {
			checkAnswer(t, "application/json", `{"choices":[{"message":{"content":"One two."},"finish_reason":"stop"}],"usage":`+usage+`}`, want)
		})
	}
	t.Run("an odd report behind a good one", func(t *testing.T) {
		checkAnswer(t, eventStream, twoWords+`data: {"usage":{"prompt_tokens":12}}`+"\n\n"+`data: {"usage":{"prompt_tokens":[],"completion_tokens":3}}`+"\n\n"+`data: {"usage":[]}`+"\n\n"+theEnd,
			told{text: "One two.", usage: llm.Usage{PromptTokens: 12, CompletionTokens: 3}})
	})
}

// oddValues are values of every kind that no member of an answer should have.
var oddValues = []string{`null`, `true`, `false`, `0`, `-1.5`, `1e999`, `99999999999999999999`, `""`, `"x"`, `[]`, `[[]]`, `[null,5]`, `{}`, `{"x":{"y":[]}}`}

// One malformed member never costs a complete reply.
func TestOddMembersCostNoReply(t *testing.T) {
	t.Parallel()
	for _, member := range []string{"id", "object", "created", "model", "provider", "usage", "system_fingerprint", "service_tier", "citations"} {
		for _, odd := range oddValues {
			event := strings.Replace(twoWords, `{"choices"`, `{"`+member+`":`+odd+`,"choices"`, 1)
			t.Run(member+" "+odd, func(t *testing.T) { checkAnswer(t, eventStream, event+theEnd, told{text: "One two."}) })
		}
	}
	for _, member := range []string{"index", "logprobs", "native_finish_reason", "message", "usage"} {
		for _, odd := range oddValues {
			event := `data: {"choices":[{"` + member + `":` + odd + `,"delta":{"content":"One two."},"finish_reason":"stop"}]}` + "\n\n"
			t.Run("choice "+member+" "+odd, func(t *testing.T) { checkAnswer(t, eventStream, event+theEnd, told{text: "One two."}) })
		}
	}
	for _, member := range []string{"role", "refusal", "tool_calls", "function_call", "annotations", "audio"} {
		for _, odd := range oddValues {
			if member == "refusal" && odd == `"x"` {
				continue // is text
			}
			event := `data: {"choices":[{"delta":{"` + member + `":` + odd + `,"content":"One two."},"finish_reason":"stop"}]}` + "\n\n"
			t.Run("delta "+member+" "+odd, func(t *testing.T) { checkAnswer(t, eventStream, event+theEnd, told{text: "One two."}) })
		}
	}
	for _, odd := range oddValues {
		for place, event := range map[string]string{
			"choices": `data: {"choices":` + odd + "}\n\n", "choice": `data: {"choices":[` + odd + "]}\n\n", "delta": `data: {"choices":[{"delta":` + odd + "}]}\n\n", "event": "data: " + odd + "\n\n",
		} {
			t.Run(place+" "+odd, func(t *testing.T) { checkAnswer(t, eventStream, event+twoWords+event+theEnd, told{text: "One two."}) })
		}
		t.Run("finish reason "+odd, func(t *testing.T) {
			checkAnswer(t, eventStream, strings.Replace(twoWords, `"stop"`, odd, 1)+theEnd, told{text: "One two."})
		})
	}
	t.Run("a choice that is no list", func(t *testing.T) {
		checkAnswer(t, eventStream, `data: {"choices":{"delta":{"content":"One two."},"finish_reason":"stop"}}`+"\n\n", told{text: "One two."})
	})
	t.Run("a choice behind odd ones", func(t *testing.T) {
		checkAnswer(t, eventStream, `data: {"choices":[null,5,{"index":"0","delta":{"content":"One two."},"finish_reason":"stop"},{"delta":{"content":"Another."}}]}`+"\n\n", told{text: "One two."})
	})
	t.Run("a token that is a number", func(t *testing.T) {
		checkAnswer(t, eventStream, say(`{"content":4}`)+say(`{"content":2}`)+stop, told{text: "42"})
	})
	t.Run("parts without a type, and odd ones", func(t *testing.T) {
		checkAnswer(t, eventStream, say(`{"content":[{"text":"One "},5,null,{"type":"output_text","text":"two"},{"type":"image_url","image_url":{}},"."]}`)+stop, told{text: "One two."})
	})
}

func TestAFinishReasonIsStillNeeded(t *testing.T) {
	t.Parallel()
	text := say(`{"content":"One two."}`)
	for name, c := range map[string]struct {
		body string
		want told
	}{
		"none":                          {text, told{text: "One two.", code: fault.UpstreamBadAnswer}},
		"null as a text":                {strings.Replace(text, `"index":0`, `"finish_reason":"null"`, 1), told{text: "One two.", code: fault.UpstreamBadAnswer}},
		"false":                         {strings.Replace(text, `"index":0`, `"finish_reason":false`, 1), told{text: "One two.", code: fault.UpstreamBadAnswer}},
		"half an event":                 {text + `data: {"choices":[{"delta":{"con`, told{text: "One two.", code: fault.UpstreamBadAnswer}},
		"an event that is no JSON":      {text + "data: oops\n\n" + stop, told{text: "One two.", code: fault.UpstreamBadAnswer}},
		"half a body":                   {`{"choices":[{"message":{"content":"One two."},"finish_reason":"stop"}],"usa`, told{code: fault.UpstreamBadAnswer}},
		"an unknown word":               {strings.Replace(text, `"index":0`, `"finish_reason":"eos_found"`, 1), told{text: "One two."}},
		"a number":                      {strings.Replace(text, `"index":0`, `"finish_reason":1`, 1), told{text: "One two."}},
		"the mark of the end":           {text + theEnd, told{text: "One two."}},
		"rubbish behind a finish":       {twoWords + "data: oops\n\n", told{text: "One two."}},
		"half an event behind a finish": {twoWords + `data: {"usage":{"prompt_tok`, told{text: "One two."}},
		"an error behind a finish":      {twoWords + `data: {"error":{"message":"no"}}` + "\n\n", told{text: "One two.", code: fault.UpstreamDown}},
		"a whole message, no reason":    {`{"object":"chat.completion","choices":[{"message":{"content":"One two."},"finish_reason":null}]}`, told{text: "One two."}},
		"a message in a stream":         {`data: {"choices":[{"message":{"content":"One two."}}]}` + "\n\n", told{text: "One two.", code: fault.UpstreamBadAnswer}},
	} {
		t.Run(name, func(t *testing.T) { checkAnswer(t, eventStream, c.body, c.want) })
	}
}

// Some servers repeat in a message what they have sent in pieces, with each of them or at the end.
func TestAMessageBesideItsPiecesIsNotReadTwice(t *testing.T) {
	t.Parallel()
	both := func(delta, message string) string {
		return `data: {"choices":[{"delta":` + delta + `,"message":` + message + "}]}\n\n"
	}
	one, two := `{"content":"One "}`, `{"content":"two.","reasoning":"Hm."}`
	whole := `{"role":"assistant","content":"One two.","reasoning":"Hm."}`
	for name, body := range map[string]string{
		"with each piece":       both(one, one) + both(two, whole),
		"at the end":            say(one) + say(two) + `data: {"choices":[{"message":` + whole + "}]}\n\n",
		"beside an empty piece": say(one) + say(two) + both(`{"content":""}`, whole),
		"alone":                 both(`{}`, whole),
		"as the pieces":         `data: {"choices":[{"message":` + one + "}]}\n\n" + `data: {"choices":[{"message":` + two + "}]}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			checkAnswer(t, eventStream, body+stop, told{text: "One two.", reasoning: "Hm."})
		})
	}
}

func TestAReplyThatMetItsLimitSaysSo(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]llm.Finish{
		"length": llm.FinishLength, "MAX_TOKENS": llm.FinishLength, "model_length": llm.FinishLength, "max_output_tokens": llm.FinishLength,
		"stop": llm.FinishStop, "STOP": llm.FinishStop, "eos": llm.FinishStop,
	} {
		gen, _ := answers(t, eventStream, strings.Replace(twoWords, "stop", word, 1))
		if r := llmtest.Read(t, gen.Stream(t.Context(), llmtest.Ask("hi"))); r.Err != nil || r.Last.Finish != want {
			t.Errorf("%s: %q, %v", word, r.Last.Finish, r.Err)
		}
	}
}

func TestErrorsThatSayNothing(t *testing.T) {
	t.Parallel()
	for _, nothing := range []string{`""`, `" "`, `false`, `{}`, `0`, `null`, `[]`, `{"message":"","code":null}`, `{"message":null,"type":"","code":0,"metadata":{"reasons":[]}}`, `[null]`} {
		for place, body := range map[string]string{
			"event":  say(`{"content":"One "}`) + say(`{"content":"two."}`) + stop,
			"choice": strings.ReplaceAll(say(`{"content":"One "}`)+say(`{"content":"two."}`)+stop, `"index":0`, `"error":`+nothing),
		} {
			if place == "event" {
				body = strings.ReplaceAll(body, `{"choices"`, `{"error":`+nothing+`,"choices"`)
			}
			t.Run(place+" "+nothing, func(t *testing.T) { checkAnswer(t, eventStream, body+theEnd, told{text: "One two."}) })
		}
	}
	for real, code := range map[string]fault.Code{
		`"model runner crashed"`: fault.UpstreamDown, `true`: fault.UpstreamDown, `{"message":"no"}`: fault.UpstreamDown, `{"code":"429"}`: fault.UpstreamRate, `{"code":429.0}`: fault.UpstreamRate,
		`{"code":503,"message":{"x":1}}`: fault.UpstreamDown, `{"metadata":{"reasons":["violence",5]}}`: fault.Blocked, `[{"message":"no"}]`: fault.UpstreamDown,
		`{"code":"context_length_exceeded","type":5,"message":[]}`: fault.ContextTooLarge,
	} {
		t.Run("real "+real, func(t *testing.T) {
			checkAnswer(t, eventStream, say(`{"content":"One "}`)+`data: {"error":`+real+"}\n\n"+stop+theEnd, told{text: "One ", code: code})
		})
	}
}

func TestTheFormOfAnAnswerCountsNotItsLabel(t *testing.T) {
	t.Parallel()
	one, two := `{"choices":[{"index":0,"delta":{"content":"One "}}]}`, `{"choices":[{"index":0,"delta":{"content":"two."},"finish_reason":"stop"}]}`
	stream := "data: " + one + "\n\ndata: " + two + "\n\n" + theEnd
	whole := `{"choices":[{"index":0,"message":{"role":"assistant","content":"One two."},"finish_reason":"stop"}],"usage":{"prompt_tokens":12}}`
	for _, kind := range []string{eventStream, "application/json", "application/json; charset=utf-8", "text/plain", "text/html", "application/octet-stream", "application/x-ndjson", ""} {
		for name, body := range map[string]string{
			"a stream":                        stream,
			"a byte order mark":               "\ufeff" + stream,
			"line ends of Windows":            strings.ReplaceAll(stream, "\n", "\r\n"),
			"carriage returns alone":          strings.ReplaceAll(stream, "\n", "\r"),
			"comments":                        ": hi\n\n" + stream,
			"other fields":                    "event: message\nid: 1\nretry: 10\n" + strings.ReplaceAll(stream, "\n\n", "\nevent: x\n\n"),
			"a data line without a colon":     "data\n\n" + stream,
			"no blank after the colon":        strings.ReplaceAll(stream, "data: ", "data:"),
			"no empty line at the end":        strings.TrimSpace(stream),
			"no mark of the end":              strings.TrimSuffix(stream, theEnd),
			"no empty lines":                  strings.ReplaceAll(stream, "\n\n", "\n"),
			"an event in two data lines":      strings.ReplaceAll(stream, `"choices":`, `"choices":`+"\ndata: "),
			"lines of JSON":                   one + "\n" + two + "\n",
			"a list of events":                "[" + one + ",\n" + two + "]",
			"an answer that is not streamed":  whole,
			"such an answer in many lines":    strings.ReplaceAll(whole, ",", ",\n  ") + "\n",
			"such an answer behind blanks":    "\n\n  " + whole,
			"such an answer behind a BOM":     "\ufeff" + whole,
			"such an answer as a stream":      "data: " + whole + "\n\n",
			"such an answer behind a comment": ": waiting\n\n" + whole,
		} {
			want := told{text: "One two."}
			if strings.HasPrefix(name, "such") || strings.HasPrefix(name, "an answer") {
				want.usage.PromptTokens = 12
			}
			t.Run(kind+" "+name, func(t *testing.T) { checkAnswer(t, kind, body, want) })
		}
	}
	for name, body := range map[string]string{"an error that is not streamed": `{"error":{"message":"slow down","code":429}}`, "in many lines": "{\n \"error\": {\n  \"code\": 429\n }\n}\n", "in a list": `[{"error":{"code":429}}]`} {
		t.Run(name, func(t *testing.T) { checkAnswer(t, "application/json", body, told{code: fault.UpstreamRate}) })
	}
	t.Run("a web page", func(t *testing.T) {
		checkAnswer(t, "text/html", "\n<!doctype html>", told{code: fault.UpstreamBadAnswer})
	})
}

func TestCodePointsCutBetweenTheirEscapes(t *testing.T) {
	t.Parallel()
	thought := func(member, a, b string) string {
		return say(`{"`+member+`":"`+a+`"}`) + say(`{"`+member+`":"`+b+`"}`) + say(`{"content":"Hi"}`) + stop
	}
	for name, c := range map[string]struct {
		body string
		want told
	}{
		"an emoji":                {say(`{"content":"One \ud83d"}`) + say(`{"content":"\ude00 two."}`) + stop, told{text: "One 😀 two."}},
		"with an event between":   {say(`{"content":"One \uD83D"}`) + say(`{}`) + say(`{"content":""}`) + say(`{"content":"\uDE00 two."}`) + stop, told{text: "One 😀 two."}},
		"two in a row":            {say(`{"content":"\ud83d"}`) + say(`{"content":"\ude00\ud83d"}`) + say(`{"content":"\ude01"}`) + stop, told{text: "😀😁"}},
		"within one event":        {say(`{"content":"\ud83d\ude00\u8336\n\"\\\/"}`) + stop, told{text: "😀茶\n\"\\/"}},
		"a half at the end":       {say(`{"content":"One \ud83d"}`) + stop, told{text: "One \uFFFD"}},
		"a half and a letter":     {say(`{"content":"One \ud83d"}`) + say(`{"content":"x"}`) + stop, told{text: "One \uFFFDx"}},
		"a half in front":         {say(`{"content":"\ude00x"}`) + stop, told{text: "\uFFFDx"}},
		"halves in a wrong order": {say(`{"content":"\ude00"}`) + say(`{"content":"\ud83dx"}`) + stop, told{text: "\uFFFD\uFFFDx"}},
		"bytes and escapes":       {say("{\"content\":\"\xf0\x9f\"}") + say("{\"content\":\"\x98\x80\\ud83d\"}") + say(`{"content":"\ude01"}`) + stop, told{text: "😀😁"}},
		"hangul":                  {say(`{"content":"\ud55c\uae00 한글"}`) + stop, told{text: "한글 한글"}},
		"reasoning":               {thought("reasoning", `\ud83d`, `\ude00`), told{text: "Hi", reasoning: "😀"}},
		"reasoning_content":       {thought("reasoning_content", `\ud83d`, `\ude00`), told{text: "Hi", reasoning: "😀"}},
		"in parts":                {say(`{"content":[{"type":"text","text":"\ud83d"}]}`) + say(`{"content":[{"type":"text","text":"\ude00"}]}`) + stop, told{text: "😀"}},
	} {
		t.Run(name, func(t *testing.T) { checkAnswer(t, eventStream, c.body, c.want) })
	}
}

func TestCallsCutBetweenTheEscapesOfACodePoint(t *testing.T) {
	t.Parallel()
	piece := func(delta string) string { return `{"choices":[{"delta":` + delta + `}]}` }
	r := readWhole(t, OpenRouter,
		piece(`{"reasoning_details":[{"index":0,"type":"reasoning.text","text":"Hm \ud83d"}]}`), piece(`{"reasoning_details":[{"index":0,"type":"reasoning.text","text":"\ude00","n":12345678901234567890}]}`),
		piece(`{"tool_calls":[{"index":"0","id":"a","function":{"name":"x","arguments":"{\"q\":\"\ud83d"}}]}`), piece(`{"tool_calls":[{"index":0.0,"function":{"arguments":"\ude00\"}"}}]}`))
	if r.Err != nil || len(r.Last.Calls) != 1 || r.Last.Calls[0].Arguments != `{"q":"😀"}` || r.Reasoning != "Hm 😀" {
		t.Fatalf("%+v, %v", r, r.Err)
	}
	var echo struct {
		Details []map[string]any `json:"reasoning_details"`
	}
	if err := json.Unmarshal(r.Last.Echo.Raw, &echo); err != nil || len(echo.Details) != 1 || echo.Details[0]["text"] != "Hm 😀" || !strings.Contains(string(r.Last.Echo.Raw), "12345678901234567890") {
		t.Errorf("echo %s, %v", r.Last.Echo.Raw, err)
	}
}

// Tools that say nothing are none; odd numbers and ids do not cost a call.
func TestOddCalls(t *testing.T) {
	t.Parallel()
	for calls, want := range map[string][]string{
		`{}`: nil, `""`: nil, `false`: nil, `0`: nil, `[]`: nil, `[{}]`: nil, `[null]`: nil,
		`{"id":"a","function":{"name":"x","arguments":"{}"}}`:                                          {"x{}"},
		`[{"index":"0","id":"a","type":5,"function":{"name":"x","arguments":{"a":1}}}]`:                {`x{"a":1}`},
		`[{"index":{},"id":7,"function":{"name":"x","arguments":"{}"}}]`:                               {"x{}"},
		`[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"},"extra_content":[5,{"a":[]}]}]`: {"x{}"},
	} {
		r := readWhole(t, OpenAI, delta(`"content":"So","tool_calls":`+calls))
		var got []string
		for _, c := range r.Last.Calls {
			got = append(got, c.Name+c.Arguments)
		}
		if r.Err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v; want %q", calls, got, r.Err, want)
		}
	}
}

func TestReasoningInEveryMember(t *testing.T) {
	t.Parallel()
	for _, delta := range []string{
		`{"reasoning":"Hard."}`, `{"reasoning_content":"Hard."}`, `{"reasoning":"Hard.","reasoning_content":"Hard."}`, `{"reasoning":null,"reasoning_content":"Hard."}`, `{"reasoning":5,"reasoning_content":"Hard."}`,
		`{"reasoning_details":[{"type":"reasoning.text","text":"Hard.","format":"x","index":0}]}`, `{"reasoning_details":[{"type":"reasoning.summary","summary":"Hard."},{"type":"reasoning.encrypted","data":"abc"}]}`,
		`{"reasoning":"","reasoning_details":[5,null,{"type":"reasoning.text","text":"Hard.","signature":null}]}`, `{"reasoning":"Hard.","reasoning_details":[{"type":"reasoning.text","text":"Hard."}]}`,
		`{"reasoning_details":{"type":"reasoning.text","text":"Hard."}}`, `{"content":[{"type":"reasoning","text":"Hard."}]}`, `{"content":[{"type":"thinking","thinking":"Hard."}]}`,
	} {
		t.Run(delta, func(t *testing.T) {
			checkAnswer(t, eventStream, say(delta)+twoWords+theEnd, told{text: "One two.", reasoning: "Hard."})
		})
	}
}

func TestThoughtsAndEndsOfOtherFormats(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`<|channel|>analysis<|message|>Hard.<|end|><|start|>assistant<|channel|>final<|message|>One two.`: "<think>Hard.</think>One two.",
		`<thought>Hard.</thought>One two.`:       "<think>Hard.</think>One two.",
		`<seed:think>Hard.</seed:think>One two.`: "<think>Hard.</think>One two.",
		`◁think▷Hard.◁/think▷One two.`:           "<think>Hard.</think>One two.",
		`One two.<|im_end|>`:                     "One two.",
	} {
		body := ""
		for _, letter := range content {
			body += say(`{"content":` + llm.JSONLine(string(letter)) + `}`)
		}
		t.Run(content, func(t *testing.T) { checkAnswer(t, eventStream, body+stop+theEnd, told{text: want}) })
	}
}

// The surroundings of a list of models or of vectors may be odd, and some of the models.
func TestOddListsOfModels(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"object":5,"data":[null,5,"x",{"id":["m"]},{"id":"m","name":7,"context_length":"8192","top_provider":[],"pricing":[],"architecture":5,"supported_parameters":{},"capabilities":"all","created":"now"}]}`,
		"\ufeff" + `{"data":{"id":"m","name":"7","context_length":8192.0,"max_model_len":null,"top_provider":{"max_completion_tokens":"x"}}}`,
		`[{"id":"m","name":7,"context_length":[],"max_model_len":8192},{"id":{}}]`,
	} {
		c, err := New(nil, Options{BaseURL: "http://h/v1", Transport: roundTrip(func() (string, string) { return "application/json", body })})
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.Models(t.Context())
		if want := []llm.Model{{ID: "m", Name: "7", ContextTokens: 8192, Generates: true}}; err != nil || !reflect.DeepEqual(list, want) {
			t.Errorf("%s: %+v, %v", body, list, err)
		}
	}
}

func TestOddEmbeddings(t *testing.T) {
	t.Parallel()
	const one, two = `"embedding":[1,0]`, `"embedding":[0,1]`
	for body, good := range map[string]bool{
		`{"data":[{"index":0,` + one + `},{"index":1,` + two + `}],"usage":{"prompt_tokens":"7"},"model":5,"object":[]}`: true,
		`{"data":[{"index":"1",` + two + `},{"index":0.0,` + one + `}],"usage":[]}`:                                      true,
		`{"data":[{` + one + `},{"index":"b",` + two + `}],"usage":7}`:                                                   true,
		`{"data":[{"index":0,` + one + `},null,{"index":1,` + two + `,"object":5}]}`:                                     true,
		`{"data":[{"index":0,"embedding":"AACAPwAAAAA="},{"index":1,"embedding":"AAAAAAAAgD8="}]}`:                       true, // base64
		`{"data":[{"index":0,"embedding":"AACAPwAAAAA="},{"index":1,"embedding":"AAAAAAAAgA=="}]}`:                       false,
		`{"data":[{"index":0,"embedding":"AACAPwAAAAA="},{"index":1,"embedding":"AAAAAAAAwH8="}]}`:                       false, // not a number
		`{"data":[{"index":0,` + one + `},{"index":0,` + two + `}]}`:                                                     false,
		`{"data":[{"index":0,` + one + `},{"index":2,` + two + `}]}`:                                                     false,
		`{"data":[{"index":0,` + one + `}]}`:                                                                             false,
		`{"data":[{"index":0,` + one + `},{"index":1,"embedding":[0,"1"]}]}`:                                             false,
		`{"data":[{"index":0,` + one + `},{"index":1,"embedding":[null,1]}]}`:                                            false,
		`{"data":[{"index":0,` + one + `},{"index":1,"embedding":[1e999,1]}]}`:                                           false,
	} {
		c, err := New(nil, Options{BaseURL: "http://h/v1", Transport: roundTrip(func() (string, string) { return "application/json", body })})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Embedder("m", 0).Embed(t.Context(), llm.Passage, []string{"a", "b"})
		if want := [][]float32{{1, 0}, {0, 1}}; good != (err == nil) || good && !reflect.DeepEqual(got.Vectors, want) {
			t.Errorf("%s: %v, %v", body, got.Vectors, err)
		}
	}
}

// An answer may be as large as what was asked for needs: a list some MiB, and each vector a part of one.
func TestAnswersAreBoundedByWhatWasAskedFor(t *testing.T) {
	sent := func(bytes int) *Client {
		body := `{"data":[{"id":"m","index":0,"embedding":[1,0]}],"x":"` + strings.Repeat("x", bytes) + `"}`
		c, err := New(nil, Options{BaseURL: "http://h/v1", Transport: roundTrip(func() (string, string) { return "application/json", body })})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := sent(listLimit / 2).Models(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := sent(listLimit).Models(t.Context()); !fault.Is(err, fault.UpstreamBadAnswer) {
		t.Errorf("too long a list: %v", err)
	}
	if _, err := sent(listLimit).Embedder("m", 0).Embed(t.Context(), llm.Query, []string{"a"}); err != nil {
		t.Error(err)
	}
	if _, err := sent(listLimit+vectorLimit).Embedder("m", 0).Embed(t.Context(), llm.Query, []string{"a"}); !fault.Is(err, fault.UpstreamBadAnswer) {
		t.Errorf("too long a vector: %v", err)
	}
}
