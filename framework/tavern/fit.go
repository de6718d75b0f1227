package tavern

import (
	"cmp"
	"fmt"
	"slices"

	"nodest/framework"
	"nodest/internal/fault"
)

// fit decides which messages of the chat and which examples are in the prompt, and leaves out what
// the budget has no room for.
func (b *builder) fit() error {
	b.groups = b.insertedByDepth()
	used := 0
	for p := range b.mandatory() {
		used += b.measure(p)
	}
	used += b.keepSummaries()
	used += b.keepAnswered()
	budget := b.budget()
	if budget > 0 && used > budget {
		b.dropRun(0, b.chat.length-1)
		b.dropExamples(0)
		b.warn("history_dropped", "", "no earlier message fits the token budget")
		return b.shrink(used, budget)
	}
	if b.play.Settings.PinExamples {
		used = b.keepExamples(used, budget)
		b.keepHistory(used, budget)
		return nil
	}
	used = b.keepHistory(used, budget)
	b.keepExamples(used, budget)
	return nil
}

// budget is how many tokens the messages may have; 0 = no limit.
func (b *builder) budget() int {
	o := &b.in.Options
	if o.Context <= 0 {
		return 0
	}
	room := o.Context - o.Reserve - replyPriming
	if o.StrictTurns || b.turns() != TurnsAsTheyAre {
		room -= openingTokens
	}
	return max(room, 1)
}

// openingTokens is more than the message has that a form wants at the beginning of a chat.
const openingTokens = 16

// mandatory yields everything in the prompt but the chat and the examples.
func (b *builder) mandatory() func(yield func(*piece) bool) {
	return func(yield func(*piece) bool) {
		var lists [][]*piece
		for i := range b.slots {
			lists = append(lists, b.slots[i].pieces)
		}
		for i := range b.groups {
			lists = append(lists, b.groups[i].pieces)
		}
		lists = append(lists, b.ends.front, b.ends.moved, b.ends.control)
		if p := b.ends.newChat; p != nil {
			lists = append(lists, []*piece{p})
		}
		for _, list := range lists {
			for _, p := range list {
				if !yield(p) {
					return
				}
			}
		}
	}
}

func (b *builder) keepSummaries() (used int) {
	for i := range b.chat.length {
		if isSummary(b.message(i)) {
			p := b.said(i)
			used += b.measure(p)
			b.keep(i, p)
		}
	}
	return used
}

// keepAnswered keeps the message that is answered, with what was found for it.
func (b *builder) keepAnswered() int {
	at := b.chat.base
	if at < 0 {
		return 0
	}
	p := b.said(at)
	if p.blank() {
		return 0
	}
	b.measure(p)
	b.common.Answer(p.message(), p.parts[0].entry)
	b.chat.answered = &piece{kind: finished, block: b.common.Answered()}
	b.keep(at, b.chat.answered)
	return b.measure(b.chat.answered)
}

// keepHistory takes messages of the chat from the newest on, while there is room. It returns the
// tokens that are used then.
func (b *builder) keepHistory(used, budget int) int {
	i := b.chat.length - 1
	for ; i >= 0; i-- {
		if i == b.chat.base || i == b.chat.moved || isSummary(b.message(i)) {
			continue
		}
		p := b.said(i)
		if p.blank() {
			b.drop(p.parts[0].entry.Source, p.parts[0].entry.ID, p.parts[0].entry.Name, framework.DropEmpty)
			continue
		}
		need := b.measure(p)
		if budget > 0 && used+need > budget {
			break
		}
		used += need
		b.keep(i, p)
	}
	b.dropRun(0, i)
	if p := b.ends.ifEmpty; p != nil {
		if need := b.measure(p); budget == 0 || used+need <= budget {
			used += need
		} else {
			b.ends.ifEmpty = nil
		}
	}
	return used
}

// keepExamples takes blocks of examples while they fit.
func (b *builder) keepExamples(used, budget int) int {
	for i, block := range b.ends.examples {
		need := 0
		for _, p := range block {
			need += b.measure(p)
		}
		if budget > 0 && used+need > budget {
			b.dropExamples(i)
			break
		}
		used += need
	}
	return used
}

// dropExamples leaves out the blocks of examples from one on.
func (b *builder) dropExamples(from int) {
	rest := b.ends.examples[from:]
	if len(rest) == 0 {
		return
	}
	e := rest[0][len(rest[0])-1].parts[0].entry
	b.dropped = append(b.dropped, framework.Dropped{Source: e.Source, ID: e.ID, Name: e.Name, Reason: framework.DropBudget, Count: len(rest)})
	b.ends.examples = b.ends.examples[:from]
}

