package tavern

import (
	"slices"
	"strings"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
	"nodest/llm"
)

// slot is a place of the frame with its messages.
type slot struct {
	id     string
	pieces []*piece
}

// buildFrame walks the order of the preset. Macros are replaced in that order, so that a variable
// that one prompt sets is there for the next.
func (b *builder) buildFrame() {
	replaced := b.replacements()
	for i := range b.c.places {
		if s, ok := b.fill(&b.c.places[i], replaced); ok {
			b.slots = append(b.slots, s)
		}
	}
	b.placeNote()
	b.placeSettings()
}

// fill makes the slot of a place; false = it has none.
func (b *builder) fill(q *place, replaced map[string]*replacement) (slot, bool) {
	s := slot{id: q.Identifier}
	switch {
	case q.Identifier == idHistory:
		return s, true
	case q.off:
		b.dropSection(q)
		return s, q.Identifier == idMain // stays as the place of notes around it
	case len(q.Triggers) > 0 && !slices.Contains(q.Triggers, string(b.task)):
		b.drop(framework.SourcePreset, q.Identifier, q.Name, dropTrigger)
		return s, false
	case q.Identifier == idExamples:
		return s, true
	}
	p := b.placePiece(q, replaced[q.Identifier])
	there := p != nil && !p.blank()
	if isInjection(&q.Prompt) {
		if there {
			b.inject(q, p)
		}
		return s, false
	}
	if there {
		s.pieces = []*piece{p}
	}
	return s, true
}

// dropTrigger is the reason of a prompt that is for other kinds of replies.
const dropTrigger = "trigger"

func isInjection(q *card.Prompt) bool { return q.InjectionPosition != nil && *q.InjectionPosition == 1 }

// dropSection reports the texts of a section that is switched off.
func (b *builder) dropSection(q *place) {
	t, source, text := &b.texts, framework.SourceCard, ""
	switch q.Identifier {
	case idWorldBefore, idWorldAfter:
		block := b.world.Before
		if q.Identifier == idWorldAfter {
			block = b.world.After
		}
		for _, e := range block {
			b.drop(b.sourceOf(e.ID), e.ID, e.Name, framework.DropDisabled)
		}
	case idDescription:
		text = t.description
	case idPersonality:
		text = t.personality
	case idScenario:
		text = t.scenario
	case idPersona:
		source, text = framework.SourcePersona, t.persona
	}
	if text != "" {
		b.drop(source, q.Identifier, q.Name, framework.DropDisabled)
	}
}

// placePiece makes the message of a place; nil = it has none.
func (b *builder) placePiece(q *place, by *replacement) *piece {
	role, t, u := RoleOf(q.Role), &b.texts, b.utility()
	e := framework.Entry{Source: framework.SourceCard, ID: q.Identifier, Name: q.Name, Why: framework.WhyFixed}
	if q.added {
		e.Why = framework.WhyAdded
	}
	text := ""
	switch q.Identifier {
	case idWorldBefore:
		return b.worldPiece(b.world.Before, 0, role)
	case idWorldAfter:
		return b.worldPiece(b.world.After, 1, role)
	case idDescription:
		text = t.description
	case idPersonality:
		text = b.framed(t.personality, u.PersonalityFormat)
	case idScenario:
		text = b.framed(t.scenario, u.ScenarioFormat)
	case idPersona:
		e.Source = framework.SourcePersona
		if b.in.Persona.Place.Position == framework.PersonaInPrompt {
			text = t.persona
		}
	default:
		return b.promptPiece(q, role, e, by)
	}
	return onePart(plain, role, e, text)
}

// promptPiece makes the message of a prompt of the preset, or of the text of the card that takes
// its place.
func (b *builder) promptPiece(q *place, role llm.Role, e framework.Entry, by *replacement) *piece {
	text := b.env.Expand(q.Content)
	e.Source = framework.SourcePreset
	if by == nil {
		return onePart(plain, role, e, text)
	}
	quoted := strings.Contains(strings.ToLower(by.text), "{{original}}")
	if !quoted && text != "" {
		b.drop(framework.SourcePreset, q.Identifier, q.Name, framework.DropReplaced)
	}
	e.Source, e.ID, e.Name = framework.SourceCard, by.id, by.name
	if !q.added {
		e.Why = framework.WhyOverride
	}
	return onePart(plain, role, e, strings.ReplaceAll(b.env.WithOriginal(text).Expand(by.text), "\r", ""))
}

// framed puts a text of the card into the frame that the preset has for it.
func (b *builder) framed(text, format string) string {
	if text == "" || strings.TrimSpace(format) == "" {
		return text
	}
	return b.env.Expand(format)
}

// insertMark stands for the texts of world info while the macros around them are replaced.
const insertMark = "\x00"

// worldPiece makes the message of a block of world info, in the frame of the preset.
func (b *builder) worldPiece(block []worldinfo.Placed, at int, role llm.Role) *piece {
	if len(block) == 0 {
		return nil
	}
	p := &piece{role: role, parts: b.placed(block, at)}
	for i := range p.parts {
		p.parts[i].entry.Role = role
	}
	format := b.utility().WorldInfoFormat
	if strings.TrimSpace(format) == "" {
		return p
	}
	frame := b.env.Expand(strings.ReplaceAll(format, "{0}", insertMark))
	before, after, _ := strings.Cut(frame, insertMark)
	first, last := &p.parts[0], &p.parts[len(p.parts)-1]
	if !strings.Contains(frame, insertMark) { // a frame without a place for the texts
		first.text, p.parts = frame, p.parts[:1]
		return p
	}
	if strings.Contains(after, insertMark) {
		after = fillMarks(after, worldinfo.Text(block))
	}
	first.text = before + first.text
	last.text += after
	return p
}

