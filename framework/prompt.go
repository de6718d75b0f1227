package framework

import (
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
		Base:     -1, Budget: b.in.Options.budget(), Tokenizer: b.counter.name, Estimate: b.counter.codec == nil,
		Dropped: b.dropped, Warnings: slices.Concat(b.in.Scripts.Warnings(), b.warnings),
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
	p.finish(b.in, b.counter)
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
			p.add(next)
		}
	}
	if b.base < 0 {
		return
	}
	insertBefore(b.base)
	if b.answered != nil {
		p.Base = len(p.Messages)
		b.answered.text = b.findings.message(b.answered.text)
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

func (p *Prompt) add(x *piece) {
	index := len(p.Messages)
	x.entry.Message = index
	p.Entries = append(p.Entries, x.entry)
	for _, e := range x.more {
		e.Message = index
		p.Entries = append(p.Entries, e)
	}
	p.Tokens += x.tokens()
	p.Messages = append(p.Messages, llm.Message{Role: x.entry.Role, Name: x.name, Text: x.text})
}

// HashesOf returns a hash for each message, of all messages up to it.
func HashesOf(messages []llm.Message) []uint64 {
	hashes, h := make([]uint64, len(messages)), uint64(0)
	for i, m := range messages {
		h = hashOn(hashOn(hashOn(h, string(m.Role)), m.Name), m.Text)
		hashes[i] = h
	}
	return hashes
}

// comparePrefix tells how much of the request equals the beginning of the one
// before, and what broke it off.
func (p *Prompt) comparePrefix(previous []uint64, of string) {
	p.Prefix.GenerationID = of
	n := 0
	for n < len(previous) && n < len(p.Hashes) && previous[n] == p.Hashes[n] {
		n++
	}
	p.Prefix.Messages = n
	if n > 0 {
		p.Prefix.Hash = fmt.Sprintf("%016x", p.Hashes[n-1])
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Message < n {
			p.Prefix.Tokens += e.Tokens
		} else if n < len(previous) {
			first := *e
			p.Prefix.BrokenBy = &first
			break
		}
	}
}