// shrink leaves out what Build promises to leave out of a prompt whose mandatory parts do not fit.
func (b *builder) shrink(used, budget int) error {
	for i := range b.chat.kept {
		if p := b.chat.kept[i].piece; used > budget && isSummary(b.message(b.chat.kept[i].at)) {
			used -= b.leaveOut(p)
		}
	}
	used -= b.dropEntries(used-budget, optionalKeyed)
	if used > budget {
		used -= b.common.Shrink(used - budget)
		b.refresh()
	}
	used -= b.dropEntries(used-budget, optionalEntry)
	if used <= budget {
		return nil
	}
	o := &b.in.Options
	if least := o.Reserve / leastReserve; used <= o.Context-least-replyPriming {
		b.warn("reply_shortened", "", fmt.Sprintf(
			"the fixed parts of the prompt need %d tokens of a context of %d; the reply has room for %d", used, o.Context, o.Context-used-replyPriming))
		return nil
	}
	return b.tooLarge(used, budget)
}

// leastReserve is the part of the room for a reply that it has at least.
const leastReserve = 4

// leaveOut removes a message, and returns the tokens that are saved.
func (b *builder) leaveOut(p *piece) int {
	saved := b.measure(p)
	for i := range p.parts {
		b.dropForRoom(&p.parts[i].entry)
	}
	p.parts = nil
	return saved
}

func (b *builder) dropForRoom(e *framework.Entry) {
	b.dropped = append(b.dropped, framework.Dropped{Source: e.Source, ID: e.ID, Name: e.Name, Reason: framework.DropBudget, Tokens: e.Tokens})
}

// dropEntries leaves out entries of world books, lowest order first and of one order the last
// first, until excess tokens are saved. It returns how many are.
func (b *builder) dropEntries(excess, optional int) (saved int) {
	type candidate struct {
		from   *piece
		number int
		order  float64
		entry  framework.Entry
	}
	var list []candidate
	for p := range b.mandatory() {
		for i := range p.parts {
			if x := &p.parts[i]; x.optional == optional {
				x.number = len(list) + 1
				list = append(list, candidate{p, x.number, x.order, x.entry})
			}
		}
	}
	slices.Reverse(list)
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(x.order, y.order) })
	for saved < excess && len(list) > 0 {
		gone := map[*piece]map[int]bool{}
		n := 0
		for expected := saved; n < len(list) && expected < excess; n++ {
			c := &list[n]
			if gone[c.from] == nil {
				gone[c.from] = map[int]bool{}
			}
			gone[c.from][c.number] = true
			expected += c.entry.Tokens
			b.dropForRoom(&c.entry)
		}
		list = list[n:]
		for p, numbers := range gone {
			saved += b.measure(p)
			p.parts = slices.DeleteFunc(p.parts, func(x part) bool { return numbers[x.number] })
			saved -= b.measure(p)
		}
	}
	return saved
}

// refresh takes over what framework.Common has left.
func (b *builder) refresh() {
	b.ends.front = b.ends.front[:0]
	for _, block := range b.common.Front() {
		b.ends.front = append(b.ends.front, &piece{kind: finished, block: block})
	}
	if b.chat.answered != nil {
		b.chat.answered.block = b.common.Answered()
	}
}

// largePart is one of the parts that details.parts of fault.ContextTooLarge names.
type largePart struct {
	Source framework.Source `json:"source"`
	ID     string           `json:"id,omitempty"`
	Name   string           `json:"name,omitempty"`
	Tokens int              `json:"tokens"`
}

const largestParts = 10

func (b *builder) tooLarge(used, budget int) error {
	var parts []largePart
	for p := range b.mandatory() {
		for _, e := range p.entries() {
			parts = append(parts, largePart{e.Source, e.ID, e.Name, e.Tokens})
		}
	}
	slices.SortStableFunc(parts, func(x, y largePart) int { return cmp.Compare(y.Tokens, x.Tokens) })
	parts = parts[:min(len(parts), largestParts)]
	return fault.New(fault.ContextTooLarge, "the fixed parts of the prompt need %d tokens; the budget is %d", used, budget).
		With("parts", parts).With("tokens", used).With("budget", budget).With("tokenizer", b.common.Frame().Tokenizer)
}
