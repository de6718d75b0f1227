package nodest

import (
	"context"
	"slices"

	"nodest/chat"
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

// measure notes how much of the chat is sent, for whether a summary is due. Unread history counts as long.
func (t *turn) measure() {
	lines := chat.LinesOf(t.past.messages)
	t.sent = sent{lines: len(lines), length: summary.EffectiveLength(lines, nil), settings: t.setup.Summaries()}
	if t.past.summary != nil {
		t.sent.length += summary.EffectiveLength([]summary.ChatLine{{Text: t.past.summary.Text}}, nil)
	}
	if t.past.unread {
		t.sent.length = max(t.sent.length, t.sent.settings.Threshold)
	}
}

// dueSummary enqueues a summary after a reply if one may be due. The job decides.
func (t *task) dueSummary(tx Tx, written endedGeneration) error {
	sent := t.shown.sent
	if written.message == nil || written.gen.Kind == chat.KindImpersonate {
		return nil
	}
	reply := summary.EffectiveLength([]summary.ChatLine{{Text: framework.StripBlocks(written.message.Text())}}, nil)
	if !sent.settings.Enabled || sent.lines+1 < summary.FewestLines || sent.length+reply < sent.settings.Threshold {
		return nil
	}
	return chat.SummaryDue(tx.Chats, t.conversationID)
}

// overfull reports whether the chat alone exceeds the context of the model.
func (t *turn) overfull() bool {
	o := &t.input.Options
	room := o.Context - o.Reserve
	for i := range t.input.History {
		room -= llm.EstimateTokens(t.input.History[i].Text)
	}
	return t.past.unread || room < 0
}

// buildShorter is build. If older messages had to make room, for documents and tools too, a
// summary takes their place.
func (t *turn) buildShorter(ctx context.Context) (*framework.Prompt, error) {
	p, err := t.build(ctx)
	if err != nil || !t.past.unread && !slices.ContainsFunc(p.Dropped, func(d framework.Dropped) bool {
		return d.Source == framework.SourceHistory && d.Reason == framework.DropBudget
	}) {
		return p, err
	}
	if shorter, err := t.shorten(ctx); err != nil || !shorter {
		return p, err
	}
	return t.build(ctx)
}

// shorten makes a summary for a turn in which the chat has no room, if one may be due, and
// reads the chat again, so that the prompt keeps the content of the first messages. It does so
// once in a turn. shorter is false if nothing changes.
func (t *turn) shorten(ctx context.Context) (shorter bool, err error) {
	if s := t.sent; t.shortened || !s.settings.Enabled || s.lines < summary.FewestLines || s.length < s.settings.Threshold {
		return false, nil
	}
	t.shortened = true
	if shorter, err := t.history.shorten(ctx); err != nil || !shorter {
		return false, err
	}
	return true, t.read(ctx)
}
