// Package llm is the contract between the product and language models, with the
// wrappers that make any model behind it dependable.
//
// An adapter (llm/gemini, llm/openai, llm/offline) implements Generator and, if its provider offers
// embeddings, Embedder. It translates one request with one key and reports what happened, with the
// errors of errors.go; it neither retries nor guesses. What all providers have in common is a
// wrapper here: Keys (several keys), Checked (a reply must be complete), WithDeadlines, WithRetry
// and Chain (fallbacks). Dependable combines them in the right order. llm/llmtest tests every
// adapter against the contract.
package llm

import (
	"context"
	"iter"
)

// Generator produces replies.
//
// Stream sends the request when the sequence is first read; reading it a second time sends the
// request again. The sequence ends after the chunk with Last set, or after its first error, and
// yields nothing more then. A sequence that ends in neither way is a defect of the adapter, which
// Checked turns into an error. Breaking off the loop, or ending ctx, releases the provider's
// connection before Stream's caller regains control.
//
// Every error is, or wraps, a *fault.Error: fault.Cancelled when ctx was cancelled, fault.Blocked
// when a safety filter stepped in, and the Upstream codes otherwise (errors.go has a constructor
// for each). Text that was yielded before an error is the caller's to keep. No error holds a key or
// a prompt, and of the provider's answer only what Secrets.Reason has let through.
//
// A Generator is safe for concurrent use.
type Generator interface {
	Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// GeneratorFunc makes a function a Generator.
type GeneratorFunc func(ctx context.Context, req Request) iter.Seq2[Chunk, error]

// Stream calls f.
func (f GeneratorFunc) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	return f(ctx, req)
}

// stream makes a Generator of a function that yields the chunks of one reply.
func stream(reply func(ctx context.Context, req Request, yield func(Chunk, error) bool)) Generator {
	return GeneratorFunc(func(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
		return func(yield func(Chunk, error) bool) { reply(ctx, req, yield) }
	})
}

// Provider is a Generator with a name that can say what it offers.
type Provider interface {
	Generator

	// Name is the word of the configuration: gemini, openrouter, openai, offline.
	Name() string

	// DefaultModel answers requests that name no model. It may ask the provider for its list,
	// for seconds at most, and always names one.
	DefaultModel(ctx context.Context) string

	// NextModel notes that the provider does not know model, which was its default, and names
	// the one that takes its place; "" = there is none.
	NextModel(ctx context.Context, model string) string

	// Models lists what the provider offers, as of the last five minutes. It asks the
	// provider, so it takes time and fails with the errors of Stream.
	Models(ctx context.Context) ([]Model, error)
}

// Model is one entry of a provider's list of models. Zero numbers mean unknown.
type Model struct {
	ID            string
	Name          string // for people; may be empty
	ContextTokens int    // prompt and reply together
	OutputTokens  int    // longest reply
	Generates     bool   // can be used with Stream
	Embeds        bool   // can be used with Embed
	Sees          bool   // understands images
	NoTools       bool   // is known not to call tools
	Transport     string // which client serves it where a provider has several ("generative-ai-go", "genai")
	Created       int64  // Unix time, as the provider has it

	// Prices of a million tokens, in US dollars; nil = unknown.
	PromptPrice, CompletionPrice *float64
}

// Role says who speaks in a message.
type Role string

// The roles. A provider without a system role gets such messages in the place
// that it has for them; that is the adapter's business.
const (
	User      Role = "user"
	Assistant Role = "assistant" // the character
	System    Role = "system"
	ToolRole  Role = "tool" // the answer to a tool call; those to the calls of one message follow it in their order
)

