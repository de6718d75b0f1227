package chat

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"nodest/card"
	"nodest/character"
	"nodest/internal/fault"

	"nodest/internal/op"
)

// NewGreeting is the first message of a conversation: the card's first message and
// its alternate greetings, a swipe each, followed by the extra greetings of a file
// of the NodeST app. Names are replaced in the stored text; a later change of persona or
// character does not change it.
func NewGreeting(tx Tx, ch *character.Character, conversationID, user string) (*Message, error) {
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
	n := namer{char: cmp.Or(character.Nickname(view), ch.Name), user: user, old: card.Dialect(ch.Dialect) == card.SillyTavern, left: maxNamed}
	for _, text := range append(view.Greetings(), more...) {
		m.Swipes = append(m.Swipes, NewSwipe(n.named(text), now))
	}
	return m, nil
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
	user, err := UserNameIn(tx, ch, chat)
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

// maxNamed bounds the bytes that names add to the greetings of a card, so that a long
// name cannot make a small card huge. Macros beyond the limit stay.
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

// UserNameIn is character.UserName in a conversation that exists: its persona may have been
// deleted since.
func UserNameIn(tx Tx, ch *character.Character, conv *Conversation) (string, error) {
	name, err := character.UserName(tx.Characters, ch, conv.PersonaID)
	if fault.Is(err, fault.NotFound) {
		return character.UserName(tx.Characters, ch, "")
	}
	return name, err
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
		if s.Text != fresh.Text { // the model's reasoning and usage belong to the old text
			fresh.ID, fresh.Rev, fresh.CreatedAt = s.ID, s.Rev+1, s.CreatedAt
			*s = fresh
		}
	}
	m.SwipeIndex, m.Status, m.Error = 0, StatusComplete, nil
	return nil
}
