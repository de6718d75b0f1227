package nodest

import (
	"cmp"
	"context"
	"slices"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/summary"
	"nodest/llm"
)

// sent is how much of a chat a turn has sent.
type sent struct {
	lines, length, tokens int // messages, and their texts with the summary, in UTF-16 units and in tokens
	limit                 int // tokens from which on the chat is summarised; 0 = threshold counts
	room                  int // tokens that the rest of the prompt leaves to the chat; 0 = no limit, or not known yet
	enabled               bool
	threshold             int // length from which on the chat is summarised without a limit
}

// measure notes how much of the chat is sent, for whether a summary is due. Unread history counts as long.
func (t *turn) measure() {
	lines := chat.LinesOf(t.past.messages)
	set := t.setup.Summaries()
	s := sent{lines: len(lines), enabled: set.Enabled, threshold: set.Threshold}
	if !t.setup.query.app {
		s.limit = t.setup.SummaryTokens(knownContext(t.setup.Options, t.setup.model))
	}
	if t.past.summary != nil {
		lines = append(lines, summary.ChatLine{Text: t.past.summary.Text})
	}
	for i := range lines {
		s.add(lines[i].Text)
	}
	if t.past.unread {
		s.length, s.tokens = max(s.length, s.threshold), max(s.tokens, t.room(), s.limit)
	}
	t.sent = s
}

func (s *sent) add(text string) {
	s.length += summary.EffectiveLength([]summary.ChatLine{{Text: text}}, nil)
	s.tokens += llm.EstimateTokens(text)
}

// fullShare is the part of its room that a chat may fill, in percent, until it is summarised in any case.
const fullShare = 80

// due reports whether the chat may have to be summarised, and the tokens from which on: 0 = the threshold counts.
func (s *sent) due() (tokens int, yes bool) {
	if !s.enabled || s.lines < summary.FewestLines {
		return 0, false
	}
	if full := s.room * fullShare / 100; full > 0 && (s.limit == 0 || full < s.limit) && s.tokens >= full {
		return full, true
	}
	if s.limit > 0 {
		return s.limit, s.tokens >= s.limit
	}
	return 0, s.length >= s.threshold
}

// room is how many tokens a request may have.
func (t *turn) room() int { return t.input.Options.Context - t.input.Options.Reserve }

// roomIn is how many tokens of the budget the rest of a prompt leaves to the chat; 0 = it has no limit.
func roomIn(p *framework.Prompt) int {
	if p.Budget == 0 {
		return 0
	}
	room := p.Budget - p.Tokens
	for i := range p.Entries {
		if s := p.Entries[i].Source; s == framework.SourceHistory || s == framework.SourceSummary {
			room += p.Entries[i].Tokens
		}
	}
	return max(room, 1)
}

// shortenOverfull is shorten if the chat alone exceeds the context of the model.
func (t *turn) shortenOverfull(ctx context.Context) error {
	room := t.room()
	for i := range t.input.History {
		room -= llm.EstimateTokens(t.input.History[i].Text)
	}
	if !t.past.unread && room >= 0 {
		return nil
	}
	_, err := t.shorten(ctx, t.room())
	return err
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
	if shorter, err := t.shorten(ctx, roomIn(p)); err != nil || !shorter {
		return p, err
	}
	return t.build(ctx)
}

// shorten makes a summary for a turn in which the chat has no more than some tokens of room, and reads
// the chat again, so that the prompt keeps the content of the first messages. It does so once in a
// turn. shorter is false if nothing changes.
func (t *turn) shorten(ctx context.Context, room int) (shorter bool, err error) {
	if t.shortened || !t.sent.enabled || t.sent.lines < summary.FewestLines {
		return false, nil
	}
	t.shortened = true
	tokens := room * fullShare / 100
	if limit := t.sent.limit; limit > 0 {
		tokens = min(tokens, limit)
	}
	if shorter, err := t.history.shorten(ctx, tokens); err != nil || !shorter {
		return false, err
	}
	return true, t.read(ctx)
}

// Defaults in tokens: the context of a model that reports none, and the reserve for a
// reply without a limit.
const (
	unknownContext = 32_768
	usualReply     = 4_096
)

// knownContext is how many tokens request and reply may have together; 0 = neither the model nor an option says it.
func knownContext(o character.TurnOptions, m Model) int {
	if set := o.ContextTokens; set != nil && (m.ContextTokens <= 0 || *set < m.ContextTokens) {
		return *set
	}
	return max(m.ContextTokens, 0)
}

// ContextTokens returns the context of the model that options choose, in tokens; 0 = it is not known.
func (e *Engine) ContextTokens(ctx context.Context, userID string, o character.TurnOptions) int {
	m, _ := e.models.Resolve(ctx, userID, o.Provider, o.Model, "") // without it, the option counts
	return knownContext(o, m)
}

// budget returns how many tokens request and reply may have together, and how
// many of them are kept for the reply.
func budget(o character.TurnOptions, m Model) (context, reserve int) {
	context = cmp.Or(knownContext(o, m), unknownContext)
	reserve = min(usualReply, context/4)
	if o.MaxTokens != nil {
		reserve = min(*o.MaxTokens, context/2)
	}
	return context, reserve
}
