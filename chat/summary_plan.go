package chat

import (
	"context"
	"slices"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/summary"
	"nodest/llm"
)

// planSummary decides what a summary has to cover. It reads the chat in several transactions: if
// messages of the range change meanwhile, the draft is outdated (draft.holds).
func (svc *Service) planSummary(ctx context.Context, userID, conversationID string, o summaryOrder, noModel bool) (*draft, error) {
	var r *planning
	var setup *Setup
	err := svc.store.View(ctx, userID, func(tx Tx) error {
		conv, err := tx.Conversation(conversationID)
		if err != nil {
			return err
		}
		if setup, err = svc.ReadSetup(tx, conv, character.TurnOptions{}); err != nil {
			return err
		}
		r = &planning{draft: &draft{conv: conv, order: o}, store: svc.store, userID: userID, zone: setup.Zone}
		r.state = summary.State{Settings: setup.Summaries(), NoModel: noModel, Occasion: o.occasion()}
		return r.begin(tx)
	})
	if err != nil {
		return nil, err
	}
	switch {
	case o.Tokens != nil:
		r.tokens = *o.Tokens
	case o.Forced == nil && svc.opts.Context != nil:
		r.tokens = setup.SummaryTokens(svc.opts.Context(ctx, userID, setup.Options))
	}
	if err := r.choose(ctx); err != nil {
		return nil, err
	}
	r.work.Location = r.zone
	return r.draft, nil
}

// planning is a draft whose messages are being read.
type planning struct {
	*draft
	store   Store
	userID  string
	zone    *time.Location
	state   summary.State
	deleted *SummaryRef // the last summary, if there is none in force because the user has deleted it
	headSeq int64
	tokens  int    // from which on the chat is summarised; 0 = the length of the settings counts
	above   string // message before the last one that the summary in force covers
}

// Summaries are the settings of its summaries.
func (s *Setup) Summaries() summary.Settings {
	set := s.Docs.Settings.Memory
	return summary.Settings{Enabled: set.Enabled, Threshold: set.Threshold, Length: set.Length}
}

// leastTokens is the least number of tokens at which a chat is summarised by a share of the context:
// those of the shortest length that can be set, in English.
const leastTokens = 750

// SummaryTokens is how many tokens of the chat are sent word for word with a model of a context,
// before they are summarised; 0 = that is decided by their length, Summaries().Threshold. So it is where the
// context is not known: a small server would refuse, or cut, what a large one takes.
func (s *Setup) SummaryTokens(context int) int {
	set := s.Docs.Settings.Memory
	if context == 0 || set.Share == 0 {
		return 0
	}
	return max(leastTokens, min(context*set.Share/100, set.Tokens))
}

func (o summaryOrder) occasion() (why summary.Occasion) {
	switch {
	case o.Forced != nil:
		why = summary.OnDemand
	case o.Rest:
		why = summary.AtRest
	}
	return why
}

// begin reads what is needed before the messages.
func (r *planning) begin(tx Tx) (err error) {
	if r.base, err = ActiveSummary(tx, r.conv.SummaryID, r.conv.HeadID, 0); err != nil {
		return err
	}
	if r.base == nil {
		_, r.deleted, err = summaryFor(tx, r.conv.ID, r.conv.HeadID)
	} else {
		var last *Message
		if last, err = tx.Message(r.base.Range.EndID); err == nil {
			r.above = last.ParentID
		}
	}
	if err != nil {
		return err
	}
	if r.order.atOnce && r.conv.HeadID != "" {
		head, err := tx.Message(r.conv.HeadID)
		if err != nil {
			return err
		}
		r.headSeq = head.Seq
	}
	r.state.Latest, err = tx.LatestGeneration(r.conv.ID)
	return err
}

func (r *planning) choose(ctx context.Context) error {
	forced := r.order.Forced
	if forced != nil && *forced != (SummaryRange{}) {
		return r.planRange(ctx)
	}
	if err := r.readLines(ctx); err != nil {
		return err
	}
	if r.tokens > 0 {
		r.state.Settings.Threshold = lengthOf(r.tokens, r.lines)
		r.state.Keep = r.state.Settings.Threshold / 2
	}
	if r.deleted != nil && forced == nil && lengthSince(r.lines, r.deleted.HeadSeq) < r.state.Settings.Threshold {
		return errNotDue(summary.SkipCooling)
	}
	r.decide()
	if r.plan.Skip == summary.SkipNone && r.plan.Rebuild && r.base != nil {
		planned := r.plan.Range
		if err := r.readAll(ctx, planned.StartID, planned.EndID); err != nil {
			return err
		}
		if r.decide(); r.plan.Skip == summary.SkipNone && r.plan.Range.EndID != planned.EndID {
			return errOutdated
		}
	}
	if r.plan.Skip != summary.SkipNone {
		return errNotDue(r.plan.Skip)
	}
	var err error
	r.work, err = r.plan.Work(r.lines, r.active())
	return err
}

func (r *planning) decide() {
	r.state.Lines, r.state.Active = r.lines, r.active()
	if r.base != nil {
		r.state.Last = r.base.attempt()
	}
	r.plan = summary.MakePlan(r.state)
}

// lengthOf is the length of some tokens of text like that of lines, in UTF-16 units.
func lengthOf(tokens int, lines []summary.ChatLine) int {
	length, all := 0, 0
	for i := range lines {
		if lines[i].Run == nil {
			length += summary.EffectiveLength(lines[i:i+1], nil)
			all += llm.EstimateTokens(lines[i].Text)
		}
	}
	return tokens * length / max(all, 1)
}

// lengthSince is the length of the messages after a seq, in UTF-16 units.
func lengthSince(lines []summary.ChatLine, seq int64) int {
	return summary.EffectiveLength(slices.DeleteFunc(slices.Clone(lines), func(l summary.ChatLine) bool { return l.Seq <= seq }), nil)
}

// planRange plans a summary of exactly the messages that the user names. Messages that
// only the active summary covers are sent in full again. The first and last three of the
// branch are never summarised.
func (r *planning) planRange(ctx context.Context) error {
	named := *r.order.Forced
	if err := r.readAll(ctx, named.From, named.To); err != nil {
		return err
	}
	lines := r.lines
	if summary.Messages(lines) < summary.FewestLines {
		return errNotDue(summary.SkipFew)
	}
	first, last := summary.KeepFirst, len(lines)-summary.KeepLast-1
	find := func(field, id string, at int) (int, error) {
		if id == "" {
			return at, nil
		}
		found := slices.IndexFunc(lines, func(l summary.ChatLine) bool { return l.MessageID == id })
		switch {
		case found < 0:
			return 0, op.InField(field, fault.New(fault.NotFound, "no message %q on the shown branch", id))
		case found < first || found > last:
			return 0, fault.InvalidField(field, "range", "the first three and last three messages are never summarised")
		}
		return found, nil
	}
	from, err := find("from", named.From, first)
	if err != nil {
		return err
	}
	to, err := find("to", named.To, last)
	if err != nil {
		return err
	}
	if to < from {
		return fault.InvalidField("to", "range", "must not come before from")
	}
	r.plan = summary.PlanRange(r.state, lines, from, to)
	if r.base != nil {
		r.plan.BaseID = r.base.ID
	}
	r.work, err = r.plan.Work(lines, r.active())
	r.work.Previous, r.work.Known = nil, 0
	return err
}
