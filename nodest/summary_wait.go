package nodest

import (
	"context"
	"slices"

	"nodest/chat"
	"nodest/fault"
	"nodest/framework"
	"nodest/llm"
	"nodest/summary"
)

// sent is how much of a chat a turn has sent.
type sent struct {
	length   int // in UTF-16 units
	lines    int // messages
	settings summary.Settings
}

// measure notes how much of the chat is sent, for whether a summary is due.
func (t *turn) measure(path []*chat.Message) {
	lines := chat.LinesOf(path)
	t.lines, t.length = len(lines), summary.EffectiveLength(lines, nil)
	if t.summary != nil {
		t.length += summary.EffectiveLength([]summary.ChatLine{{Text: t.summary.Text}}, nil)
	}
}

// sent is how much of the chat a turn sends. Unread history counts as long.
func (t *turn) sent() sent {
	s := sent{length: t.length, lines: t.lines, settings: t.setup.Summaries()}
	if t.unread {
		s.length = max(s.length, s.settings.Threshold)
	}
	return s
}

// dueSummary enqueues a summary after a reply if one may be due. The job decides.
func (t *task) dueSummary(tx Tx, ended endedGeneration) error {
	if ended.message == nil || t.generation().Kind == chat.KindImpersonate {
		return nil
	}
	t.mu.Lock()
	sent := t.sent
	t.mu.Unlock()
	reply := summary.EffectiveLength([]summary.ChatLine{{Text: framework.StripBlocks(ended.message.Text())}}, nil)
	if !sent.settings.Enabled || sent.lines+1 < summary.FewestLines || sent.length+reply < sent.settings.Threshold {
		return nil
	}
	return chat.SummaryDue(tx.Chats, t.conversationID)
}

// overfull reports whether the chat alone exceeds the context of the model.
func (t *turn) overfull() bool {
	o := t.input.Options
	room := o.Context - o.Reserve
	for i := range t.input.History {
		room -= llm.EstimateTokens(t.input.History[i].Text)
	}
	return t.unread || room < 0
}

// build is turn.build. If older messages had to make room, for documents and tools too, a
// summary takes their place.
func (e *Engine) build(ctx context.Context, t *turn) (*framework.Prompt, error) {
	p, err := t.build(ctx)
	if err != nil || !t.unread && !slices.ContainsFunc(p.Dropped, func(d framework.Dropped) bool {
		return d.Source == framework.SourceHistory && d.Reason == framework.DropBudget
	}) {
		return p, err
	}
	if shorter, err := e.shorten(ctx, t); err != nil || !shorter {
		return p, err
	}
	return t.build(ctx)
}

// shorten makes a summary for a turn in which the chat has no room, if one may be due, and
// reads the chat again, so that the prompt keeps the content of the first messages. The
// summary is the model's if it is ready within Options.SummaryWait, else one by rule for this
// prompt alone. Only the shown branch is summarised, and once in a turn. shorter is false if
// nothing changes; a turn does not fail because it has no summary.
func (e *Engine) shorten(ctx context.Context, t *turn) (shorter bool, err error) {
	s := t.sent()
	if t.shortened || t.elsewhere || !s.settings.Enabled || s.lines < summary.FewestLines || s.length < s.settings.Threshold {
		return false, nil
	}
	t.shortened = true
	id := t.setup.Conversation.ID
	made, err := e.Chats.SummariseNow(ctx, t.question.UserID, id, e.opts.SummaryWait)
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // none is due, or the chat has changed
		return false, nil
	case err != nil:
		e.opts.Log.WarnContext(ctx, "turn continues without a summary", "conversation", id, "err", err)
		return false, nil
	}
	t.made = made
	return true, t.read()
}
