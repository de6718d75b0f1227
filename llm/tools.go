package llm

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"unicode"

	"nodest/internal/fault"
)

// Tool is a function that a model may ask for while it writes a reply.
type Tool struct {
	Name        string          // letters, digits and _
	Description string          // for the model
	Parameters  json.RawMessage // JSON Schema of an object
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID        string // its answer names it; adapters make one where a server gives none
	Name      string // may be none of the tools that were offered
	Arguments string // JSON as the model wrote it: it may be malformed; empty = none
}

// ToolResult is the answer to a call.
type ToolResult struct {
	CallID string
	Name   string
	Text   string
}

// Echo is an assistant message with calls as its provider sent it. The same provider gets it
// back unchanged: it may hold what the next request is refused without, such as thought
// signatures. Another provider gets the message's text and calls in its own format.
type Echo struct {
	Provider string
	Raw      json.RawMessage
}

// The bounds of the calls of one reply. Sizes are in bytes.
const (
	MaxCalls     = 16
	MaxArguments = 64 << 10 // bytes of each call
	maxCallWord  = 512      // a call's name or id
	maxEcho      = 4 << 20
)

// NewCallID makes an id for a call that came without one: nine letters and digits, which
// every provider takes.
func NewCallID() string { return rand.Text()[:9] }

// CheckCalls returns fault.UpstreamBadAnswer if there are too many calls, or one is too large
// or has no name, or the name or id has control characters.
func CheckCalls(provider string, calls []ToolCall) error {
	if len(calls) > MaxCalls {
		return BadAnswer(provider, nil, "asked for too many tools at once")
	}
	for _, call := range calls {
		switch {
		case call.Name == "":
			return BadAnswer(provider, nil, "asked for a tool without a name")
		case len(call.Arguments) > MaxArguments, len(call.Name) > maxCallWord, len(call.ID) > maxCallWord:
			return BadAnswer(provider, nil, "asked for a tool with too much data")
		case strings.ContainsFunc(call.Name+call.ID, unicode.IsControl):
			return BadAnswer(provider, nil, "asked for a tool with control characters in its name")
		}
	}
	return nil
}

// checkTools bounds what a reply asks for.
func checkTools(provider string, c Chunk) error {
	if c.Echo != nil && len(c.Echo.Raw) > maxEcho {
		return BadAnswer(provider, nil, "asked for a tool with too much data")
	}
	return CheckCalls(provider, c.Calls)
}

// EchoFor returns what provider sent as m itself, nil if m is another's or has nothing to preserve.
func (m Message) EchoFor(provider string) json.RawMessage {
	if m.Echo == nil || m.Echo.Provider != provider {
		return nil
	}
	return m.Echo.Raw
}

var (
	errNoTools      = errors.New("the model does not call tools")
	errEchoRejected = errors.New("the provider misses a part of its own message")
)

// ToolsUnsupported reports whether a request failed because its model, or the server, does
// not call tools: without Tools the same request may succeed. No wrapper repeats it or asks
// another provider; OfFallback tells whether the model that was asked for said so.
func ToolsUnsupported(err error) bool { return errors.Is(err, errNoTools) }

// EchoRejected reports whether a request failed because the provider misses something of its
// own message with calls, such as a thought signature. Without that message it may succeed.
func EchoRejected(err error) bool { return errors.Is(err, errEchoRejected) }

// NoToolsError is the error that ToolsUnsupported knows. status is the HTTP status, 0 if
// there was none.
func NoToolsError(provider string, status int) *fault.Error {
	return toolsError(provider, status, errNoTools)
}

// EchoError is the error that EchoRejected knows.
func EchoError(provider string, status int) *fault.Error {
	return toolsError(provider, status, errEchoRejected)
}

func toolsError(provider string, status int, cause error) *fault.Error {
	e := Upstream(provider, fault.UpstreamBadAnswer, status, cause)
	e.Message = label(provider) + " rejected the request"
	return e
}

// aboutTools reports whether leaving the tools out is what cures err.
func aboutTools(err error) bool { return ToolsUnsupported(err) || EchoRejected(err) }

// Servers have no code for missing tools, only sentences such as "gemma does not support tools",
// "No endpoints found that support tool use", "Function calling is not enabled for this model",
// "tools param requires --jinja flag" and "Unrecognized request argument supplied: tools".
var (
	namesTools = regexp.MustCompile(`(?i)\btools?\b|\btool_|\bfunction[ _-]?call`)
	saysNot    = regexp.MustCompile(`(?i)(?:\bnot|n['’]t|\bcannot) (?:be )?(?:currently |yet )?(?:support|enabled|available|permitted|allowed|implemented)|` +
		`unsupported|no endpoints found|requires --|unrecognized request argument|extra inputs|extra fields`)
)

// missesPart finds what Gemini and DeepSeek say when their own message comes back without its
// thoughts.
var missesPart = regexp.MustCompile(`(?i)thought[ _]?signature|missing.*reasoning_content|reasoning_content.*must be`)

// SaysEchoRejected reports whether the message of an error with HTTP status 400 (0 = in a
// stream) says that a part of an earlier message of the model is missing or damaged.
func SaysEchoRejected(status int, message string) bool {
	return (status == 0 || status == 400) && missesPart.MatchString(message)
}

// SaysNoTools reports whether the message of an error that came with an HTTP status (0 = in
// a stream) says that tools are not supported.
func SaysNoTools(status int, message string) bool {
	switch status {
	case 0, 400, 404, 405, 422, 500, 501:
		return namesTools.MatchString(message) && saysNot.MatchString(message)
	}
	return false
}
