package llm

import "encoding/json"

// Tool is a function that a model may ask for while it writes a reply.
type Tool struct {
	Name        string          // letters, digits and _
	Description string          // for the model
	Parameters  json.RawMessage // JSON Schema of an object
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID        string // its answer names it; adapters make one where a server gives none
	Name      string
	Arguments string // JSON as the model wrote it: it may be malformed
}

// ToolResult is the answer to a call.
type ToolResult struct {
	CallID string
	Name   string
	Text   string
}

// Echo is an assistant message with calls as its provider sent it. The same provider gets it
// back unchanged: it may hold what the next request is refused without, such as thought
// signatures.
type Echo struct {
	Provider string
	Raw      json.RawMessage
}
