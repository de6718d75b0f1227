package framework

import (
	"cmp"
	"regexp"
	"slices"

	"nodest/internal/fault"
)

// found is what was found for the message and how much of it is in.
type found struct {
	b        *builder
	ids      []string
	memories []string // best first
	web      string
	passages string
}

func newFound(b *builder) found {
	f := found{b: b, web: b.in.Findings.Web, passages: b.in.Findings.Passages}
	for _, m := range b.in.Findings.Memories {
		if isBlank(m.Text) {
			b.dropped = append(b.dropped, Dropped{Source: SourceMemory, ID: m.ID, Reason: DropEmpty})
			continue
		}
		f.ids = append(f.ids, m.ID)
		f.memories = append(f.memories, m.Text)
	}
	return f
}

// endsInDate matches a memory that ends in the day it is from.
var endsInDate = regexp.MustCompile(` \(\d{4}-\d\d-\d\d\)\s*$`)

// additions are what goes behind the text of the message. The present time follows
// memories with a date, to relate them to the chat.
func (f *found) additions() []addition {
	parts := augmentation(f.memories, f.web, f.passages, &f.b.in.Options, true)
	if f.b.macros.clock.now.IsZero() || !slices.ContainsFunc(f.memories, endsInDate.MatchString) {
		return parts
	}
	first := slices.IndexFunc(parts, func(a addition) bool { return a.source == SourceMemory })
	behind := first + slices.IndexFunc(parts[first:], func(a addition) bool { return a.source != SourceMemory })
	return slices.Insert(parts, behind, addition{source: SourceGuidelines, text: f.b.macros.clock.nowLine()})
}

// attach replaces what follows the text of the message by what was found.
func (f *found) attach(p *piece) {
	p.more = nil
	frame := Entry{Source: SourceGuidelines, Why: WhyFound, Role: p.entry.Role}
	for _, a := range f.additions() {
		tokens := f.b.counter.count(a.text)
		switch a.source {
		case SourceMemory:
			p.more = append(p.more, Entry{Source: SourceMemory, ID: f.ids[a.memory], Why: WhyFound, Role: p.entry.Role, Tokens: tokens})
		case SourceWeb, SourceKnowledge:
			p.more = append(p.more, Entry{Source: a.source, Why: WhyFound, Role: p.entry.Role, Tokens: tokens})
		default:
			frame.Tokens += tokens
		}
	}
	if len(p.more) > 0 {
		p.more = append(p.more, frame)
	}
}

// message returns the text of the message with what was found.
func (f *found) message(text string) string {
	for _, a := range f.additions() {
		text += a.text
	}
	return text
}

// budget is how many tokens a request may have; 0 = no limit.
func (o *Options) budget() int {
	if o.Context <= 0 {
		return 0
	}
	return max(o.Context-o.Reserve, 1)
}

// fit decides what of the chat is in, and drops what the budget has no room for.
func (b *builder) fit() error {
	budget := b.in.Options.budget()
	end := b.base
	if end < 0 {
		end = b.length()
	}
	for i := range end {
		if b.message(i).Role == RoleSummary {
			if p, ok := b.chatPiece(i); ok {
				b.summaries = append(b.summaries, p)
			}
		}
	}
	used := 0
	for p := range b.pieces {
		used += p.tokens()
	}
	if budget > 0 && used > budget {
		b.dropRun(0, end-1)
		b.warnWithoutHistory()
		return b.shrink(used, budget)
	}
	b.takeHistory(end-1, used, budget)
	if len(b.history) == 0 {
		b.warnWithoutHistory()
	}
	return nil
}

// warnWithoutHistory tells that the model will see nothing of a chat that there
// is.
func (b *builder) warnWithoutHistory() {
	for _, d := range b.dropped {
		if d.Source == SourceHistory && d.Reason == DropBudget {
			b.warnings = append(b.warnings, Warning{Code: "history_dropped", Detail: "no earlier message fits the token budget"})
			return
		}
	}
}

// takeHistory takes messages of the chat from newest on, while there is room.
// What is older is not even looked at.
func (b *builder) takeHistory(newest, used, budget int) {
	if budget == 0 { // everything fits
		b.history = make([]piece, 0, newest+1)
	}
	i := newest
	for ; i >= 0; i-- {
		if b.message(i).Role == RoleSummary {
			continue
		}
		p, ok := b.chatPiece(i)
		if !ok {
			continue
		}
		if used += p.tokens(); budget > 0 && used > budget {
			break
		}
		b.history = append(b.history, p)
	}
	slices.Reverse(b.history)
	b.dropRun(0, i)
}