// fillMarks puts a text in the place of the marks, as long as the whole stays within macro.MaxText. The
// other marks go.
func fillMarks(frame, text string) string {
	most := max(macro.MaxText-len(frame), 0) / max(len(text), 1)
	return strings.ReplaceAll(strings.Replace(frame, insertMark, text, most), insertMark, "")
}

// replacement is a text of the card in the place of a prompt.
type replacement struct{ id, name, text string }

// replacements are the texts of the card that take the place of prompts, by the identifiers of
// those: a prompt that is switched off or forbids it stays as it is.
func (b *builder) replacements() map[string]*replacement {
	set := &b.play.Settings
	found := map[string]*replacement{}
	for _, r := range []struct {
		at     string
		ignore bool
		replacement
	}{
		{idMain, set.IgnoreSystemPrompt, replacement{"system_prompt", "System Prompt", b.env.Card.CharPrompt}},
		{idPostHistory, set.IgnorePostHistory, replacement{"post_history_instructions", "Post-History Instructions", b.env.Card.CharInstruction}},
	} {
		r.text = strings.TrimSpace(r.text)
		if r.text == "" {
			continue
		}
		at := b.c.index(r.at)
		var reason string
		switch {
		case r.ignore:
			reason = dropIgnored
		case at < 0:
			reason = framework.DropUnlisted
		case b.c.places[at].off:
			reason = framework.DropDisabled
		case b.c.places[at].ForbidOverrides:
			reason = framework.DropForbid
		default:
			by := r.replacement
			found[r.at] = &by
			continue
		}
		b.drop(framework.SourceCard, r.id, r.name, reason)
	}
	return found
}

// dropIgnored is the reason of a prompt of the card that the user's settings leave out.
const dropIgnored = "ignored"

// at is the slot of an identifier, nil = there is none.
func (b *builder) at(id string) *slot {
	for i := range b.slots {
		if b.slots[i].id == id {
			return &b.slots[i]
		}
	}
	return nil
}

// noteParts are the author's note with the entries of world books and the persona around it. The
// entries are lost when it is not due.
func (b *builder) noteParts() []part {
	t := &b.texts
	top, bottom := b.placed(b.world.NoteTop, 2), b.placed(b.world.NoteBottom, 3)
	if !t.due {
		for _, x := range append(top, bottom...) {
			b.drop(x.entry.Source, x.entry.ID, x.entry.Name, framework.DropNoNote)
		}
		if p := b.in.Persona.Place.Position; (p == framework.PersonaTopOfNote || p == framework.PersonaEndOfNote) && t.persona != "" {
			b.drop(framework.SourcePersona, idPersona, sectionNames[idPersona], framework.DropNoNote)
		}
		return nil
	}
	parts := top
	if t.noteText != "" {
		parts = append(parts, part{text: t.noteText, sep: "\n", entry: framework.Entry{Source: framework.SourceNote, Name: "Author Note", Why: framework.WhyConstant}})
	} else if len(bottom) > 0 {
		bottom[0].sep = "\n\n" // around the line of the empty note
	}
	parts = append(parts, bottom...)
	if t.persona == "" {
		return parts
	}
	persona := part{text: t.persona, sep: "\n", entry: framework.Entry{Source: framework.SourcePersona, ID: idPersona, Name: sectionNames[idPersona], Why: framework.WhyConstant}}
	switch b.in.Persona.Place.Position {
	case framework.PersonaTopOfNote:
		parts = slices.Insert(parts, 0, persona)
	case framework.PersonaEndOfNote:
		parts = append(parts, persona)
	}
	return parts
}

// placeNote puts the author's note around the main prompt or into the chat.
func (b *builder) placeNote() {
	parts := b.noteParts()
	if len(parts) == 0 {
		return
	}
	note := &b.texts.note
	role := note.Role
	if role == "" {
		role = llm.System
	}
	if note.Position == InChat {
		b.addInsertion(insertion{depth: note.Depth, order: usualOrder, role: role, key: keyNote, parts: parts})
		return
	}
	for i := range parts {
		parts[i].entry.Role = role
	}
	p := &piece{role: role, parts: parts}
	main := b.at(idMain)
	switch {
	case main != nil && note.Position == BeforeMain:
		main.pieces = slices.Insert(main.pieces, 0, p)
	case main != nil:
		main.pieces = append(main.pieces, p)
	default:
		b.besideMain(p, note.Position == BeforeMain)
	}
}

// placeSettings puts the user's settings (自设) to the world info or into the chat.
func (b *builder) placeSettings() {
	for _, s := range b.common.Settings() {
		p := &piece{kind: finished, block: s.Block}
		id := idWorldAfter
		if s.Position == 0 {
			id = idWorldBefore
		}
		at := b.at(id)
		if at == nil {
			at = b.at(idDescription)
		}
		if s.Position > 1 || at == nil {
			b.addInsertion(insertion{depth: s.Depth, order: usualOrder, role: s.Message.Role, key: keySetting, parts: []part{{
				text: s.Message.Text, sep: "\n", entry: s.Entries[0],
			}}})
			continue
		}
		at.pieces = append(at.pieces, p)
	}
}
