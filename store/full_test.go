package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/websearch"
)

func TestAFullDiskStillDeletesAndReads(t *testing.T) {
	t.Parallel()
	e := &env{T: t, db: storetest.Open(t)}
	e.user = storetest.User(t, e.db)
	c := e.conversation()
	pages, err := store.Query[int64](e.db, "PRAGMA page_count")
	if err != nil {
		t.Fatal(err)
	}
	e.update(func(tx nodest.Tx) error { return store.Exec(tx, fmt.Sprint("PRAGMA max_page_count = ", pages[0]+50)) })
	for _, size := range []int{20_000, 1000, 1} {
		for err = nil; err == nil; {
			err = e.trySay(c, strings.Repeat("x", size))
		}
		e.code(fault.StorageFull, err)
	}
	e.view(func(tx nodest.Tx) error { _, err := tx.Chats.Conversation(c); return err })
	err = e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
		if err := tx.Chats.DeleteConversation(c); err != nil {
			return err
		}
		return tx.Emit(&stream.Event{Type: "conversation.deleted", ConversationID: c, By: "phone"})
	})
	if err != nil {
		t.Fatalf("deleting: %v", err)
	}
}

func TestTheLastOfTheDiskIsForDeleting(t *testing.T) {
	t.Parallel()
	e := &env{T: t, db: storetest.Open(t)}
	e.user = storetest.User(t, e.db)
	c := e.conversation()
	for range 1000 {
		if err := e.trySay(c, strings.Repeat("x", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	ch := e.character()
	fork := &chat.Conversation{ID: id(), CharacterID: id(), Settings: []byte(`{}`)}
	e.update(func(tx nodest.Tx) error { return tx.Chats.BeginLoad(fork) })
	message, err := store.Query[string](e.db, "SELECT MIN(id) FROM messages WHERE conversation_id = ?", c)
	if err != nil {
		t.Fatal(err)
	}
	e.db.SetFree(func() int64 { return 64<<20 - 1 })
	e.refused(fault.StorageFull, func(tx nodest.Tx) error {
		_, _, err := tx.Chats.CopyPath(chat.ForkSource{ConversationID: c, MessageID: message[0], Version: 1}, fork.ID, 5)
		return err
	})
	e.code(fault.StorageFull, e.trySay(c, "y"))
	e.refused(fault.StorageFull, func(tx nodest.Tx) error { return store.Knowledge(tx).PutPart(id(), 0, []byte("y")) })
	e.refused(fault.StorageFull, func(tx nodest.Tx) error {
		return store.Web(tx).PutWebPage(&websearch.Page{URL: "https://example.org"})
	})
	e.refused(fault.StorageFull, func(tx nodest.Tx) error {
		return tx.Characters.PutAvatar(ch, &character.Avatar{Data: []byte("y")})
	})
	e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(c) })

	before := store.Commits(e.db)
	err = e.db.DeleteUser(context.Background(), e.user, func(*account.User, []*account.User) error { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := store.Commits(e.db) - before; n < 15 {
		t.Errorf("a user with 1,000 messages was removed in %d transactions, which a full disk has no room for", n)
	}
}
