package nodest

import (
	"cmp"
	"context"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/op"
)

// turnSetup is the input of a turn apart from the messages of the chat.
type turnSetup struct {
	*chat.Setup
	save   *chat.Save    // previewed as if it were restored; nil = none
	target *chat.Message // the message that the request names; nil = none
	retold string        // the research whose result it tells; "" = none
	typed  string        // query.typed or query.edited as it is stored
	model  Model
	query  *query
	at     time.Time // when it was read, by the clock of transactions
}

type query struct {
	conversationID string
	messageID      string // in place of conversationID
	saveID         string // in place of conversationID: as if that were restored
	options        character.TurnOptions
	typed          string // a text of the user
	edited         string // a new text for the message of messageID
	model          bool   // a model will be asked
	app            bool   // by a call of the NodeST interface
	waited         bool   // in the queue: whether tokens of the day are left is checked again
	apiKey         string
}

// loadSetup reads what a turn is played with. It changes nothing and locks nothing, so that the accepting
// transaction is short; what it finds can be older than that by a moment.
//
// Errors: NotFound, NotConfigured, those of the documents, and QuotaExceeded if it has waited.
func (e *Engine) loadSetup(ctx context.Context, userID string, q query) (*turnSetup, error) {
	s, err := op.Read(ctx, e.store, userID, func(tx Tx) (*turnSetup, error) {
		s := &turnSetup{query: new(q), at: tx.Now()}
		return s, e.readSetup(tx, s)
	})
	if err != nil {
		return nil, err
	}
	if s.typed = s.Typed(q.typed, s.at); q.edited != "" { // here, because scripts may be slow
		s.typed = s.Edited(s.target.Role, q.edited, s.at)
	}
	if q.model {
		s.model, err = e.models.Resolve(ctx, userID, s.Options.Provider, s.Options.Model, q.apiKey)
	}
	return s, err
}

func (e *Engine) readSetup(tx Tx, s *turnSetup) error {
	var err error
	if s.query.messageID != "" {
		if s.target, err = chat.LiveMessage(tx.Chats, s.query.messageID); err != nil {
			return err
		}
		s.query.conversationID = s.target.ConversationID
		for i := range s.target.Swipes {
			if c := s.target.Swipes[i].Citations; c != nil {
				s.retold = cmp.Or(c.ResearchID, s.retold)
			}
		}
	}
	if s.query.saveID != "" {
		if s.save, err = tx.Chats.Save(s.query.saveID); err != nil {
			return err
		}
		s.query.conversationID = s.save.ConversationID
	}
	conv, err := tx.Chats.Conversation(s.query.conversationID)
	if err != nil {
		return err
	}
	if s.save != nil {
		if err := s.save.Apply(tx.Chats, conv); err != nil {
			return err
		}
	}
	setup, err := e.Chats.ReadSetup(tx.Chats, conv, s.query.options)
	if err != nil {
		return err
	}
	s.Setup = setup
	if !s.query.waited { // it is checked when it is accepted
		return nil
	}
	return e.tokensLeft(tx, 0)
}
