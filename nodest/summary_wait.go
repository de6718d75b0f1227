package nodest

import (
	"context"
	"time"

	"nodest/fault"
	"nodest/llm"
	"nodest/summary"
)

// overfull says that the chat has no room in the context of the model, and that a
// summary may be due. Only the shown branch is summarised.
func (t *turn) overfull(g *Generation, target *Message) bool {
	s := t.sent()
	if !s.settings.Enabled || s.lines < summary.FewestLines || s.length < s.settings.Threshold {
		return false
	}
	if g.Kind != KindReply && target != nil && target.ID != t.scene.Conversation.HeadID {
		return false
	}
	o := t.input.Options
	room := o.Context - o.Reserve
	for i := range t.input.History {
		room -= llm.EstimateTokens(t.input.History[i].Text)
	}
	return t.unread || room < 0
}

// summariseNow gives a turn that is overfull a summary, so that it need not leave
// out the beginning of the chat: the model's when that is there within
// Options.SummaryWait, else one by rule for this prompt alone. It returns false
// where the prompt stays as it is; a turn does not fail for want of a summary.
func (e *Engine) summariseNow(ctx context.Context, userID string, t *turn) bool {
	id := t.scene.Conversation.ID
	made, err := e.hurriedSummary(ctx, userID, id)
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // none is due, or the chat has changed
		return false
	case err != nil:
		e.opts.Log.WarnContext(ctx, "turn continues without a summary", "conversation", id, "err", err)
		return false
	}
	t.made = made
	return true
}

func (e *Engine) hurriedSummary(ctx context.Context, userID, conversationID string) (*summary.Summary, error) {
	model, err := e.asker(ctx, userID)
	if err != nil {
		return nil, err
	}
	d, err := e.planSummary(ctx, userID, conversationID, summaryOrder{}, model == nil)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, e.opts.SummaryWait)
	defer cancel()
	err = d.write(limited, model)
	switch {
	case err == nil:
		var kept *KeptSummary
		err := e.store.Update(ctx, userID, func(tx Tx) (err error) {
			kept, err = d.land(tx, "server")
			return err
		})
		if err != nil {
			return nil, err
		}
		return kept.Summary, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	// It takes too long: the model writes it in the background.
	err = e.store.Update(ctx, userID, func(tx Tx) error {
		if _, err := tx.LockConversation(conversationID); err != nil {
			return err
		}
		return enqueueSummary(tx, conversationID, summaryOrder{}, time.Time{})
	})
	if err != nil {
		return nil, err
	}
	if err := d.write(ctx, nil); err != nil {
		return nil, err
	}
	return d.plan.Summary(d.work, d.written), nil
}
