package framework

import (
	"cmp"
	"slices"
	"strings"

	"nodest/card"
)

// The fields of a card that a preset can place, with the name that the place has
// when the preset does not name it. The first four and "name" are candidates
// even where the preset has no prompt for them. Those with a field describe the
// character: "all" adds them where the preset does not list them.
var cardFields = []struct {
	identifier, name string
	field            string // field of the card
	always           bool
	text             func(card.RoleCard) string
}{
	{"charDescription", "Char Description", "description", true, func(c card.RoleCard) string { return c.Description }},
	{"charPersonality", "Char Personality", "personality", true, func(c card.RoleCard) string { return c.Personality }},
	{"scenario", "Scenario", "scenario", true, func(c card.RoleCard) string { return c.Scenario }},
	{"dialogueExamples", "Dialogue Examples", "mes_example", true, func(c card.RoleCard) string { return c.MesExample }},
	{"name", "Name", "", true, func(c card.RoleCard) string { return c.Name }},
	{"first_mes", "", "", false, func(c card.RoleCard) string { return c.FirstMes }},
}

// addFields puts the fields of the card that the order does not list before the
// chat, in the role of the description, or else of the dialect. A field that the
// preset has switched off stays out.
func (f *frame) addFields(s *Sources, p card.Preset) {
	var added []*item
	role := "user"
	if s.Dialect == card.SillyTavern {
		role = "system"
	}
	if at := f.slotOf(anchorIdentifier); at >= 0 {
		role = f.slots[at].role
	}
	for _, field := range cardFields {
		listed := f.slotOf(field.identifier) >= 0
		text := field.text(s.Card)
		if field.field == "" || listed || isBlank(text) {
			continue
		}
		left := Dropped{Source: SourceCard, ID: field.identifier, Name: field.name, Reason: DropUnlisted}
		switch {
		case switchedOff(p, field.identifier):
			left.Reason = DropDisabled
			f.unlisted = append(f.unlisted, left)
		case s.CardFields == ListedFields:
			f.unlisted = append(f.unlisted, left)
		default:
			added = append(added, &item{
				source: SourceCard, id: field.identifier, name: field.name, text: text, role: role,
				position: noPosition, why: WhyAdded,
			})
		}
	}
	f.slots = slices.Insert(f.slots, f.chatAt(), added...)
}

// switchedOff reports whether a preset knows a prompt and does not want it.
func switchedOff(p card.Preset, identifier string) bool {
	off := func(o card.OrderItem) bool { return o.Identifier == identifier && !o.Enabled }
	disabled := func(q card.Prompt) bool { return q.Identifier == identifier && !q.Enable }
	return slices.ContainsFunc(p.Order, off) || slices.ContainsFunc(p.Prompts, disabled)
}

// cardPrompts are the prompts that a card brings, with that of the preset which
// each of them replaces.
var cardPrompts = []struct {
	id, name, replaces string
	text               func(card.RoleCard) string
}{
	{"system_prompt", "System Prompt", "main", func(c card.RoleCard) string { return c.SystemPrompt }},
	{"post_history_instructions", "Post-History Instructions", "jailbreak", func(c card.RoleCard) string { return c.PostHistoryInstructions }},
}

// overrides are the prompts of a card.
type overrides struct {
	replace map[string]*item // by the identifier of the preset's prompt
	first   *item            // before all others; nil = none
	last    *item            // behind the chat and all others; nil = none
	deep    *item            // in the chat; nil = none
	dropped []Dropped
}

