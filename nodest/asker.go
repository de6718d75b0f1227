package nodest

import (
	"cmp"
	"context"
	"strings"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
)

// asker asks a user's model in the background: one prompt, one whole reply. The cost
// is added to the user's usage.
type asker struct {
	engine  *Engine
	userID  string
	model   Model
	options character.TurnOptions // the user's options
	enough  int                   // length in bytes at which a reply is broken off; 0 = never
}

const askTime = 2 * time.Minute

// asker returns the model that works for a user in the background: the one of the
// user's settings, which may be the offline demo. nil means that there is none: no key is
// there, or the tokens of the day are used up.
func (e *Engine) asker(ctx context.Context, userID string) (*asker, error) {
	options, err := op.Read(ctx, e.store, userID, func(tx Tx) (character.TurnOptions, error) {
		set, err := tx.Characters.Settings()
		if err != nil {
			return character.TurnOptions{}, err
		}
		return set.TurnOptions, e.tokensLeft(tx, 0)
	})
	if fault.Is(err, fault.QuotaExceeded) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	model, err := e.models.Resolve(ctx, userID, options.Provider, options.Model, "")
	if fault.Is(err, fault.NotConfigured) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &asker{engine: e, userID: userID, model: model, options: options}, nil
}

// DefaultModel names the provider and the model that answer the user's chats where nothing
// else is chosen. Without a key for the provider, model is "".
func (e *Engine) DefaultModel(ctx context.Context, userID string) (provider, model string, err error) {
	set, err := op.Read(ctx, e.store, userID, func(tx Tx) (*character.UserSettings, error) { return tx.Characters.Settings() })
	if err != nil {
		return "", "", err
	}
	found, err := e.models.Resolve(ctx, userID, set.Provider, set.Model, "")
	if fault.Is(err, fault.NotConfigured) {
		return set.Provider, "", nil
	}
	return found.Provider, found.Name, err
}

// MemoryModel returns what reads a user's chats for facts, nil where there is only
// the offline model: extract.Options.Model.
func (e *Engine) MemoryModel(ctx context.Context, userID, _ string) (llm.Asker, error) {
	model, _, err := e.SummaryModel(ctx, userID)
	return model, err
}

// SummaryModel returns what writes a user's summaries, and its name; nil where there is
// only the offline model: chat.Options.Model.
func (e *Engine) SummaryModel(ctx context.Context, userID string) (model llm.Asker, name string, err error) {
	a, err := e.asker(ctx, userID)
	if a == nil || a.model.Offline {
		return nil, "", err // not a nil *asker, which would be something
	}
	return a, a.model.Name, err
}

// CircleModel is a model that works for a user's circle: circle.Model.
type CircleModel struct {
	llm.Asker
	Provider string
	Name     string
	Key      string // as Model.Key
	Sees     bool   // understands images
}

// CircleModel returns what works for a user's circle, which may be the offline model; nil
// where no provider is configured, or the tokens of the day are used up:
// circle.Options.Model.
func (e *Engine) CircleModel(ctx context.Context, userID string) (*CircleModel, error) {
	a, err := e.asker(ctx, userID)
	if a == nil {
		return nil, err
	}
	m := a.model
	return &CircleModel{Asker: a, Provider: m.Provider, Name: m.Name, Key: m.Key, Sees: m.Sees != nil && m.Sees(ctx)}, nil
}

// Ask returns the model's whole reply to one prompt. It sends one request, and one more to a
// model that does not do with p.Offer; the caller counts and retries requests. If reasoning
// uses up the token limit the reply is empty, and later requests to that model have no limit,
// or room for p.MaxThought. Only p limits the reply; the sampling is the user's.
func (a *asker) Ask(ctx context.Context, p llm.Prompt) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req := llm.Request{
		Model: a.model.Name, Temperature: a.options.Temperature, TopP: a.options.TopP,
		MaxTokens: p.MaxTokens, JSON: p.JSON, Once: true,
		Messages: p.Messages, Task: p.Task, CharName: p.CharName, UserName: p.UserName, Variant: p.Variant,
	}
	if req.Messages == nil {
		req.Messages = []llm.Message{{Role: llm.User, Text: p.Text}}
	}
	name := [2]string{a.model.Provider, a.model.Name}
	if _, thinks := a.engine.thought.Load(name); thinks {
		req.MaxTokens = 0
		if p.MaxThought > 0 {
			req.MaxTokens = p.MaxTokens + p.MaxThought
		}
	}
	reply, err := a.askOffering(ctx, req, p.Offer)
	if p.Used != nil {
		p.Used(reply.used)
	}
	if reply.short && req.MaxTokens > 0 {
		a.engine.thought.Store(name, true)
		if err == nil {
			err = fault.New(fault.EmptyReply, "reasoning used up the token limit, so there was no room for a reply; raise maxTokens")
		}
	}
	return reply.text, err
}

