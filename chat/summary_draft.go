package chat

import (
	"context"

	"nodest/internal/summary"
	"nodest/llm"
	"nodest/memory"
)

type draft struct {
	conv  *Conversation // as it was read
	base  *KeptSummary  // that it replaces; nil = none
	plan  summary.Plan
	work  summary.Work
	lines []summary.ChatLine // lines of the branch, as summary.State takes them
	order summaryOrder

	written summary.Draft
	model   string // that wrote it; "" = none
	asked   bool   // a model was
}

// active is the summary in force as rules take it.
func (d *draft) active() *summary.Summary {
	if d.base == nil {
		return nil
	}
	return d.base.Summary
}

// draftSummary plans a summary and writes its text. It changes nothing.
//
// Errors: NotFound; Conflict with details.reason when there is nothing to do;
// Invalid for a range.
func (svc *Service) draftSummary(ctx context.Context, userID, conversationID string, o summaryOrder) (*draft, error) {
	model, err := svc.model(ctx, userID)
	if err != nil {
		return nil, err
	}
	d, err := svc.planSummary(ctx, userID, conversationID, o, model == nil)
	if err != nil {
		return nil, err
	}
	if err := svc.extractFirst(ctx, userID, conversationID); err != nil {
		return nil, err
	}
	if svc.opts.Before != nil {
		svc.opts.Before(ctx, userID, conversationID)
	}
	if err := d.write(ctx, model); err != nil {
		return nil, err
	}
	if d.written.Cause != nil {
		svc.opts.Log.WarnContext(ctx, "summary written without a model", "conversation", conversationID, "err", d.written.Cause)
	}
	return d, nil
}

type writer struct {
	llm.Asker
	name string
}

// model is what writes the summaries of a user; nil = rules do.
func (svc *Service) model(ctx context.Context, userID string) (*writer, error) {
	if svc.opts.Model == nil {
		return nil, nil
	}
	asker, name, err := svc.opts.Model(ctx, userID)
	if asker == nil {
		return nil, err
	}
	return &writer{asker, name}, err
}

// write writes the text with a model, nil = by rule. Its only error is that ctx
// ended.
func (d *draft) write(ctx context.Context, model *writer) (err error) {
	var asker llm.Asker
	if d.asked = model != nil; d.asked {
		asker = model.Asker
	}
	if d.written, err = summary.Write(ctx, asker, d.work); err != nil {
		return err
	}
	if d.written.Method == summary.MethodModel {
		d.model = model.name
	}
	return nil
}

// extractFirst has memories extracted before the messages are summarised. It does not
// wait for that.
func (svc *Service) extractFirst(ctx context.Context, userID, conversationID string) error {
	if !svc.opts.Memory {
		return nil
	}
	return svc.store.Update(ctx, userID, func(tx Tx) error { return memory.ExtractFirst(tx.Memory, conversationID) })
}
