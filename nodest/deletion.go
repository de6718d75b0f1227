package nodest

import (
	"context"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// DeleteCharacter deletes a character with its conversations. Replies that are
// being written there are cancelled first. Documents that were bound to it stay,
// without it; the regex group made from its card goes with it.
func (e *Engine) DeleteCharacter(ctx context.Context, c *op.Call, id string) error {
	running := func(tx Tx) ([]*chat.Generation, error) { return chat.RunningFor(tx.Chats, id) }
	if err := e.cancelRunning(ctx, c.UserID, running); err != nil {
		return err
	}
	_, err := op.LastWins(ctx, e.store, c, 0, func(tx Tx) (struct{}, error) {
		if _, err := tx.Characters.CharacterCard(id); err != nil {
			return struct{}{}, err
		}
		if err := noneRuns(running(tx)); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, character.Delete(tx.Characters, c, id)
	})
	return err
}

// DeleteConversation deletes a conversation with its messages. A reply that is
// being written there is cancelled first.
func (e *Engine) DeleteConversation(ctx context.Context, c *op.Call, id string) error {
	if id == "" { // Running would take it for all conversations
		return fault.New(fault.NotFound, "no such conversation")
	}
	err := e.cancelRunning(ctx, c.UserID, func(tx Tx) ([]*chat.Generation, error) { return tx.Chats.Running(id) })
	if err != nil {
		return err
	}
	return op.Do(ctx, e.store, c, func(tx Tx) error {
		if _, err := tx.Chats.LockConversation(id); err != nil {
			return err
		}
		if err := noneRuns(tx.Chats.Running(id)); err != nil {
			return err
		}
		return chat.Delete(tx.Chats, c, id)
	})
}

// noneRuns returns Busy for a generation that began after the others were cancelled.
func noneRuns(running []*chat.Generation, err error) error {
	if err == nil && len(running) > 0 {
		err = chat.Busy(running[0])
	}
	return err
}

// cancelRunning cancels the generations that which returns and waits for their end.
func (e *Engine) cancelRunning(ctx context.Context, userID string, which func(tx Tx) ([]*chat.Generation, error)) error {
	running, err := op.Read(ctx, e.store, userID, which)
	if err != nil {
		return err
	}
	for _, g := range running {
		if _, err := e.Cancel(ctx, userID, g.ID); err != nil {
			return err
		}
	}
	for _, g := range running {
		if _, err := e.Wait(ctx, userID, g.ID); err != nil {
			return err
		}
	}
	return nil
}
