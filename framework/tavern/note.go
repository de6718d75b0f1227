package tavern

import (
	"cmp"
	"strings"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
	"nodest/llm"
)

// cardTexts are the texts of the card, the persona and the note, with macros replaced.
type cardTexts struct {
	description, personality, scenario, persona, examples string

	note     Note
	noteText string // text of the note as it is before world info; "" = none
	due      bool   // the note is in this prompt
	deep     string // the depth prompt of the card
}

// Due reports whether a note is in a prompt of a chat with so many messages of the user.
func (n *Note) Due(users int) bool {
	switch {
	case users <= 0 || n.Interval <= 0:
		return false
	case n.Interval == 1:
		return true
	}
	return users >= n.Interval && users%n.Interval == 0
}

// noteOf is the author's note of a turn. An input's own is always due, at its depth.
func (b *builder) noteOf() Note {
	switch {
	case b.play.Note != nil:
		return *b.play.Note
	case b.in.Note != nil:
		return Note{Text: b.in.Note.Text, Position: InChat, Depth: b.in.Note.Depth, Role: RoleOf(b.in.Note.Role), Interval: 1}
	}
	return Note{Position: InChat, Depth: defaultDepth, Role: llm.System, Interval: 1}
}

// defaultDepth is that of notes, prompts and entries without one.
const defaultDepth = 4

// readCard replaces the macros in the texts of the card, each once.
func (b *builder) readCard() {
	c, over, t := &b.c.card, &b.play.Overrides, &b.texts
	b.env.Card = macro.Card{
		Description: c.Description, Personality: c.Personality, Scenario: cmp.Or(over.Scenario, c.Scenario),
		Persona: b.in.Persona.Description, MesExamples: cmp.Or(over.MesExample, c.MesExample),
		CharPrompt: cmp.Or(over.SystemPrompt, c.SystemPrompt), CharInstruction: c.PostHistoryInstructions,
		DepthPrompt: c.DepthPrompt.Prompt, CreatorNotes: c.CreatorNotes, Greetings: c.Greetings(), Version: c.Version,
	}
	t.description = b.expand(c.Description)
	t.personality = b.expand(c.Personality)
	t.scenario = b.expand(b.env.Card.Scenario)
	t.persona = b.expand(b.in.Persona.Description)
	t.examples = b.expand(b.env.Card.MesExamples)
	t.deep = b.expand(c.DepthPrompt.Prompt)
	t.note = b.noteOf()
	if t.due = t.note.Due(b.chat.users); t.due {
		t.noteText = b.expand(t.note.Text)
	} else if text := t.note.Text; text != "" {
		b.drop(framework.SourceNote, "", "Author Note", dropNotDue)
	}
}

// dropNotDue is the reason of an author's note whose turn it is not.
const dropNotDue = "not_due"

// expand replaces the macros in a text of the card.
func (b *builder) expand(text string) string {
	return strings.ReplaceAll(b.env.Expand(strings.TrimSpace(text)), "\r", "")
}

// scan decides about the entries of the world books.
func (b *builder) scan() (err error) {
	t, c := &b.texts, &b.c.card
	in := &worldinfo.Input{
		Messages: b.scanned(), Before: b.before(),
		Texts: worldinfo.Texts{
			Persona: t.persona, Description: t.description, Personality: t.personality, DepthPrompt: t.deep, Scenario: t.scenario,
			CreatorNotes: b.expand(c.CreatorNotes),
		},
		Settings: worldinfo.DefaultSettings(), Context: b.in.Options.Context - b.in.Options.Reserve,
		Trigger: string(b.task), Character: b.c.character, Greeting: b.play.Greeting,
		Timed: b.play.State.Timed, Forced: b.play.Forced, Explain: b.play.Explain,
		Tools: worldinfo.Tools{Expand: b.env.Expand, Count: b.common.Count, Rand: b.env.Rand, Rewrite: b.rewrite, Cache: b.in.Cache.Memo()},
	}
	if b.play.WorldInfo != nil {
		in.Settings = *b.play.WorldInfo
	}
	if b.in.Options.Context <= 0 {
		in.Context = unlimited
	}
	if t.note.Scan {
		in.Injections = append(in.Injections, t.noteText, t.deep)
	}
	if b.in.Persona.Place.Position == framework.PersonaAtDepth {
		in.Injections = append(in.Injections, t.persona)
	}
	if b.task == Quiet && b.in.Instruction != nil {
		in.Injections = append(in.Injections, b.env.Expand(b.in.Instruction.Text))
	}
	if b.world, err = b.c.world.Scan(b.ctx, in); err != nil {
		return err
	}
	for name, block := range b.world.Outlets {
		if b.env.Outlets == nil {
			b.env.Outlets = map[string]string{}
		}
		b.env.Outlets[name] = worldinfo.Text(block)
	}
	b.explain()
	return nil
}

// unlimited is the context of a model without a limit, in tokens.
const unlimited = 1 << 30

// explain reports the entries that are not used.
func (b *builder) explain() {
	for i := range b.world.Verdicts {
		if v := &b.world.Verdicts[i]; !v.Fires {
			b.dropped = append(b.dropped, framework.Dropped{Source: b.sourceOf(v.ID), ID: v.ID, Name: v.Name, Reason: v.Reason, Tokens: v.Tokens})
		}
	}
	for _, key := range b.world.Slow {
		b.warn("slow_pattern", "worldBook", "the pattern "+key+" of a key took too long; it was skipped")
	}
}

// sourceOf says whose book an entry is from; its id is "book.uid".
func (b *builder) sourceOf(id string) framework.Source {
	if at := strings.LastIndexByte(id, '.'); at >= 0 && b.c.global[id[:at]] {
		return framework.SourceGlobalBook
	}
	return framework.SourceBook
}

// placed makes parts of the entries of a block. at is the position by SillyTavern's numbers.
func (b *builder) placed(block []worldinfo.Placed, at int) []part {
	parts := make([]part, len(block))
	for i, e := range block {
		x := part{text: e.Text, sep: "\n", order: e.Order, optional: optionalEntry}
		x.entry = framework.Entry{Source: b.sourceOf(e.ID), ID: e.ID, Name: e.Name, Why: e.Why, Key: e.Key, Position: &at}
		if e.Why == worldinfo.WhyKey {
			x.optional = optionalKeyed
		}
		parts[i] = x
	}
	return parts
}

// How readily parts are left out where mandatory ones do not fit.
const (
	optionalEntry = 1
	optionalKeyed = 2
)

// rewrite runs the scripts for world info over the text of an entry.
func (b *builder) rewrite(text string, depth *int) string {
	o := framework.Occasion{Placement: card.PlaceWorldInfo, IsPrompt: true, NoDepth: depth == nil}
	if depth != nil {
		o.Depth = *depth
	}
	return b.scripts.Apply(text, o)
}
