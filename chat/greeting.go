package chat

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"nodest/card"
	"nodest/character"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// NewGreeting is the first message of a conversation: the card's first message and
// its alternate greetings, a swipe each, followed by the extra greetings of a file
// of the NodeST app. Names are replaced in the stored text, and in the SillyTavern dialect all macros;
// a later change of persona or character does not change it.
func NewGreeting(tx Tx, ch *character.Character, conversationID string, user framework.Persona) (*Message, error) {
	view, err := card.ParseRoleCard(ch.RoleCard)
	if err != nil {
		return nil, err
	}
	more, err := extraGreetings(tx, ch)
	if err != nil {
		return nil, err
	}
	now := tx.Now()
	m := &Message{
		ID: op.NewID(), ConversationID: conversationID, Role: RoleAssistant, Name: ch.Name,
		Greeting: true, Rev: 1, Status: StatusComplete, Dates: Dates{CreatedAt: now},
	}
	n := namer{char: cmp.Or(character.Nickname(view), ch.Name), user: user.Name, left: maxNamed}
	if card.Dialect(ch.Dialect) == card.SillyTavern {
		n.old = true
		return m, n.expand(tx, m, ch, &view, user)
	}
	for _, text := range append(view.Greetings(), more...) {
		m.Swipes = append(m.Swipes, NewSwipe(n.named(text), now))
	}
	return m, nil
}

// expand gives m the greetings of a card of the SillyTavern dialect. Their macros are replaced once, when the
// chat begins, as in SillyTavern. Each greeting has the variables that it sets, and can read the user's. In a text
// that would grow too large with its variables, only names are replaced.
func (n *namer) expand(tx Tx, m *Message, ch *character.Character, view *card.RoleCard, user framework.Persona) error {
	settings, err := tx.Characters.Settings()
	if err != nil {
		return err
	}
	globals, err := tx.Characters.Variables()
	if err != nil {
		return err
	}
	language, err := ch.Language()
	if err != nil {
		return err
	}
	env := &macro.Env{
		Names: macro.People{User: n.user, Char: n.char}, Now: tx.Now().In(settings.Zone()), Rand: rand.Float64, Seed: op.Seed(m.ConversationID),
		Card: macro.Card{
			Description: view.Description, Personality: view.Personality, Scenario: view.Scenario, Persona: user.Description,
			MesExamples: view.MesExample, CharPrompt: view.SystemPrompt, CharInstruction: view.PostHistoryInstructions,
			DepthPrompt: view.DepthPrompt.Prompt, CreatorNotes: view.CreatorNotes, Greetings: view.Greetings(), Version: view.Version,
		},
	}
	if language == framework.Chinese {
		env.Locale = macro.Chinese
	}
	for _, text := range view.Greetings() {
		env.Local = macro.NewVars(nil)
		if env.Global == nil || env.Global.Changed() {
			env.Global = macro.NewVars(nil)
			_ = json.Unmarshal(globals, env.Global) // it was checked when it was stored
		}
		made, p := env.Expand(text), Play{ConversationID: m.ConversationID}
		if len(env.Local.All()) > 0 {
			p.Variables = op.MustJSON(env.Local)
		}
		more := max(0, len(made)+len(p.Variables)-len(text))
		if more > n.left {
			m.Swipes = append(m.Swipes, NewSwipe(n.named(text), m.CreatedAt))
			continue
		}
		n.left -= more
		s := NewSwipe(made, m.CreatedAt)
		if !p.IsEmpty() && p.Fits() {
			p.ID = op.NewID()
			s.Play, s.PlayID = &p, p.ID
		}
		m.Swipes = append(m.Swipes, s)
	}
	return nil
}

