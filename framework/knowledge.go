package framework

import (
	"slices"

	"nodest/llm"
)

// KnowledgePart is a part of the block of documents that comes before the chat. Its text
// comes from outside: its markup is the caller's, macros in it are not replaced, and what
// would end the block is defused.
type KnowledgePart struct {
	ID, Name string // identify the document; empty for what surrounds the documents
	Text     string
	Short    string // takes the place of Text where there is no room for it; "" = the part is then left out
	Fixed    bool   // is in the block whatever the budget
}

// knowledgePieces make the rules for tools and the block of documents, in the order of the
// request.
func (b *builder) knowledgePieces() []piece {
	var out []piece
	if !isBlank(b.in.Rules) {
		it := &item{source: SourceTools, name: "Tools", text: b.in.Rules, role: string(llm.System), position: noPosition}
		if p, ok := b.piece(it, WhyFixed, ""); ok {
			out = append(out, p)
		}
	}
	if len(b.in.Knowledge) > 0 {
		b.documents = slices.Clone(b.in.Knowledge)
		p := piece{chat: -1}
		b.writeDocuments(&p)
		out = append(out, p)
	}
	return out
}

// The tags around the documents.
const (
	documentsBegin = "<character_knowledge>"
	documentsEnd   = "\n</character_knowledge>"
)

// writeDocuments makes p the message of the documents. Like everything that comes from
// outside it has the rank of the user.
func (b *builder) writeDocuments(p *piece) {
	p.entry = Entry{Source: SourceKnowledge, Name: "Knowledge", Why: WhyFixed, Role: llm.User}
	p.entry.Tokens = b.counter.count(documentsBegin) + b.counter.count(documentsEnd) + MessageOverhead
	p.more, p.text = nil, documentsBegin
	for _, part := range b.documents {
		text := "\n" + Defuse(part.Text)
		p.text += text
		tokens := b.counter.count(text)
		if part.ID == "" {
			p.entry.Tokens += tokens
			continue
		}
		p.more = append(p.more, Entry{Source: SourceKnowledge, ID: part.ID, Name: part.Name, Why: WhyFixed, Role: llm.User, Tokens: tokens})
	}
	p.text += documentsEnd
}

// shrinkDocuments shortens documents, the last one first, and then leaves them out, until
// excess tokens are saved. It returns how many are.
func (b *builder) shrinkDocuments(excess int) (saved int) {
	p := b.knowledge
	if p == nil {
		return 0
	}
	change := func(i int, reason string, change func()) {
		part, before := b.documents[i], p.tokens()
		change()
		b.writeDocuments(p)
		tokens := before - p.tokens()
		saved += tokens
		b.dropped = append(b.dropped, Dropped{Source: SourceKnowledge, ID: part.ID, Name: part.Name, Reason: reason, Tokens: tokens})
	}
	for i := len(b.documents) - 1; i >= 0 && saved < excess; i-- {
		if d := &b.documents[i]; !d.Fixed && d.Short != "" {
			change(i, DropShortened, func() { d.Text, d.Short = d.Short, "" })
		}
	}
	for i := len(b.documents) - 1; i >= 0 && saved < excess; i-- {
		if !b.documents[i].Fixed {
			change(i, DropBudget, func() { b.documents = slices.Delete(b.documents, i, i+1) })
		}
	}
	return saved
}
