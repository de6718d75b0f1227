package llmtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	pb "cloud.google.com/go/ai/generativelanguage/apiv1beta/generativelanguagepb"
	"google.golang.org/protobuf/encoding/protojson"

	"nodest/llm"
)

// NewGemini starts a fake of the Gemini API v1beta. It decodes requests into the
// service's own protobuf types and answers in the manner of the SDK that asked:
// a JSON array with enums as numbers for generative-ai-go, server-sent events
// with enums as words for genai. It ends with the test.
func NewGemini(t testing.TB) *Fake {
	t.Helper()
	f := newFake(t, gemini{}, "")
	f.SetModels("gemini-flash-latest", "gemini-3.7-flash", "gemini-3.6-flash", "gemini-embedding-001")
	return f
}

// The words for Request.Transport.
const (
	cardSDK    = "generative-ai-go"
	currentSDK = "genai"
)

type gemini struct{}

func (gemini) decode(r *http.Request, body []byte) (Request, error) {
	req := Request{Key: r.Header.Get("X-Goog-Api-Key"), Transport: currentSDK}
	q := r.URL.Query()
	if q.Has("key") {
		return req, errors.New("the key is in the address")
	}
	if q.Has("$alt") {
		req.Transport = cardSDK
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/v1beta/")
	if !ok {
		return req, fmt.Errorf("no such path %s", r.URL.Path)
	}
	if r.Method == http.MethodGet && path == "models" {
		return req, nil
	}
	model, verb, _ := strings.Cut(path, ":")
	req.Model = strings.TrimPrefix(model, "models/")
	whole := body
	body, err := withoutNewMembers(body, req.Transport)
	if err != nil {
		return req, err
	}
	switch verb {
	case "streamGenerateContent":
		if req.Transport == currentSDK && q.Get("alt") != "sse" {
			return req, errors.New("a stream without alt=sse")
		}
		return decodeGenerate(req, model, body, whole)
	case "batchEmbedContents":
		var in pb.BatchEmbedContentsRequest
		if err := protojson.Unmarshal(body, &in); err != nil {
			return req, err
		}
		return req, checkBatch(model, &in)
	}
	return req, fmt.Errorf("no such method %q", verb)
}

// withoutNewMembers takes out what the service has learnt since the protobuf
// types were made. Only genai may send it.
func withoutNewMembers(body []byte, transport string) ([]byte, error) {
	if transport != currentSDK {
		return body, nil
	}
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if config, ok := m["generationConfig"].(map[string]any); ok {
		if t, ok := config["thinkingConfig"].(map[string]any); ok {
			for k := range t {
				if k != "includeThoughts" && k != "thinkingBudget" && k != "thinkingLevel" {
					return nil, fmt.Errorf("thinkingConfig.%s", k)
				}
			}
			delete(config, "thinkingConfig")
		}
		delete(config, "seed")
	}
	if err := withoutChoices(m["tools"]); err != nil {
		return nil, err
	}
	contents, _ := m["contents"].([]any)
	for _, c := range contents {
		if content, ok := c.(map[string]any); ok {
			withoutThoughts(content)
		}
	}
	return json.Marshal(m)
}

// withoutChoices puts the first of the schemas in the place of those with anyOf, which must have
// nothing else.
func withoutChoices(v any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := withoutChoices(item); err != nil {
				return err
			}
		}
	case map[string]any:
		if choices, ok := v["anyOf"].([]any); ok {
			first, _ := choices[0].(map[string]any)
			if len(v) > 1 || first["type"] == nil {
				return errors.New("anyOf must be the only field of a schema, and its schemas need types")
			}
			delete(v, "anyOf")
			maps.Copy(v, first)
		}
		for _, member := range v {
			if err := withoutChoices(member); err != nil {
				return err
			}
		}
	}
	return nil
}

func decodeGenerate(req Request, model string, body, whole []byte) (Request, error) {
	var in pb.GenerateContentRequest
	if err := protojson.Unmarshal(body, &in); err != nil {
		return req, err
	}
	for _, p := range in.GetSystemInstruction().GetParts() {
		req.System += p.GetText()
	}
	req.Tools, req.NoCalls = geminiTools(&in)
	for _, c := range in.Contents {
		m := Message{Role: c.Role}
		for _, p := range c.Parts {
			m.Text += p.GetText()
			if r := p.GetFunctionResponse(); r != nil {
				text, _ := r.Response.AsMap()["output"].(string)
				req.Messages = append(req.Messages, Message{Role: c.Role, Result: &llm.ToolResult{Name: r.Name, Text: text}})
			}
			if f := p.GetFunctionCall(); f != nil {
				m.Calls = append(m.Calls, Call{Name: f.Name, Args: llm.JSONLine(f.Args.AsMap())})
			}
			if img := p.GetInlineData(); img != nil {
				m.Images = append(m.Images, llm.Image{ContentType: img.MimeType, Data: img.Data})
			}
		}
		if m.Text != "" || m.Images != nil || m.Calls != nil {
			req.Messages = append(req.Messages, m)
		}
	}
	if err := addNewMembers(req.Messages, whole); err != nil {
		return req, err
	}
	return req, cmp.Or(checkGenerate(model, &in), checkGeminiTools(&in))
}

