package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
)

// nextVersion makes one change of a conversation as the engine does: lock, change, new
// version. It returns the version.
func (e *env) nextVersion(conversation string, change func(tx nodest.Tx, c *chat.Conversation) error) (version int64) {
	e.Helper()
	e.update(func(tx nodest.Tx) error {
		c, err := tx.Chats.LockConversation(conversation)
		if err != nil {
			return err
		}
		if err := change(tx, c); err != nil {
			return err
		}
		c.Version++
		version = c.Version
		return tx.Chats.UpdateConversation(c)
	})
	return version
}

// change loads a message, changes it and stores it at the conversation's next version.
func (e *env) change(id string, change func(m *chat.Message)) {
	e.Helper()
	var conversation string
	e.view(func(tx nodest.Tx) error {
		m, err := tx.Chats.Message(id)
		if err == nil {
			conversation = m.ConversationID
		}
		return err
	})
	e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
		m, err := tx.Chats.Message(id)
		if err != nil {
			return err
		}
		change(m)
		m.Rev++
		return tx.Chats.UpdateMessage(m)
	})
}

// edit gives the chosen swipe a new text.
func edit(text string) func(m *chat.Message) {
	return func(m *chat.Message) {
		s := m.Chosen()
		s.Text, s.Wish = text, "shorter"
		s.Rev++
		at := start.Add(time.Minute)
		m.EditedAt = &at
	}
}

// reswipe adds a swipe and chooses it.
func reswipe(text string) func(m *chat.Message) {
	return func(m *chat.Message) {
		m.Swipes = append(m.Swipes, chat.Swipe{
			ID: id(), RevisionID: id(), Rev: 1, Text: text, Reasoning: "r", Model: "m", Finish: "stop",
			Blocks: []chat.Block{{Part: "mem", Text: "b", At: 1}}, Usage: &llm.Usage{}, GenerationID: id(),
		})
		m.SwipeIndex = len(m.Swipes) - 1
	}
}

func deleteMessage(m *chat.Message) {
	at := start.Add(time.Hour)
	m.DeletedAt = &at
}

func undeleteMessage(m *chat.Message) { m.DeletedAt = nil }

// talk stores n consecutive messages below parent.
func (e *env) talk(conversation, parent string, n int) (all []*chat.Message) {
	e.Helper()
	e.update(func(tx nodest.Tx) error {
		all = nil
		for up := parent; len(all) < n; up = all[len(all)-1].ID {
			m, err := say(tx, conversation, up, fmt.Sprint("text ", len(all)+1))
			if err != nil {
				return err
			}
			all = append(all, m)
		}
		return nil
	})
	return all
}

// contents returns what messages and their copies have in common, one line each.
func contents(messages []*chat.Message) []string {
	out := []string{}
	for _, m := range messages {
		line := fmt.Sprint(m.Seq, m.Role, m.Name, m.Greeting, m.Hidden, m.SwipeIndex, m.Rev, m.Status, m.Error, m.GenerationID,
			m.CreatedAt.UnixMilli(), m.DeletedAt, string(m.Extra))
		for _, s := range m.Swipes {
			line += fmt.Sprint(" | ", s.Text, s.Reasoning, s.Blocks, s.Model, s.Finish, s.Usage, s.GenerationID, s.Wish, s.Deleted, s.CreatedAt.UnixMilli())
		}
		out = append(out, line)
	}
	return out
}

// path reads a whole branch, in pages.
func (e *env) path(conversation, head string) (all []*chat.Message) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		before := ""
		for {
			items, more, err := tx.Chats.Path(conversation, head, before, 7)
			if err != nil {
				return err
			}
			all = append(slices.Clone(items), all...)
			if !more {
				return nil
			}
			before = items[0].ID
		}
	})
	for _, m := range all {
		e.readLine(m)
	}
	return all
}

// beginFork stores the first messages of a hidden fork that ends with a message.
func (e *env) beginFork(c *chat.Conversation, source, message string, limit int) (from chat.ForkSource) {
	e.Helper()
	e.update(func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(source)
		if err != nil {
			return err
		}
		m, err := tx.Chats.Message(message)
		if err != nil {
			return err
		}
		c.HeadID = tx.Chats.CopyOf(c.ID, m.ID)
		from = chat.ForkSource{ConversationID: source, MessageID: message, Version: conv.Version}
		if err := tx.Chats.BeginLoad(c); err != nil {
			return err
		}
		_, _, err = tx.Chats.CopyPath(from, c.ID, limit)
		return err
	})
	return from
}

