package gemini

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
)

func TestTransport(t *testing.T) {
	tests := []struct{ prefer, model, sdk string }{
		{"", "gemini-flash-latest", cardSDK},
		{"", "gemini-flash-lite-latest", cardSDK},
		{"", "models/gemini-3.7-flash", cardSDK},
		{"", "gemini-3.1-pro-preview", cardSDK},
		{"", "gemini-10.5-flash", cardSDK},
		{"", "gemini-3.1-flash-image-preview", currentSDK},
		{"", "gemini-3.1-flash-tts-preview", currentSDK},
		{"", "gemini-3.1-flash-live-preview", currentSDK},
		{"", "gemini-embedding-001", currentSDK},
		{"", "gemma-3-27b-it", currentSDK},
		{"", "tunedModels/mine", currentSDK},
		{"", "something-new", currentSDK},
		{currentSDK, "gemini-flash-latest", currentSDK},
		{cardSDK, "gemini-flash-latest", cardSDK},
		{cardSDK, "gemma-3-27b-it", currentSDK}, // it cannot serve that one rightly
	}
	for _, tt := range tests {
		p, err := New(nil, Options{Prefer: tt.prefer})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Transport(tt.model); got != tt.sdk {
			t.Errorf("%s with %q goes through %s, want %s", tt.model, tt.prefer, got, tt.sdk)
		}
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	for _, opts := range []Options{{BaseURL: "h"}, {BaseURL: "ftp://h"}, {BaseURL: "https://me:secret@h"}, {BaseURL: "https://h?key=secret"}, {Prefer: "other"}} {
		if _, err := New(nil, opts); !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v gives %v", opts, err)
		}
	}
	for in, want := range map[string]string{"https://h/v1beta/": "https://h", "http://h:1/x/": "http://h:1/x"} {
		if got, err := baseURL(in); got != want || err != nil {
			t.Errorf("%s gives %s, %v", in, got, err)
		}
	}
}

// ask sends one request and returns what arrived.
func ask(t *testing.T, opts Options, req llm.Request) (llmtest.Request, map[string]any) {
	t.Helper()
	f := llmtest.NewGemini(t)
	p := connect(t, f, opts, llm.NewKey("KEY"))
	if r := llmtest.Read(t, p.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := f.Requests()[0]
	var body map[string]any
	if err := json.Unmarshal(got.Body, &body); err != nil {
		t.Fatal(err)
	}
	return got, body
}

func TestRequestsThatTheCardSDKCannotExpress(t *testing.T) {
	seed := int64(7)
	prefill := llmtest.Ask("hi")
	prefill.Messages = append(prefill.Messages, llm.Message{Role: llm.Assistant, Text: "Well, "})
	seeded := llmtest.Ask("hi")
	seeded.Seed = &seed
	for name, req := range map[string]llm.Request{"ends with the character": prefill, "seed": seeded} {
		if got, _ := ask(t, Options{}, req); got.Transport != currentSDK {
			t.Errorf("%s went through %s", name, got.Transport)
		}
	}
}

func TestSystemMessages(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{
		{Role: llm.System, Text: "one"}, {Role: llm.System, Text: "two"}, {Role: llm.User, Text: ""},
		{Role: llm.Assistant, Text: "hello"}, {Role: llm.System, Text: "late"}, {Role: llm.User, Text: "hi"},
	}}
	tests := []struct{ model, system, first, roles string }{
		{"gemini-flash-latest", "one\n\ntwo", "hello", "model user user "},
		{"gemma-3-27b-it", "", "one", "user user model user user "}, // knows no system instruction
	}
	for _, tt := range tests {
		req.Model = tt.model
		got, _ := ask(t, Options{}, req)
		var roles string
		for _, m := range got.Messages {
			roles += m.Role + " "
		}
		if got.System != tt.system || got.Messages[0].Text != tt.first || roles != tt.roles {
			t.Errorf("%s: system %q, first %q, roles %s", tt.model, got.System, got.Messages[0].Text, roles)
		}
	}
	only, _ := ask(t, Options{}, llm.Request{Messages: []llm.Message{{Role: llm.System, Text: "summarise"}}})
	if only.System != "" || only.Messages[0].Text != "summarise" {
		t.Errorf("a prompt of system messages only arrives as %+v", only)
	}
}

// Nothing is sent that nobody has set.
func TestGenerationConfig(t *testing.T) {
	temperature := 0.5
	set := llm.Request{Temperature: &temperature, MaxTokens: 300}
	for _, tt := range []struct {
		prefer string
		req    llm.Request
		want   string
	}{
		{"", llm.Request{}, `{}`},
		{currentSDK, llm.Request{}, `{"thinkingConfig":{"includeThoughts":true}}`},
		{"", set, `{"maxOutputTokens":300,"temperature":0.5}`},
		{currentSDK, set, `{"maxOutputTokens":300,"temperature":0.5,"thinkingConfig":{"includeThoughts":true}}`},
	} {
		tt.req.Model, tt.req.Messages = "gemini-flash-latest", llmtest.Ask("hi").Messages
		_, body := ask(t, Options{Prefer: tt.prefer}, tt.req)
		if got, _ := json.Marshal(body["generationConfig"]); string(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.prefer, got, tt.want)
		}
	}
}

