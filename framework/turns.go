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
	strict, places := llm.StrictTurns(p.Messages, opening)
	begun := make([]bool, len(strict)) // with a message; the others are openings
	for _, place := range places {
		begun[place.Message] = true
	}
	p.Rearrange(strict, places)
	for i, ok := range begun {
		if !ok {
			p.addOpening(i, counter.count(opening)+MessageOverhead)
		}
	}
}

// Rearrange puts messages in the place of those of the prompt. places has the new place of each
// old one; the entries keep pointing to their texts.
func (p *Prompt) Rearrange(messages []llm.Message, places []llm.Place) {
	for i := range p.Entries {
		e := &p.Entries[i]
		place := places[e.Message]
		e.Message, e.At, e.Role = place.Message, place.At+e.At, messages[place.Message].Role
	}
	if p.Base >= 0 {
		p.Base = places[p.Base].Message
	}
	p.Messages = messages
}

func (p *Prompt) addOpening(message, tokens int) {
	at := slices.IndexFunc(p.Entries, func(e Entry) bool { return e.Message > message })
	e := Entry{Source: SourceInstruction, ID: "opening", Why: WhyTask, Role: llm.User, Message: message, Tokens: tokens}
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
