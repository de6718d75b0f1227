package store_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/stream"
	"nodest/nodest"
)

// Lists whose items are large have short pages: the memory for a page does not depend on
// what a user has stored.
func TestAPageEndsWhenItsBytesAreMany(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		const n = 6
		mebibyte := strings.Repeat("x", 1<<20)
		conversation := e.conversation()
		var parent string
		var path []string
		for range n {
			m := e.say(conversation, parent, mebibyte)
			path, parent = append(path, m.ID), m.ID
		}
		for range n {
			e.update(func(tx nodest.Tx) error {
				return tx.Chats.InsertConversation(&chat.Conversation{ID: id(), CharacterID: id(), AuthorNote: []byte(`"` + mebibyte + `"`), Settings: []byte(`{}`)})
			})
		}

		e.view(func(tx nodest.Tx) error {
			items, more, err := tx.Chats.Path(conversation, parent, "", 50)
			e.equal("newest messages", idsOf(items), path[2:])
			e.equal("more", more, true)
			if err != nil {
				return err
			}
			items, more, err = tx.Chats.Path(conversation, parent, path[2], 50)
			e.equal("the messages before", idsOf(items), path[:2])
			e.equal("more", more, false)
			return err
		})
		e.view(func(tx nodest.Tx) error {
			items, more, err := tx.Chats.PathAfter(conversation, parent, path[0], 50)
			e.equal("messages after the first", idsOf(items), path[1:5])
			e.equal("more", more, true)
			return err
		})
		saved := e.nextVersion(conversation, func(nodest.Tx, *chat.Conversation) error { return nil })
		pathThen := func(what string, want []string) {
			e.view(func(tx nodest.Tx) error {
				items, more, err := tx.Chats.PathAt(conversation, saved, parent, "", 50)
				e.equal(what, idsOf(items), want)
				e.equal("more", more, true)
				return err
			})
		}
		pathThen("newest messages of a save point", path[2:])
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			for _, id := range path {
				m, err := tx.Chats.Message(id)
				if err != nil {
					return err
				}
				m.Rev++
				edit("short")(m)
				if err := tx.Chats.UpdateMessage(m); err != nil {
					return err
				}
			}
			return nil
		})
		pathThen("newest messages of a save point, with texts that were replaced since", path[3:])
		var sizes []int
		for cursor, end := "", false; !end; {
			e.view(func(tx nodest.Tx) error {
				items, next, err := tx.Chats.Conversations(chat.ConversationFilter{}, cursor, 50)
				sizes = append(sizes, len(items))
				cursor, end = next, next == ""
				return err
			})
		}
		e.equal("conversations per page", sizes, []int{3, 4})
		e.update(func(tx nodest.Tx) error {
			for range n {
				if err := tx.Emit(&stream.Event{Type: "a", Data: []byte(`"` + mebibyte + `"`)}); err != nil {
					return err
				}
			}
			return nil
		})
		newest, _, err := e.db.Position(context.Background(), e.user)
		if err != nil {
			e.Fatal(err)
		}
		events, err := e.db.Events(context.Background(), e.user, newest.Seq-n, 500)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("events", len(events), 3)
	})
}

func idsOf(items []*chat.Message) []string {
	ids := []string{}
	for _, m := range items {
		ids = append(ids, m.ID)
	}
	return ids
}

// A page reads the texts of a message that it shows, and not all that the message has: 48 MiB here.
func TestAPageReadsTheSwipesNearTheShownOne(t *testing.T) { //nolint:paralleltest // it counts allocations
	onBothDatabases(t, func(e *env) {
		const n = 48
		conversation := e.conversation()
		first := e.say(conversation, "", "first")
		long := message(conversation, first.ID, "")
		long.Swipes = nil
		for i := range n {
			long.Swipes = append(long.Swipes, chat.Swipe{ID: id(), Rev: 1, Text: fmt.Sprint(i, " ", strings.Repeat("x", 1<<20))})
		}
		long.SwipeIndex = 20
		e.update(func(tx nodest.Tx) error { return tx.Chats.InsertMessage(long) })
		last := e.say(conversation, long.ID, "last")
		saved := e.nextVersion(conversation, func(nodest.Tx, *chat.Conversation) error { return nil })
		then := long.Chosen().RevisionID
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			long.Rev, long.SwipeIndex = long.Rev+1, 40
			return tx.Chats.UpdateMessage(long)
		})
		page := func(what, shown string, read func(tx nodest.Tx) ([]*chat.Message, bool, error)) {
			var items []*chat.Message
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			e.view(func(tx nodest.Tx) (err error) {
				tx.Chats.NearTexts()
				items, _, err = read(tx)
				return err
			})
			runtime.ReadMemStats(&after)
			if read := (after.TotalAlloc - before.TotalAlloc) >> 20; read > 24 {
				e.Errorf("%s: %d MiB were allocated for a page", what, read)
			}
			i := slices.IndexFunc(items, func(m *chat.Message) bool { return m.ID == long.ID })
			m := items[i]
			e.equal(what+": shown", m.Chosen().RevisionID, shown)
			e.equal("its text", len(m.Text()) > 1<<20, true)
			e.equal("swipes", len(m.Swipes), n)
			for i := range m.Swipes {
				s, want := &m.Swipes[i], &long.Swipes[i]
				e.equal("swipe", fmt.Sprint(s.ID, s.RevisionID, s.Rev, s.CreatedAt.UnixMilli(), s.Omitted), fmt.Sprint(want.ID, want.RevisionID, want.Rev, want.CreatedAt.UnixMilli(), i != m.SwipeIndex))
			}
		}
		page("newest", long.Chosen().RevisionID, func(tx nodest.Tx) ([]*chat.Message, bool, error) {
			return tx.Chats.Path(conversation, last.ID, "", 50)
		})
		page("after the first", long.Chosen().RevisionID, func(tx nodest.Tx) ([]*chat.Message, bool, error) {
			return tx.Chats.PathAfter(conversation, last.ID, first.ID, 50)
		})
		page("of a save point", then, func(tx nodest.Tx) ([]*chat.Message, bool, error) {
			return tx.Chats.PathAt(conversation, saved, last.ID, last.ID, 50)
		})
		e.view(func(tx nodest.Tx) error {
			items, more, err := tx.Chats.Path(conversation, last.ID, "", 50)
			e.equal("a page for an export ends", fmt.Sprint(len(items), more), "1 true")
			return err
		})
	})
}
