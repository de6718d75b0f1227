package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
)

func TestAMessageComesBackAsItWas(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		edited, deleted := start.Add(time.Minute), start.Add(time.Hour)
		want := &chat.Message{
			ID: id(), ConversationID: conversation, ClientMsgID: "mine-1", Role: chat.RoleAssistant, Name: "Grüße 茶",
			AuthorID: "x", Greeting: true, Hidden: true, SwipeIndex: 1, Rev: 1, Status: chat.StatusError,
			Error:        fault.New(fault.Blocked, "blocked").With("provider", "p"),
			GenerationID: id(), Dates: chat.Dates{CreatedAt: start.Add(-time.Hour), EditedAt: &edited, DeletedAt: &deleted},
			Extra: []byte(`{"send_date":"x", "z":1}`),
			Swipes: []chat.Swipe{
				{ID: id(), RevisionID: id(), Rev: 1, Text: "it's 100% \\ \"tea\"\n?", CreatedAt: start, Deleted: true},
				{
					ID: id(), RevisionID: id(), Rev: 1, Text: "NUL \x00 and \x01 0\u0000", Reasoning: "hm", Model: "m", Finish: "stop",
					Usage: &llm.Usage{PromptTokens: 3}, GenerationID: named("g"), CreatedAt: start.Add(-time.Second),
					Blocks: []chat.Block{{Part: "mem", Text: "t", At: 4}},
				},
			},
		}
		e.update(func(tx nodest.Tx) error { return tx.Chats.InsertMessage(want) })
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Chats.Message(want.ID)
			if err != nil {
				return err
			}
			for _, m := range []*chat.Message{got, want} { // pointers print as addresses
				e.equal("usage", *m.Swipes[1].Usage, llm.Usage{PromptTokens: 3})
				e.equal("error", *m.Error, *want.Error)
				e.equal("edited", *m.EditedAt, edited)
				e.equal("deleted", *m.DeletedAt, deleted)
			}
			for _, m := range []*chat.Message{got, want} {
				m.Swipes[1].Usage, m.Error, m.EditedAt, m.DeletedAt = nil, nil, nil, nil
			}
			if got.Extra, err = tx.Chats.Line(want.ID); err != nil {
				return err
			}
			e.equal("message", got, want)
			byName, err := tx.Chats.MessageByClientID(conversation, "mine-1")
			e.equal("found by the client's name", byName.ID, want.ID)
			if err != nil {
				return err
			}
			_, err = tx.Chats.MessageByClientID(conversation, "")
			e.code(fault.NotFound, err)
			return nil
		})
		e.refused(fault.Conflict, func(tx nodest.Tx) error {
			m := message(conversation, "", "again")
			m.ClientMsgID = "mine-1"
			return tx.Chats.InsertMessage(m)
		})
	})
}

func TestTextsAreNeverChanged(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		m := e.say(conversation, "", "first words")
		first := m.Swipes[0].RevisionID
		e.clock.advance(time.Minute)
		e.update(func(tx nodest.Tx) error { // an edit
			m.Rev, m.Swipes[0].Rev, m.Swipes[0].RevisionID, m.Swipes[0].Text = 2, 2, id(), "second words"
			return tx.Chats.UpdateMessage(m)
		})
		e.clock.advance(time.Minute)
		e.update(func(tx nodest.Tx) error { // another swipe, chosen
			m.Rev, m.SwipeIndex = 3, 1
			m.Swipes = append(m.Swipes, chat.Swipe{Text: "other words"})
			return tx.Chats.UpdateMessage(m)
		})
		e.update(func(tx nodest.Tx) error { // only the state; a text that is stored stays
			m.Rev, m.SwipeIndex, m.Swipes[1].Deleted = 4, 0, true
			m.Swipes[0].Text = "not a revision"
			return tx.Chats.UpdateMessage(m)
		})
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Chats.Message(m.ID)
			if err != nil {
				return err
			}
			e.equal("text", got.Text(), "second words")
			e.equal("texts", []string{got.Swipes[0].Text, got.Swipes[1].Text}, []string{"second words", "other words"})
			e.equal("deleted swipe", got.Swipes[1].Deleted, true)
			old, err := tx.Chats.Revision(first)
			if err != nil {
				return err
			}
			e.equal("first revision", *old, chat.Revision{
				ID: first, MessageID: m.ID, SwipeID: m.Swipes[0].ID, Rev: 1, Text: "first words", CreatedAt: start,
			})
			all, err := tx.Chats.Revisions(m.ID)
			if err != nil {
				return err
			}
			var words []string
			for _, r := range all {
				words = append(words, r.Text)
			}
			e.equal("revisions", words, []string{"first words", "second words", "other words"})
			return nil
		})
	})
}