// Message is one entry of a prompt.
type Message struct {
	Role Role
	Name string // who speaks, when the role does not say it (group chats); may be empty
	Text string

	// Images go with the text of a user message. A model that does not see images must not
	// be given any: Model.Sees.
	Images []Image `json:"-"` // wherever a prompt is stored or shown, it is without them

	Calls  []ToolCall  `json:"-"` // an assistant message that asked for tools has them
	Echo   *Echo       `json:"-"` // the same message has it, for its provider; nil = there is nothing to preserve
	Result *ToolResult `json:"-"` // a message with the role ToolRole has it
}

// Image is a picture in a message.
type Image struct {
	ContentType string // image/png, image/jpeg, image/webp or image/gif
	Data        []byte
}

// Task is the purpose of a request. Providers do not see it; the offline model needs
// it, and it is a label for logs and metrics.
type Task string

// The tasks. A Request's zero Task is Reply.
const (
	Reply       Task = ""            // the character's next message
	Continue    Task = "continue"    // go on where the last assistant message breaks off
	Impersonate Task = "impersonate" // write the user's next message
	Rewrite     Task = "rewrite"     // write the last assistant message anew, as the last instruction says
	Circle      Task = "circle"      // post or react in the social circle: the answer is a JSON object
)

// Request is what a model is asked. The zero value of every setting leaves it to the provider.
type Request struct {
	Model    string // the provider's id of it; empty = Provider.DefaultModel
	Messages []Message

	Temperature *float64 // 0–2
	TopP        *float64 // 0–1
	MaxTokens   int      // tokens of the reply, hidden reasoning included
	Stop        []string // the reply ends before any of these
	Seed        *int64
	Sampling    Sampling
	JSON        bool // the reply is to be one JSON object; providers that have a mode for it get it set
	Begun       bool // the last message is the beginning of the reply; a server that refuses such a request gets it without the message

	// Tools may be called by the model. With NoCalls it must write text: Tools only explain the
	// calls in Messages. A model without tools must not be given any: Model.NoTools.
	Tools   []Tool
	NoCalls bool

	// The fields below are not sent to a provider; most of them are for the offline model.

	// Once keeps WithRetry from repeating the request: the caller counts its requests
	// and repeats what failed.
	Once bool

	// Alone keeps Chain from asking another provider: this one is being checked.
	Alone bool

	// MaxBytes bounds the text and the reasoning of the reply together; 0 = MaxReply. Checked cuts
	// what is longer, with FinishLength.
	MaxBytes int

	// Variant is the number of swipes that exist already: 0 for the first reply. The
	// offline model, which always gives the same answer to the same prompt, answers
	// differently for each; others ignore it.
	Variant int

	Task     Task
	CharName string // {{char}} stands for it; may be empty
	UserName string // {{user}} stands for it; may be empty

	// UserText is the message to answer, as the user typed it. Instructions with the
	// role user may follow it in the prompt, so only the engine knows which one it is.
	// Empty = the last user message of Messages.
	UserText string
}

// Sampling has settings of the choice of words that only some providers take: an adapter sends those
// that its provider knows, and the others have no effect. nil, "" = up to the provider.
type Sampling struct {
	TopK              *int               // from 1
	TopA, MinP        *float64           // 0–1
	FrequencyPenalty  *float64           // -2–2
	PresencePenalty   *float64           // -2–2
	RepetitionPenalty *float64           // 0–2; 1 has no effect
	LogitBias         map[string]float64 // -100–100 for a token, by its number

	Effort    string // the effort of reasoning: min, low, medium, high, max
	Verbosity string // low, medium, high
}

// IsZero reports that nothing is set.
func (s *Sampling) IsZero() bool {
	return s.TopK == nil && s.TopA == nil && s.MinP == nil && s.FrequencyPenalty == nil && s.PresencePenalty == nil &&
		s.RepetitionPenalty == nil && len(s.LogitBias) == 0 && s.Effort == "" && s.Verbosity == ""
}

