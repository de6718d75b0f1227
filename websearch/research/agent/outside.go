package agent

import (
	"context"
	"encoding/json"
	"log/slog"

	"nodest/internal/cite"
	"nodest/llm"
	"nodest/websearch/provider"
)

// Outside is what a run uses of the world. All of it is called concurrently.
type Outside struct {
	Model    llm.Asker    // nil = there is none: the answer consists of quotes
	Embedder llm.Embedder // nil = texts are compared by words
	Search   func(ctx context.Context, q provider.Query) (provider.Results, error)
	// Read reads a page. One that was fetched since the run began comes from where it was stored under its address,
	// however old it is: it is read again when the answer is cited, if the process has ended meanwhile.
	Read Read
	// Private reports whether pages of a host may be read although it is private; nil = no.
	Private func(host string) bool
	// Documents searches the knowledge bases of the plan; nil = there are none.
	Documents func(ctx context.Context, question string) ([]cite.Source, error)
	// Log hears of panics after which the run goes on; nil = nobody does.
	Log *slog.Logger
	// Tell passes on what happens; it does not block. nil = nobody wants to know.
	Tell func(Event)
}

// Recorder keeps the answers of calls, so that a run which is played again after a crash makes none of
// them twice. A run asks in the same order with the same keys each time it is played. Implementations
// are safe for concurrent use.
type Recorder interface {
	// Recorded returns what a call has answered; false = it was not made, or its answer was lost.
	Recorded(key string) (answer json.RawMessage, ok bool)
	// Begin notes, before a call of the outside is made, what it may cost at most. An earlier call of the key that has
	// no answer was lost in a crash; what it may have cost stays counted.
	Begin(ctx context.Context, key string, most Cost) error
	// Record stores what a call has answered and cost. When it returns, it is on disk.
	Record(ctx context.Context, key string, answer json.RawMessage, cost Cost) error
	// Lost is what calls may have cost whose answers were lost.
	Lost() Cost
}

// Event is something that happens in a run. The names and members are those of the wire
// (research.step …), without the run's id.
type Event struct {
	Type string // "step", "search", "visit", "think", "budget" or "delta"
	Data map[string]any
}
