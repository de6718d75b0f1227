package tavern

import (
	"cmp"
	"slices"
	"strings"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/worldinfo"
)

// The identifiers of prompts that are places for texts of the card or the chat, and of two whose
// texts cards can replace.
const (
	idMain        = "main"
	idPostHistory = "jailbreak"
	idWorldBefore = "worldInfoBefore"
	idWorldAfter  = "worldInfoAfter"
	idPersona     = "personaDescription"
	idDescription = "charDescription"
	idPersonality = "charPersonality"
	idScenario    = "scenario"
	idExamples    = "dialogueExamples"
	idHistory     = "chatHistory"
)

// sectionNames are the names of places that a preset does not name.
var sectionNames = map[string]string{
	idWorldBefore: "World Info (before)", idWorldAfter: "World Info (after)", idPersona: "Persona Description",
	idDescription: "Char Description", idPersonality: "Char Personality", idScenario: "Scenario",
	idExamples: "Chat Examples", idHistory: "Chat History",
}

// builtInOrder is SillyTavern's, for presets without an order list.
var builtInOrder = []card.OrderItem{
	{Identifier: idMain, Enabled: true}, {Identifier: idWorldBefore, Enabled: true}, {Identifier: idPersona, Enabled: true},
	{Identifier: idDescription, Enabled: true}, {Identifier: idPersonality, Enabled: true}, {Identifier: idScenario, Enabled: true},
	{Identifier: "enhanceDefinitions"}, {Identifier: "nsfw", Enabled: true}, {Identifier: idWorldAfter, Enabled: true},
	{Identifier: idExamples, Enabled: true}, {Identifier: idHistory, Enabled: true}, {Identifier: idPostHistory, Enabled: true},
}

// Compiled are documents made ready for building. It is immutable and safe for concurrent use.
type Compiled struct {
	card      card.RoleCard
	preset    card.Preset
	places    []place // in the order of the preset
	world     *worldinfo.Book
	global    map[string]bool // names of the books that all characters have
	character worldinfo.Character
	dropped   []framework.Dropped // whatever the request
	warnings  []framework.Warning
}

// place is a prompt in the order of a preset.
type place struct {
	card.Prompt
	off   bool // switched off
	added bool // the order does not list it
}

// Compile prepares documents. It never fails: what cannot be used is reported by Build as a
// dropped candidate.
func Compile(s Sources) *Compiled {
	c := &Compiled{card: s.Card, global: map[string]bool{}, character: s.Character, world: worldinfo.Compile(s.Books...)}
	c.character.File = cmp.Or(c.character.File, s.Card.Name)
	if c.character.Tags == nil {
		c.character.Tags = s.Card.Tags
	}
	for _, b := range s.Books {
		if b.Origin == worldinfo.Global {
			c.global[b.Name] = true
		}
	}
	c.preset = builtIn(s.Language)
	if p := s.Preset; p != nil && !p.BuiltIn {
		c.preset = *p
	} else if p != nil { // it has settings, but no prompts
		c.preset.Behaviour, c.preset.Sampling = p.Behaviour, p.Sampling
	}
	c.order()
	if s.CardFields == framework.ListedFields {
		c.appendMissing()
	} else {
		c.placeMissing()
	}
	c.placeHistory()
	return c
}

// Size estimates the memory of c, in bytes, without the texts of the documents.
func (c *Compiled) Size() int { return c.world.Size() + len(c.places)*placeBytes }

// Vectorized returns the world-book entries that a search by meaning may bring in (Play.Forced).
func (c *Compiled) Vectorized() *worldinfo.Vectorized { return c.world.Vectorized() }

// placeBytes is the estimated size of a prompt of a preset.
const placeBytes = 400

// name is what {{char}} stands for: in SillyTavern the name, even if there is a nickname.
func (c *Compiled) name() string { return c.card.Name }

