package nodest

import (
	"context"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/stream"
)

// Bounds of a snapshot.
const (
	snapshotConversations = 200
	snapshotCharacters    = 1000
)

// Snapshot is what a client loads when it cannot resume: the newest
// conversations and all characters without their documents.
//
// The position is that of the stream before the snapshot was read: events after it may
// repeat changes that the snapshot already has, and none is missed.
func (e *Engine) Snapshot(ctx context.Context, userID string) (*Snapshot, error) {
	var snap *Snapshot
	var at stream.Position
	if log, ok := e.store.(stream.Store); ok { // a store without a stream has no position
		var err error
		if at, _, err = log.Position(ctx, userID); err != nil {
			return nil, err
		}
	}
	err := e.store.View(ctx, userID, func(tx Tx) error {
		snap = &Snapshot{Conversations: []*chat.Conversation{}, Characters: []*character.Character{}, Epoch: at.Epoch, Seq: at.Seq}
		active := false
		conversations, _, err := tx.Chats.Conversations(chat.ConversationFilter{Archived: &active}, "", snapshotConversations)
		if err != nil {
			return err
		}
		snap.Conversations = append(snap.Conversations, conversations...)
		for cursor := ""; len(snap.Characters) < snapshotCharacters; {
			items, next, err := tx.Characters.Characters(character.Filter{}, cursor, 200)
			if err != nil {
				return err
			}
			snap.Characters = append(snap.Characters, items...)
			if cursor = next; next == "" {
				break
			}
		}
		settings, err := tx.Characters.Settings()
		if err != nil {
			return err
		}
		snap.SettingsVersion = settings.Version
		return nil
	})
	return snap, err
}
