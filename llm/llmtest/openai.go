package llmtest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nodest/llm"
)

// NewOpenAI starts a fake of an OpenAI-compatible server that also knows
// OpenRouter's additions. Its URL ends in /v1. It ends with the test.
func NewOpenAI(t testing.TB) *Fake {
	t.Helper()
	return newFake(t, openAI{}, "/v1")
}

type openAI struct{}

// chatRequest is the body of a chat completion, as far as anything of ours sends it;
// models and provider are OpenRouter's.
// Messages have no name: Mistral and others refuse it.
type chatRequest struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
	Tools    []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice    string `json:"tool_choice"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Temperature         *float64 `json:"temperature"`
	TopP                *float64 `json:"top_p"`
	MaxTokens           *int     `json:"max_tokens"`
	MaxCompletionTokens *int     `json:"max_completion_tokens"`
	Stop                []string `json:"stop"`
	Seed                *int64   `json:"seed"`
	sampling
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`

	Models   []string `json:"models"`
	Provider struct {
		Sort           string   `json:"sort"`
		Ignore         []string `json:"ignore"`
		DataCollection string   `json:"data_collection"`
	} `json:"provider"`
}

// sampling has the members that many servers know, and those of OpenRouter.
type sampling struct {
	FrequencyPenalty  *float64           `json:"frequency_penalty"`
	PresencePenalty   *float64           `json:"presence_penalty"`
	RepetitionPenalty *float64           `json:"repetition_penalty"`
	LogitBias         map[string]float64 `json:"logit_bias"`
	TopK              *int               `json:"top_k"`
	TopA              *float64           `json:"top_a"`
	MinP              *float64           `json:"min_p"`
	Effort            string             `json:"reasoning_effort"`
	Verbosity         string             `json:"verbosity"`
	Reasoning         *struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
}

type embeddingRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions"`
}

// strict decodes one JSON value without unknown members and nothing behind it.
func strict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}

func (openAI) decode(r *http.Request, body []byte) (Request, error) {
	var req Request
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if r.Header.Get("Authorization") != "" && (!ok || key == "") {
		return req, errors.New("the header Authorization is not a bearer token")
	}
	req.Key = key
	if strings.Contains(r.URL.RawQuery, "key") {
		return req, errors.New("a key does not belong in the address")
	}
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		return req, nil
	case r.Method != http.MethodPost:
		return req, fmt.Errorf("method %s", r.Method)
	case r.Header.Get("Content-Type") != "application/json":
		return req, fmt.Errorf("content type %q", r.Header.Get("Content-Type"))
	case strings.HasSuffix(r.URL.Path, "/embeddings"):
		var in embeddingRequest
		if err := strict(body, &in); err != nil {
			return req, err
		}
		req.Model = in.Model
		return req, checkEmbedding(in)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		var in chatRequest
		if err := strict(body, &in); err != nil {
			return req, err
		}
		return req, in.into(&req, r.Header.Get("X-Title") != "")
	}
	return req, fmt.Errorf("no such path %s", r.URL.Path)
}

// into checks a request for a reply and copies it. Only OpenRouter knows reasoning.
func (in *chatRequest) into(req *Request, knowsReasoning bool) error {
	req.Model = in.Model
	for _, m := range in.Messages {
		read, err := m.read()
		if err != nil {
			return err
		}
		if m.Reasoning != "" && !knowsReasoning {
			return errors.New("property 'reasoning' is unsupported")
		}
		req.Messages = append(req.Messages, read)
	}
	for _, t := range in.Tools {
		req.Tools = append(req.Tools, llm.Tool(t.Function))
	}
	req.NoCalls = in.ToolChoice == "none"
	return cmp.Or(checkChat(*in), checkTools(*in), checkOrder(req.Messages))
}

