package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
)

func TestAddress(t *testing.T) {
	tests := []struct{ base, chat, models string }{
		{"http://h/v1", "http://h/v1/chat/completions", "http://h/v1/models"},
		{"http://h/v1/", "http://h/v1/chat/completions", "http://h/v1/models"},
		{"http://h:11434", "http://h:11434/chat/completions", "http://h:11434/models"},
		{"https://h/x/chat/completions", "https://h/x/chat/completions", "https://h/x/models"},
		{"https://h/x?api-version=1", "https://h/x/chat/completions?api-version=1", "https://h/x/models?api-version=1"},
	}
	for _, tt := range tests {
		c, err := New(nil, Options{BaseURL: tt.base})
		if err != nil {
			t.Fatal(err)
		}
		if c.chat != tt.chat || c.address("/models") != tt.models {
			t.Errorf("%s gives %s and %s", tt.base, c.chat, c.address("/models"))
		}
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	tests := []struct {
		field string
		opts  Options
	}{
		{"baseUrl", Options{BaseURL: "h/v1"}},
		{"baseUrl", Options{BaseURL: "ftp://h/v1"}},
		{"baseUrl", Options{BaseURL: "https://me:secret@h/v1"}},
		{"baseUrl", Options{Name: "other"}},
	}
	for _, tt := range tests {
		_, err := New(nil, tt.opts)
		if !fault.Is(err, fault.Invalid) || fault.Public(err).Fields[0].Field != tt.field || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v gives %v", tt.opts, err)
		}
	}
}

func TestOpenRouterIsToldTheAppAndTellsTheCost(t *testing.T) {
	f := llmtest.NewOpenAI(t)
	reply := llmtest.Say("hi")
	reply.Usage = llmtest.Usage{Prompt: 10, Completion: 4, Cached: 2, Cost: 0.00012}
	f.Always(func(llmtest.Request) llmtest.Reply { return reply })
	c := connect(t, f, Options{Name: OpenRouter}, llm.NewKey("KEY"))
	r := llmtest.Read(t, c.Stream(t.Context(), llmtest.Ask("hi")))
	if r.Err != nil || r.Usage == nil || r.Usage.CostUSD == nil || *r.Usage.CostUSD != 0.00012 || r.Usage.CachedTokens != 2 {
		t.Errorf("usage %+v, %v", r.Usage, r.Err)
	}
	if r.Last.Model != "openrouter/auto" {
		t.Errorf("model %q", r.Last.Model)
	}
	req := f.Requests()[0]
	if req.Header.Get("X-Title") == "" || req.Header.Get("HTTP-Referer") == "" {
		t.Error("the app does not say who it is")
	}
}

func TestOpenRouterIsToldWhoMayAnswer(t *testing.T) {
	f := llmtest.NewOpenAI(t)
	for want, routing := range map[string]Routing{
		`null null`: {},
		`["a/one","b/two"] {"data_collection":"deny","ignore":["cheap"],"sort":"throughput"}`: {
			Backups: []string{"a/one", "b/two"}, Sort: "throughput", Ignore: []string{"cheap"}, DataCollection: "deny",
		},
		`["a/one"] null`: {Backups: []string{"a/one"}},
	} {
		c := connect(t, f, Options{Name: OpenRouter, Routing: routing})
		llmtest.Read(t, c.Stream(t.Context(), llmtest.Ask("hi")))
		var body struct{ Models, Provider any }
		requests := f.Requests()
		if err := json.Unmarshal(requests[len(requests)-1].Body, &body); err != nil {
			t.Fatal(err)
		}
		if got := llm.JSONLine(body.Models) + " " + llm.JSONLine(body.Provider); got != want {
			t.Errorf("%+v sends %s", routing, got)
		}
	}
}

func TestOthersGetNothingOfOpenRouter(t *testing.T) {
	f := llmtest.NewOpenAI(t)
	c := connect(t, f, Options{Routing: Routing{Backups: []string{"a"}, Sort: "price"}})
	llmtest.Read(t, c.Stream(t.Context(), llmtest.Ask("hi")))
	req := f.Requests()[0]
	for _, h := range []string{"X-Title", "HTTP-Referer", "Authorization"} {
		if req.Header.Get(h) != "" {
			t.Errorf("header %s is sent", h)
		}
	}
}

