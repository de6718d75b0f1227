package gemini

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
)

// sdks are both transports. Every test below holds them to the same promises.
var sdks = []string{cardSDK, currentSDK}

// server answers every stream with a body, whichever SDK asks.
func server(t testing.TB, kind, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body) // the client may be gone
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// replyOf asks a server through one SDK.
func replyOf(t testing.TB, sdk, kind, body string) llmtest.Result {
	t.Helper()
	p, err := New([]llm.Key{llm.NewKey("key")}, Options{BaseURL: server(t, kind, body), Prefer: sdk})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return llmtest.Read(t, p.Stream(t.Context(), llmtest.Ask("hi")))
}

// forms are the ways in which the same answers travel: what the SDKs ask for, and what proxies make
// of it.
var forms = map[string]func(answers ...string) (kind, body string){
	"array": func(a ...string) (string, string) {
		return "application/json", "[" + strings.Join(a, "\n,\r\n") + "]\n"
	},
	"array behind a byte order mark": func(a ...string) (string, string) {
		return "application/json; charset=utf-8", "\ufeff \n[" + strings.Join(a, ",") + "]"
	},
	"objects":           func(a ...string) (string, string) { return "application/json", strings.Join(a, "\n") },
	"events":            func(a ...string) (string, string) { return eventsOf("\n", a...) },
	"events with CR LF": func(a ...string) (string, string) { return eventsOf("\r\n", a...) },
	"events with CR":    func(a ...string) (string, string) { return eventsOf("\r", a...) },
	"events as an array": func(a ...string) (string, string) {
		return eventsOf("\n", "["+strings.Join(a, ",")+"]")
	},
	"events of a proxy": func(a ...string) (string, string) {
		var b strings.Builder
		b.WriteString("\ufeff: connected\n\nretry: 100\n\n\n")
		for i, s := range a {
			fmt.Fprintf(&b, ": keep-alive\n\n\nevent: message\nid: %d\ndata:%s\n\n", i, s)
		}
		b.WriteString("event: done\ndata: [DONE]\n\n\n")
		return "text/event-stream", b.String()
	},
	"events in two lines": func(a ...string) (string, string) {
		var b strings.Builder
		for _, s := range a {
			at := strings.Index(s, `,"`) + 1 // between two members
			if at == 0 {
				at = 1
			}
			fmt.Fprintf(&b, "data: %s\ndata: %s\n\n", s[:at], s[at:])
		}
		return "text/event-stream", b.String()
	},
	"events without the last empty line": func(a ...string) (string, string) {
		kind, body := eventsOf("\n", a...)
		return kind, strings.TrimRight(body, "\n")
	},
}

func eventsOf(end string, answers ...string) (kind, body string) {
	var b strings.Builder
	for _, s := range answers {
		b.WriteString("data: " + s + end + end)
	}
	return "text/event-stream", b.String()
}

// today is a reply as living models send it.
var today = []string{
	`{"candidates":[{"content":{"parts":[{"text":"I should wave. ","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":11,"totalTokenCount":40,"thoughtsTokenCount":29,"promptTokensDetails":[{"modality":"TEXT","tokenCount":11}],"serviceTier":"standard"},"modelVersion":"gemini-3.7-flash","responseId":"Zm9v"}`,
	`{"candidates":[{"content":{"parts":[{"text":"Hello, ","thoughtSignature":"c2lnbmF0dXJl"}],"role":"model"},"index":0}],"modelVersion":"gemini-3.7-flash","responseId":"Zm9v"}`,
	`{"candidates":[{"content":{"parts":[{"text":"Ana.","spokenAs":{"voice":"Kore"},"partId":7},{"hologram":{"uri":"x"}},{"thoughtSignature":"c2ln"}],"role":"model","contentId":"c"},"groundingScore":{"a":[1]},"finishMessage":"ok","index":0}],"newMember":[{"a":null}],"responseId":"Zm9v"}`,
	`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2ln"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":4,"totalTokenCount":44,"thoughtsTokenCount":29,"newCount":{"x":1}},"modelVersion":"gemini-3.7-flash","responseId":"Zm9v"}`,
}

