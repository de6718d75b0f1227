package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Server says what a fake replies; see Fake.Always.
type Server func(Request) Reply

// StrictTurns is a server with a chat template that raises an exception on turns
// that do not alternate, as those of Gemma, Mistral and Llama 2 do: system messages
// only at the beginning, then user and assistant in turn, beginning with the user.
func StrictTurns(next Server) Server {
	return func(r Request) Reply {
		if why := brokenTurns(r.Messages); why != "" && isChat(r) {
			return Reply{Status: http.StatusBadRequest, Message: why, Reason: "invalid_request_error"}
		}
		return next(r)
	}
}

func brokenTurns(messages []Message) string {
	want := "user"
	for i, m := range messages {
		switch {
		case m.Role == "system" && i == 0:
		case m.Role == "system":
			return "System message must be at the beginning."
		case m.Role != want:
			return "Conversation roles must alternate user/assistant/user/assistant/..."
		case want == "user":
			want = "assistant"
		default:
			want = "user"
		}
	}
	return ""
}

// WithoutTools is a server whose model does not call tools and refuses to be offered any.
func WithoutTools(status int, message string, next Server) Server {
	return func(r Request) Reply {
		if len(r.Tools) > 0 {
			return Reply{Status: status, Message: message}
		}
		return next(r)
	}
}

// WantSignatures is a server that refuses its own calls when they come back without the
// signature that it gave the first one of each message, as Gemini 3 does.
func WantSignatures(next Server) Server {
	var mu sync.Mutex
	sent := map[string]bool{"skip_thought_signature_validator": true}
	return func(r Request) Reply {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range r.Messages {
			if len(m.Calls) > 0 && !sent[m.Calls[0].Signature] {
				return Reply{Status: http.StatusBadRequest, Message: "Function call is missing a thought_signature in functionCall parts. " +
					"This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance."}
			}
		}
		reply := next(r)
		for _, p := range reply.Parts {
			if p.Call != nil && p.Call.Signature != "" {
				sent[p.Call.Signature] = true
			}
		}
		return reply
	}
}

// TokenLimit is a server whose model writes at most limit tokens and refuses to be
// asked for more.
func TokenLimit(limit int, next Server) Server {
	return func(r Request) Reply {
		var body struct {
			MaxTokens int `json:"max_tokens"`
		}
		_ = json.Unmarshal(r.Body, &body) // the fake has decoded it
		if isChat(r) && body.MaxTokens > limit {
			return Reply{Status: http.StatusBadRequest, Reason: "invalid_request_error",
				Message: fmt.Sprintf("Invalid max_tokens value, the valid range of max_tokens is [1, %d]", limit)}
		}
		return next(r)
	}
}

func isChat(r Request) bool { return strings.HasSuffix(r.Path, "/chat/completions") }