// Nothing is sent that nobody has set; what is set goes by the name that the server
// takes.
func TestSampling(t *testing.T) {
	f := 0.9
	set := llm.Request{Temperature: &f, TopP: &f, MaxTokens: 500}
	tests := []struct {
		name  string
		opts  Options
		model string
		req   llm.Request
		want  string
	}{
		{"OpenRouter", Options{Name: OpenRouter}, "m", llm.Request{}, ""},
		{"a compatible server", Options{BaseURL: "http://h/v1"}, "m", llm.Request{}, ""},
		{"OpenAI", Options{}, "gpt-4o", llm.Request{}, ""},
		{"OpenRouter, set", Options{Name: OpenRouter}, "m", set, "temperature top_p max_tokens"},
		{"a compatible server, set", Options{BaseURL: "http://h/v1"}, "gpt-5-mini", set, "temperature top_p max_tokens"},
		{"OpenAI, set", Options{}, "gpt-4o", set, "temperature top_p max_tokens"},
		{"OpenAI, thinking", Options{}, "o3-mini", set, "max_completion_tokens"},
		{"OpenAI, newest", Options{}, "gpt-5-mini", set, "max_completion_tokens"},
	}
	for _, tt := range tests {
		c, err := New(nil, tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		tt.req.Model = tt.model
		body, err := json.Marshal(c.body(tt.req))
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		for _, name := range []string{"temperature", "top_p", "max_tokens", "max_completion_tokens"} {
			if strings.Contains(string(body), `"`+name+`":`) {
				sent = append(sent, name)
			}
		}
		if got := strings.Join(sent, " "); got != tt.want {
			t.Errorf("%s: sent %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Each server gets the further settings that it knows.
func TestSamplingOfPresets(t *testing.T) {
	f, n := 0.5, 40
	set := llm.Sampling{
		TopK: &n, TopA: &f, MinP: &f, FrequencyPenalty: &f, PresencePenalty: &f, RepetitionPenalty: &f,
		LogitBias: map[string]float64{"15": -100}, Effort: "max", Verbosity: "low",
	}
	for _, tt := range []struct {
		name  string
		opts  Options
		model string
		want  string
	}{
		{"OpenAI", Options{}, "gpt-4o", "frequency_penalty presence_penalty logit_bias"},
		{"OpenAI, thinking", Options{}, "o3", "reasoning_effort"},
		{"OpenAI, newest", Options{}, "gpt-5", "reasoning_effort verbosity"},
		{"a compatible server", Options{BaseURL: "http://h/v1"}, "m", "frequency_penalty presence_penalty logit_bias top_k min_p repetition_penalty reasoning_effort"},
		{"OpenRouter", Options{Name: OpenRouter}, "m", "frequency_penalty presence_penalty logit_bias top_k top_a min_p repetition_penalty verbosity reasoning"},
	} {
		c, err := New(nil, tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, sampling := range []llm.Sampling{set, {}} {
			body, err := json.Marshal(c.body(llm.Request{Model: tt.model, Sampling: sampling}))
			if err != nil {
				t.Fatal(err)
			}
			var members map[string]any
			if err := json.Unmarshal(body, &members); err != nil {
				t.Fatal(err)
			}
			var sent []string
			for _, name := range []string{
				"frequency_penalty", "presence_penalty", "logit_bias", "top_k", "top_a", "min_p", "repetition_penalty", "reasoning_effort", "verbosity", "reasoning",
			} {
				if members[name] != nil {
					sent = append(sent, name)
				}
			}
			want := tt.want
			if sampling.IsZero() {
				want = ""
			}
			if got := strings.Join(sent, " "); got != want {
				t.Errorf("%s: sent %q, want %q", tt.name, got, want)
			}
		}
	}
}

// A server that refuses such settings gets them only once with a model.
func TestServersThatRefuseSampling(t *testing.T) {
	f := llmtest.NewOpenAI(t)
	c := connect(t, f, Options{})
	f.Always(func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(string(r.Body), "top_k") || strings.Contains(string(r.Body), "response_format") {
			return llmtest.Reply{Status: 422, Message: "unknown member"}
		}
		return llmtest.Say("{}")
	})
	n := 40
	for i, want := range []int{3, 2, 1, 2} { // first for one of both, then for the other
		r := llmtest.Ask("Hi")
		r.Model, r.JSON, r.Sampling.TopK = "m", i < 3, &n
		if i == 3 {
			r.Model = "other"
		}
		before := len(f.Requests())
		if err := llmtest.Read(t, c.Stream(t.Context(), r)).Err; err != nil {
			t.Error(err)
		}
		if got := len(f.Requests()) - before; got != want {
			t.Errorf("request %d was sent %d times, not %d", i, got, want)
		}
	}
}

// Newer models of Claude refuse a request that begins their reply. They are asked without the beginning, and only once with it.
func TestServersThatRefuseTheBeginningOfAReply(t *testing.T) {
	f := llmtest.NewOpenAI(t)
	c := connect(t, f, Options{})
	f.Always(func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(string(r.Body), "Well,") && strings.Contains(string(r.Body), "claude-new") {
			return llmtest.Reply{Status: 400, Message: "the conversation must end with a user message"}
		}
		return llmtest.Say("Good evening.")
	})
	for i, want := range []int{2, 1, 1} {
		r := llmtest.Ask("Hi")
		r.Model, r.Begun = []string{"claude-new", "claude-new", "claude-older"}[i], true
		r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, Text: "Well,"})
		before := len(f.Requests())
		if err := llmtest.Read(t, c.Stream(t.Context(), r)).Err; err != nil {
			t.Error(err)
		}
		sent := f.Requests()[before:]
		if len(sent) != want {
			t.Errorf("request %d was sent %d times, not %d", i, len(sent), want)
		}
		if last := string(sent[len(sent)-1].Body); strings.Contains(last, "Well,") != (r.Model == "claude-older") {
			t.Errorf("request %d: %s", i, last)
		}
	}
	for model, want := range map[string]bool{"claude-new": false, "claude-older": true, "other": false} {
		if c.TakesBeginnings(model) != want {
			t.Errorf("%s takes beginnings: %v", model, !want)
		}
	}
}

// Mistral and others refuse requests with members that they do not know.
func TestServersThatTakeNoMoreThanTheyKnow(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Name: "Mia", Text: "hi"}, {Role: llm.Assistant, Name: "Alice", Text: "hello"}}}
	for base, usage := range map[string]bool{"https://api.mistral.ai/v1": false, "https://api.deepseek.com": true, "": true} {
		c, err := New(nil, Options{BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(c.body(req))
		if err != nil || strings.Contains(string(body), `"name"`) || strings.Contains(string(body), `"stream_options"`) != usage {
			t.Errorf("%s gets %s, %v", base, body, err)
		}
	}
}

// OpenRouter tells prices per token, as strings; what others mean by pricing is not read.
func TestModelsTellTheirPrices(t *testing.T) {
	c, err := New(nil, Options{BaseURL: "http://h/v1", Transport: roundTrip(func() (string, string) {
		return "application/json", `{"data":[
			{"id":"paid","name":"Paid","pricing":{"prompt":"0.00000015","completion":"0.0000006","request":"0"}},
			{"id":"free","pricing":{"prompt":"0","completion":"0"}},
			{"id":"auto","pricing":{"prompt":"-1","completion":"-1"}},
			{"id":"together","pricing":{"hourly":0,"input":0.2,"output":0.2}},
			{"id":"odd","pricing":"cheap"},
			{"id":"huge","pricing":{"prompt":1e300,"completion":null}}]}`
	})})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Models(t.Context())
	want := []llm.Model{
		{ID: "paid", Name: "Paid", Generates: true, PromptPrice: new(0.15), CompletionPrice: new(0.6)},
		{ID: "free", Generates: true, PromptPrice: new(0.0), CompletionPrice: new(0.0)},
		{ID: "auto", Generates: true}, {ID: "together", Generates: true}, {ID: "odd", Generates: true}, {ID: "huge", Generates: true},
	}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// OpenRouter tells what a model takes; of other servers only the name tells it.
func TestModelsTellWhetherTheySee(t *testing.T) {
	c, err := New(nil, Options{BaseURL: "http://h/v1", Transport: roundTrip(func() (string, string) {
		return "application/json", `{"data":[
			{"id":"new","architecture":{"input_modalities":["text","image"],"modality":"text+image->text"}},
			{"id":"gpt-4o","architecture":{"input_modalities":["text"]}},
			{"id":"llava:7b"},
			{"id":"pixtral-12b","architecture":"mistral"},
			{"id":"llama3"}]}`
	})})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Models(t.Context())
	got := map[string]bool{}
	for _, m := range list {
		got[m.ID] = m.Sees
	}
	want := map[string]bool{"new": true, "gpt-4o": false, "llava:7b": true, "pixtral-12b": true, "llama3": false}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAListOfModelsAlone(t *testing.T) {
	c, err := New(nil, Options{BaseURL: "http://h/v1", Transport: roundTrip(func() (string, string) {
		return "application/json", `[{"id":"m","object":"model","context_length":8192}]`
	})})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Models(t.Context())
	want := []llm.Model{{ID: "m", ContextTokens: 8192, Generates: true}}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// roundTrip answers every request with a body.
type roundTrip func() (kind, body string)

func (f roundTrip) RoundTrip(*http.Request) (*http.Response, error) {
	kind, body := f()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func TestAnswersOfOddServers(t *testing.T) {
	const sse = "text/event-stream"
	end := "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n"
	event := func(delta string) string { return `data: {"choices":[{"index":0,"delta":` + delta + "}]}\n\n" }
	tests := []struct {
		name, kind, body string
		text, reasoning  string
		code             fault.Code
	}{
		{name: "not streamed", kind: "application/json; charset=utf-8", text: "hi",
			body: `{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`},
		{name: "error with status 200", kind: "application/json", code: fault.UpstreamRate,
			body: `{"error":{"message":"slow down","code":429}}`},
		{name: "error as text", kind: sse, code: fault.UpstreamDown, body: `data: {"error":"model runner crashed"}` + "\n"},
		{name: "error as a bare line", kind: sse, code: fault.UpstreamDown, text: "a",
			body: event(`{"content":"a"}`) + `{"error":{"message":"boom","type":"server_error"}}` + "\n"},
		{name: "error within the choice", kind: sse, code: fault.UpstreamDown,
			body: `data: {"choices":[{"delta":{"content":""},"error":{"code":503,"message":"x"}}]}` + "\n"},
		{name: "too long in the stream", kind: sse, code: fault.ContextTooLarge,
			body: `data: {"error":{"message":"This model's maximum context length is 8192 tokens","code":400}}` + "\n"},
		{name: "no blank after data:", kind: sse, text: "ab",
			body: strings.ReplaceAll(event(`{"content":"a"}`)+event(`{"content":"b"}`)+end, "data: ", "data:")},
		{name: "event names", kind: sse, text: "a", body: "event: message\nid: 1\n" + event(`{"content":"a"}`) + "retry: 5\n" + end},
		{name: "message in place of delta", kind: sse, text: "a",
			body: `data: {"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}` + "\n"},
		{name: "thoughts of DeepSeek", kind: sse, text: "a", reasoning: "hm",
			body: event(`{"content":null,"reasoning_content":"hm"}`) + event(`{"content":"a","reasoning_content":null}`) + end},
		{name: "thoughts twice", kind: sse, text: "a", reasoning: "hm",
			body: event(`{"content":"","reasoning":"hm","reasoning_content":"hm"}`) + event(`{"content":"a"}`) + end},
		{name: "parts of Mistral", kind: sse, text: "a", reasoning: "hm",
			body: event(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}`) + end},
		{name: "escapes", kind: sse, text: "\"\\/\b\f\n\r\té😀\u2028", body: event(`{"content":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u2028"}`) + end},
		{name: "half a surrogate pair", kind: sse, text: "a\uFFFD", body: event(`{"content":"a\ud83d"}`) + end},
		{name: "code point cut between events", kind: sse, text: "a茶b",
			body: event("{\"content\":\"a\xe8\x8c\"}") + event("{\"content\":\"\xb6b\"}") + end},
		{name: "code point never completed", kind: sse, text: "a\uFFFD", body: event("{\"content\":\"a\xe8\x8c\"}") + end},
		{name: "finish named error", kind: sse, code: fault.UpstreamDown, body: `data: {"choices":[{"delta":{},"finish_reason":"error"}]}` + "\n"},
		{name: "a line without an end", kind: sse, code: fault.UpstreamBadAnswer, body: "data: " + strings.Repeat("x", lineLimit)},
		{name: "empty", kind: sse, code: fault.UpstreamBadAnswer},
		{name: "not JSON", kind: sse, code: fault.UpstreamBadAnswer, body: "data: hello\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(nil, Options{BaseURL: "http://h/v1", Transport: roundTrip(func() (string, string) { return tt.kind, tt.body })})
			if err != nil {
				t.Fatal(err)
			}
			r := llmtest.Read(t, c.Stream(t.Context(), llmtest.Ask("hi")))
			if r.Text != tt.text || r.Reasoning != tt.reasoning {
				t.Errorf("text %q, reasoning %q; want %q, %q", r.Text, r.Reasoning, tt.text, tt.reasoning)
			}
			if tt.code == "" && r.Err != nil || tt.code != "" && !fault.Is(r.Err, tt.code) {
				t.Errorf("error %v, want %q", r.Err, tt.code)
			}
		})
	}
}

func TestWordsOfRefusals(t *testing.T) {
	tests := []struct {
		status int
		body   string
		code   fault.Code
	}{
		{400, `{"error":{"code":"context_length_exceeded"}}`, fault.ContextTooLarge},
		{429, `{"error":{"code":"insufficient_quota"}}`, fault.UpstreamQuota},
		{429, `{"error":{"type":"requests","code":"rate_limit_exceeded"}}`, fault.UpstreamRate},
		{400, `{"error":{"code":"content_policy_violation"}}`, fault.Blocked},
		{403, `{"error":{"code":403,"message":"flagged","metadata":{"reasons":["violence"]}}}`, fault.Blocked},
		{403, `{"error":{"code":403,"message":"no"}}`, fault.UpstreamAuth},
		{503, `{"error":{"type":"new_api_error","code":"model_not_found","message":"no channel"}}`, fault.ModelNotFound},
	}
	for _, tt := range tests {
		if err := refused(t, OpenAI, tt.status, tt.body); !fault.Is(err, tt.code) {
			t.Errorf("%d %s gives %v, want %s", tt.status, tt.body, err, tt.code)
		}
	}
}

// refusing answers every request with a status and a body.
type refusing struct {
	status int
	body   string
}

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: r.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(r.body))}, nil
}

// refused is the error of an answer with a status and a body.
func refused(t *testing.T, name string, status int, body string) error {
	t.Helper()
	c, err := New(nil, Options{Name: name, BaseURL: "http://h/v1", Transport: refusing{status, body}})
	if err != nil {
		t.Fatal(err)
	}
	return llmtest.Read(t, c.Stream(t.Context(), llmtest.Ask("hi"))).Err
}

// Servers put their reason into many places.
func TestReasonsAreFoundWhereverTheyStand(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"OpenAI", `{"error":{"message":"no such voice","type":"invalid_request_error","code":null}}`, "no such voice"},
		{"Ollama", `{"error":"no such voice"}`, "no such voice"},
		{"vLLM, before", `{"object":"error","message":"no such voice","code":40301}`, "no such voice"},
		{"without an error beside the message", `{"error":null,"message":"no such voice"}`, "no such voice"},
		{"Google, a list", `[{"error":{"code":400,"message":"no such voice","status":"INVALID_ARGUMENT"}}]`, "no such voice"},
		{"FastAPI", `{"detail":"no such voice"}`, "no such voice"},
		{"FastAPI, a list", `{"detail":[{"type":"less_than","loc":["body","max_tokens"],"msg":"too large","input":9},{"msg":"more"}]}`, "body.max_tokens: too large"},
		{"Mistral", `{"object":"error","message":{"detail":[{"loc":["body",0],"msg":"not permitted"}]},"type":"invalid_request_error"}`, "body.0: not permitted"},
		{"a list of errors", `{"errors":[{"message":"no such voice"}]}`, "no such voice"},
		{"OpenRouter, JSON of the provider", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"no such voice\"}}","provider_name":"X"}}}`, "Provider returned error: no such voice"},
		{"OpenRouter, text of the provider", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"no such voice"}}}`, "Provider returned error: no such voice"},
		{"text", "no such voice\n", "no such voice"},
		{"a web page", "<html><title>no such page</title></html>", "HTTP 400 Bad Request"},
		{"nothing", "", "HTTP 400 Bad Request"},
		{"JSON of nothing", `{"error":{}}`, "HTTP 400 Bad Request"},
		{"too deep", strings.Repeat("[", 20) + `"x"` + strings.Repeat("]", 20), "HTTP 400 Bad Request"},
	} {
		err := refused(t, OpenRouter, 400, tt.body)
		if got := fault.Public(err).Message; got != "OpenRouter rejected the request: "+tt.want || fault.Public(err).Retry() != "no" {
			t.Errorf("%s: %q, retry %s; want %q", tt.name, got, fault.Public(err).Retry(), tt.want)
		}
	}
}

func TestCancelCauseIsKept(t *testing.T) {
	f := llmtest.NewOpenAI(t)
	f.Script(llmtest.Reply{Parts: []llmtest.Part{{Text: "a"}}, End: llmtest.Stall})
	c := connect(t, f, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user pressed stop")
	next, stop := iter.Pull2(c.Stream(ctx, llmtest.Ask("hi")))
	defer stop()
	if chunk, err, _ := next(); chunk.Text != "a" || err != nil {
		t.Fatal(chunk, err)
	}
	cancel(cause)
	if _, err, _ := next(); !errors.Is(err, cause) || !fault.Is(err, fault.Cancelled) {
		t.Errorf("error %v", err)
	}
}

func TestEmbeddingOfAChosenLength(t *testing.T) {
	f := llmtest.NewOpenAI(t)
	c := connect(t, f, Options{})
	got, err := c.Embedder("m", 16).Embed(t.Context(), llm.Query, []string{"a", ""})
	if err != nil || got.Dim != 16 || got.Model != "openai:m@16" {
		t.Errorf("%d numbers by %q, %v", got.Dim, got.Model, err)
	}
}
