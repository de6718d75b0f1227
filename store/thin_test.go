package store_test

import (
	"fmt"
	"testing"

	"nodest/chat"
	"nodest/nodest"
	"nodest/store"
)

// Messages are removed for good with a bounded number of texts in each transaction, however many
// swipes they have; in the end nothing of them is left.
func TestSwipesAreRemovedInPieces(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.update(func(tx nodest.Tx) error {
			parent := ""
			for i, swipes := range []int{3, 2300, 600, 600, 1} {
				m := &chat.Message{ID: id(), ConversationID: conversation, ParentID: parent, Role: chat.RoleAssistant, Status: chat.StatusComplete}
				for n := range swipes {
					m.Swipes = append(m.Swipes, chat.Swipe{Text: fmt.Sprint("text ", i, " ", n)})
				}
				if err := tx.Chats.InsertMessage(m); err != nil {
					return err
				}
				parent = m.ID
			}
			return nil
		})
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(conversation) })
		texts := func() int64 {
			return e.queryInts("SELECT COUNT(*) FROM revisions WHERE user_id = ?", e.user)[0]
		}
		before, transactions := texts(), 0
		for left := true; left; transactions++ {
			n, err := store.PurgeChat(e.db, e.user)
			if err != nil {
				t.Fatal(err)
			}
			now := texts()
			if left = n > 0; before-now > 1000 {
				t.Errorf("a transaction removed %d texts", before-now)
			}
			before = now
		}
		e.equal("texts", before, int64(0))
		for _, table := range []string{"messages", "memory_texts", "message_states"} {
			e.equal(table, e.queryInts("SELECT COUNT(*) FROM "+table+" WHERE user_id = ?", e.user), []int64{0})
		}
		if transactions > 9 {
			t.Errorf("it took %d transactions", transactions)
		}
	})
}
