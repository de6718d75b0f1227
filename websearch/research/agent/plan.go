package agent

import (
	"time"

	"nodest/llm"
)

// Plan is what a run is to find out, and within which limits. It is stored with the run and does not
// change once the run has begun.
type Plan struct {
	Question string `json:"question"`
	// History is the end of the conversation that asks, oldest first. Once the run has begun, that of a later plan
	// does not count.
	History  []llm.Message `json:"history,omitempty"`
	Language string        `json:"language"` // language of the answer, as "en" or "zh"
	Queries  []string      `json:"queries"`  // the first search words; empty = the model chooses
	// Questions are the parts of the question, which must each be answered; empty = the model finds them.
	Questions []string `json:"questions,omitempty"`
	Hosts     []string `json:"hosts,omitempty"` // only pages of these; empty = all
	Web       bool     `json:"web"`             // the web is searched
	Bases     []string `json:"bases,omitempty"` // knowledge bases that are searched too
	Team      int      `json:"team"`            // sub-questions that are worked on side by side; 1 to 4
	Doubtful  string   `json:"doubtful"`        // the fate of sentences without support: Mark or Remove
	Budget    Budget   `json:"budget"`
}

// The fates of sentences that no opened page supports.
const (
	Mark   = "mark"
	Remove = "remove"
)

// Budget is what a run may cost. It holds: a call is reserved before it is made, and one call at most
// of each member of a team goes over. Embeddings are not counted.
type Budget struct {
	Tokens  int     `json:"tokens"`        // prompts and answers of the language model
	USD     float64 `json:"usd,omitempty"` // where prices are known; 0 = no limit
	Seconds int     `json:"seconds"`       // time of work; the time that a process was down does not count
}

// Limit is the time that a run may take.
func (b Budget) Limit() time.Duration { return time.Duration(b.Seconds) * time.Second }

// Cost is what was spent.
type Cost struct {
	Calls            int     `json:"calls"` // calls to the language model
	PromptTokens     int     `json:"promptTokens"`
	CompletionTokens int     `json:"completionTokens"`
	USD              float64 `json:"usd"` // cost of the calls whose price is known
	Ms               int64   `json:"ms"`
}

// Tokens are those of prompts and answers together.
func (c Cost) Tokens() int { return c.PromptTokens + c.CompletionTokens }