// finishFork copies the rest of a fork and makes it visible; it returns the number of
// steps.
func (e *env) finishFork(c *chat.Conversation, from chat.ForkSource, limit int) (pieces int) {
	e.Helper()
	for left := true; left; pieces++ {
		e.update(func(tx nodest.Tx) error {
			copied, length, err := tx.Chats.CopyPath(from, c.ID, limit)
			if left = copied < length; left || err != nil {
				return err
			}
			return tx.Chats.FinishLoad(c, nil, nil)
		})
	}
	return pieces
}

// forkTo copies the branch that ends with a message into c.
func (e *env) forkTo(c *chat.Conversation, source, message string) {
	e.Helper()
	e.finishFork(c, e.beginFork(c, source, message, 4), 5)
}

func (e *env) fork(source, message string) *chat.Conversation {
	e.Helper()
	c := &chat.Conversation{ID: id(), CharacterID: id(), Title: "fork", Settings: []byte(`{"a":1}`)}
	e.forkTo(c, source, message)
	return c
}

func TestAForkIsTheBranchAsItWas(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 20)
		e.talk(source, said[3].ID, 2) // another branch
		e.change(said[2].ID, edit("edited"))
		e.change(said[5].ID, deleteMessage)
		e.change(said[6].ID, reswipe("second"))
		e.change(said[8].ID, reswipe("second"))
		e.change(said[8].ID, func(m *chat.Message) { m.SwipeIndex, m.Swipes[1].Deleted = 0, true })
		e.change(said[15].ID, reswipe("second"))
		e.change(said[15].ID, edit("edited too"))
		e.change(said[16].ID, deleteMessage)
		want := contents(e.path(source, said[17].ID))

		fork := &chat.Conversation{ID: id(), CharacterID: id()}
		from := e.beginFork(fork, source, said[17].ID, 4)
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Conversation(fork.ID); return err })

		// Later changes of the source do not affect the fork.
		e.change(said[1].ID, edit("later"))
		e.change(said[6].ID, func(m *chat.Message) { m.SwipeIndex = 0 })
		e.change(said[7].ID, deleteMessage)
		e.change(said[9].ID, edit("later"))
		e.change(said[8].ID, func(m *chat.Message) { m.SwipeIndex, m.Swipes[1].Deleted = 1, false })
		e.change(said[8].ID, func(m *chat.Message) { m.SwipeIndex, m.Swipes[1].Deleted = 0, true })
		e.change(said[5].ID, undeleteMessage)
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(source) })

		e.equal("pieces", e.finishFork(fork, from, 5), 4) // 14 messages with 17 texts were left
		own := e.say(fork.ID, fork.HeadID, "own")
		e.equal("seq of the next message", own.Seq, said[17].Seq+1)
		e.equal("tips", e.tips(fork.ID, 5), []string{"own"})
		got := e.path(fork.ID, own.ID)
		e.equal("edited at", got[2].EditedAt, start.Add(time.Minute))
		e.equal("the branch", contents(got[:len(got)-1]), want)
		e.view(func(tx nodest.Tx) error {
			items, _, err := tx.Chats.PathAt(fork.ID, 1, fork.HeadID, "", 50)
			if err != nil {
				return err
			}
			e.equal("the branch at version 1", contents(items), want)
			then, err := tx.Chats.StateAt(fork.ID, 1)
			if err != nil {
				return err
			}
			e.equal("head at version 1", then.HeadID, fork.HeadID)
			n, err := tx.Chats.Count(fork.ID, own.ID)
			e.equal("count", n, len(want)+1)
			return err
		})
		// Deleted messages were copied as deleted messages.
		const of = " FROM messages WHERE conversation_id = ?"
		e.equal("deleted copies", e.queryInts("SELECT seq"+of+" AND deleted_at IS NOT NULL ORDER BY seq", fork.ID),
			[]int64{said[5].Seq, said[16].Seq})
		e.equal("depths", e.queryInts("SELECT depth"+of+" ORDER BY seq", fork.ID), numbers(1, 19))
		e.equal("chains", e.queryInts("SELECT DISTINCT chain"+of, fork.ID), []int64{0})
		e.equal("texts that are not shown", e.queryInts("SELECT COUNT(*) FROM revisions r JOIN messages m ON m.id = r.message_id"+
			" WHERE m.conversation_id = ? AND NOT r.is_shown", fork.ID), []int64{0})
		e.equal("states without a text", e.queryInts("SELECT COUNT(*) FROM message_states s"+
			" WHERE s.conversation_id = ? AND NOT EXISTS (SELECT 1 FROM revisions r WHERE r.id = s.revision_id AND r.message_id = s.message_id)", fork.ID), []int64{0})
	})
}

