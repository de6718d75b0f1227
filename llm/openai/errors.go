package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"nodest/fault"
	"nodest/llm"
)

// wireError is the error member of an answer or of an event. Its message may quote
// the prompt or part of a key: what is shown of it has gone through llm.Secrets.
type wireError struct {
	Code     json.RawMessage `json:"code"` // a word, or with OpenRouter an HTTP status
	Type     string          `json:"type"`
	Message  string          `json:"message"`
	Metadata struct {
		Reasons []string `json:"reasons"` // OpenRouter's moderation
	} `json:"metadata"`
}

// refusalLimit bounds what is read of an error answer, in bytes.
const refusalLimit = 64 << 10

// refusal makes an error of an answer that is not 200.
func (c *Client) refusal(resp *http.Response, hide llm.Secrets) error {
	var answer struct {
		Error, Message, Detail json.RawMessage
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, refusalLimit)) // what can be read is enough
	if json.Unmarshal(b, &answer) != nil && mediaType(resp) == "text/plain" {
		answer.Error, _ = json.Marshal(string(b)) // a text can always be encoded
	}
	if answer.Error == nil { // FastAPI and others put it elsewhere
		if answer.Error = answer.Message; answer.Error == nil {
			answer.Error = answer.Detail
		}
	}
	return readError(c.opts.Name, answer.Error, hide, resp.StatusCode, llm.RetryAfter(resp.Header, time.Now()))
}

// readError classifies an error member. status is that of HTTP, 0 within a stream.
func readError(provider string, raw json.RawMessage, hide llm.Secrets, status int, retryAfter time.Duration) error {
	e, word, number := parseError(raw)
	return llm.WithReason(classify(provider, e, word, number, status, retryAfter), hide.Reason(e.Message))
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
	case status != 0:
		return llm.StatusError(provider, status, retryAfter, cause)
	}
	return llm.Upstream(provider, fault.UpstreamDown, 0, cause)
}

// parseError reads the member in the forms that occur: an object with a word or a
// number as code, or a bare text (Ollama).
func parseError(raw json.RawMessage) (e wireError, word string, number int) {
	if json.Unmarshal(raw, &e) != nil {
		e = wireError{}
		_ = json.Unmarshal(raw, &e.Message)
		return e, "", 0
	}
	if json.Unmarshal(e.Code, &number) != nil {
		_ = json.Unmarshal(e.Code, &word)
	}
	if word == "" {
		word = e.Type
	}
	return e, plainWord(word), number
}

// plainWord returns s if it is a word of a protocol and nothing longer.
func plainWord(s string) string {
	if len(s) > 48 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return s
}

// saysTooLong knows the sentences of servers that have no code for it (vLLM,
// OpenRouter).
func saysTooLong(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "maximum context length") || strings.Contains(m, "exceeds the available context size")
}
