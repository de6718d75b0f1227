package store_test

import (
	"context"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/knowledge"
	"nodest/nodest"
	"nodest/store"
)

// A document that is deleted is in no stored prompt any more, also of those who were allowed to read it.
func TestADeletedDocumentIsInNoPrompt(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		gone, other, reader := id(), id(), newUser(e)
		put := func(user string, files ...string) *nodest.StoredPrompt {
			p := &nodest.StoredPrompt{ID: id(), ConversationID: id(), GenerationID: id(), Body: []byte("{}"), FileIDs: files}
			err := e.db.Update(context.Background(), user, func(tx nodest.Tx) error {
				if err := tx.Chats.InsertConversation(&chat.Conversation{ID: p.ConversationID, CharacterID: id()}); err != nil {
					return err
				}
				return tx.PutPrompt(p)
			})
			if err != nil {
				e.Fatal(err)
			}
			return p
		}
		own, theirs, without := put(e.user, other, gone), put(reader, gone), put(reader, other)
		e.update(func(tx nodest.Tx) error {
			k := store.Knowledge(tx)
			if err := k.InsertFile(&knowledge.File{ID: gone, Name: "a.md", Original: knowledge.Original{SHA256: "a", ContentID: id()}, State: knowledge.Ready}); err != nil {
				return err
			}
			return k.DeleteFile(gone)
		})
		for user, p := range map[string]*nodest.StoredPrompt{e.user: own, reader: theirs} {
			e.code(fault.NotFound, e.db.View(context.Background(), user, func(tx nodest.Tx) error { return errOf(tx.Prompt(p.ID)) }))
		}
		if err := e.db.View(context.Background(), reader, func(tx nodest.Tx) error { return errOf(tx.Prompt(without.ID)) }); err != nil {
			e.Error(err)
		}
	})
}

// The texts of messages are removed for good together with the prompts that had them.
func TestRemovedMessagesAreInNoPrompt(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.say(conversation, "", "first")
		put := func() string {
			p := &nodest.StoredPrompt{ID: e.idNow(), ConversationID: conversation, GenerationID: id(), Body: []byte("{}")}
			e.update(func(tx nodest.Tx) error { return tx.PutPrompt(p) })
			return p.ID
		}
		put()
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(conversation) })
		if n, err := store.PurgeChat(e.db, e.user); err != nil || n != 1 {
			e.Fatalf("removed %d messages: %v", n, err)
		}
		e.equal("prompts", e.userRows("prompts"), 0)
	})
}