// A piece of a fork has at most so many texts as it may, so one message with many swipes takes
// several; what happens to its swipes meanwhile does not matter.
func TestAForkCopiesSwipesInPieces(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 4)
		for _, i := range []int{1, 3} {
			for n := range 80 { // more than are counted before a message gets pieces of its own
				e.change(said[i].ID, reswipe(fmt.Sprint("swipe ", n)))
			}
		}
		e.change(said[1].ID, func(m *chat.Message) { m.SwipeIndex, m.Swipes[50].Deleted = 40, true })
		e.change(said[1].ID, edit("edited"))
		want := contents(e.path(source, said[3].ID))

		fork := &chat.Conversation{ID: id(), CharacterID: id()}
		from := e.beginFork(fork, source, said[3].ID, 25)
		e.change(said[1].ID, edit("edited later")) // the swipe that the fork has as it was
		e.change(said[1].ID, reswipe("later"))     // chosen after the version of the fork
		texts := func() int64 {
			return e.queryInts("SELECT COUNT(*) FROM revisions r JOIN messages m ON m.user_id = r.user_id AND m.id = r.message_id WHERE m.conversation_id = ?", fork.ID)[0]
		}
		before, pieces := texts(), 0
		for left := true; left; pieces++ {
			e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Conversation(fork.ID); return err })
			e.update(func(tx nodest.Tx) error {
				copied, length, err := tx.Chats.CopyPath(from, fork.ID, 25)
				if left = copied < length; left || err != nil {
					return err
				}
				return tx.Chats.FinishLoad(fork, nil, nil)
			})
			if now := texts(); now > before+25 || now == before {
				t.Errorf("piece %d copied %d texts", pieces, now-before)
			} else {
				before = now
			}
		}
		e.equal("texts", before, int64(2+81+1+81)) // with the swipe that was added while they were copied
		got := e.path(fork.ID, fork.HeadID)
		got[1].Swipes = got[1].Swipes[:81]
		e.equal("the branch", contents(got), want)
		counted := e.queryInts("SELECT CAST(SUM(used) AS BIGINT) FROM quotas WHERE kind = 'bytes' AND user_id = ?", e.user)
		if err := store.Recount(e.db, e.user); err != nil {
			t.Fatal(err)
		}
		e.equal("bytes that count, before and after they are counted anew", counted,
			e.queryInts("SELECT CAST(SUM(used) AS BIGINT) FROM quotas WHERE kind = 'bytes' AND user_id = ?", e.user))
	})
}

// A fork has the lines of imported logs, which count to the quota of bytes, and stay as they are when their
// messages change.
func TestAForkCopiesTheLinesOfAnImportedLog(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 1)
		imported := message(source, said[0].ID, "imported")
		imported.Extra = []byte(`{"mes":"imported","extra":{"a":1}}`)
		e.nextVersion(source, func(tx nodest.Tx, _ *chat.Conversation) error { return tx.Chats.InsertMessage(imported) })
		e.change(imported.ID, edit("edited"))
		want := contents(e.path(source, imported.ID))
		before := e.quotas()["bytes"].Used
		fork := &chat.Conversation{ID: id(), CharacterID: id()}
		from := e.beginFork(fork, source, imported.ID, 1000)
		e.finishFork(fork, from, 1000)
		got := e.path(fork.ID, fork.HeadID)
		e.equal("the branch", contents(got), want)
		e.equal("the line", string(got[1].Extra), string(imported.Extra))
		if more := e.quotas()["bytes"].Used - before; more < int64(len(imported.Extra)) {
			e.Errorf("the fork counts %d bytes", more)
		}
	})
}

