package framework

import (
	"cmp"
	"slices"

	"nodest/llm"
)

// openings are the user's words in front of a chat that the character begins.
var openings = map[Language]string{English: llm.Opening, Chinese: "【对话开始】"}

// openingTokens is more than an opening has in any language.
const openingTokens = 16

// strictTurns merges the messages for providers that want user and assistant in
// turn. The entries keep pointing to their texts.
func (p *Prompt) strictTurns(language Language, counter counter) {
	opening := cmp.Or(openings[language], llm.Opening)
	said, ids := p.Messages, p.ids
	strict, places := llm.StrictTurns(said, opening)
	first := make([]int, len(strict)) // the message that each begins with; -1 = none, it is the opening
	for i := range first {
		first[i] = -1
	}
	for i, place := range places {
		if first[place.Message] < 0 {
			first[place.Message] = i
		}
	}
	for i, place := range places {
		if said[i].Text != strict[place.Message].Text {
			p.contains(Kept{ID: ids[i], Text: said[i].Text})
		}
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		place := places[e.Message]
		e.Message, e.At, e.Role = place.Message, place.At, strict[place.Message].Role
	}
	if p.Base >= 0 {
		p.Base = places[p.Base].Message
	}
	p.Messages, p.ids, p.Hashes = nil, nil, nil
	for i, m := range strict {
		id := ""
		if of := first[i]; of < 0 {
			p.addOpening(i, counter.count(opening)+messageOverhead)
		} else if said[of].Text == m.Text {
			id = ids[of]
		}
		p.addMessage(m, id)
	}
}

// addOpening adds the entry of an opening.
func (p *Prompt) addOpening(message, tokens int) {
	at := slices.IndexFunc(p.Entries, func(e Entry) bool { return e.Message > message })
	e := Entry{Source: SourceInstruction, ID: "opening", Why: whyTask, Role: llm.User, Message: message, Tokens: tokens}
	p.Entries = slices.Insert(p.Entries, at, e) // a message of the character follows
	p.Tokens += tokens
}

// UserText is the text of the message that is answered, with what was found for
// it; "" where there is none.
func (p *Prompt) UserText() string {
	for i := range p.Entries {
		if p.Entries[i].Source == SourceUser {
			return p.textOf(i)
		}
	}
	return ""
}
