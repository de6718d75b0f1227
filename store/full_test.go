package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"nodest/fault"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/stream"
)

func TestAFullDiskStillDeletesAndReads(t *testing.T) {
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
