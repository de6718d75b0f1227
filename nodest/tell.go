package nodest

import (
	"context"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// TellInput is what a character has to tell.
type TellInput struct {
	GreetInput
	Text      string          // is the message where there is no model to put it in the character's words
	Citations *chat.Citations // of Text; nil = none
}

// Tell lets a character tell what a source knows by the id of the message (Findings.Instruction). A message
// that is already there, or was deleted, stays as it is.
//
// Errors: those of Greet without NotConfigured.
func (e *Engine) Tell(ctx context.Context, userID string, in TellInput) error {
	q := query{conversationID: in.ConversationID, model: true}
	s, err := e.loadSetup(ctx, userID, q)
	noModel := fault.Is(err, fault.NotConfigured)
	if err != nil && !noModel {
		return err
	}
	_, err = op.Read(ctx, e.store, userID, func(tx Tx) (*chat.Message, error) { return tx.Chats.Message(in.MessageID) })
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	c := &op.Call{UserID: userID}
	if !noModel && !s.model.Offline {
		_, err = e.Greet(ctx, c, in.GreetInput)
		return err
	}
	return e.store.Update(ctx, userID, func(tx Tx) error { return e.post(tx, c, s.Docs.Card.Name, in) })
}

// post stores a text in the name of the character.
func (e *Engine) post(tx Tx, c *op.Call, name string, in TellInput) error {
	conv, err := tx.Chats.LockConversation(in.ConversationID)
	if err != nil {
		return err
	}
	now := tx.Now()
	message := &chat.Message{
		ID: in.MessageID, ConversationID: conv.ID, ParentID: conv.HeadID, Role: chat.RoleAssistant, Name: name,
		Rev: 1, Status: chat.StatusComplete, Dates: chat.Dates{CreatedAt: now},
		Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: in.Text, Citations: in.Citations, CreatedAt: now}},
	}
	if err := (chat.Change{Created: []*chat.Message{message}, Head: message}).Apply(tx.Chats, c, conv); err != nil {
		return err
	}
	return e.Chats.TextAdded(tx.Chats, conv)
}