func checkGenerate(model string, in *pb.GenerateContentRequest) error {
	if in.Model != "" && in.Model != model {
		return fmt.Errorf("model %q in the body, %q in the path", in.Model, model)
	}
	if len(in.Contents) == 0 {
		return errors.New("contents is empty")
	}
	for i, c := range in.Contents {
		if c.Role != "user" && c.Role != "model" {
			return fmt.Errorf("contents[%d].role %q: use user or model", i, c.Role)
		}
		if err := checkParts(c); err != nil {
			return fmt.Errorf("contents[%d]: %w", i, err)
		}
	}
	if in.SystemInstruction != nil {
		if slices.ContainsFunc(in.SystemInstruction.Parts, func(p *pb.Part) bool { return p.GetInlineData() != nil }) {
			return errors.New("systemInstruction: an image")
		}
		if err := checkParts(in.SystemInstruction); err != nil {
			return fmt.Errorf("systemInstruction: %w", err)
		}
	}
	return checkConfig(in.GenerationConfig)
}

func checkConfig(config *pb.GenerationConfig) error {
	if t := config.GetTemperature(); t < 0 || t > 2 {
		return errors.New("temperature is out of range")
	}
	if config != nil && config.MaxOutputTokens != nil && *config.MaxOutputTokens < 1 {
		return errors.New("maxOutputTokens is out of range")
	}
	if len(config.GetStopSequences()) > 5 {
		return errors.New("more than five stop sequences")
	}
	return nil
}

func checkParts(c *pb.Content) error {
	if len(c.Parts) == 0 {
		return errors.New("parts is empty")
	}
	for _, p := range c.Parts {
		img := p.GetInlineData()
		switch {
		case p.GetFunctionCall() != nil || p.GetFunctionResponse() != nil: // checkGeminiTools
		case img == nil && p.GetText() == "":
			return errors.New("a part without data")
		case img != nil && c.Role != "user":
			return fmt.Errorf("an image of the role %q", c.Role)
		case img != nil:
			if err := checkImage(img.MimeType, img.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkImage accepts what all providers take.
func checkImage(contentType string, data []byte) error {
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/gif"}, contentType) {
		return fmt.Errorf("image type %q", contentType)
	}
	if len(data) == 0 {
		return errors.New("an empty image")
	}
	return nil
}

func checkBatch(model string, in *pb.BatchEmbedContentsRequest) error {
	if len(in.Requests) == 0 || len(in.Requests) > 100 {
		return fmt.Errorf("%d requests in one batch: 1 to 100 are allowed", len(in.Requests))
	}
	for i, r := range in.Requests {
		if r.Model != model {
			return fmt.Errorf("requests[%d].model %q", i, r.Model)
		}
		if err := checkParts(r.GetContent()); err != nil {
			return fmt.Errorf("requests[%d]: %w", i, err)
		}
	}
	return nil
}

func (gemini) refusal(r Reply) any {
	words := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED",
		404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
	e := map[string]any{"code": r.Status, "message": r.Message, "status": words[r.Status]}
	var details []any
	if r.Reason != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
			"reason": r.Reason, "domain": "googleapis.com"})
	}
	if r.RetryAfter > 0 {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": fmt.Sprintf("%ds", int(r.RetryAfter.Seconds()))})
	}
	if details != nil {
		e["details"] = details
	}
	return map[string]any{"error": e}
}

func (gemini) answer(f *Fake, o *writer, req Request, r Reply) {
	switch {
	case strings.HasSuffix(req.Path, "/models"):
		o.geminiModels(f)
	case strings.HasSuffix(req.Path, ":batchEmbedContents"):
		o.geminiVectors(f, req)
	default:
		s := &geminiStream{o: o, r: r, model: cmp.Or(r.Model, req.Model), array: req.Transport == cardSDK}
		if s.array {
			o.w.Header().Set("Content-Type", "application/json")
			o.send("[", 0)
		} else {
			o.w.Header().Set("Content-Type", "text/event-stream")
		}
		if r.PromptBlock != "" {
			s.chunk(map[string]any{"promptFeedback": map[string]any{"blockReason": s.enum(r.PromptBlock, blockWords)}})
			s.close()
			return
		}
		o.stream(r, s)
	}
}