func TestAnswersOfTodayArriveWholeInEveryForm(t *testing.T) {
	t.Parallel()
	for form, body := range forms {
		for _, sdk := range sdks {
			t.Run(form+" through "+sdk, func(t *testing.T) {
				t.Parallel()
				kind, body := body(today...)
				r := replyOf(t, sdk, kind, body)
				if r.Err != nil || r.Text != "Hello, Ana." || r.Reasoning != "I should wave. " || r.Last.Finish != llm.FinishStop || r.Last.Model != "gemini-3.7-flash" {
					t.Errorf("%q, thought %q, finish %q, model %q, %v", r.Text, r.Reasoning, r.Last.Finish, r.Last.Model, r.Err)
				}
				if u := r.Last.Usage; u == nil || *u != (llm.Usage{PromptTokens: 11, CompletionTokens: 33}) {
					t.Errorf("usage %+v, want 11 and 4 with 29 of thoughts", u)
				}
			})
		}
	}
}

// One member in an unexpected form costs nothing but itself.
func TestOneOddMemberCostsOnlyItself(t *testing.T) {
	t.Parallel()
	text := `{"candidates":[{"content":{"parts":[{"text":"Hi."}]}}]}`
	end := `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}`
	known := llm.Usage{PromptTokens: 3, CompletionTokens: 2}
	for name, tt := range map[string]struct {
		answers []string
		text    string
		finish  llm.Finish
		usage   *llm.Usage
	}{
		"counts as texts and fractions": {[]string{text, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":"3","candidatesTokenCount":2.0,"totalTokenCount":{}}}`}, "Hi.", llm.FinishStop, &known},
		"usage is a list":               {[]string{text, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":[1]}`}, "Hi.", llm.FinishStop, nil},
		"a model that is a number":      {[]string{text, `{"modelVersion":3.7}`, end}, "Hi.", llm.FinishStop, &known},
		"candidates that are an object": {[]string{text, `{"candidates":{"a":1}}`, end}, "Hi.", llm.FinishStop, &known},
		"candidates that are null":      {[]string{text, `{"candidates":[null]}`, end}, "Hi.", llm.FinishStop, &known},
		"parts that are a text":         {[]string{text, `{"candidates":[{"content":{"parts":"x"}}]}`, end}, "Hi.", llm.FinishStop, &known},
		"a part that is a number":       {[]string{`{"candidates":[{"content":{"parts":[7,null,{"text":5},{"text":"Hi."}]}}]}`, end}, "Hi.", llm.FinishStop, &known},
		"a signature that is no base64": {[]string{`{"candidates":[{"content":{"parts":[{"text":"Hi.","thoughtSignature":"%%"}]}}]}`, end}, "Hi.", llm.FinishStop, &known},
		"a thought that is a word":      {[]string{`{"candidates":[{"content":{"parts":[{"text":"Hi.","thought":"no"}]}}]}`, end}, "Hi.", llm.FinishStop, &known},
		"an answer that is a list":      {[]string{text, `[]`, end}, "Hi.", llm.FinishStop, &known},
		"an error that is null":         {[]string{`{"error":null,"candidates":[{"content":{"parts":[{"text":"Hi."}]}}]}`, end}, "Hi.", llm.FinishStop, &known},
		"candidates that are one":       {[]string{`{"candidates":{"content":{"parts":{"text":"Hi."}}}}`, end}, "Hi.", llm.FinishStop, &known},
		"an error that says nothing":    {[]string{`{"error":{"details":[],"code":0}}`, `{"error":[]}`, `{"error":false}`, text, end}, "Hi.", llm.FinishStop, &known},
		"odd members before the text":   {[]string{`{"candidates":[{"content":{"parts":[{"videoMetadata":{"startOffset":5},"audioTranscription":"x","text":"Hi."}]}}]}`, end}, "Hi.", llm.FinishStop, &known},
		"a character cut in two":        {[]string{`{"candidates":[{"content":{"parts":[{"text":"Hi \ud83d"}]}}]}`, `{"usageMetadata":{}}`, `{"candidates":[{"content":{"parts":[{"text":"\ude00."}]}}]}`, end}, "Hi 😀.", llm.FinishStop, &known},
		"half a character at the end":   {[]string{`{"candidates":[{"content":{"parts":[{"text":"Hi."}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"\ud83d"}]}}]}`, end}, "Hi.\ufffd", llm.FinishStop, &known},
		"half a surrogate":              {[]string{`{"candidates":[{"content":{"parts":[{"text":"Hi \ud83d."}]}}]}`, end}, "Hi \ufffd.", llm.FinishStop, &known},
		"a finish reason of tomorrow":   {[]string{text, `{"candidates":[{"finishReason":"ENDED_WELL"}]}`}, "Hi.", llm.FinishStop, nil},
		"its number":                    {[]string{text, `{"candidates":[{"finishReason":4711}]}`}, "Hi.", llm.FinishStop, nil},
		"a known number":                {[]string{text, `{"candidates":[{"finishReason":2}]}`}, "Hi.", llm.FinishLength, nil},
		"a number in a text":            {[]string{text, `{"candidates":[{"finishReason":"1"}]}`}, "Hi.", llm.FinishStop, nil},
		"finish reasons without a form": {[]string{text, `{"candidates":[{"finishReason":["STOP"]}]}`, end}, "Hi.", llm.FinishStop, &known},
		"usage behind the end":          {[]string{text, `{"candidates":[{"finishReason":"STOP"}]}`, `{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}`}, "Hi.", llm.FinishStop, &known},
	} {
		for _, form := range []string{"array", "events"} {
			for _, sdk := range sdks {
				t.Run(name+" in "+form+" through "+sdk, func(t *testing.T) {
					t.Parallel()
					kind, body := forms[form](tt.answers...)
					r := replyOf(t, sdk, kind, body)
					if r.Err != nil || r.Text != tt.text || r.Last.Finish != tt.finish {
						t.Errorf("%q, finish %q, %v", r.Text, r.Last.Finish, r.Err)
					}
					if got, want := llm.JSONLine(r.Last.Usage), llm.JSONLine(tt.usage); got != want {
						t.Errorf("usage %s, want %s", got, want)
					}
				})
			}
		}
	}
}

// Only the vectors of an answer count, and these are read strictly.
func TestOddEmbeddings(t *testing.T) {
	t.Parallel()
	for body, good := range map[string]bool{
		`{"embeddings":[{"values":[1,0],"statistics":5},{"values":[0,1],"shape":"x"}],"metadata":[]}`: true,
		"\ufeff" + `{"embeddings":[{"values":[3,0]},{"values":[0,1]}],"usageMetadata":7}`:             true,
		`{"embeddings":[{"values":[1,0]},{"values":[null,1]}]}`:                                       false,
		`{"embeddings":[{"values":[1,0]},{"values":["0",1]}]}`:                                        false,
		`{"embeddings":[{"values":[1,0]},null]}`:                                                      false,
		`{"embeddings":[{"values":[1,0]}]}`:                                                           false,
		`{"embeddings":5}`:                                                                            false, `[]`: false, `7`: false, `null`: false, ``: false, `{"embeddings":[{"values":[1,`: false,
	} {
		p, err := New([]llm.Key{llm.NewKey("key")}, Options{BaseURL: server(t, "application/json", body)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Embedder("", 0).Embed(t.Context(), llm.Passage, []string{"a", "b"})
		if want := [][]float32{{1, 0}, {0, 1}}; good != (err == nil) || good && !reflect.DeepEqual(got.Vectors, want) || err != nil && !fault.Is(err, fault.UpstreamBadAnswer) {
			t.Errorf("%s: %v, %v", body, got.Vectors, err)
		}
		p.Close()
	}
}

// An answer that is really wrong stays an error, with its reason, and the text before it stays.
func TestWhatIsReallyWrongStaysAnError(t *testing.T) {
	t.Parallel()
	text := `{"candidates":[{"content":{"parts":[{"text":"Hi."}]}}]}`
	for name, tt := range map[string]struct {
		kind, body string
		text       string
		code       fault.Code
		message    string
	}{
		"no end":                     {"text/event-stream", "data: " + text + "\n\n", "Hi.", fault.UpstreamBadAnswer, "cut off"},
		"only the mark of the end":   {"text/event-stream", "data: " + text + "\n\ndata: [DONE]\n\n", "Hi.", fault.UpstreamBadAnswer, "cut off"},
		"an array without its end":   {"application/json", "[" + text, "Hi.", fault.UpstreamBadAnswer, "cut off"},
		"half an answer":             {"application/json", "[" + text + `,{"cand`, "Hi.", fault.UpstreamBadAnswer, "cut off"},
		"half an event":              {"text/event-stream", "data: " + text + "\n\ndata: {\"cand", "Hi.", fault.UpstreamBadAnswer, "cut off"},
		"nothing":                    {"text/event-stream", "", "", fault.UpstreamBadAnswer, "cut off"},
		"no stream":                  {"text/plain", "Good morning\n", "", fault.UpstreamBadAnswer, "unreadable"},
		"no JSON":                    {"application/json", `[{"a":}]`, "", fault.UpstreamBadAnswer, "unreadable"},
		"an error":                   {"application/json", `[` + text + `,{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow down"}}]`, "Hi.", fault.UpstreamRate, "slow down"},
		"an error in an event":       {"text/event-stream", "event: error\ndata: {\"error\":{\"code\":503,\"message\":\"overloaded\"}}\n\n", "", fault.UpstreamDown, "overloaded"},
		"an error as a bare line":    {"text/event-stream", "data: " + text + "\n\n{\"error\":{\"code\":500,\"message\":\"broken\"}}\n", "Hi.", fault.UpstreamDown, "broken"},
		"an error with odd members":  {"application/json", `[{"error":{"code":"429","message":"slow down","status":8,"details":[[],{"violations":{"quotaId":5}},"x"]}}]`, "", fault.UpstreamRate, "slow down"},
		"an error that is a text":    {"application/json", `[{"error":"out of order"}]`, "", fault.UpstreamDown, "out of order"},
		"a blocked prompt":           {"application/json", `[{"promptFeedback":{"blockReason":4}}]`, "", fault.Blocked, "PROHIBITED_CONTENT"},
		"blocked by a new word":      {"application/json", `[{"promptFeedback":{"blockReason":"JAILBREAK"}}]`, "", fault.Blocked, "JAILBREAK"},
		"an unknown end and no text": {"application/json", `[{"candidates":[{"finishReason":"ODD"}]}]`, "", fault.UpstreamBadAnswer, "ODD"},
		"a call that went wrong":     {"application/json", `[` + text + `,{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}]`, "Hi.", fault.UpstreamBadAnswer, "MALFORMED_FUNCTION_CALL"},
	} {
		for _, sdk := range sdks {
			t.Run(name+" through "+sdk, func(t *testing.T) {
				t.Parallel()
				r := replyOf(t, sdk, tt.kind, tt.body)
				if !fault.Is(r.Err, tt.code) || !strings.Contains(fault.Public(r.Err).Message, tt.message) || r.Text != tt.text {
					t.Errorf("%q, %v; want %s with %q", r.Text, r.Err, tt.code, tt.message)
				}
			})
		}
	}
}

// cleaned passes a stream through the cleaner.
func cleaned(t testing.TB, sdk, in string) (out string, x *exchange) {
	t.Helper()
	ctx, x := withExchange(t.Context(), llm.Key{})
	x.sdk = sdk
	x.body = newBody(ctx, x, io.NopCloser(strings.NewReader(in)), streamLimit, eventLimit)
	b, err := io.ReadAll(newCleaner(x, x.body))
	if err != nil {
		t.Error(err)
	}
	return string(b), x
}

// Whatever arrives, each SDK gets what it can read: generative-ai-go a JSON array as far as it
// goes, genai nothing but data lines with one object each. An array that is closed was whole.
func FuzzCleaner(f *testing.F) {
	for _, s := range []string{"", "[]", `{`, "data: {}\n\n", `[{"error":{}}]`, `[1,2]`, `[{"candidates":[null]}]`, `[{"a":1},`, "data: [DONE]", "\ufeff[{}]", `"x"`, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\\ud83d\"}]}}]}\r\r"} {
		f.Add(s)
	}
	for _, form := range forms {
		_, body := form(today...)
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, x := cleaned(t, cardSDK, in)
		if closed := strings.HasSuffix(out, "]") && json.Valid([]byte(out)); closed != (x.err == nil) {
			t.Errorf("%q became %q with error %v", in, out, x.err)
		}
		out, _ = cleaned(t, currentSDK, in)
		for event := range strings.SplitSeq(strings.TrimSuffix(out, "\n\n"), "\n\n") {
			data, isData := strings.CutPrefix(event, "data: ")
			if event != "" && (!isData || llm.ObjectOf(data, "") == nil) {
				t.Errorf("%q became the event %q", in, event)
			}
		}
	})
}
