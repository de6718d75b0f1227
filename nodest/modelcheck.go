package nodest

import (
	"context"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
)

// ModelCheck is how a model answered one small request.
type ModelCheck struct {
	Model string
	Took  time.Duration
	Reply string       // its beginning
	Error *fault.Error // why it does not work; nil = it does
}

// Limits of a check: its time, and the length at which the reply is broken off.
// The request has no limit of tokens, which some servers refuse and chats do without.
const (
	checkTime  = time.Minute
	checkReply = 200
)

// CheckModel sends a model ("" = the provider's default) one small request with the key
// that the user's chats use, without repetitions and fallbacks. It counts as usage. A user
// can have one check at a time.
//
// Errors: Invalid for the provider or the model; QuotaExceeded; RateLimited.
func (e *Engine) CheckModel(ctx context.Context, userID, provider, model string) (*ModelCheck, error) {
	if err := op.CheckLine("model", model, 256); err != nil {
		return nil, err
	}
	if _, running := e.checks.LoadOrStore(userID, true); running {
		return nil, fault.New(fault.RateLimited, "another test is still running").After(time.Second)
	}
	defer e.checks.Delete(userID)
	err := e.store.View(ctx, userID, func(tx Tx) error { return e.tokensLeft(tx, 0) })
	if err != nil {
		return nil, err
	}
	found, err := e.models.Resolve(ctx, userID, provider, model, "")
	if fault.Is(err, fault.NotConfigured) {
		return &ModelCheck{Model: model, Error: fault.Public(err)}, nil
	}
	if err != nil {
		return nil, err
	}
	return e.checkModel(ctx, &asker{engine: e, userID: userID, model: found, enough: checkReply})
}

func (e *Engine) checkModel(ctx context.Context, a *asker) (*ModelCheck, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	check, began := &ModelCheck{Model: a.model.Name}, time.Now()
	reply, err := a.ask(ctx, llm.Request{
		Model: a.model.Name, Once: true, Alone: true,
		Messages: []llm.Message{{Role: llm.User, Text: "Reply with one word: OK"}},
	})
	check.Took, check.Reply = time.Since(began), op.Truncate(reply.text, checkReply)
	if err != nil {
		check.Error = fault.Public(err)
		if check.Error.Code == fault.Internal || check.Error.Code == fault.Cancelled {
			return nil, err // our own fault, or the caller is gone
		}
	}
	return check, nil
}
