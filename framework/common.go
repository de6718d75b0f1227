package framework

import (
	"cmp"
	"slices"

	"nodest/llm"
)

// Common makes the parts of a prompt that are the same in every dialect: rules for tools,
// documents, profile, notes, settings of the user, and the findings behind the message that is
// answered. It is for one build.
type Common struct{ b *builder }

// Block is a message of a prompt in the making. Its first entry counts what a message costs
// besides its texts.
type Block struct {
	Message llm.Message
	Entries []Entry
}

// Tokens returns the tokens of all entries.
func (p *Block) Tokens() int {
	n := 0
	for i := range p.Entries {
		n += p.Entries[i].Tokens
	}
	return n
}

// NewCommon returns the parts for an input; char is the name that {{char}} stands for in them.
func NewCommon(in *Input, char string) *Common {
	b := &builder{in: in, c: &Compiled{name: char, persona: true}, counter: newCounter(in.Options.Tokenizer, in.Cache)}
	b.macros = macros{
		Char: char, User: in.Persona.Name, Seed: in.Options.Seed, PickSeed: in.Options.PickSeed,
		clock: clock{in.Options.Now, in.Options.LastUserAt, in.Options.Language},
	}
	b.head = b.knowledgePieces()
	documents := len(b.head) - 1
	b.head = append(b.head, b.knownPieces()...)
	if len(b.documents) > 0 {
		b.knowledge = &b.head[documents]
	}
	return &Common{b}
}

// Front returns the parts that come directly before the chat, in this order: rules, documents,
// profile, notes.
func (c *Common) Front() []Block {
	parts := make([]Block, len(c.b.head))
	for i := range c.b.head {
		parts[i] = c.b.head[i].block()
	}
	return parts
}

// SettingBlock is a setting of the user (自设) with its place: 0 before the character, 1 behind it,
// 2 before the author's note, 3 behind it, 4 at a depth in the chat.
type SettingBlock struct {
	Block
	Position, Depth int
	Order           float64
}

// Settings returns the user's settings that are on, in their order.
func (c *Common) Settings() []SettingBlock {
	var parts []SettingBlock
	for _, it := range c.b.requestSettings() {
		if p, ok := c.b.piece(it, WhyConstant, ""); ok {
			parts = append(parts, SettingBlock{Block: p.block(), Position: it.position, Depth: it.depth, Order: it.order})
		}
	}
	slices.SortStableFunc(parts, func(a, b SettingBlock) int { return cmp.Compare(a.Order, b.Order) })
	return parts
}

// Answer names the message that is answered: the findings go behind its text.
func (c *Common) Answer(said llm.Message, entry Entry) {
	c.b.findings = newFound(c.b)
	c.b.answered = &piece{text: said.Text, name: said.Name, entry: entry}
	c.b.findings.attach(c.b.answered)
}

// Answered returns the message of Answer with the findings behind it. Without Answer it has no
// entries.
func (c *Common) Answered() Block {
	p := c.b.answered
	if p == nil {
		return Block{}
	}
	part := p.block()
	part.Message.Text = c.b.findings.message(p.text)
	return part
}

// Shrink shortens documents and then leaves them out, and leaves out findings after that, until
// excess tokens are saved. It returns how many are.
func (c *Common) Shrink(excess int) (saved int) {
	saved = c.b.shrinkDocuments(excess)
	return saved + c.b.shrinkFindings(excess-saved)
}

// Dropped returns the candidates that are in none of the parts.
func (c *Common) Dropped() []Dropped { return c.b.dropped }

// Count returns the tokens of a text, from the cache where it has them.
func (c *Common) Count(text string) int { return c.b.counter.count(text) }

// InstructionText is the built-in text that asks for a task, in a language; "" = none.
func InstructionText(l Language, task llm.Task) string { return l.words().instruction(task) }

// Frame returns the empty prompt of a request with these options.
func (c *Common) Frame() *Prompt {
	o := &c.b.in.Options
	p := &Prompt{Base: -1, Budget: o.budget(), Tokenizer: c.b.counter.name, Estimate: c.b.counter.codec == nil}
	if p.Budget > 0 {
		p.Reserve = o.Context - p.Budget
	}
	return p
}

// Finish does to a prompt what comes after its messages are in place: it merges them for a model
// with strict turns, and compares them with the request before.
func (c *Common) Finish(p *Prompt) { p.finish(c.b.in, c.b.counter) }

func (p *Prompt) finish(in *Input, counter counter) {
	if in.Options.StrictTurns {
		p.strictTurns(in.Options.Language, counter)
	}
	p.Hashes = HashesOf(p.Messages)
	p.comparePrefix(in.Previous, in.PreviousOf)
}

// Add adds a message with its entries.
func (p *Prompt) Add(part Block) {
	index := len(p.Messages)
	for _, e := range part.Entries {
		e.Message = index
		p.Entries = append(p.Entries, e)
		p.Tokens += e.Tokens
	}
	p.Messages = append(p.Messages, part.Message)
}

func (p *piece) block() Block {
	return Block{Message: llm.Message{Role: p.entry.Role, Name: p.name, Text: p.text}, Entries: append([]Entry{p.entry}, p.more...)}
}
