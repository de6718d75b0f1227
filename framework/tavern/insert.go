package tavern

import (
	"cmp"
	"slices"
	"strings"

	"nodest/framework"
	"nodest/llm"
)

// The keys of what goes into the chat besides prompts of the preset. At one depth they are in the
// order of these keys, as in SillyTavern.
const (
	keyPreset  = "" // first
	keyNote    = "2_floating_prompt"
	keyDeep    = "DEPTH_PROMPT"
	keyPersona = "PERSONA_DESCRIPTION"
	keyWorld   = "customDepthWI"
	keySetting = "setting" // NodeST's own
)

// insertion is a text at a depth of the chat.
type insertion struct {
	id    string // identifier of a prompt
	depth int    // messages behind it
	order int
	role  llm.Role
	key   string
	parts []part
}

func (b *builder) addInsertion(x insertion) {
	x.depth = max(x.depth, 0)
	for i := range x.parts {
		e := &x.parts[i].entry
		depth := x.depth
		e.Role, e.Depth = x.role, &depth
	}
	b.inserts = append(b.inserts, x)
}

// inject puts a prompt of the preset into the chat.
func (b *builder) inject(q *place, p *piece) {
	depth := defaultDepth
	if q.InjectionDepth != nil {
		depth = *q.InjectionDepth
	}
	for i := range p.parts {
		p.parts[i].sep = "\n"
	}
	b.addInsertion(insertion{id: q.Identifier, depth: depth, order: q.InjectionOrder, role: p.role, key: keyPreset, parts: p.parts})
}

// besideMain puts a message next to a main prompt that is in the chat, and to the beginning where
// there is no main prompt at all.
func (b *builder) besideMain(p *piece, before bool) {
	at := slices.IndexFunc(b.inserts, func(x insertion) bool { return x.id == idMain })
	if at < 0 {
		b.slots = slices.Insert(b.slots, 0, slot{id: idMain, pieces: []*piece{p}})
		return
	}
	main := b.inserts[at]
	b.addInsertion(insertion{depth: main.depth, order: main.order, role: p.role, key: keyPreset, parts: p.parts})
	last := len(b.inserts) - 1
	note := b.inserts[last]
	if !before {
		at++
	}
	b.inserts = slices.Insert(b.inserts[:last], at, note)
}

// buildInjections adds what the card, the persona and the world books have for the chat.
func (b *builder) buildInjections() {
	t, deep := &b.texts, &b.c.card.DepthPrompt
	one := func(key string, depth int, role llm.Role, text string, e framework.Entry) {
		if text = strings.TrimSpace(text); text != "" {
			b.addInsertion(insertion{depth: depth, order: usualOrder, role: role, key: key, parts: []part{{text: text, sep: "\n", entry: e}}})
		}
	}
	one(keyDeep, deep.Depth, RoleOf(deep.Role), t.deep, framework.Entry{
		Source: framework.SourceCard, ID: "depth_prompt", Name: "Depth Prompt", Why: framework.WhyConstant,
	})
	if p := b.in.Persona.Place; p.Position == framework.PersonaAtDepth {
		one(keyPersona, p.Depth, cmp.Or(p.Role, llm.System), t.persona, framework.Entry{
			Source: framework.SourcePersona, ID: idPersona, Name: sectionNames[idPersona], Why: framework.WhyConstant,
		})
	}
	for _, g := range b.world.Depth {
		b.addInsertion(insertion{depth: g.Depth, order: usualOrder, role: roleOfNumber(g.Role), key: keyWorld, parts: b.placed(g.Texts, 4)})
	}
}

// inserted is what goes to one depth, as messages in reading order.
type inserted struct {
	depth  int
	pieces []*piece
}

// insertedByDepth groups the insertions, the deepest first. Of one depth, low orders come before
// high ones; within an order the assistant speaks first, then the user, then the system, each in
// one message.
func (b *builder) insertedByDepth() []inserted {
	list := slices.Clone(b.inserts)
	ranks := map[llm.Role]int{llm.Assistant: 0, llm.User: 1, llm.System: 2}
	slices.SortStableFunc(list, func(x, y insertion) int {
		return cmp.Or(cmp.Compare(y.depth, x.depth), cmp.Compare(x.order, y.order), cmp.Compare(ranks[x.role], ranks[y.role]), cmp.Compare(x.key, y.key))
	})
	var groups []inserted
	for i, x := range list {
		same := i > 0 && list[i-1].depth == x.depth
		if !same {
			groups = append(groups, inserted{depth: x.depth})
		}
		g := &groups[len(groups)-1]
		if same && list[i-1].order == x.order && list[i-1].role == x.role {
			last := g.pieces[len(g.pieces)-1]
			last.parts = append(last.parts, x.parts...)
			continue
		}
		g.pieces = append(g.pieces, &piece{role: x.role, parts: slices.Clone(x.parts)})
	}
	for _, g := range groups {
		for _, p := range g.pieces {
			first, last := &p.parts[0], &p.parts[len(p.parts)-1]
			first.text = strings.TrimLeft(first.text, " \t\r\n")
			last.text = strings.TrimRight(last.text, " \t\r\n")
		}
	}
	return groups
}
