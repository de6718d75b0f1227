package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
)

// A rewind over an edit, a swipe, a deletion and a new reply is a new version, and the
// conversation continues from there.
func TestARewindIsANewVersion(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		a := e.say(conversation, "", "a")
		b := e.say(conversation, a.ID, "b") // version 3
		change := func(m *chat.Message, how func(tx nodest.Tx)) {
			e.Helper()
			e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
				how(tx)
				m.Rev++
				return tx.Chats.UpdateMessage(m)
			})
		}
		first := a.Swipes[0].RevisionID
		change(a, func(nodest.Tx) { a.Swipes[0].Rev, a.Swipes[0].RevisionID, a.Swipes[0].Text = 2, id(), "a edited" })
		change(a, func(nodest.Tx) {
			a.Swipes = append(a.Swipes, chat.Swipe{Text: "a again", Wish: "rhyme"})
			a.SwipeIndex = 1
		})
		change(a, func(nodest.Tx) { a.SwipeIndex, a.Swipes[0].Deleted = 1, true })
		change(b, func(tx nodest.Tx) { now := tx.Now(); b.DeletedAt = &now })
		c := e.say(conversation, a.ID, "c") // 8

		var changed, moved []*chat.Message
		rewind := func(tx nodest.Tx, version int64, head string) (err error) {
			c, err := tx.Chats.LockConversation(conversation)
			if err != nil {
				return err
			}
			if changed, moved, err = tx.Chats.Rewind(c, version, head); err != nil {
				return err
			}
			c.Version, c.HeadID = c.Version+1, head
			return tx.Chats.UpdateConversation(c)
		}
		e.update(func(tx nodest.Tx) error { return rewind(tx, 3, b.ID) }) // 9
		e.equal("changed", texts(changed), []string{"a"})
		e.equal("moved", chat.IDsOf(moved), []string{b.ID})
		e.view(func(tx nodest.Tx) error {
			items, _, err := tx.Chats.Path(conversation, b.ID, "", 10)
			if err != nil {
				return err
			}
			e.equal("path", texts(items), []string{"a", "b"})
			e.equal("chosen", items[0].Chosen().RevisionID, first)
			e.equal("deleted", items[0].Chosen().Deleted, false)
			e.equal("rev of the text", items[0].Chosen().Rev, 1)
			e.equal("wish", items[0].Swipes[1].Wish, "rhyme")
			rewinds, err := tx.Chats.Rewinds(conversation)
			e.equal("rewinds", rewinds, []chat.Rewind{{At: 9, To: 3}})
			return err
		})

		// An edit after the rewind is a revision of its own.
		a = changed[0]
		change(a, func(nodest.Tx) { a.Swipes[0].Rev++; a.Swipes[0].RevisionID, a.Swipes[0].Text = id(), "a anew" })
		e.equal("a new rev of the swipe", a.Swipes[0].Rev, 3)
		e.update(func(tx nodest.Tx) error { return rewind(tx, 8, c.ID) })
		e.equal("changed", texts(changed), []string{"a again"})
		e.update(func(tx nodest.Tx) error { return rewind(tx, 10, b.ID) })
		e.equal("changed", texts(changed), []string{"a anew"})
		e.update(func(tx nodest.Tx) error { return rewind(tx, 12, b.ID) })
		e.equal("changed by a rewind to the same state", len(changed), 0)
		e.update(func(tx nodest.Tx) error { return rewind(tx, 1, "") })
		e.equal("changed before the first message", len(changed), 0)
		e.view(func(tx nodest.Tx) error {
			all, err := tx.Chats.Revisions(a.ID)
			var words []string
			for _, r := range all {
				words = append(words, r.Text)
			}
			e.equal("revisions", words, []string{"a", "a edited", "a again", "a anew"})
			return err
		})
	})
}

// A rewind leaves deleted messages whose texts maintenance has removed, and replies whose
// placeholder was there at the version.
func TestARewindSkipsWhatCannotBeRestored(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		a := e.say(conversation, "", "a")
		reply := message(conversation, a.ID, "")
		reply.Swipes, reply.Status = nil, chat.StatusPending
		e.update(func(tx nodest.Tx) error { return tx.Chats.InsertMessage(reply) })
		version := e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error { // the reply is written, a is deleted
			now := tx.Now()
			a.DeletedAt = &now
			reply.Rev, reply.Status, reply.Swipes = 2, chat.StatusComplete, []chat.Swipe{{ID: id(), Rev: 1, Text: "reply"}}
			a.Rev++
			if err := tx.Chats.UpdateMessage(a); err != nil {
				return err
			}
			return tx.Chats.UpdateMessage(reply)
		})
		e.clock.advance(31 * 24 * time.Hour)
		e.equal("removed", e.maintain(), store.Removed{"events": 1, "texts": 1})
		var changed, moved []*chat.Message
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) (err error) {
			changed, moved, err = tx.Chats.Rewind(&chat.Conversation{ID: conversation, Version: version}, 2, reply.ID)
			return err
		})
		e.equal("changed", len(changed)+len(moved), 0)
		e.view(func(tx nodest.Tx) error {
			m, err := tx.Chats.Message(a.ID)
			if err != nil {
				return err
			}
			e.equal("a is deleted", m.DeletedAt != nil, true)
			m, err = tx.Chats.Message(reply.ID)
			e.equal("the reply", m.Text()+" "+m.Status, "reply complete")
			return err
		})
	})
}

