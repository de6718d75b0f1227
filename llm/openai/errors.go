package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
)

// wireError is the error member of an answer or of an event. Its message may quote
// the prompt or part of a key: what is shown of it has gone through llm.Secrets.
type wireError struct {
	Code     json.RawMessage `json:"code"` // a word, or with OpenRouter an HTTP status
	Type     loose.Text      `json:"type"`
	Message  string          `json:"-"`
	Metadata struct {
		Reasons loose.List[loose.Text] `json:"reasons"` // OpenRouter's moderation
		Raw     json.RawMessage        `json:"raw"`     // words of the provider behind OpenRouter
	} `json:"metadata"`
}

// refusalLimit bounds what is read of an error answer, in bytes.
const refusalLimit = 64 << 10

// refusal makes an error of an answer that is not 200. One without a reason gets the
// status in its place.
func (c *Client) refusal(resp *http.Response, hide llm.Secrets) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, refusalLimit)) // the readable part is enough
	raw := json.RawMessage(bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\ufeff"))))
	if len(raw) > 0 && !json.Valid(raw) {
		raw, _ = json.Marshal(string(b)) // a text can always be encoded
	}
	var list []json.RawMessage // Google's interface
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var answer struct{ Error json.RawMessage }
	if json.Unmarshal(raw, &answer) == nil && present(answer.Error) != nil {
		raw = answer.Error
	}
	e, word, number := parseError(raw)
	err := classify(c.opts.Name, e, word, number, resp.StatusCode, llm.RetryAfter(resp.Header, time.Now()))
	return llm.WithReason(err, cmp.Or(hide.Reason(e.Message), llm.StatusReason(resp.StatusCode)))
}

// readError classifies the error member of an event.
func readError(provider string, raw json.RawMessage, hide llm.Secrets) error {
	e, word, number := parseError(raw)
	return llm.WithReason(classify(provider, e, word, number, 0, 0), hide.Reason(e.Message))
}

func classify(provider string, e wireError, word string, number, status int, retryAfter time.Duration) error {
	if status == 0 && number >= 400 && number < 600 {
		status = number
	}
	cause := errors.New("the provider's error has no code")
	if word != "" {
		cause = fmt.Errorf("the provider's code is %s", word)
	}
	switch {
	case len(e.Metadata.Reasons) > 0:
		return llm.BlockedError(provider, llm.StagePrompt, "moderation")
	case word == "content_filter", word == "content_policy_violation":
		return llm.BlockedError(provider, llm.StagePrompt, word)
	case word == "context_length_exceeded", word == "exceed_context_size_error", saysTooLong(e.Message):
		return llm.Upstream(provider, fault.ContextTooLarge, status, cause)
	case word == "insufficient_quota":
		return llm.Upstream(provider, fault.UpstreamQuota, status, cause).After(retryAfter)
	case word == "invalid_api_key":
		return llm.Upstream(provider, fault.UpstreamAuth, status, cause)
	case word == "rate_limit_exceeded":
		return llm.Upstream(provider, fault.UpstreamRate, status, cause).After(retryAfter)
	case llm.SaysEchoRejected(status, e.Message):
		return llm.EchoError(provider, status)
	case llm.SaysNoTools(status, e.Message):
		return llm.NoToolsError(provider, status)
	case llm.SaysNoModel(status, word, e.Message): // gateways such as new-api say so with 503, but no retry cures it
		return llm.Upstream(provider, fault.ModelNotFound, http.StatusNotFound, cause)
	case status != 0:
		return llm.StatusError(provider, status, retryAfter, cause)
	}
	return llm.Upstream(provider, fault.UpstreamDown, 0, cause)
}

// parseError reads an error with a word or a number as its code, or a bare text (Ollama).
func parseError(raw json.RawMessage) (e wireError, word string, number int) {
	_ = loose.Unmarshal(raw, &e) // a text has no members
	e.Message = said(raw, saidDepth)
	if behind := said(e.Metadata.Raw, saidDepth); behind != "" {
		e.Message = strings.TrimPrefix(e.Message+": "+behind, ": ")
	}
	var code loose.Number
	_ = code.UnmarshalJSON(e.Code) // never fails
	return e, cmp.Or(plainWord(oneText(e.Code)), plainWord(string(e.Type))), code.IntOr(0)
}

// saidDepth is how deep the text of an error may be nested.
const saidDepth = 6

// said is the text of an error, in the forms that occur: a text, also one that is
// JSON itself; an object with the text in one of several members; a list of those, as
// FastAPI makes, of which the first counts. A web page says nothing.
func said(raw json.RawMessage, depth int) string {
	var text string
	var list []json.RawMessage
	var object struct {
		Error, Message, Detail, Errors, Msg, Loc json.RawMessage
	}
	switch {
	case depth == 0:
	case json.Unmarshal(raw, &text) == nil:
		if inner := said(json.RawMessage(text), depth-1); inner != "" || strings.HasPrefix(strings.TrimSpace(text), "<") {
			return inner
		}
		return text
	case json.Unmarshal(raw, &list) == nil && len(list) > 0:
		return said(list[0], depth-1)
	case json.Unmarshal(raw, &object) == nil:
		for _, member := range []json.RawMessage{object.Error, object.Message, object.Detail, object.Errors, object.Msg} {
			if text := said(member, depth-1); text != "" {
				return place(object.Loc) + text
			}
		}
	}
	return ""
}

// place names the member of a request that FastAPI complains about.
func place(loc json.RawMessage) string {
	var path []any
	if json.Unmarshal(loc, &path) != nil || len(path) == 0 {
		return ""
	}
	words := make([]string, len(path))
	for i, step := range path {
		words[i] = fmt.Sprint(step)
	}
	return strings.Join(words, ".") + ": "
}

// plainWord returns s if it is a word of a protocol and nothing longer.
func plainWord(s string) string {
	if len(s) > 48 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return s
}

// saysTooLong knows the sentences of servers that have no code for it (vLLM, OpenRouter).
func saysTooLong(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "maximum context length") || strings.Contains(m, "exceeds the available context size")
}
