package nodest

import (
	"context"

	"nodest/chat"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// TellInput is what a character has to tell.
type TellInput struct {
	GreetInput
	Text      string          // is the message where there is no model to put it in the character's words
	Citations *cite.Citations // the citations of Text; nil = none
}

// Tell lets a character tell what a source knows by the id of the message (Findings.Instruction), and waits until
// the message is written. One that is already there, or was deleted, stays as it is; but what a stop or crash has
// interrupted is written anew, unless the chat has gone on.
//
// Errors: those of Greet without NotConfigured and QuotaExceeded.
func (e *Engine) Tell(ctx context.Context, userID string, in TellInput) error {
	q := query{conversationID: in.ConversationID, model: true}
	s, err := e.loadSetup(ctx, userID, q)
	noModel := fault.Is(err, fault.NotConfigured)
	if err != nil && !noModel {
		return err
	}
	c := &op.Call{UserID: userID}
	m, err := e.written(ctx, userID, in.MessageID)
	switch {
	case err == nil && !noModel && m.Status == chat.StatusInterrupted && m.ID == s.Conversation.HeadID:
		again, err := e.Regenerate(ctx, c, GenerateInput{MessageID: m.ID, WhenBusy: in.WhenBusy})
		if err != nil {
			return err
		}
		return e.whole(ctx, userID, again.GenerationID)
	case !fault.Is(err, fault.NotFound):
		return err
	}
	if !noModel && !s.model.Offline {
		sent, err := e.Greet(ctx, c, in.GreetInput)
		if err == nil {
			return e.whole(ctx, userID, sent.GenerationID)
		}
		if !fault.Is(err, fault.QuotaExceeded) { // else there are no tokens left to say it in the character's words
			return err
		}
	}
	return e.store.Update(ctx, userID, func(tx Tx) error { return e.post(tx, c, s.Docs.Card.Name, in) })
}

// whole waits for the end of a generation. It returns ShuttingDown for one that was interrupted.
func (e *Engine) whole(ctx context.Context, userID, generationID string) error {
	g, err := e.Wait(ctx, userID, generationID)
	if err == nil && g.Status == chat.GenInterrupted {
		err = fault.New(fault.ShuttingDown, "the message was interrupted")
	}
	return err
}

// written returns a message when nothing is being written into it any more.
func (e *Engine) written(ctx context.Context, userID, messageID string) (*chat.Message, error) {
	read := func(tx Tx) (*chat.Message, error) { return tx.Chats.Message(messageID) }
	m, err := op.Read(ctx, e.store, userID, read)
	if err != nil || m.Status != chat.StatusPending && m.Status != chat.StatusStreaming {
		return m, err
	}
	if _, err := e.Wait(ctx, userID, m.GenerationID); err != nil {
		return nil, err
	}
	return op.Read(ctx, e.store, userID, read)
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