// A reply is stored with one state: the versions of its placeholder show what became of it. The
// answer to the call that asked for it stays the placeholder, also when the reply was edited.
func TestAReplyTakesTheStateOfItsPlaceholder(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		a := e.say(conversation, "", "a")
		reply, empty := message(conversation, a.ID, ""), message(conversation, a.ID, "")
		for _, m := range []*chat.Message{reply, empty} {
			m.Role, m.Swipes, m.Status = chat.RoleAssistant, nil, chat.StatusPending
		}
		born := e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error { return tx.Chats.InsertMessage(reply, empty) })
		write := func(text string) {
			e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
				reply.Rev, reply.Status, reply.Swipes = reply.Rev+1, chat.StatusComplete, []chat.Swipe{{ID: named("s"), RevisionID: named(text), Rev: reply.Rev, Text: text}}
				return tx.Chats.UpdateMessage(reply)
			})
		}
		write("reply")
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error { // a generation without a text removes it
			now := tx.Now()
			empty.Rev, empty.DeletedAt = 2, &now
			return tx.Chats.UpdateMessage(empty)
		})
		e.equal("states", e.queryInts("SELECT since FROM messages WHERE id = ?", reply.ID), []int64{born})
		e.equal("states of the other", e.queryInts("SELECT version FROM message_states WHERE message_id = ? ORDER BY version", empty.ID), []int64{born, born + 2})
		write("edited")
		e.view(func(tx nodest.Tx) error {
			items, _, err := tx.Chats.PathAt(conversation, born, reply.ID, "", 5)
			if err != nil {
				return err
			}
			e.equal("then", items[1].Text()+" "+items[1].Status, "reply complete")
			return nil
		})
	})
}

// A message can change again in the transaction of a rewind, even if the rewind
// changed more messages than fit in a page.
func TestAMessageCanChangeInTheTransactionOfARewind(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		var line []*chat.Message
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			line = nil
			parent := ""
			for i := range 300 {
				m := message(conversation, parent, fmt.Sprint(i))
				if err := tx.Chats.InsertMessage(m); err != nil {
					return err
				}
				line, parent = append(line, m), m.ID
			}
			return nil
		})
		head := line[len(line)-1].ID
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			now := tx.Now()
			for _, m := range line {
				m.Rev, m.DeletedAt = 2, &now
				if err := tx.Chats.UpdateMessage(m); err != nil {
					return err
				}
			}
			return nil
		})
		version := e.nextVersion(conversation, func(tx nodest.Tx, c *chat.Conversation) error {
			changed, moved, err := tx.Chats.Rewind(c, 2, head)
			if err != nil {
				return err
			}
			e.equal("changed", len(changed), 0)
			e.equal("moved", len(moved), len(line))
			m, err := tx.Chats.Message(moved[0].ID)
			if err != nil {
				return err
			}
			m.Rev, m.Status = m.Rev+1, chat.StatusCancelled
			return tx.Chats.UpdateMessage(m)
		})
		e.view(func(tx nodest.Tx) error {
			items, _, err := tx.Chats.PathAt(conversation, version, head, "", 1000)
			if err != nil {
				return err
			}
			e.equal("messages", len(items), len(line))
			e.equal("the first", fmt.Sprint(items[0].Text(), items[0].Status, items[0].Rev), fmt.Sprint("0", chat.StatusCancelled, 4))
			for i, m := range items {
				e.equal("order", m.Seq, i+1)
			}
			n, err := tx.Chats.Count(conversation, head)
			e.equal("count", n, len(line))
			return err
		})
	})
}

// A rewind gives messages their texts back, however many swipes they have. It returns the first of them with
// their swipes, and reads no others.
func TestARewindReadsFewSwipes(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		const n, swipes = 12, 8
		conversation, parent := e.conversation(), ""
		var line []*chat.Message
		saved := e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			line, parent = nil, ""
			for i := range n {
				m := message(conversation, parent, fmt.Sprint(i, " as it was"))
				for s := 1; s < swipes; s++ {
					m.Swipes = append(m.Swipes, chat.Swipe{ID: id(), Rev: 1, Text: fmt.Sprint(i, " otherwise", strings.Repeat("x", 64<<10))})
				}
				if err := tx.Chats.InsertMessage(m); err != nil {
					return err
				}
				line, parent = append(line, m), m.ID
			}
			return nil
		})
		later := e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			for _, m := range line {
				m.Rev, m.SwipeIndex, m.Status = m.Rev+1, 3, chat.StatusError
				m.Error = fault.New(fault.Invalid, "no")
				if err := tx.Chats.UpdateMessage(m); err != nil {
					return err
				}
			}
			return nil
		})
		var changed, moved []*chat.Message
		back := e.nextVersion(conversation, func(tx nodest.Tx, c *chat.Conversation) (err error) {
			changed, moved, err = tx.Chats.Rewind(c, saved, parent)
			return err
		})
		e.equal("changed and moved", fmt.Sprint(len(changed), len(moved)), fmt.Sprint(n, 0))
		whole := 0
		for i, m := range changed {
			e.equal("changed", fmt.Sprint(m.ID, m.Rev, m.SwipeIndex, m.Status, m.Error), fmt.Sprint(line[i].ID, 3, 0, chat.StatusComplete, nil))
			if m.Swipes != nil && whole == i {
				e.equal("text", m.Text(), fmt.Sprint(i, " as it was"))
				whole++
			} else if m.Swipes != nil {
				e.Errorf("message %d has its swipes, and one before it does not", i)
			}
		}
		if whole < 1 || whole == n {
			e.Errorf("%d messages have their swipes", whole)
		}
		shows := func(version int64, want int) {
			e.view(func(tx nodest.Tx) error {
				for i, m := range line {
					now, err := tx.Chats.MessagesAt(conversation, version, []string{m.ID})
					if err != nil {
						return err
					}
					e.equal(fmt.Sprintf("message %d in version %d", i, version), now[0].Chosen().ID, m.Swipes[want].ID)
				}
				return nil
			})
		}
		shows(saved, 0)
		shows(later, 3)
		shows(back, 0)
	})
}