func TestPromptsThatCannotBeSent(t *testing.T) {
	f := llmtest.NewGemini(t)
	p := connect(t, f, Options{})
	for _, req := range []llm.Request{{}, llmtest.Ask(""), {Model: "../files", Messages: llmtest.Ask("hi").Messages}, {Model: "a?key=b", Messages: llmtest.Ask("hi").Messages}} {
		if r := llmtest.Read(t, p.Stream(t.Context(), req)); !fault.Is(r.Err, fault.Invalid) {
			t.Errorf("%+v gives %v", req, r.Err)
		}
	}
	if n := len(f.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestGoogleSaysItItsOwnWay: a wrong key is a 400, a used-up day a 429, the time to
// wait is in the body.
func TestGoogleSaysItItsOwnWay(t *testing.T) {
	wrong := llmtest.Reply{Status: 400, Reason: "API_KEY_INVALID"}
	for _, sdk := range []string{cardSDK, currentSDK} {
		f := llmtest.NewGemini(t)
		p := connect(t, f, Options{Prefer: sdk}, llm.NewKey("bad"), llm.NewKey("good"))
		f.ForKey("bad", wrong)
		if r := llmtest.Read(t, p.Stream(t.Context(), llmtest.Ask("hi"))); r.Err != nil || len(f.Requests()) != 2 {
			t.Errorf("%s: %v after %d requests", sdk, r.Err, len(f.Requests()))
		}
		if r := llmtest.Read(t, p.Stream(t.Context(), llmtest.Ask("hi"))); r.Err != nil || len(f.Requests()) != 3 {
			t.Errorf("%s: the refused key was used again: %v after %d requests", sdk, r.Err, len(f.Requests()))
		}
	}
	tests := []struct {
		status int
		body   string
		code   fault.Code
		wait   time.Duration
	}{
		{429, `{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"31s"}]}`, fault.UpstreamRate, 31 * time.Second},
		{429, `{"details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}`, fault.UpstreamQuota, 0},
		{400, `{"message":"API key not valid. Please pass a valid API key."}`, fault.UpstreamAuth, 0},
		{400, `{"message":"The input token count (1200000) exceeds the maximum number of tokens allowed"}`, fault.ContextTooLarge, 0},
		{400, `{"status":"FAILED_PRECONDITION"}`, fault.UpstreamBadAnswer, 0},
		{0, `{}`, fault.UpstreamDown, 0},
		{429, `{"status":8,"details":[[],"x",{"reason":5,"retryDelay":31},{"retryDelay":"31s"}]}`, fault.UpstreamRate, 31 * time.Second},
		{429, `{"details":{"violations":{"quotaId":"PerDay"}}}`, fault.UpstreamQuota, 0},
		{400, `{"details":[],"message":"API key not valid. Please pass a valid API key.","code":"400"}`, fault.UpstreamAuth, 0},
	}
	for _, tt := range tests {
		e := readError(json.RawMessage(tt.body))
		if err := e.fault(tt.status, 0); !fault.Is(err, tt.code) || fault.Public(err).RetryAfter != tt.wait {
			t.Errorf("%d %s gives %v after %v", tt.status, tt.body, err, fault.Public(err).RetryAfter)
		}
	}
}

func TestEmbeddingTasksAndLength(t *testing.T) {
	for _, tt := range []struct {
		model string
		dim   int
	}{{"gemini-embedding-2", 0}, {"gemini-embedding-001", 0}, {"gemini-embedding-001", 768}} {
		f := llmtest.NewGemini(t)
		p := connect(t, f, Options{}, llm.NewKey("KEY"))
		got, err := p.Embedder(tt.model, tt.dim).Embed(t.Context(), llm.Query, []string{"a", ""})
		want := tt.dim
		if want == 0 {
			want = 8
		}
		if err != nil || got.Dim != want {
			t.Errorf("%+v: %d numbers, %v", tt, got.Dim, err)
			continue
		}
		req := f.Requests()[0]
		if !strings.Contains(string(req.Body), "RETRIEVAL_QUERY") {
			t.Errorf("%+v: %s", tt, req.Body)
		}
	}
}

func TestModelsTellTheirTransport(t *testing.T) {
	f := llmtest.NewGemini(t)
	p := connect(t, f, Options{}, llm.NewKey("KEY"))
	list, err := p.Models(t.Context())
	if err != nil || len(list) != 4 || list[0].Transport != cardSDK || list[3].Transport != currentSDK || !list[3].Embeds {
		t.Errorf("%+v, %v", list, err)
	}
}

type transport func(*http.Request) string

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(f(r))), Request: r}, nil
}