// Chunk is a piece of a reply. Any of its parts may be empty; a chunk with only
// Usage, Model or Provider is allowed. Text never ends inside a code point.
type Chunk struct {
	Text      string
	Reasoning string // the model's thinking, never part of the text
	Usage     *Usage // the usage so far: each one replaces those before

	Last     bool       // nothing follows; Finish is set
	Calls    []ToolCall // in the last chunk: tools that the model asks for; the reply then needs no text
	Echo     *Echo      // in the last chunk, with Calls
	Finish   Finish     // why the reply ended
	Model    string     // that really answered, where known
	Provider string     // filled in by Chain
	Asked    string     // in the first chunk: the model that was asked (WithDefault)
	Warnings []Warning  // in the first chunk: how the reply differs from the request
}

// Warning says what is not as it was wished about a reply that came nevertheless.
type Warning struct {
	Code   string // model_replaced, tool_schema
	Detail string // for people, in English
}

// With adds w to the first chunk of a reply.
func (w Warning) With(yield func(Chunk, error) bool) func(Chunk, error) bool {
	said := false
	return func(c Chunk, err error) bool {
		if err == nil && !said {
			said, c.Warnings = true, append(c.Warnings, w)
		}
		return yield(c, err)
	}
}

// Finish is the word for how a reply ended.
type Finish string

// The finish words. An adapter yields FinishStop, FinishLength or FinishBlocked;
// the others describe texts that the engine keeps after a failure.
const (
	FinishStop        Finish = "stop"
	FinishLength      Finish = "length"
	FinishBlocked     Finish = "blocked"
	FinishError       Finish = "error"
	FinishCancelled   Finish = "cancelled"
	FinishInterrupted Finish = "interrupted"
)

// Usage is what a request cost.
type Usage struct {
	PromptTokens     int      `json:"promptTokens"`
	CompletionTokens int      `json:"completionTokens"`       // hidden reasoning included
	CachedTokens     int      `json:"cachedTokens,omitempty"` // part of PromptTokens
	CostUSD          *float64 `json:"costUsd,omitempty"`      // nil = unknown
}

// Plus is what both have used together. A cost is known if one of the two is.
func (u Usage) Plus(v Usage) Usage {
	u.PromptTokens += v.PromptTokens
	u.CompletionTokens += v.CompletionTokens
	u.CachedTokens += v.CachedTokens
	switch {
	case u.CostUSD == nil:
		u.CostUSD = v.CostUSD
	case v.CostUSD != nil:
		u.CostUSD = new(*u.CostUSD + *v.CostUSD)
	}
	return u
}

// bounded keeps what a provider reports within what can be added up.
func (u Usage) bounded() *Usage {
	for _, n := range []*int{&u.PromptTokens, &u.CompletionTokens, &u.CachedTokens} {
		*n = boundedTokens(*n)
	}
	if u.CostUSD != nil {
		u.CostUSD = new(min(max(*u.CostUSD, 0), 1e6))
	}
	return &u
}

func boundedTokens(n int) int { return min(max(n, 0), 1e9) }

// EmbedTask is the purpose of vectors; some models embed a question and the passage
// that answers it differently.
type EmbedTask string

// The tasks of Embed.
const (
	Similarity EmbedTask = "similarity"
	Passage    EmbedTask = "passage"
	Query      EmbedTask = "query"
)

// Embedder turns texts into vectors. It is safe for concurrent use.
type Embedder interface {
	// Embed returns one vector per text, in their order; the adapter splits
	// what is too much for one call of the provider. All or nothing: an error
	// leaves no vectors. Vectors have the length one.
	Embed(ctx context.Context, task EmbedTask, texts []string) (Embeddings, error)

	// ModelID names the space of the vectors: those with different ids must not be compared.
	ModelID() string

	// Dim is the length of every vector; 0 while a provider's first answer has not told it.
	Dim() int
}

// Embeddings is the answer of Embed.
type Embeddings struct {
	Vectors [][]float32
	Model   string // as ModelID
	Dim     int
	Usage   Usage
}
