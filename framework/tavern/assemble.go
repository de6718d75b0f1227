package tavern

import (
	"slices"

	"nodest/framework"
	"nodest/llm"
)

// prompt puts the messages together.
func (b *builder) prompt() *framework.Prompt {
	var list []*piece
	for i := range b.slots {
		switch s := &b.slots[i]; s.id {
		case idHistory:
			list = append(list, b.ends.front...)
			list = b.addChat(list)
		case idExamples:
			for _, block := range b.ends.examples {
				list = append(list, block...)
			}
		default:
			list = append(list, s.pieces...)
		}
	}
	list = append(append(list, b.ends.moved...), b.ends.control...)
	list = slices.DeleteFunc(list, (*piece).blank)
	if b.c.preset.Behaviour.Squash {
		list = squash(list)
	}
	p := b.common.Frame()
	p.Messages, p.Entries = make([]llm.Message, 0, len(list)), make([]framework.Entry, 0, len(list)+len(b.world.Activated))
	for _, x := range list {
		if x == b.chat.answered {
			p.Base = len(p.Messages)
		}
		x.addTo(p)
	}
	b.arrange(p)
	p.Dropped = slices.Concat(b.dropped, b.common.Dropped())
	if b.env.Limited() {
		b.warn("macro_limit", "", "the macros of the prompt made too much text; some stay as they are")
	}
	p.Warnings = slices.Concat(b.in.Scripts.Warnings(), b.warnings)
	b.common.Finish(p)
	return p
}

// addChat adds the chat with what is inserted between its messages.
func (b *builder) addChat(list []*piece) []*piece {
	if p := b.ends.newChat; p != nil {
		list = append(list, p)
	}
	b.chat.inOrder()
	length, groups := b.chat.length, b.groups
	if b.chat.moved >= 0 && b.c.preset.Behaviour.ContinuePrefill {
		length--
	}
	insertUpTo := func(index int) {
		for len(groups) > 0 && max(length-groups[0].depth, 0) <= index {
			list = append(list, groups[0].pieces...)
			groups = groups[1:]
		}
	}
	for _, said := range b.chat.kept {
		insertUpTo(said.at)
		list = append(list, said.piece)
	}
	insertUpTo(b.chat.length)
	if p := b.ends.ifEmpty; p != nil {
		list = append(list, p)
	}
	return list
}

// squash joins neighbouring messages of the system without a name; those that announce the chat or
// an example, examples and finished ones stay as they are.
func squash(list []*piece) []*piece {
	joins := func(p *piece) bool { return p.kind == plain && p.role == llm.System && p.name == "" }
	out := list[:0]
	for _, p := range list {
		if len(out) == 0 || !joins(p) || !joins(out[len(out)-1]) {
			out = append(out, p)
			continue
		}
		last := out[len(out)-1]
		at := len(last.parts)
		last.parts = append(slices.Clip(last.parts), p.parts...)
		last.parts[at].sep = "\n"
	}
	return out
}

// turns is the form that the preset wants.
func (b *builder) turns() Turns { return turnsOf(b.c.preset.Behaviour.PostProcessing) }

// arrange brings the messages into the form that the preset wants.
func (b *builder) arrange(p *framework.Prompt) {
	turns := b.turns()
	if turns == TurnsAsTheyAre {
		return
	}
	messages, places := arrange(p.Messages, turns, b.in.Persona.Name, b.c.name())
	p.Rearrange(messages, places)
	said := make([]bool, len(messages))
	for _, place := range places {
		said[place.Message] = true
	}
	for i, ok := range said {
		if ok {
			continue
		}
		e := presetEntry("placeholder", "Start of the Chat")
		e.Role, e.Message = messages[i].Role, i
		e.Tokens = b.common.Count(messages[i].Text) + framework.MessageOverhead
		at := slices.IndexFunc(p.Entries, func(x framework.Entry) bool { return x.Message > i })
		if at < 0 {
			at = len(p.Entries)
		}
		p.Entries = slices.Insert(p.Entries, at, e)
		p.Tokens += e.Tokens
	}
}
