package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/card"
	"nodest/character"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// maxDisplay bounds what scripts make of a text for its readers, in code points. Of what is longer,
// readers see the text itself.
const maxDisplay = 4 * MaxText

// display sets Message.Display where display-only scripts of the chat change how a text looks. All messages
// are of the shown branch, or of another one, and follow each other. It reports whether the chat has such scripts.
// They share the time of one prompt; when that is over, the rest is shown as it is. Messages are readable whatever
// happens here: after an error they are shown as they are. The scripts run outside of any transaction.
func (svc *Service) display(ctx context.Context, userID string, conv *Conversation, messages []*Message) (has bool) {
	d, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*displaying, error) {
		return svc.readDisplaying(tx, conv, messages)
	})
	if err != nil {
		if ctx.Err() != nil || fault.Is(err, fault.NotFound) { // the character is gone
			return false
		}
		svc.opts.Log.Warn("texts are shown without display scripts", "conversation", conv.ID, "err", err)
		return false
	}
	if d == nil {
		return false
	}
	run := d.setup.Docs.Scripts.Run(nil).With(d.macros)
	depth := d.behind
	for _, m := range messages {
		if !m.Hidden {
			depth++
		}
	}
	for _, m := range messages {
		at := framework.NoDepth
		if !m.Hidden {
			depth--
			at = depth
		}
		shown := m.Chosen()
		if shown == nil {
			continue
		}
		text := run.Display(m.Role, shown.Text, at)
		if text != shown.Text && utf8.RuneCountInString(text) <= maxDisplay {
			m.Display = &text
		}
	}
	return true
}

// displaying is the input of display scripts.
type displaying struct {
	setup  *Setup
	macros *macro.Env
	behind int // visible messages that follow the last one
}

// readDisplaying returns nil for a chat without display scripts.
func (svc *Service) readDisplaying(tx Tx, conv *Conversation, messages []*Message) (*displaying, error) {
	s, err := readSetup(tx, conv, character.TurnOptions{}, svc.characters.DisplayDocuments)
	if s == nil || err != nil {
		return nil, err
	}
	d := &displaying{setup: s}
	if d.macros, err = s.displayMacros(tx); err != nil {
		return nil, err
	}
	if len(messages) > 0 {
		d.behind, err = behindOf(tx, conv, messages[len(messages)-1])
	}
	return d, err
}

// behindOf is how many messages follow m on the shown branch, without hidden ones: SillyTavern counts depths
// without them, as prompts do. 0 = m is not on that branch, or the last.
func behindOf(tx Tx, conv *Conversation, m *Message) (int, error) {
	if m.ID == conv.HeadID || conv.HeadID == "" {
		return 0, nil
	}
	on, err := tx.OnPath(conv.ID, conv.HeadID, []string{m.ID})
	if err != nil || len(on) == 0 {
		return 0, err
	}
	behind := 0
	for _, part := range []struct {
		count func(conversationID, headID string) (int, error)
		sign  int
	}{{tx.Count, 1}, {tx.CountHidden, -1}} {
		all, err := part.count(conv.ID, conv.HeadID)
		if err != nil {
			return 0, err
		}
		before, err := part.count(conv.ID, m.ID)
		if err != nil {
			return 0, err
		}
		behind += part.sign * (all - before)
	}
	return behind, nil
}

// displayMacros are ScriptMacros with the variables of the chat and the user. They change nothing.
func (s *Setup) displayMacros(tx Tx) (*macro.Env, error) {
	env := s.ScriptMacros(tx.Now())
	play, err := PlayOf(tx, s.Conversation.PlayID)
	if err != nil {
		return nil, err
	}
	globals, err := tx.Characters.Variables()
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		doc  json.RawMessage
		into *macro.Vars
	}{{play.Variables, env.Local}, {globals, env.Global}} {
		if !op.IsNull(part.doc) {
			_ = json.Unmarshal(part.doc, part.into) // it was checked when it was stored
		}
	}
	return env, nil
}

// ScriptMacros are those that regex scripts may use in a pattern or a replacement, without variables; nil =
// none, in the other dialect.
func (s *Setup) ScriptMacros(now time.Time) *macro.Env {
	d := s.Docs
	if d.Tavern == nil {
		return nil
	}
	env := &macro.Env{
		Names: macro.People{User: s.Persona.Name, Char: cmp.Or(d.Card.Nickname, d.Card.Name)}, Now: now.In(s.Zone), Local: macro.NewVars(nil), Global: macro.NewVars(nil),
		Card: macro.Card{Description: d.Card.Description, Personality: d.Card.Personality, Scenario: d.Card.Scenario, Persona: s.Persona.Description},
	}
	if d.Language == framework.Chinese {
		env.Locale = macro.Chinese
	}
	return env
}

// Rewrites reports whether scripts may change what Typed and Edited are given.
func (s *Setup) Rewrites() bool {
	return s.Docs.Tavern != nil && s.Docs.Scripts.Size() > 0
}

// Typed is what is stored of a text that a user wrote. In the SillyTavern dialect regex scripts change it
// now; in the other one they change it whenever it is sent.
func (s *Setup) Typed(text string, now time.Time) string {
	return s.rewritten(text, framework.Occasion{Placement: card.PlaceUserInput}, now)
}

// Edited is Typed for the new text of an edited message: scripts with runOnEdit change it, those for the input or
// the replies, by its role.
func (s *Setup) Edited(role, text string, now time.Time) string {
	place := framework.PlaceOf(role)
	if place == 0 {
		return text
	}
	return s.rewritten(text, framework.Occasion{Placement: place, IsEdit: true}, now)
}

// rewritten runs scripts over a text that will be stored. It stays as it was if they leave it blank or make it too long.
func (s *Setup) rewritten(text string, o framework.Occasion, now time.Time) string {
	if text == "" || !s.Rewrites() {
		return text
	}
	o.NoDepth = true // as in SillyTavern, where scripts that change stored texts see no depth
	changed := s.Docs.Scripts.Run(nil).With(s.ScriptMacros(now)).Apply(text, o)
	if strings.TrimSpace(changed) == "" || utf8.RuneCountInString(changed) > MaxText {
		return text
	}
	return changed
}
