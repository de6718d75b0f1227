package character

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"nodest/card"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// The documents of a character are stored as they were given: nothing is filled
// in, so that an export gives back what came in, and a better default reaches
// old characters too. What the NodeST app adds to a new character
// is added here, each time a prompt is compiled:
//
//   - no role card: the basic card of card.ParseRoleCard;
//   - no world book: a book with the one entry Alist (characters that were
//     made in the NodeST dialect only, since no other app has it);
//   - no preset: the built-in one without what it puts behind the chat, where it
//     would say the user's message a second time; a preset that lacks one of the
//     five required prompts gets the built-in text, which stays silent unless its
//     order lists it; an order without the chat history gets it before
//     contextInstruction, else at its end.
//
// Built-in texts are in the language of the character.

// sources returns the character's own documents as a prompt is built from them.
func (ch *Character) sources(set *Settings) (framework.Sources, error) {
	s := framework.Sources{Dialect: card.Dialect(ch.Dialect), CardFields: framework.CardFields(set.Prompt.CardFields)}
	var err error
	if s.Card, err = card.ParseRoleCard(ch.RoleCard); err != nil {
		return s, err
	}
	if s.Book, err = card.ParseWorldBook(ch.WorldBook, s.Dialect); err != nil {
		return s, err
	}
	if op.IsNull(ch.WorldBook) && s.Dialect == card.NodeST {
		s.Book = attributeBook(s.Card)
	}
	s.Card.Nickname = Nickname(s.Card)
	s.Language = set.language(s.Card)
	preset, err := card.ParsePreset(ch.Preset)
	s.Preset = &preset
	return s, err
}

// attributeBook is the world book of a character that came without one: its
// attributes, again, close to the end of the chat.
func attributeBook(c card.RoleCard) card.WorldBook {
	var b strings.Builder
	b.WriteString("<attributes>\n  <name>" + c.Name + "</name>\n")
	if p := strings.TrimSpace(c.Personality); p != "" {
		b.WriteString("  <personality>" + p + "</personality>\n")
	}
	b.WriteString("</attributes>")
	return card.WorldBook{Entries: []card.Entry{{
		ID: "Alist", Comment: "Character Attributes List", Content: b.String(),
		Constant: true, Position: card.AtDepth, Order: 1, Depth: 1,
	}}}
}

// requiredPrompts are those that every preset has, whatever its document says.
var requiredPrompts = []string{
	"characterSystem", "characterConfirmation", "characterIntro", "contextInstruction", "continuePrompt",
}

// completed returns a copy of p with the parts that every preset has, in a language.
func completed(p card.Preset, l framework.Language) *card.Preset {
	if p.BuiltIn {
		builtIn := framework.BuiltInPreset(l, false)
		builtIn.Name, builtIn.Sampling = p.Name, p.Sampling
		return &builtIn
	}
	p.Prompts = slices.Clip(p.Prompts)
	history := "chatHistory"
	has := map[string]bool{}
	for _, prompt := range p.Prompts {
		has[prompt.Identifier] = true
		if framework.IsHistory(prompt.Name, prompt.Identifier) {
			history = prompt.Identifier
		}
	}
	for _, prompt := range framework.BuiltInPreset(l, true).Prompts {
		if slices.Contains(requiredPrompts, prompt.Identifier) && !has[prompt.Identifier] {
			p.Prompts = append(p.Prompts, prompt)
		}
	}
	listed := func(id string) int {
		return slices.IndexFunc(p.Order, func(o card.OrderItem) bool { return o.Identifier == id })
	}
	if listed(history) < 0 {
		at := listed("contextInstruction")
		if at < 0 {
			at = len(p.Order)
		}
		p.Order = slices.Insert(slices.Clone(p.Order), at, card.OrderItem{Identifier: history, Enabled: true})
	}
	return &p
}

// check refuses documents that are of another kind than they should be.
func (in Input) check() error {
	if err := checkDialect(in.Dialect); err != nil {
		return err
	}
	for _, d := range []struct {
		field string
		kind  ResourceKind
		doc   json.RawMessage
	}{
		{"roleCard", "", in.RoleCard}, {"worldBook", WorldBook, in.WorldBook}, {"preset", Preset, in.Preset},
		{"regexScripts", RegexScript, in.RegexScripts},
	} {
		if err := checkDocument(d.field, d.kind, d.doc); err != nil {
			return err
		}
	}
	if !op.IsNull(in.RoleCard) && CardName(in.RoleCard) == "" {
		return card.NoName("roleCard.name")
	}
	return CheckNote("authorNote", in.AuthorNote)
}