// contentPart is a part of a message: a text, or an image as a data URL.
type contentPart struct {
	Type     string  `json:"type"`
	Text     *string `json:"text"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

func readContent(role string, raw json.RawMessage) (Message, error) {
	m := Message{Role: role}
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return m, json.Unmarshal(raw, &m.Text)
	}
	var parts []contentPart
	if err := strict(raw, &parts); err != nil || len(parts) == 0 || role != "user" {
		return m, fmt.Errorf("a message of the role %q whose content is neither a string nor parts: %w", role, err)
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && p.Text != nil && *p.Text != "" && p.ImageURL == nil:
			m.Text += *p.Text
		case p.Type == "image_url" && p.ImageURL != nil && p.Text == nil:
			img, err := readImage(p.ImageURL.URL)
			if err != nil {
				return m, err
			}
			m.Images = append(m.Images, img)
		default:
			return m, fmt.Errorf("a part of the type %q with other members", p.Type)
		}
	}
	return m, nil
}

func readImage(url string) (llm.Image, error) {
	kind, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return llm.Image{}, errors.New("an image that is not a data URL")
	}
	bytes, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil {
		return llm.Image{}, err
	}
	return llm.Image{ContentType: kind, Data: bytes}, checkImage(kind, bytes)
}

func checkChat(in chatRequest) error {
	switch {
	case in.Model == "":
		return errors.New("model is missing")
	case len(in.Messages) == 0:
		return errors.New("messages is empty")
	case len(in.Stop) > 4:
		return errors.New("more than four stop sequences")
	case in.ResponseFormat != nil && in.ResponseFormat.Type != "json_object":
		return errors.New("response_format is not json_object")
	case in.StreamOptions != nil && !in.Stream:
		return errors.New("stream_options without stream")
	}
	for _, m := range in.Messages {
		if !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role) {
			return fmt.Errorf("role %q", m.Role)
		}
	}
	if !slices.Contains([]string{"", "price", "throughput", "latency"}, in.Provider.Sort) {
		return fmt.Errorf("provider.sort %q", in.Provider.Sort)
	}
	return checkSampling(in)
}

func checkSampling(in chatRequest) error {
	switch {
	case !within(in.Temperature, 0, 2):
		return errors.New("temperature is out of range")
	case !within(in.TopP, 0, 1):
		return errors.New("top_p is out of range")
	case in.MaxTokens != nil && *in.MaxTokens < 1:
		return errors.New("max_tokens is out of range")
	case !within(in.FrequencyPenalty, -2, 2):
		return errors.New("frequency_penalty is out of range")
	case in.TopK != nil && *in.TopK < 1:
		return errors.New("top_k is out of range")
	case !slices.Contains([]string{"", "low", "medium", "high"}, in.Effort):
		return fmt.Errorf("reasoning_effort %q", in.Effort)
	case in.MaxTokens != nil && in.MaxCompletionTokens != nil:
		return errors.New("max_tokens and max_completion_tokens exclude each other")
	}
	return nil
}

// within reports whether a number that may be absent lies in a range.
func within(n *float64, least, most float64) bool { return n == nil || *n >= least && *n <= most }

func checkEmbedding(in embeddingRequest) error {
	if in.Model == "" || len(in.Input) == 0 || len(in.Input) > 2048 {
		return errors.New("an embedding needs a model and 1 to 2048 inputs")
	}
	for _, s := range in.Input {
		if s == "" {
			return errors.New("an input is empty")
		}
	}
	return nil
}

func (openAI) refusal(r Reply) any {
	return map[string]any{"error": map[string]any{"message": r.Message, "type": "error", "code": r.Reason}}
}

func (openAI) answer(f *Fake, o *writer, req Request, r Reply) {
	var body struct {
		chatRequest
		Input      []string
		Dimensions int
	}
	_ = json.Unmarshal(req.Body, &body) // decode has accepted it
	switch {
	case strings.HasSuffix(req.Path, "/models"):
		list := []any{}
		for _, name := range f.modelNames() {
			model := map[string]any{"id": name, "object": "model"}
			if n := f.contextTokens(); n > 0 {
				model["context_length"] = n
			}
			list = append(list, model)
		}
		o.json(http.StatusOK, map[string]any{"object": "list", "data": list})
	case strings.HasSuffix(req.Path, "/embeddings"):
		o.openAIVectors(f, body.Model, body.Input, body.Dimensions)
	case !body.Stream:
		o.openAIWhole(body.Model, r)
	default:
		o.w.Header().Set("Content-Type", "text/event-stream")
		o.stream(r, &openAIStream{o: o, r: r, model: body.Model, usage: body.StreamOptions != nil && body.StreamOptions.IncludeUsage})
	}
}

func (o *writer) openAIVectors(f *Fake, model string, texts []string, dims int) {
	var data []any
	vectors := f.vectors(texts, dims)
	for i := len(vectors) - 1; i >= 0; i-- { // any order is allowed: index counts
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectors[i]})
	}
	o.json(http.StatusOK, map[string]any{"object": "list", "model": model, "data": data,
		"usage": map[string]any{"prompt_tokens": len(texts), "total_tokens": len(texts)}})
}

func (o *writer) openAIWhole(model string, r Reply) {
	var text strings.Builder
	for _, p := range r.Parts {
		text.WriteString(p.Text)
	}
	o.json(http.StatusOK, map[string]any{
		"id": "gen-1", "object": "chat.completion", "model": model, "usage": openAIUsage(r.Usage),
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": openAIFinish(r.Finish),
			"message": map[string]any{"role": "assistant", "content": text.String()},
		}},
	})
}

func openAIUsage(u Usage) map[string]any {
	m := map[string]any{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.Cached},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
	if u.Cost != 0 {
		m["cost"] = u.Cost
	}
	return m
}

func openAIFinish(f Finish) string {
	word := map[Finish]string{Stop: "stop", Safety: "content_filter"}[f]
	return cmp.Or(word, string(f))
}

// openAIStream is one streamed chat completion, with the comment lines that
// OpenRouter sends while it waits.
type openAIStream struct {
	o     *writer
	r     Reply
	model string
	usage bool
	calls int // so far
}

func (s *openAIStream) part(p Part) {
	s.o.line(s.r, ": OPENROUTER PROCESSING")
	if p.Bare {
		s.data(s.chunk())
		return
	}
	if p.Call != nil {
		s.call(*p.Call)
		return
	}
	delta := map[string]any{"role": "assistant", "content": p.Text}
	maps.Copy(delta, p.Extra)
	if p.Reasoning != "" {
		delta["reasoning"] = p.Reasoning
	}
	s.data(s.chunk(map[string]any{"index": 0, "delta": delta, "finish_reason": nil}))
}

func (s *openAIStream) end() {
	switch s.r.End {
	case Garbage:
		s.o.line(s.r, `data: {"choices":[{"delta":{"content":"half`)
		return
	case MidError:
		failed := s.chunk(map[string]any{"index": 0, "delta": map[string]any{"content": ""}, "finish_reason": "error"})
		failed["error"] = map[string]any{"code": 502, "message": "Provider returned error: " + s.r.Message}
		s.data(failed)
		s.o.line(s.r, "data: [DONE]")
		return
	}
	if s.r.End != MarkOnly {
		finish := openAIFinish(s.r.Finish)
		if s.calls > 0 && !s.r.SaysStop && finish == "stop" {
			finish = "tool_calls"
		}
		s.data(s.chunk(map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}))
	}
	if s.usage {
		used := s.chunk()
		used["usage"] = openAIUsage(s.r.Usage)
		s.data(used)
	}
	if s.r.End != FinishOnly {
		s.o.line(s.r, "data: [DONE]")
	}
}

func (s *openAIStream) chunk(choices ...map[string]any) map[string]any {
	return map[string]any{"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": s.model, "choices": append([]map[string]any{}, choices...)}
}

func (s *openAIStream) data(v any) { s.o.line(s.r, "data: "+llm.JSONLine(v)) }
