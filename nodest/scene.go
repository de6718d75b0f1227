package nodest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"nodest/fault"
	"nodest/framework"
	"nodest/op"
)

// scene is what a turn stands in, apart from the chat itself.
type scene struct {
	conversation *Conversation
	save         *Save    // that the conversation stands at, without being restored; nil = it is as it is
	target       *Message // the message that the request names; nil = none
	docs         *docs
	options      TurnOptions // message over conversation over preset over user
	persona      framework.Persona
	settings     []framework.Setting
	zone         *time.Location // of the user's days
	note         *framework.Note
	model        Model
	query        query
}

// query says for what a scene is wanted.
type query struct {
	conversationID string
	messageID      string // in place of conversationID
	saveID         string // in place of conversationID: as if that were restored
	options        TurnOptions
	model          bool // a model will be asked
	apiKey         string
}

// look reads a scene. It changes nothing and locks nothing, so that the accepting
// transaction is short; what it finds can be older than that by a moment.
//
// Errors: NotFound, QuotaExceeded, NotConfigured, and those of the documents.
func (e *Engine) look(ctx context.Context, userID string, q query) (*scene, error) {
	s := &scene{query: q}
	err := e.store.View(ctx, userID, func(tx Tx) error {
		*s = scene{query: q}
		return e.readScene(tx, s)
	})
	if err != nil {
		return nil, err
	}
	if q.model {
		s.model, err = e.models.Resolve(ctx, userID, s.options.Provider, s.options.Model, q.apiKey)
	}
	return s, err
}

func (e *Engine) readScene(tx Tx, s *scene) error {
	var err error
	if s.query.messageID != "" {
		if s.target, err = liveMessage(tx, s.query.messageID); err != nil {
			return err
		}
		s.query.conversationID = s.target.ConversationID
	}
	if s.query.saveID != "" {
		if s.save, err = tx.Save(s.query.saveID); err != nil {
			return err
		}
		s.query.conversationID = s.save.ConversationID
	}
	if s.conversation, err = tx.Conversation(s.query.conversationID); err != nil {
		return err
	}
	if s.save != nil {
		if err := s.save.apply(tx, s.conversation); err != nil {
			return err
		}
	}
	user, err := tx.Settings()
	if err != nil {
		return err
	}
	s.zone = user.zone()
	user = s.conversation.Pins.settingsInForce(user)
	chat, err := optionsOf(s.conversation)
	if err != nil {
		return err
	}
	own := s.query.options.over(chat)
	character := cmp.Or(own.CharacterID, user.CharacterID, s.conversation.CharacterID)
	if s.docs, err = e.documentsOf(tx, wantedBy(user, s.conversation, character), s.conversation.pinsOf(character)); err != nil {
		return err
	}
	s.options = own.over(s.docs.sampling).over(user.TurnOptions)
	if err := s.setUp(user); err != nil || !s.query.model {
		return err
	}
	limits, err := tx.Limits()
	if err != nil {
		return err
	}
	return checkQuota(tx, limits, e.opts)
}

// setUp decides who the user is in this chat, and which notes apply.
func (s *scene) setUp(user *Settings) error {
	d := s.docs
	if global := settingOf(user.CustomSetting); global != nil {
		s.settings = append(s.settings, *global)
	}
	if own := settingOf(d.settings.User.CustomSetting); own != nil && !own.Global {
		s.settings = append(s.settings, *own)
	}

	p, chosen := d.personas[s.conversation.PersonaID]
	if !chosen {
		id := cmp.Or(d.bound, user.PersonaID)
		p = d.personas[id]
		p.Name = cmp.Or(d.settings.User.Name, p.Name)
	}
	p.Name = cmp.Or(p.Name, user.UserName, "User")
	s.persona = p

	s.note = d.note
	if !op.IsNull(s.conversation.AuthorNote) {
		note, err := noteOf(s.conversation.AuthorNote)
		if err != nil {
			return fmt.Errorf("author's note of conversation %s: %w", s.conversation.ID, err)
		}
		s.note = note
	}
	return nil
}

// liveMessage reads a message that is not deleted.
func liveMessage(tx Tx, id string) (*Message, error) {
	m, err := tx.Message(id)
	if err != nil {
		return nil, err
	}
	if m.DeletedAt != nil {
		return nil, fault.New(fault.NotFound, "no message %q", id)
	}
	return m, nil
}