// order puts the prompts in the order of the preset. Identifiers without a prompt are left out, but
// sections have their places even then. Of prompts with one identifier the first one counts.
func (c *Compiled) order() {
	list := c.preset.TavernOrder
	if list == nil {
		list = builtInOrder
	}
	prompts, listed := c.byIdentifier(), map[string]bool{}
	for _, item := range list {
		q := prompts[item.Identifier]
		if q == nil && sectionNames[item.Identifier] != "" {
			q = section(item.Identifier)
		}
		if q == nil || listed[item.Identifier] {
			continue
		}
		listed[item.Identifier] = true
		p := place{Prompt: *q, off: !item.Enabled || !q.Enable}
		if p.NoRole {
			p.Role = "system"
		}
		c.places = append(c.places, p)
		if p.off && strings.TrimSpace(p.Content) != "" {
			c.drop(q, framework.DropDisabled)
		}
	}
	for i := range c.preset.Prompts {
		if q := &c.preset.Prompts[i]; !listed[q.Identifier] && strings.TrimSpace(q.Content) != "" {
			c.drop(q, framework.DropUnlisted)
		}
	}
}

// byIdentifier are the prompts of the preset, the first one of each identifier.
func (c *Compiled) byIdentifier() map[string]*card.Prompt {
	prompts := map[string]*card.Prompt{}
	for i := range c.preset.Prompts {
		if q := &c.preset.Prompts[i]; prompts[q.Identifier] == nil {
			prompts[q.Identifier] = q
		}
	}
	return prompts
}

func (c *Compiled) drop(q *card.Prompt, reason string) {
	c.dropped = append(c.dropped, framework.Dropped{Source: framework.SourcePreset, ID: q.Identifier, Name: q.Name, Reason: reason})
}

func section(id string) *card.Prompt {
	return &card.Prompt{Identifier: id, Name: sectionNames[id], Enable: true, Role: "system", InjectionOrder: usualOrder}
}

// index is that of a prompt among the places; -1 = it has none.
func (c *Compiled) index(id string) int {
	return slices.IndexFunc(c.places, func(p place) bool { return p.Identifier == id })
}

// appendMissing puts the sections that the order does not list behind everything, as SillyTavern
// does. Examples and the prompts of the card are lost there.
func (c *Compiled) appendMissing() {
	for _, id := range []string{idWorldBefore, idWorldAfter, idDescription, idPersonality, idScenario, idPersona} {
		if c.index(id) < 0 {
			c.places = append(c.places, place{Prompt: *section(id), added: true})
		}
	}
}

// placeMissing puts the persona to the description, and the other sections that the order does not
// list before the chat; the prompts that the card can replace come first and last.
func (c *Compiled) placeMissing() {
	for _, id := range []string{idWorldBefore, idDescription, idPersonality, idScenario, idWorldAfter, idExamples, idPersona} {
		if c.index(id) >= 0 {
			continue
		}
		at := c.index(idHistory)
		if description := c.index(idDescription); id == idPersona && description >= 0 {
			at = description
		}
		if at < 0 {
			at = len(c.places)
		}
		c.places = slices.Insert(c.places, at, place{Prompt: *section(id), added: true})
	}
	if c.index(idMain) < 0 {
		c.places = slices.Insert(c.places, 0, place{Prompt: card.Prompt{Identifier: idMain, Enable: true, Role: "system"}, added: true})
	}
	if c.index(idPostHistory) < 0 {
		c.placeHistory()
		c.places = append(c.places, place{Prompt: card.Prompt{Identifier: idPostHistory, Enable: true, Role: "system"}, added: true})
	}
}

// placeHistory gives the chat a place: a reply without it answers nothing.
func (c *Compiled) placeHistory() {
	at := c.index(idHistory)
	switch {
	case at < 0:
		c.places = append(c.places, place{Prompt: *section(idHistory), added: true})
	case c.places[at].off:
		c.places[at].off = false
	default:
		return
	}
	c.warnings = append(c.warnings, framework.Warning{
		Code: "no_history", Path: "preset", Detail: "the preset has no place for the chat, or has switched it off; the chat is in the prompt all the same",
	})
}