// FreshGreeting is a new greeting for an existing conversation, from the card in effect:
// the newest, or that of a restored save point. Its default text is "Hello!".
func FreshGreeting(tx Tx, chat *Conversation) (*Message, error) {
	ch, err := tx.Characters.CharacterCard(chat.CharacterID)
	if err != nil {
		return nil, err
	}
	if pins := chat.pinsOf(ch.ID); pins != nil {
		counts := pins.StampsInForce(&character.Stamps{Character: ch.Version}, nil)
		if ch, err = character.At(tx.Characters, ch.ID, counts.Character); err != nil {
			return nil, err
		}
	}
	user, err := userIn(tx, ch, chat)
	if err != nil {
		return nil, err
	}
	m, err := NewGreeting(tx, ch, chat.ID, user)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(m.Text()) == "" {
		m.Swipes[0].Text = "Hello!"
	}
	return m, nil
}

// extraGreetings are those that a file of the NodeST app has beside its card.
func extraGreetings(tx Tx, ch *character.Character) ([]string, error) {
	if ch.Dialect != string(card.NodeST) {
		return nil, nil // no other file has any, and it may be large
	}
	source, err := tx.Characters.CharacterSource(ch.ID, ch.Version)
	if err != nil || len(source) == 0 {
		return nil, err
	}
	var kept struct {
		Extra json.RawMessage `json:"extra"`
	}
	_ = json.Unmarshal(source, &kept) // values of odd types are not read
	return card.ExtraGreetings(kept.Extra)
}

// NewSwipe is a text that was not made by a model of ours.
func NewSwipe(text string, now time.Time) Swipe {
	return Swipe{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: CleanText(text), Finish: "stop", CreatedAt: now}
}

// CleanText removes what a database cannot store as text.
func CleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

var (
	nameMacro = regexp.MustCompile(`(?i)\{\{(char|user)\}\}`)
	oldMacro  = regexp.MustCompile(`(?i)<(char|bot|user)>`) // SillyTavern cards only
)

// maxNamed bounds the bytes that macros add to the greetings of a card, so that a small
// card cannot make a huge chat. Macros beyond the limit stay.
const maxNamed = 1 << 20

// namer replaces name macros in the texts of a card. Other macros are replaced in each
// prompt.
type namer struct {
	char, user string
	old        bool // the card may hold old macros
	left       int  // bytes that names may still add
}

func (n *namer) named(text string) string {
	put := func(macro string) string {
		name := n.char
		if strings.EqualFold(strings.Trim(macro, "{}<>"), "user") {
			name = n.user
		}
		if len(name) > n.left {
			return macro
		}
		n.left -= len(name)
		return name
	}
	text = nameMacro.ReplaceAllStringFunc(text, put)
	if n.old {
		text = oldMacro.ReplaceAllStringFunc(text, put)
	}
	return text
}

// UserNameIn is the name of userIn.
func UserNameIn(tx Tx, ch *character.Character, conv *Conversation) (string, error) {
	p, err := userIn(tx, ch, conv)
	return p.Name, err
}

// userIn is character.UserPersona in a conversation that exists: its persona may have been
// deleted since.
func userIn(tx Tx, ch *character.Character, conv *Conversation) (framework.Persona, error) {
	p, err := character.UserPersona(tx.Characters, ch, conv.PersonaID)
	if fault.Is(err, fault.NotFound) {
		return character.UserPersona(tx.Characters, ch, "")
	}
	return p, err
}

// RestoreGreeting puts the texts of the card into a greeting.
func RestoreGreeting(tx Tx, conv *Conversation, m *Message) error {
	now, err := FreshGreeting(tx, conv)
	if err != nil {
		return err
	}
	for i, fresh := range now.Swipes {
		if i == len(m.Swipes) {
			m.Swipes = append(m.Swipes, fresh)
			continue
		}
		s := &m.Swipes[i]
		s.Deleted = false
		if s.Text != fresh.Text || s.PlayID != "" || fresh.PlayID != "" { // the model's reasoning and usage belong to the old text
			fresh.ID, fresh.Rev, fresh.CreatedAt = s.ID, s.Rev+1, s.CreatedAt
			*s = fresh
		}
	}
	m.SwipeIndex, m.Status, m.Error = 0, StatusComplete, nil
	return nil
}