func TestAnOutdatedChangeOfAMessageIsRefused(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		m := e.say(e.conversation(), "", "words")
		m.Rev = 2
		m.Status = chat.StatusCancelled
		e.update(func(tx nodest.Tx) error { return tx.Chats.UpdateMessage(m) })
		err := e.db.Update(t.Context(), e.user, func(tx nodest.Tx) error { return tx.Chats.UpdateMessage(m) })
		e.code(fault.Conflict, err)
		current, ok := fault.Public(err).Details["current"].(*chat.Message)
		if !ok || current.ID != m.ID || current.Rev != 2 || current.Text() != "words" {
			e.Errorf("details.current is %+v", current)
		}
		m.ID = id()
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.UpdateMessage(m) })
	})
}

func TestAPathIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		var line []*chat.Message
		parent := ""
		for i := range 10 {
			m := e.say(conversation, parent, fmt.Sprint(i))
			e.equal("seq", m.Seq, i+1)
			line, parent = append(line, m), m.ID
		}
		branch := e.say(conversation, line[3].ID, "b")
		for _, i := range []int{2, 7, 8} {
			e.update(func(tx nodest.Tx) error {
				now := tx.Now()
				line[i].Rev, line[i].DeletedAt = 2, &now
				return tx.Chats.UpdateMessage(line[i])
			})
		}
		for _, tt := range []struct {
			head, before string
			limit        int
			want         string
			more         bool
		}{
			{line[9].ID, "", 3, "5 6 9", true},
			{line[9].ID, "", 7, "0 1 3 4 5 6 9", false},
			{line[9].ID, "", 50, "0 1 3 4 5 6 9", false},
			{line[9].ID, "", 6, "1 3 4 5 6 9", true},
			{line[9].ID, line[5].ID, 3, "1 3 4", true},
			{line[9].ID, line[1].ID, 3, "0", false},
			{line[9].ID, line[0].ID, 3, "", false},
			{line[9].ID, line[8].ID, 2, "5 6", true}, // the message at the cursor may have been deleted
			{branch.ID, "", 3, "1 3 b", true},
			{line[8].ID, "", 1, "6", true},
			{"", "", 3, "", false},
		} {
			e.view(func(tx nodest.Tx) error {
				items, more, err := tx.Chats.Path(conversation, tt.head, tt.before, tt.limit)
				e.equal(fmt.Sprintf("path %+v", tt), strings.Join(texts(items), " "), tt.want)
				e.equal(fmt.Sprintf("more of %+v", tt), more, tt.more)
				return err
			})
		}
		e.view(func(tx nodest.Tx) error {
			below, err := tx.Chats.Children(conversation, line[3].ID)
			e.equal("children", strings.Join(texts(below), " "), "4 b")
			if err != nil {
				return err
			}
			_, _, err = tx.Chats.Path(conversation, id(), "", 5)
			e.code(fault.NotFound, err)
			return nil
		})
		other := e.conversation()
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.InsertMessage(message(other, line[0].ID, "x")) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error {
			_, _, err := tx.Chats.Path(other, line[0].ID, "", 5)
			return err
		})
	})
}

func TestStatesAreStoredPerVersion(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation() // version 1
		m := e.say(conversation, "", "a")
		e.update(func(tx nodest.Tx) error { // an edit, before the conversation's own change
			m.Rev, m.Swipes[0].Rev, m.Swipes[0].RevisionID, m.Swipes[0].Text = 2, 2, named("r2"), "b"
			if err := tx.Chats.UpdateMessage(m); err != nil {
				return err
			}
			m.Rev, m.Status = 3, chat.StatusInterrupted // twice in one version
			if err := tx.Chats.UpdateMessage(m); err != nil {
				return err
			}
			c, err := tx.Chats.LockConversation(conversation)
			if err != nil {
				return err
			}
			c.Version++
			c.Settings = []byte(`{"model":"x"}`)
			return tx.Chats.UpdateConversation(c)
		})
		states, err := store.Query[string](e.db,
			"SELECT CAST(version AS TEXT) || ' ' || CAST(rev AS TEXT) || ' ' || status FROM message_states WHERE message_id = ? ORDER BY version", m.ID)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("states of the message", states, []string{"2 1 complete", "3 3 interrupted"})
		revisions, err := store.Query[string](e.db, "SELECT revision_id FROM message_states WHERE message_id = ? ORDER BY version", m.ID)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("revisions", revisions[1], named("r2"))
		kept, err := store.Query[struct {
			Version, DocumentsVersion int64
			Settings                  string
		}](e.db, "SELECT version, documents_version, settings FROM conversation_states WHERE conversation_id = ? ORDER BY version", conversation)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("states of the conversation", fmt.Sprint(kept), `[{1 1 {}} {2 1 } {3 3 {"model":"x"}}]`)
	})
}