// askOffering sends a request with a tool in place of its JSON mode, because providers refuse both together; nil = without
// one. A model that calls no tools, or fails with this one, is asked without it.
func (a *asker) askOffering(ctx context.Context, req llm.Request, offer *llm.Offer) (answer, error) {
	if offer == nil || !a.mayCall(ctx) {
		return a.ask(ctx, req)
	}
	offering := req
	offering.Tools, offering.JSON = []llm.Tool{offer.Tool}, false
	reply, err := a.ask(ctx, offering)
	switch {
	case err == nil:
		reply.text = cmp.Or(offer.Object(reply.calls), reply.text)
		return reply, nil
	case ctx.Err() != nil, reply.short, reply.text != "":
		return reply, err
	case llm.ToolsUnsupported(err):
		if !llm.OfFallback(err) {
			a.engine.toolless.note(a.modelKey(), time.Now())
		}
	case !fault.Is(err, fault.EmptyReply) && !fault.Is(err, fault.UpstreamBadAnswer):
		return reply, err
	}
	first := reply.used
	reply, err = a.ask(ctx, req)
	reply.used = first.Plus(reply.used)
	return reply, err
}

func (a *asker) modelKey() toollessKey { return toollessKey{a.userID, a.model.Provider, a.model.Name} }

// mayCall reports whether the model is offered tools, as in a turn. It may ask the provider.
func (a *asker) mayCall(ctx context.Context) bool {
	if use := a.options.UseToolCalls; use != nil && !*use || a.engine.toolless.knows(a.modelKey(), time.Now()) {
		return false
	}
	return a.model.Calls == nil || a.model.Calls(ctx)
}

// answer is what one request has given.
type answer struct {
	text  string
	calls []llm.ToolCall
	used  llm.Usage
	short bool // reasoning left no room for the text
}

// ask sends one request, whose tokens are reserved while it runs.
func (a *asker) ask(ctx context.Context, req llm.Request) (answer, error) {
	release, err := a.engine.reserve(ctx, a.userID, int64(llm.EstimatePrompt(req.Messages)+cmp.Or(req.MaxTokens, usualReply)))
	if err != nil {
		return answer{}, err
	}
	defer release()
	return a.read(ctx, req)
}

// read sends one request and reads its answer. What it has used is told with an error, too.
func (a *asker) read(ctx context.Context, req llm.Request) (answer, error) {
	use := llm.Use{Provider: a.model.Provider, Model: a.model.Name}
	var reply strings.Builder
	var calls []llm.ToolCall
	var failed error
	thinks, cut := false, false
	for c, err := range a.model.Generator.Stream(ctx, req) {
		if failed = err; err != nil {
			break
		}
		reply.WriteString(c.Text)
		calls = append(calls, c.Calls...)
		thinks, cut = thinks || c.Reasoning != "", c.Finish == llm.FinishLength
		if c.Usage != nil {
			use.Usage = *c.Usage
		}
		if c.Model != "" {
			use.Model = c.Model
		}
		if c.Provider != "" {
			use.Provider = c.Provider
		}
		if c.Last || a.enough > 0 && reply.Len() > a.enough {
			break
		}
	}
	if use.Usage == (llm.Usage{}) {
		use.Usage = estimated(req, reply.String(), calls)
	}
	if err := a.meter(ctx, use); err != nil {
		return answer{used: use.Usage}, err
	}
	return answer{reply.String(), calls, use.Usage, thinks && cut || llm.NoRoom(failed)}, failed
}

// estimated is the usage of a reply whose provider reports none.
func estimated(req llm.Request, written string, calls []llm.ToolCall) llm.Usage {
	for _, c := range calls {
		written += c.Arguments
	}
	if written == "" {
		return llm.Usage{}
	}
	return llm.Usage{PromptTokens: llm.EstimatePrompt(req.Messages), CompletionTokens: llm.EstimateTokens(written)}
}

// meter adds the cost of a reply, complete or not.
func (a *asker) meter(ctx context.Context, use llm.Use) error {
	if use.Usage == (llm.Usage{}) {
		return nil
	}
	row := UsageRow{
		Provider: use.Provider, Model: use.Model, Requests: 1,
		PromptTokens: int64(use.Usage.PromptTokens), CompletionTokens: int64(use.Usage.CompletionTokens),
	}
	if use.Usage.CostUSD != nil {
		row.CostUSD = *use.Usage.CostUSD
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storingTimeout)
	defer cancel()
	return a.engine.store.Update(ctx, a.userID, func(tx Tx) error { return a.engine.addUsage(tx, row) })
}