// The list of models comes in pages, and may never end.
func TestModelsComeInPages(t *testing.T) {
	for last, want := range map[int]int{1: 1, 3: 3, 1000: maxPages} {
		var tokens []string
		p, err := New(nil, Options{HTTP: transport(func(r *http.Request) string {
			tokens = append(tokens, r.URL.Query().Get("pageToken"))
			if len(tokens) == last {
				return `{"models":[{"name":"models/a"}]}`
			}
			return fmt.Sprintf(`{"models":[{"name":"models/a"}],"nextPageToken":"%d"}`, len(tokens))
		})})
		if err != nil {
			t.Fatal(err)
		}
		list, err := p.Models(t.Context())
		if err != nil || len(list) != want || len(tokens) != want || want == 3 && strings.Join(tokens, ",") != ",1,2" {
			t.Errorf("%d models of %d pages: %v, %v", len(list), want, tokens, err)
		}
	}
}

// A list that breaks off is an error and not a short list.
func TestModelsBreakOff(t *testing.T) {
	for _, body := range []string{`{"models":[{"name":"models/a"}`, `[]`, `nothing`} {
		p, err := New(nil, Options{HTTP: transport(func(*http.Request) string { return body })})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := p.Models(t.Context()); !fault.Is(err, fault.UpstreamBadAnswer) || len(list) > 0 {
			t.Errorf("%s gives %v, %v", body, list, err)
		}
	}
}

// BenchmarkStream is the cost of a reply of 500 tokens through each SDK, the
// socket and the fake included.
func BenchmarkStream(b *testing.B) {
	var pieces []string
	for range 500 {
		pieces = append(pieces, " word")
	}
	for _, sdk := range []string{cardSDK, currentSDK} {
		f := llmtest.NewGemini(b)
		f.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say(pieces...) })
		p := connect(b, f, Options{Prefer: sdk}, llm.NewKey("KEY"))
		b.Run(sdk, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := llmtest.Read(b, p.Stream(b.Context(), llmtest.Ask("hi"))); r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		})
	}
}

// Proxies and gateways before the API refuse with a text or a web page.
func TestRefusalsThatAreNotGoogles(t *testing.T) {
	for _, tt := range []struct {
		status     int
		body, want string
	}{
		{400, "unknown model\n", "Gemini does not know the model: unknown model"},
		{400, "<html><title>Bad gateway</title></html>", "Gemini rejected the request: HTTP 400 Bad Request"},
		{404, `{"detail":"Not Found"}`, "Gemini rejected the request: HTTP 404 Not Found"},
		{502, " <!doctype html>", "Gemini is not available: HTTP 502 Bad Gateway"},
		{429, `[{"error":{"message":"slow down","status":8,"details":[[],{"reason":1}]}}]`, "Gemini reports too many requests: slow down"},
		{429, "\ufeff" + `{"error":"slow down"}`, "Gemini reports too many requests: slow down"},
		{502, `[{"error":{"message":[],"details":{}}}]`, "Gemini is not available: HTTP 502 Bad Gateway"},
		{403, "key-1-long may not", "Gemini rejected the API key: [key] may not"},
	} {
		for _, prefer := range []string{cardSDK, currentSDK} {
			f := llmtest.NewGemini(t)
			f.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Status: tt.status, Plain: tt.body} })
			p, err := New([]llm.Key{llm.NewKey("key-1-long")}, Options{BaseURL: f.URL, Prefer: prefer})
			if err != nil {
				t.Fatal(err)
			}
			got := fault.Public(llmtest.Read(t, p.Stream(t.Context(), llmtest.Ask("hi"))).Err).Message
			if got != tt.want {
				t.Errorf("%d %q: %q, want %q", tt.status, tt.body, got, tt.want)
			}
		}
	}
}

// A stream may be long, but one event of it is never held without a bound.
func TestAnEventHasABound(t *testing.T) {
	for _, prefer := range []string{cardSDK, currentSDK} {
		kind, before := "text/event-stream", "data: "
		if prefer == cardSDK {
			kind, before = "application/json", "["
		}
		sent := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, err := io.WriteString(w, before+`{"modelVersion":"`)
			for piece := strings.Repeat("x", 1<<20); err == nil && sent < 64<<20; sent += len(piece) {
				_, err = io.WriteString(w, piece)
			}
		}))
		defer s.Close()
		p, err := New([]llm.Key{llm.NewKey("key")}, Options{BaseURL: s.URL, Prefer: prefer})
		if err != nil {
			t.Fatal(err)
		}
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		got := llmtest.Read(t, p.Stream(t.Context(), llmtest.Ask("hi"))).Err
		runtime.ReadMemStats(&end)
		if !fault.Is(got, fault.UpstreamBadAnswer) || !strings.Contains(got.Error(), "too much data") {
			t.Errorf("%s: error %v", prefer, got)
		}
		if took := (end.TotalAlloc - start.TotalAlloc) >> 20; took > 64 {
			t.Errorf("%s: %d MiB allocated for an event of 64 MiB", prefer, took)
		}
	}
}