// overridesOf decides where the prompts of a card go. As in SillyTavern, each of them
// replaces a prompt of the preset and can quote it as {{original}}, unless that prompt
// is switched off or forbids it. If the preset has no such prompt, the system prompt
// comes first and the other one last.
func overridesOf(s *Sources, p card.Preset) overrides {
	o := overrides{replace: map[string]*item{}}
	used := s.CardFields != ListedFields || s.Dialect == card.SillyTavern
	for i, c := range cardPrompts {
		text := c.text(s.Card)
		if isBlank(text) {
			continue
		}
		it := &item{source: SourceCard, id: c.id, name: c.name, role: "system", position: noPosition, why: WhyAdded}
		q := promptOf(p, c.replaces)
		reason := reasonAgainst(p, q)
		switch listed := inOrder(p, c.replaces); {
		case !used:
			o.drop(it, DropDialect)
		case reason != "":
			o.drop(it, reason)
		case q != nil && listed:
			o.override(q, it, text)
		case i == 0:
			it.text, _ = withOriginal(text, "")
			o.first = it
		default:
			it.text, _ = withOriginal(text, "")
			o.last = it
		}
	}
	o.depthPrompt(s.Card.DepthPrompt, used)
	return o
}

// reasonAgainst says why a card must not replace a prompt of the preset; "" = it may.
func reasonAgainst(p card.Preset, q *card.Prompt) string {
	switch {
	case q == nil:
		return ""
	case switchedOff(p, q.Identifier):
		return DropDisabled
	case q.ForbidOverrides:
		return DropForbid
	}
	return ""
}

func (o *overrides) drop(it *item, reason string) {
	o.dropped = append(o.dropped, it.dropped(reason))
}

// override puts a prompt of the card in the place of one of the preset.
func (o *overrides) override(q *card.Prompt, it *item, text string) {
	replaced, quoted := withOriginal(text, q.Content)
	it.text, it.role, it.why = replaced, q.Role, WhyOverride
	o.replace[q.Identifier] = it
	if !quoted && !isBlank(q.Content) {
		o.drop(&item{source: SourcePreset, id: q.Identifier, name: q.Name}, DropReplaced)
	}
}

// depthPrompt places the text of a card that is inserted into the chat.
func (o *overrides) depthPrompt(d card.DepthPrompt, used bool) {
	it := &item{
		source: SourceCard, id: "depth_prompt", name: "Depth Prompt", text: d.Prompt, role: d.Role,
		position: atDepth, depth: d.Depth, constant: true,
	}
	switch {
	case isBlank(d.Prompt):
	case used:
		o.deep = it
	default:
		o.drop(it, DropDialect)
	}
}

func inOrder(p card.Preset, identifier string) bool {
	return slices.ContainsFunc(p.Order, func(o card.OrderItem) bool { return o.Identifier == identifier })
}

// promptOf returns the first prompt of an identifier, nil if there is none.
func promptOf(p card.Preset, identifier string) *card.Prompt {
	for i := range p.Prompts {
		if p.Prompts[i].Identifier == identifier {
			return &p.Prompts[i]
		}
	}
	return nil
}

// withOriginal puts the text that a prompt replaces in the place of its first
// {{original}}; further ones are empty.
func withOriginal(text, original string) (replaced string, quoted bool) {
	replaced = replaceMacro(text, "original", func(string) (string, bool) {
		if quoted {
			return "", true
		}
		quoted = true
		return original, true
	})
	if quoted {
		replaced = strings.TrimSpace(replaced)
	}
	return replaced, quoted
}

// promptItem is a prompt of the preset, or what the card has put in its place.
func (o *overrides) promptItem(q *card.Prompt) *item {
	it := &item{source: SourcePreset, id: q.Identifier, name: q.Name, text: q.Content, role: q.Role, position: noPosition}
	if by := o.replace[q.Identifier]; by != nil {
		it.source, it.id, it.name, it.text, it.why = by.source, by.id, cmp.Or(by.name, q.Name), by.text, by.why
	}
	return it
}

// addPrompts puts those prompts of the card into the frame that replace none.
func (f *frame) addPrompts(o overrides) {
	if o.first != nil {
		f.slots = slices.Insert(f.slots, 0, o.first)
	}
	if o.last == nil {
		return
	}
	if f.chatAt() == len(f.slots) {
		f.slots = append(f.slots, placeOfChat)
	}
	f.slots = append(f.slots, o.last)
}
