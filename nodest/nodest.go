// Package nodest is the chat engine (NodeSTCore): characters, their documents,
// conversations as trees of messages, and the turns in which a model writes.
//
// One operation is one method of Engine; REST, WebSocket and command line call
// the same ones. A method that writes takes a *Call: who acts, from which
// device, under which idempotency key. The same key and content gives the first
// answer again and has its effect once.
//
// A turn (play) is: accept (user message, placeholder and events in one transaction, which the
// request is answered behind), gather, ask, speak, end. It runs in a goroutine of the engine and
// ends by itself, by Cancel, or with the process; Recover marks what a crash leaves behind as
// interrupted.
package nodest

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"nodest/chat"
	"nodest/internal/stream"
	"nodest/llm"
	"nodest/nodest/tools"
)

// Publisher delivers events to connected devices; *stream.Hub is one.
type Publisher interface {
	// Transient delivers an event that is not stored.
	Transient(e *stream.Event)
}

// Models finds the generator for a turn.
type Models interface {
	// Resolve returns the generator for a provider and model ("" = the user's or
	// server's default), with the user's own keys where there are any. apiKey,
	// when not empty, is used for this request alone. It returns
	// fault.NotConfigured when the provider has no key.
	Resolve(ctx context.Context, userID, provider, model, apiKey string) (Model, error)
}

// Model is what Resolve found.
type Model struct {
	Generator     llm.Generator
	Provider      string // "gemini", "openrouter", "openai", "offline"
	Name          string
	ContextTokens int // size of the context; 0 = not known, 32,768 is assumed
	Offline       bool
	StrictTurns   bool // prompts are merged for it (llm.StrictTurns)
	Begins        bool // it goes on with a message of its own at the end of a request, as far as is known

	// Key names the provider's key that is used, without telling it: it is the same for
	// requests that count towards the same limits. "" = the offline model, which has none,
	// or a key of one request.
	Key string
	// Sees says whether the model understands images. It may ask the provider, which takes
	// seconds at most; nil = it does not.
	Sees func(ctx context.Context) bool
	// Calls says whether the model calls tools, as far as is known. It may ask the provider,
	// which takes seconds at most; nil = it is not known not to.
	Calls func(ctx context.Context) bool
}

// Options tune an Engine. The zero value is ready to use.
type Options struct {
	Process            string        // name of this process in leases; default a random one
	Alone              bool          // no other process uses the database: unfinished generations of others are abandoned
	GenerationsPerUser int           // running at once; default 2
	QueuePerUser       int           // waiting behind them; default 4
	MaxReply           int           // text and reasoning of a reply together, in bytes; default 1 MiB
	TokensPerDay       int64         // default 0 = no limit
	MonthlyUSD         float64       // default 0 = no limit
	TurnTimeout        time.Duration // whole generation; default 10 min
	CheckpointEvery    time.Duration // default 2 s
	CheckpointChars    int           // default 1,000 code points
	Lease              time.Duration // lease of a running generation; default 15 s
	Sources            []Source      // asked in every turn, in the order of what they find; nil = none
	Tools              []Toolbox     // opened in every turn, in the order in which models see their tools; nil = none
	ToolLimits         tools.Limits  // limits of one turn
	// Ended are told of each reply with a text, in the transaction that stores its end. An error undoes that.
	Ended  []func(tx Tx, r *Ended) error
	Stored func(g *chat.Generation) // is told of each generation whose end this engine has stored; nil = nobody is
	// Embedder compares replies with the sources that they cite; nil, and a nil result,
	// mean that they are compared by words.
	Embedder    func(ctx context.Context, userID string) (llm.Embedder, error)
	SummaryWait time.Duration // how long a reply waits for a summary when the chat exceeds the context; default 3 s
	Log         *slog.Logger  // default slog.Default()
}

// withDefaults is the only place that knows the defaults.
func (o Options) withDefaults() Options {
	o.Process = cmp.Or(o.Process, uuid.NewString())
	o.MaxReply = cmp.Or(o.MaxReply, llm.MaxReply)
	o.GenerationsPerUser = cmp.Or(o.GenerationsPerUser, 2)
	o.QueuePerUser = cmp.Or(o.QueuePerUser, 4)
	o.TurnTimeout = cmp.Or(o.TurnTimeout, 10*time.Minute)
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, 2*time.Second)
	o.CheckpointChars = cmp.Or(o.CheckpointChars, 1000)
	o.Lease = cmp.Or(o.Lease, 15*time.Second)
	o.ToolLimits = o.ToolLimits.WithDefaults()
	o.SummaryWait = cmp.Or(o.SummaryWait, 3*time.Second)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Stored == nil {
		o.Stored = func(*chat.Generation) {}
	}
	return o
}