func (o *writer) geminiModels(f *Fake) {
	list := []any{}
	for _, name := range f.modelNames() {
		methods := []string{"generateContent", "countTokens"}
		if strings.Contains(name, "embedding") {
			methods = []string{"embedContent"}
		}
		list = append(list, map[string]any{"name": "models/" + name, "displayName": name,
			"inputTokenLimit": 1048576, "outputTokenLimit": 8192, "supportedGenerationMethods": methods})
	}
	o.json(http.StatusOK, map[string]any{"models": list})
}

func (o *writer) geminiVectors(f *Fake, req Request) {
	var in pb.BatchEmbedContentsRequest
	_ = protojson.Unmarshal(req.Body, &in) // decode has accepted it
	var texts []string
	for _, r := range in.Requests {
		texts = append(texts, r.Content.Parts[0].GetText())
	}
	list := []any{}
	for _, v := range f.vectors(texts, int(in.Requests[0].GetOutputDimensionality())) {
		list = append(list, map[string]any{"values": v})
	}
	o.json(http.StatusOK, map[string]any{"embeddings": list})
}

// geminiStream is one streamed answer in either of the two formats.
type geminiStream struct {
	o     *writer
	r     Reply
	model string
	array bool // JSON array instead of server-sent events
	sent  int  // chunks
}

func (s *geminiStream) part(p Part) {
	var part map[string]any
	switch {
	case p.Bare:
		s.chunk(map[string]any{"modelVersion": s.model})
		return
	case p.Call != nil:
		part = geminiCall(*p.Call)
	case p.Signature:
		part = map[string]any{"thoughtSignature": "c2lnbmF0dXJl"}
	case p.Reasoning != "":
		part = map[string]any{"text": p.Reasoning, "thought": true}
	default:
		part = map[string]any{"text": p.Text}
	}
	s.chunk(map[string]any{
		"candidates":    []any{map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{part}}}},
		"usageMetadata": map[string]any{"promptTokenCount": s.r.Usage.Prompt, "totalTokenCount": s.r.Usage.Prompt},
		"modelVersion":  s.model,
	})
}

func (s *geminiStream) end() {
	switch s.r.End {
	case Garbage:
		s.raw(`{"candidates":[{"content":{"parts":[{"text":"half`)
		return
	case MidError:
		s.chunk(map[string]any{"error": map[string]any{"code": 502, "status": "INTERNAL", "message": s.r.Message}})
		s.close()
		return
	case MarkOnly:
		s.close()
		return
	}
	s.chunk(map[string]any{
		"candidates":    []any{map[string]any{"index": 0, "finishReason": s.finish()}},
		"usageMetadata": geminiUsage(s.r.Usage),
		"modelVersion":  s.model,
	})
	if s.r.End == Whole {
		s.close()
	}
}

func geminiUsage(u Usage) map[string]any {
	m := map[string]any{"promptTokenCount": u.Prompt, "candidatesTokenCount": u.Completion - u.Reasoning,
		"totalTokenCount": u.Prompt + u.Completion}
	if u.Cached > 0 {
		m["cachedContentTokenCount"] = u.Cached
	}
	if u.Reasoning > 0 {
		m["thoughtsTokenCount"] = u.Reasoning
	}
	return m
}

// The words of the API; their places are their numbers.
var (
	finishWords = []string{"", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST",
		"PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL"}
	blockWords = []string{"", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT"}
)

func (s *geminiStream) finish() any {
	word := map[Finish]string{Stop: "STOP", Length: "MAX_TOKENS", Safety: "SAFETY"}[s.r.Finish]
	return s.enum(cmp.Or(word, string(s.r.Finish)), finishWords)
}

// enum is a word as the format has it.
func (s *geminiStream) enum(word string, words []string) any {
	if s.array {
		return slices.Index(words, word)
	}
	return word
}

func (s *geminiStream) chunk(v any) { s.raw(llm.JSONLine(v)) }

func (s *geminiStream) raw(text string) {
	if !s.array {
		s.o.line(s.r, "data: "+text)
		return
	}
	if s.sent > 0 {
		text = ",\r\n" + text
	}
	s.sent++
	s.o.send(text, s.r.Split)
}

func (s *geminiStream) close() {
	if s.array {
		s.o.send("\n]\n", 0)
	}
}