// Branches of random trees, read in pages, equal a walk over the same tree in memory.
func TestPathsOfRandomTrees(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		rnd := random(t)
		conversation := e.conversation()
		parents, deleted := map[string]string{}, map[string]bool{}
		var all []*chat.Message
		e.update(func(tx nodest.Tx) error {
			all = nil
			for i := range atLeast(80, 2000) {
				parent := ""
				if i > 0 && rnd.IntN(20) > 0 { // mostly below one of the newest messages
					parent = all[max(0, len(all)-1-rnd.IntN(4))].ID
				}
				m := message(conversation, parent, fmt.Sprint(i))
				if rnd.IntN(4) == 0 {
					now := tx.Now()
					m.DeletedAt = &now
				}
				if err := tx.Chats.InsertMessage(m); err != nil {
					return err
				}
				all = append(all, m)
				parents[m.ID], deleted[m.ID] = parent, m.DeletedAt != nil
			}
			return nil
		})
		for range atLeast(30, 500) {
			head, size := all[rnd.IntN(len(all))].ID, 1+rnd.IntN(12)
			var want []string
			for at := head; at != ""; at = parents[at] {
				if !deleted[at] {
					want = append(want, at)
				}
			}
			var got []string
			before, more := "", true
			for more {
				e.view(func(tx nodest.Tx) error {
					var items []*chat.Message
					var err error
					items, more, err = tx.Chats.Path(conversation, head, before, size)
					for i := range items {
						got = append(got, items[len(items)-1-i].ID)
					}
					if len(items) > 0 {
						before = items[0].ID
					}
					if len(items) > size || more && len(items) < size {
						e.Fatalf("a page of %d has %d, more %v", size, len(items), more)
					}
					return err
				})
			}
			e.equal("branch", got, want)
			e.readOnwards(conversation, head, size, parents, deleted)
		}
	})
}

// readOnwards reads the path that ends in head forwards from each message of it, and from
// one beside it; parents has the parent of each message.
func (e *env) readOnwards(conversation, head string, size int, parents map[string]string, deleted map[string]bool) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		on, err := tx.Chats.OnPath(conversation, head, slices.Collect(maps.Keys(parents)))
		if err != nil {
			return err
		}
		var all, rest []string
		for at := head; at != ""; at = parents[at] {
			items, more, err := tx.Chats.PathAfter(conversation, head, at, size)
			if err != nil {
				return err
			}
			var got []string
			for _, m := range items {
				got = append(got, m.ID)
			}
			e.equal("the page after a message", got, rest[:min(size, len(rest))])
			e.equal("more after it", more, len(rest) > size)
			if !deleted[at] {
				rest = append([]string{at}, rest...)
			}
			all = append(all, at)
		}
		e.equal("messages on the path", slices.Sorted(slices.Values(on)), slices.Sorted(slices.Values(all)))
		for beside := range parents {
			if !slices.Contains(all, beside) {
				_, _, err := tx.Chats.PathAfter(conversation, head, beside, size)
				e.code(fault.NotFound, err)
				break
			}
		}
		return nil
	})
}

func TestSeqsGoOnHoweverAConversationIsStored(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		var seqs []int64
		parent := ""
		insert := func(tx nodest.Tx) error {
			m := message(conversation, parent, "hello")
			err := tx.Chats.InsertMessage(m)
			seqs, parent = append(seqs, m.Seq), m.ID
			return err
		}
		e.update(func(tx nodest.Tx) error {
			for range 2 { // not stored, and locked again
				if _, err := tx.Chats.LockConversation(conversation); err != nil {
					return err
				}
				if err := insert(tx); err != nil {
					return err
				}
			}
			return insert(tx)
		})
		parent = e.say(conversation, parent, "stored with its conversation").ID
		e.update(insert)
		e.equal("seqs", seqs, []int64{1, 2, 3, 5})
	})
}