// dropRun reports the messages from one index of the chat to another, without
// summaries, as left out because they do not fit.
func (b *builder) dropRun(from, to int) {
	d := Dropped{Source: SourceHistory, Reason: DropBudget}
	for i := from; i <= to; i++ {
		m := b.message(i)
		if m.Role == RoleSummary {
			continue
		}
		if d.Count == 0 {
			d.ID = m.ID
		}
		d.LastID = m.ID
		d.Count++
	}
	if d.Count > 0 {
		b.dropped = append(b.dropped, d)
	}
}

// pieces yields everything in the prompt except the plain history.
func (b *builder) pieces(yield func(*piece) bool) {
	lists := [][]piece{b.head, b.summaries}
	for _, r := range b.runs {
		lists = append(lists, r.pieces)
	}
	for _, list := range append(lists, b.behind, b.tail) {
		for i := range list {
			if !list[i].budget && !yield(&list[i]) {
				return
			}
		}
	}
	for _, p := range []*piece{b.answered, b.last} {
		if p != nil && !yield(p) {
			return
		}
	}
}

// shrink drops what may be dropped besides the plain history, in the order that
// Build promises, until the rest fits.
func (b *builder) shrink(used, budget int) error {
	dropPiece := func(p *piece) {
		p.budget = true
		used -= p.tokens()
		b.dropped = append(b.dropped, Dropped{Source: p.entry.Source, ID: p.entry.ID, Name: p.entry.Name, Reason: DropBudget, Tokens: p.tokens()})
	}
	for i := range b.summaries {
		if used <= budget {
			return nil
		}
		dropPiece(&b.summaries[i])
	}
	for _, p := range b.keyedByOrder() {
		if used <= budget {
			return nil
		}
		dropPiece(p)
	}
	used -= b.shrinkDocuments(used - budget)
	if used -= b.shrinkFindings(used - budget); used > budget {
		return b.tooLarge(used, budget)
	}
	return nil
}

// shrinkFindings leaves out findings until excess tokens are saved. It returns how many
// are.
func (b *builder) shrinkFindings(excess int) (saved int) {
	f := &b.findings
	for saved < excess && b.answered != nil && (len(f.memories) > 0 || !isBlank(f.web+f.passages)) {
		before := b.answered.tokens()
		d := Dropped{Source: SourceWeb, Reason: DropBudget}
		switch n := len(f.memories); {
		case n > 0:
			d = Dropped{Source: SourceMemory, ID: f.ids[n-1], Reason: DropBudget}
			f.memories, f.ids = f.memories[:n-1], f.ids[:n-1]
		case !isBlank(f.web):
			f.web = ""
		default:
			d.Source, f.passages = SourceKnowledge, ""
		}
		f.attach(b.answered)
		d.Tokens = before - b.answered.tokens()
		saved += d.Tokens
		b.dropped = append(b.dropped, d)
	}
	return saved
}

// keyedByOrder returns the world-book entries that keys brought in, those to drop
// first first: lowest order, and of equal ones the last in the request.
func (b *builder) keyedByOrder() []*piece {
	var keyed []*piece
	for p := range b.pieces {
		if p.keyed {
			keyed = append(keyed, p)
		}
	}
	slices.Reverse(keyed)
	slices.SortStableFunc(keyed, func(x, y *piece) int { return cmp.Compare(x.order, y.order) })
	return keyed
}

// largePart is one of the parts that details.parts of fault.ContextTooLarge names.
type largePart struct {
	Source Source `json:"source"`
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Tokens int    `json:"tokens"`
}

const largestParts = 10

func (b *builder) tooLarge(used, budget int) error {
	var parts []largePart
	for p := range b.pieces {
		parts = append(parts, largePart{p.entry.Source, p.entry.ID, p.entry.Name, p.tokens()})
	}
	slices.SortStableFunc(parts, func(x, y largePart) int { return cmp.Compare(y.Tokens, x.Tokens) })
	parts = parts[:min(len(parts), largestParts)]
	return fault.New(fault.ContextTooLarge,
		"the fixed parts of the prompt need %d tokens; the budget is %d", used, budget).
		With("parts", parts).With("tokens", used).With("budget", budget).With("tokenizer", b.counter.name)
}