// Texts that are long make pieces short: at most a megabyte, but one text at least.
func TestAForkCopiesLongTextsInPieces(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 3)
		long := strings.Repeat("long ", 60_000) // 300 KB
		for range 8 {
			e.change(said[1].ID, reswipe(long))
		}
		want := contents(e.path(source, said[2].ID))
		fork := &chat.Conversation{ID: id(), CharacterID: id()}
		from := e.beginFork(fork, source, said[2].ID, 1000)
		e.equal("pieces behind the first", e.finishFork(fork, from, 1000), 2)
		e.equal("the branch", contents(e.path(fork.ID, fork.HeadID)), want)
	})
}

// A fork of a fork of a fork contains the whole branch, after all its sources were
// deleted.
func TestAForkOfAFork(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		e.talk(source, "", 5)
		said := e.talk(source, "", 8) // below a second root
		said = append(said[:4:4], e.talk(source, said[3].ID, 6)...)
		want := contents(said)
		first := e.fork(source, said[9].ID)
		own := e.talk(first.ID, first.HeadID, 7)
		want = append(want, contents(own)...)
		second := e.fork(first.ID, own[6].ID)
		third := e.fork(second.ID, second.HeadID)
		for _, c := range []string{source, first.ID, second.ID} {
			e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(c) })
		}
		e.equal("the branch", contents(e.path(third.ID, third.HeadID)), want)
	})
}

func TestOnlyAMessageOfTheSourceCanEndAFork(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		e.talk(source, "", 2)
		other := e.say(e.conversation(), "", "elsewhere")
		for _, message := range []string{id(), other.ID} {
			e.refused(fault.NotFound, func(tx nodest.Tx) error {
				c := &chat.Conversation{ID: id()}
				_, _, err := tx.Chats.CopyPath(chat.ForkSource{ConversationID: source, MessageID: message, Version: 1}, c.ID, 5)
				e.code(fault.NotFound, err) // no fork was begun
				if err := tx.Chats.BeginLoad(c); err != nil {
					return err
				}
				_, _, err = tx.Chats.CopyPath(chat.ForkSource{ConversationID: source, MessageID: message, Version: 1}, c.ID, 5)
				return err
			})
		}
	})
}

// Two processes that run the same fork job copy each message once.
func TestConcurrentForkJobsCopyEachMessageOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 40)
		fork := &chat.Conversation{ID: id(), CharacterID: id()}
		from := e.beginFork(fork, source, said[39].ID, 2)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for left := true; left; {
					err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
						copied, length, err := tx.Chats.CopyPath(from, fork.ID, 3)
						left = copied < length
						return err
					})
					if err != nil {
						e.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		e.finishFork(fork, from, 3)
		e.equal("the branch", contents(e.path(fork.ID, fork.HeadID)), contents(said))
	})
}

func TestCopiesAreListedBesideTheirOriginals(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 6)
		fork := &chat.Conversation{ID: id(), CharacterID: id()}
		from := e.beginFork(fork, source, said[5].ID, 1)
		last := e.say(source, said[5].ID, "last")
		e.finishFork(fork, from, 2)
		var seqs []int64
		e.view(func(tx nodest.Tx) error {
			ranges, err := tx.Chats.TextRanges(chat.TextFilter{})
			var items []chat.ShownText
			for _, r := range ranges {
				if err == nil {
					err = tx.Chats.RangeTexts(r, func(t *chat.ShownText) { items = append(items, *t) })
				}
			}
			slices.SortFunc(items, func(a, b chat.ShownText) int { return strings.Compare(b.MessageID, a.MessageID) })
			for _, t := range items {
				seqs = append(seqs, t.Seq)
			}
			return err
		})
		e.equal("seqs, newest first", seqs, []int64{last.Seq, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1})
		for i, m := range e.path(fork.ID, fork.HeadID) {
			made, err := uuid.Parse(m.ID)
			if err != nil || made.Version() != 7 || made.Variant() != uuid.RFC4122 {
				e.Errorf("id %q: %v", m.ID, err)
			}
			e.view(func(tx nodest.Tx) error {
				e.equal("the id that was announced", m.ID, tx.Chats.CopyOf(fork.ID, said[i].ID))
				return nil
			})
		}
	})
}

// queryInts reads numbers with a statement of the test's own.
func (e *env) queryInts(query string, args ...any) []int64 {
	e.Helper()
	n, err := store.Query[int64](e.db, query, args...)
	if err != nil {
		e.Fatal(err)
	}
	return n
}

func numbers(from, n int64) (all []int64) {
	for i := range n {
		all = append(all, from+i)
	}
	return all
}