// checkDocument refuses a document that is none of its kind; "" is a role card. An
// absent one passes.
func checkDocument(field string, kind ResourceKind, doc json.RawMessage) error {
	kinds := "{"
	if kind == RegexScript {
		kinds = "{["
	}
	if err := op.CheckKind(field, doc, kinds); err != nil {
		return err
	}
	var err error
	switch kind {
	case "":
		_, err = card.ParseRoleCard(doc)
	case WorldBook:
		_, err = card.ParseWorldBook(doc, card.NodeST)
	case Preset:
		_, err = card.ParsePreset(doc)
	case RegexScript:
		_, err = card.ParseRegexScripts(doc)
	case Persona:
		p, err := readPersona(field, doc)
		if err != nil {
			return err
		}
		return p.checkPlace(field)
	case Template: // nothing reads its members
	default:
		return fault.New(fault.NotFound, "unknown kind %q", kind)
	}
	if err != nil {
		return op.InField(field, err)
	}
	return nil
}

func checkDialect(dialect string) error {
	switch card.Dialect(dialect) {
	case "", card.NodeST, card.SillyTavern:
		return nil
	}
	return fault.InvalidField("dialect", "range", "must be %s or %s", card.NodeST, card.SillyTavern)
}

// CheckNote refuses an author's note that would not do what it says: a role, depth, position or
// interval that does not exist. An absent note passes.
func CheckNote(field string, doc json.RawMessage) error {
	if op.IsNull(doc) {
		return nil
	}
	if err := op.CheckKind(field, doc, "{"); err != nil {
		return err
	}
	var note struct {
		Content *string  `json:"content"`
		Role    *string  `json:"role"`
		Depth   *float64 `json:"injection_depth"`

		Position *float64 `json:"position"`
		Interval *float64 `json:"interval"`
		Scan     *bool    `json:"allow_wi_scan"`
	}
	if err := op.DecodeLenient(field, doc, &note); err != nil {
		return err
	}
	if note.Role != nil && !slices.Contains([]string{"", "user", "model", "assistant", "system"}, *note.Role) {
		return fault.InvalidField(field+".role", "range", "must be one of user, model, assistant, system")
	}
	c := op.Checks{Path: field}
	for _, n := range []struct {
		name  string
		value *float64
		most  float64
	}{{"injection_depth", note.Depth, 10_000}, {"position", note.Position, 2}, {"interval", note.Interval, 10_000}} {
		op.Between(&c, n.name, n.value, 0, n.most)
		c.That(n.value == nil || *n.value == math.Trunc(*n.value), n.name, "type", "must be a whole number")
	}
	return c.Err()
}

// CardName is the name that a role card of any version says; "" without one.
func CardName(doc json.RawMessage) string {
	var in struct {
		Name     any `json:"name"`
		CharName any `json:"char_name"`
		Data     struct {
			Name any `json:"name"`
		} `json:"data"`
	}
	_ = json.Unmarshal(doc, &in) // values of other types are not read, so they give no name
	return firstName(in.Data.Name, in.Name, in.CharName)
}

// firstName is the first of the values that is a text and not blank, else "".
func firstName(values ...any) string {
	for _, v := range values {
		if s, ok := v.(string); ok && OneLine(s) != "" {
			return OneLine(s)
		}
	}
	return ""
}

// Nickname replaces the character's name in {{char}}; "" = none.
func Nickname(c card.RoleCard) string { return op.Truncate(OneLine(c.Nickname), maxCharacterName) }

// OneLine makes a name of a document fit to be shown in a list: no control
// characters, no blanks around it.
func OneLine(s string) string {
	s = strings.ToValidUTF8(s, "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}

// EmbeddedIn takes the world book and the regex scripts out of a role card; nil for
// what it does not have.
func EmbeddedIn(roleCard json.RawMessage) (book, scripts json.RawMessage, err error) {
	if book, scripts, err = card.Embedded(roleCard); err != nil {
		err = op.InField("roleCard", err)
	}
	return book, scripts, err
}
