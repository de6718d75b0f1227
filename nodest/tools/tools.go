// Package tools carries out what a model calls while it writes a reply. It knows which calls
// are made and which are refused, numbers the sources in their results, and says when it is
// enough. It asks no model: package nodest does, with the messages of a Run.
package tools

import (
	"context"
	"encoding/json"
	"time"

	"nodest/llm"
)

// Tool is a function that the model may call while it writes a reply.
type Tool struct {
	llm.Tool
	Limit int           // calls that are carried out in a turn; 0 = Limits.Calls
	Time  time.Duration // for one call; 0 = Limits.CallTime

	Query string   // the argument that says what to search for; "" = the tool does not search
	Scope []string // arguments that narrow the search: with other values it is another one
	Reads string   // the argument that lists the ids of what is read; "" = the tool does not read
	Web   bool     // it searches the web: what was searched for before the request counts

	// Vector returns the vector of a query, by which repeated searches are recognised too;
	// nil, and a nil vector, mean that words alone are compared.
	Vector func(ctx context.Context, query string) ([]float32, error)

	// Call carries out a call. It ends soon after ctx does. Of an error, the model is told the
	// public message.
	Call func(ctx context.Context, c Call) (*Answer, error)
}

// Call is a call of a tool. Arguments is a JSON object that has the members that the tool's
// Parameters require, of the types that they name. Ranges are the tool's to check.
type Call struct {
	Round     int // from 1
	Arguments json.RawMessage
}

// Answer is what a call has found.
type Answer struct {
	// Text writes the answer for the model. It may be called several times, with less room each
	// time; what is on the last sheet counts.
	Text func(s *Sheet) string

	Query    string   // the words that were searched for; "" = as the call says
	Hits     int      // hits of a search
	Files    []File   // for clients, best first
	Shown    []string // ids of the passages in it; nil = it has none
	Degraded []string // kinds of search that could not be done
}

// File is a file that a call has found or read.
type File struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Relevance float64 `json:"relevance"` // at most 1
}
