package framework

import (
	"encoding/binary"
	"fmt"
	"slices"

	"nodest/llm"
)

// prompt puts the pieces together.
func (b *builder) prompt() *Prompt {
	n := len(b.history)
	for range b.pieces {
		n++
	}
	p := &Prompt{
		Messages: make([]llm.Message, 0, n),
		Entries:  make([]Entry, 0, n+8+len(b.in.Findings.Memories)), // findings have entries of their own
		Hashes:   make([]uint64, 0, n), ids: make([]string, 0, n),
		Base: -1, Budget: b.in.Options.budget(), Tokenizer: b.counter.name, Estimate: b.counter.codec == nil,
		Dropped: b.dropped, Warnings: slices.Concat(b.in.Scripts.all(), b.warnings),
	}
	if p.Budget > 0 {
		p.Reserve = b.in.Options.Context - p.Budget
	}
	p.addAll(b.head)
	b.addChat(p)
	p.addAll(b.tail)
	if b.last != nil {
		p.add(b.last)
	}
	if b.in.Options.StrictTurns {
		p.strictTurns(b.in.Options.Language, b.counter)
	}
	p.comparePrefix(b.in.Previous, b.in.PreviousOf)
	return p
}

// addChat merges the messages of the chat with what is inserted between them.
func (b *builder) addChat(p *Prompt) {
	runs := b.runs
	insertBefore := func(index int) {
		for len(runs) > 0 && runs[0].at <= index {
			p.addAll(runs[0].pieces)
			runs = runs[1:]
		}
	}
	history, summaries := b.history, b.summaries
	for len(history) > 0 || len(summaries) > 0 {
		from := &history
		if len(history) == 0 || len(summaries) > 0 && summaries[0].chat < history[0].chat {
			from = &summaries
		}
		next := &(*from)[0]
		*from = (*from)[1:]
		if !next.budget {
			insertBefore(next.chat)
			p.contains(b.message(next.chat).Kept)
			p.add(next)
		}
	}
	if b.base < 0 {
		return
	}
	insertBefore(b.base)
	if b.answered != nil {
		p.Base = len(p.Messages)
		text := b.answered.text
		if b.answered.text = b.findings.message(text); b.answered.text != text {
			p.contains(Kept{ID: b.answered.id, Text: text})
			b.answered.id = ""
			for _, m := range b.in.Findings.Memories {
				p.contains(m.Kept)
			}
		}
		p.add(b.answered)
	}
	insertBefore(b.base + 1)
	p.addAll(b.behind)
}

func (p *Prompt) addAll(pieces []piece) {
	for i := range pieces {
		if !pieces[i].budget {
			p.add(&pieces[i])
		}
	}
}

// add appends a message, its entries and its hash.
func (p *Prompt) add(x *piece) {
	index := len(p.Messages)
	x.entry.Message = index
	p.Entries = append(p.Entries, x.entry)
	for _, e := range x.more {
		e.Message = index
		p.Entries = append(p.Entries, e)
	}
	p.Tokens += x.tokens()
	p.addMessage(llm.Message{Role: x.entry.Role, Name: x.name, Text: x.text}, x.id)
}

func (p *Prompt) addMessage(m llm.Message, id string) {
	before := uint64(0)
	if n := len(p.Hashes); n > 0 {
		before = p.Hashes[n-1]
	}
	p.Messages = append(p.Messages, m)
	p.Hashes = append(p.Hashes, chain(before, hashOf(m, id)))
	p.ids = append(p.ids, id)
}

// contains notes a text that messages may contain.
func (p *Prompt) contains(k Kept) {
	if k.ID == "" || k.Text == "" {
		return
	}
	if p.kept == nil {
		p.kept = map[string]Kept{}
	}
	if k.Pieces == nil {
		k.Pieces = []string{k.Text}
	}
	p.kept[k.ID] = k
}

// hashOf is the hash of a message by itself. The id of one that repeats a message of the chat word
// for word stands for its text.
func hashOf(m llm.Message, id string) uint32 {
	if id != "" {
		m.Text = "\x00" + id
	}
	return half(hashOn(hashOn(hashText(string(m.Role)), m.Name), m.Text))
}

func half(h uint64) uint32 { return uint32(h ^ h>>32) } //nolint:gosec // half of it

// chain is the hash of all messages up to one, from the hash of those before it and its own.
func chain(before uint64, own uint32) uint64 {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], own)
	return hashOn(before, string(b[:]))
}

// comparePrefix tells how much of the request equals the beginning of the one
// before, and what broke it off.
func (p *Prompt) comparePrefix(previous []uint64, of string) {
	p.Prefix.GenerationID = of
	n := 0
	for n < len(previous) && n < len(p.Hashes) && previous[n] == p.Hashes[n] {
		n++
	}
	p.setPrefix(n, n < len(previous))
}

// setPrefix describes a prefix of n messages; broken says that the request before had more.
func (p *Prompt) setPrefix(n int, broken bool) {
	p.Prefix.Messages = n
	if n > 0 {
		p.Prefix.Hash = fmt.Sprintf("%016x", p.Hashes[n-1])
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Message < n {
			p.Prefix.Tokens += e.Tokens
		} else if broken {
			first := *e
			p.Prefix.BrokenBy = &first
			break
		}
	}
}
