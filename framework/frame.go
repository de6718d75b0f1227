package framework

import (
	"cmp"
	"slices"
	"strings"

	"nodest/card"
	"nodest/llm"
)

// frame is the fixed framework around the chat (rFramework).
type frame struct {
	slots  []*item // in order; without world-book entries
	anchor int     // slot that entries of position 0 and 1 go around; -1 = none
	before []*item // position 0, in order
	after  []*item // position 1, in order

	historyID string // identifier of the chat's place
	unlisted  []Dropped
}

const (
	anchorIdentifier  = "charDescription"
	personaIdentifier = "personaDescription"
	historyName       = "Chat History"
	defaultHistoryID  = "chatHistory"
)

// buildFrame puts card and preset in the order of the preset.
func buildFrame(s *Sources, p card.Preset, o overrides) frame {
	f := frame{historyID: defaultHistoryID}
	candidates := map[string]*item{}
	add := func(identifier string, it *item) {
		if candidates[identifier] == nil {
			candidates[identifier] = it
		}
	}
	for i := range p.Prompts {
		q := &p.Prompts[i]
		switch {
		case !q.Enable || isInjection(q):
		case IsHistory(q.Name, q.Identifier):
			f.historyID = q.Identifier
		default:
			it := o.promptItem(q)
			it.persona = q.Identifier == personaIdentifier
			add(q.Identifier, it)
		}
	}
	for _, field := range cardFields {
		it := candidates[field.identifier]
		if it == nil && field.always {
			it = &item{id: field.identifier, name: field.name, role: "user", position: noPosition}
			add(field.identifier, it)
		}
		if it != nil {
			it.source, it.text = SourceCard, field.text(s.Card)
		}
	}
	listed := map[string]bool{}
	for _, place := range p.Order {
		if !place.Enabled || place.Identifier == "" {
			continue
		}
		listed[place.Identifier] = true
		if place.Identifier == f.historyID {
			f.slots = append(f.slots, placeOfChat)
		} else if it := candidates[place.Identifier]; it != nil {
			f.slots = append(f.slots, it)
		}
	}
	f.unlisted = leftOut(p, listed)
	f.addFields(s, p)
	f.addPrompts(o)
	f.anchor = f.slotOf(anchorIdentifier)
	return f
}

// slotOf is the index of the item with an identifier, -1 = none.
func (f *frame) slotOf(identifier string) int {
	return slices.IndexFunc(f.slots, func(it *item) bool { return it.id == identifier })
}

// leftOut names the prompts of a preset that have a text and no place.
func leftOut(p card.Preset, listed map[string]bool) []Dropped {
	var out []Dropped
	for _, q := range p.Prompts {
		reason := DropUnlisted
		switch {
		case isBlank(q.Content), IsHistory(q.Name, q.Identifier):
			continue
		case isInjection(&q) && listed[q.Identifier]:
			continue
		case listed[q.Identifier] && q.Enable:
			continue
		case !q.Enable:
			reason = DropDisabled
		}
		out = append(out, Dropped{Source: SourcePreset, ID: q.Identifier, Name: q.Name, Reason: reason})
	}
	return out
}

func isInjection(q *card.Prompt) bool { return q.InjectionPosition != nil && *q.InjectionPosition == 1 }

// IsHistory reports whether a prompt stands for the chat.
func IsHistory(name, identifier string) bool {
	return name == historyName || strings.Contains(strings.ToLower(identifier), "chathistory")
}

// place adds world-book entries and settings of position 0 and 1 to the frame,
// in a stable order by their order number.
func (f *frame) place(items []*item) {
	system := f.anchor >= 0 && roleOf(f.slots[f.anchor].role) == llm.System
	for _, it := range items {
		around := it.position == beforeChar || it.position == afterChar
		if system && around && (it.source == SourceBook || it.source == SourceGlobalBook) {
			it.role = string(llm.System) // as the description next to it
		}
		switch it.position {
		case beforeChar:
			f.before = append(f.before, it)
		case afterChar:
			f.after = append(f.after, it)
		}
	}
	sortByOrder(f.before)
	sortByOrder(f.after)
}

// with returns a frame that also holds items of one request.
func (f *frame) with(items []*item) *frame {
	if !slices.ContainsFunc(items, func(it *item) bool { return it.position == beforeChar || it.position == afterChar }) {
		return f
	}
	g := *f
	g.before, g.after = slices.Clone(f.before), slices.Clone(f.after)
	g.place(items)
	return &g
}

// all returns the frame in order, world-book entries included. Without an
// anchor they go before the chat, or to the end when the chat has no place.
// That is ours: the app leaves them out then.
func (f *frame) all() []*item {
	if f.anchor < 0 {
		at := f.chatAt()
		return slices.Concat(f.slots[:at], f.before, f.after, f.slots[at:])
	}
	return slices.Concat(f.slots[:f.anchor], f.before, f.slots[f.anchor:f.anchor+1], f.after, f.slots[f.anchor+1:])
}

// chatAt is the index of the slot of the chat, or that after the last one without it.
func (f *frame) chatAt() int {
	if at := slices.Index(f.slots, placeOfChat); at >= 0 {
		return at
	}
	return len(f.slots)
}

func sortByOrder(items []*item) {
	slices.SortStableFunc(items, func(a, b *item) int { return cmp.Compare(a.order, b.order) })
}
