package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
)

// change loads a message, changes it and stores it as the engine does, at the
// conversation's next version.
func (e *env) change(id string, change func(m *nodest.Message)) {
	e.Helper()
	e.update(func(tx nodest.Tx) error {
		m, err := tx.Message(id)
		if err != nil {
			return err
		}
		c, err := tx.LockConversation(m.ConversationID)
		if err != nil {
			return err
		}
		change(m)
		m.Rev++
		if err := tx.UpdateMessage(m); err != nil {
			return err
		}
		c.Version++
		return tx.UpdateConversation(c)
	})
}

// edit gives the chosen swipe a new text.
func edit(text string) func(m *nodest.Message) {
	return func(m *nodest.Message) {
		s := m.Chosen()
		s.Text, s.Wish = text, "shorter"
		s.Rev++
		at := start.Add(time.Minute)
		m.EditedAt = &at
	}
}

// reswipe adds a text and chooses it.
func reswipe(text string) func(m *nodest.Message) {
	return func(m *nodest.Message) {
		m.Swipes = append(m.Swipes, nodest.Swipe{
			ID: id(), RevisionID: id(), Rev: 1, Text: text, Reasoning: "r", Model: "m", Finish: "stop",
			Blocks: []nodest.Block{{Part: "mem", Text: "b", At: 1}}, Usage: &llm.Usage{}, GenerationID: id(),
		})
		m.SwipeIndex = len(m.Swipes) - 1
	}
}

func erase(m *nodest.Message) {
	at := start.Add(time.Hour)
	m.DeletedAt = &at
}

func unerase(m *nodest.Message) { m.DeletedAt = nil }

// talk stores n messages below parent, one after the other.
func (e *env) talk(conversation, parent string, n int) (all []*nodest.Message) {
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

// like is what messages and copies of them have in common, a line each.
func like(messages []*nodest.Message) []string {
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
func (e *env) path(conversation, head string) (all []*nodest.Message) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		before := ""
		for {
			items, more, err := tx.Path(conversation, head, before, 7)
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
	return all
}

func (e *env) fork(source, message string, limit int) *nodest.Conversation {
	e.Helper()
	c := &nodest.Conversation{ID: id(), CharacterID: id(), Title: "fork", Settings: []byte(`{"a":1}`)}
	e.update(func(tx nodest.Tx) error { return tx.InsertFork(c, source, message, limit) })
	return c
}

// copyAll copies what is left of a fork and returns how many pieces it took.
func (e *env) copyAll(fork string, limit int) (pieces int) {
	e.Helper()
	for left := true; left; pieces++ {
		if pieces > 1000 {
			e.Fatal("the copying does not end")
		}
		e.update(func(tx nodest.Tx) (err error) {
			left, err = tx.CopyMore(fork, limit)
			return err
		})
	}
	return pieces
}

func (e *env) copying(want ...string) {
	e.Helper()
	refs, err := e.db.Copying(context.Background(), 10)
	if err != nil {
		e.Fatal(err)
	}
	got := []string{}
	for _, ref := range refs {
		e.equal("user of the fork", ref.UserID, e.user)
		got = append(got, ref.ConversationID)
	}
	e.equal("forks that are being copied", got, append([]string{}, want...))
}

func TestAForkIsTheBranchAsItWas(t *testing.T) {
	conform(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 20)
		e.talk(source, said[3].ID, 2) // another branch
		e.change(said[2].ID, edit("edited"))
		e.change(said[5].ID, erase)
		e.change(said[6].ID, reswipe("second"))
		e.change(said[15].ID, reswipe("second"))
		e.change(said[15].ID, edit("edited too"))
		e.change(said[16].ID, erase)
		want := like(e.path(source, said[17].ID))

		fork := e.fork(source, said[17].ID, 4)
		e.equal("copying", fork.Copying, true)
		e.equal("preview", fork.LastMessage.Text, said[17].Text())
		e.copying(fork.ID)
		e.equal("what is there at once", like(e.path(fork.ID, fork.HeadID)), want[len(want)-3:]) // of 4, one is deleted

		// What happens to the source now is no longer the fork's.
		e.change(said[1].ID, edit("later"))
		e.change(said[6].ID, func(m *nodest.Message) { m.SwipeIndex = 0 })
		e.change(said[7].ID, erase)
		e.change(said[5].ID, unerase)
		e.update(func(tx nodest.Tx) error { return tx.DeleteConversation(source) })

		// And what happens to the fork does not hinder the copying.
		own := e.say(fork.ID, fork.HeadID, "own")
		e.equal("seq of the next message", own.Seq, said[17].Seq+1)
		e.equal("pieces", e.copyAll(fork.ID, 5), 3) // 14 were left
		e.copying()
		e.equal("tips", e.ends(fork.ID, 5), []string{"own"})
		got := e.path(fork.ID, own.ID)
		e.equal("edited at", got[2].EditedAt, start.Add(time.Minute))
		e.equal("the branch", like(got[:len(got)-1]), want)
		e.view(func(tx nodest.Tx) error {
			items, _, err := tx.PathAt(fork.ID, 1, fork.HeadID, "", 50)
			if err != nil {
				return err
			}
			e.equal("the branch at version 1", like(items), want)
			then, err := tx.StateAt(fork.ID, 1)
			if err != nil {
				return err
			}
			e.equal("head at version 1", then.HeadID, fork.HeadID)
			n, err := tx.Count(fork.ID, own.ID)
			if err != nil {
				return err
			}
			e.equal("count", n, len(want)+1)
			c, err := tx.Conversation(fork.ID)
			e.equal("copying in the end", c.Copying, false)
			return err
		})
		// Deleted messages were copied as such.
		const of = " FROM messages WHERE conversation_id = ?"
		e.equal("deleted copies", e.ask("SELECT seq"+of+" AND deleted_at IS NOT NULL ORDER BY seq", fork.ID),
			[]int64{said[5].Seq, said[16].Seq})
		e.equal("depths", e.ask("SELECT depth"+of+" ORDER BY seq", fork.ID), numbers(1, 19))
		e.equal("chains", e.ask("SELECT DISTINCT chain"+of, fork.ID), []int64{0})
	})
}

func TestAForkOfAForkThatIsBeingCopied(t *testing.T) {
	conform(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 12)
		want := like(e.path(source, said[11].ID))
		first := e.fork(source, said[11].ID, 3)
		own := e.talk(first.ID, first.HeadID, 2)
		want = append(want, like(own)...)
		second := e.fork(first.ID, own[1].ID, 1)
		e.clock.advance(time.Second)
		third := e.fork(second.ID, second.HeadID, 1)
		e.copying(first.ID, second.ID, third.ID)
		e.change(said[0].ID, edit("later"))
		// The first has more now than it had when the second was made.
		e.update(func(tx nodest.Tx) error { _, err := tx.CopyMore(first.ID, 2); return err })
		for _, c := range []string{first.ID, second.ID, source} {
			e.update(func(tx nodest.Tx) error { return tx.DeleteConversation(c) })
		}
		e.copying(third.ID)
		e.copyAll(third.ID, 4)
		e.equal("the branch", like(e.path(third.ID, third.HeadID)), want)
	})
}

func TestAShortBranchIsCopiedAtOnce(t *testing.T) {
	conform(t, func(e *env) {
		source := e.conversation()
		e.talk(source, "", 5)
		again := e.talk(source, "", 3) // below a second root
		for limit, copying := range map[int]bool{2: true, 3: false, 50: false} {
			fork := e.fork(source, again[2].ID, limit)
			e.equal("copying", fork.Copying, copying)
			e.copyAll(fork.ID, 50)
			e.equal("the branch", like(e.path(fork.ID, fork.HeadID)), like(again))
			left := true
			e.update(func(tx nodest.Tx) (err error) { left, err = tx.CopyMore(fork.ID, 50); return err })
			e.equal("left", left, false)
		}
		e.refused(fault.NotFound, func(tx nodest.Tx) error {
			return tx.InsertFork(&nodest.Conversation{ID: id()}, source, id(), 5)
		})
		other := e.say(e.conversation(), "", "elsewhere")
		e.refused(fault.NotFound, func(tx nodest.Tx) error {
			return tx.InsertFork(&nodest.Conversation{ID: id()}, source, other.ID, 5)
		})
	})
}

func TestAPieceIsCopiedOnce(t *testing.T) {
	conform(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 40)
		fork := e.fork(source, said[39].ID, 2)
		second := e.fork(fork.ID, fork.HeadID, 2)
		var group sync.WaitGroup
		for range 4 {
			for _, c := range []string{fork.ID, second.ID} {
				group.Go(func() {
					for left := true; left; {
						err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) (err error) {
							left, err = tx.CopyMore(c, 3)
							return err
						})
						if err != nil {
							e.Error(err)
							return
						}
					}
				})
			}
		}
		group.Wait()
		e.equal("the branch", like(e.path(fork.ID, fork.HeadID)), like(said))
		e.equal("the branch of the second", like(e.path(second.ID, second.HeadID)), like(said))
	})
}

func TestCopiesAreFoundWhereTheirOriginalsAre(t *testing.T) {
	conform(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 6)
		fork := e.fork(source, said[5].ID, 1)
		last := e.say(source, said[5].ID, "last")
		e.copyAll(fork.ID, 2)
		var seqs []int64
		e.view(func(tx nodest.Tx) error {
			items, _, err := tx.Texts(nodest.TextFilter{}, "", 50)
			for _, m := range items {
				seqs = append(seqs, m.Seq)
			}
			return err
		})
		e.equal("seqs, newest first", seqs, []int64{last.Seq, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1})
	})
}

// ask reads numbers with a statement of the test's own.
func (e *env) ask(query string, args ...any) []int64 {
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

// What will be copied can be named before it is, whichever copy it is made from, and
// is found where the original is.
func TestACopyIsNamedBeforeItIsThere(t *testing.T) {
	conform(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 12)
		first := e.fork(source, said[11].ID, 3)
		second := e.fork(first.ID, first.HeadID, 2)
		names := func(fork string, of []*nodest.Message) (ids []string) {
			e.view(func(tx nodest.Tx) error {
				for _, m := range of {
					ids = append(ids, tx.CopyOf(fork, m.ID, m.Seq))
				}
				return nil
			})
			return ids
		}
		want := names(second.ID, said)
		e.equal("in order", slices.IsSorted(want), true)
		e.equal("another fork has the same", want[0] == names(first.ID, said)[0], false)
		e.copyAll(second.ID, 4)
		e.copyAll(first.ID, 4)
		got := e.path(second.ID, second.HeadID)
		e.equal("named by the copies", names(second.ID, e.path(first.ID, first.HeadID)), want)
		for i, m := range got {
			e.equal("copy", m.ID, want[i])
		}
	})
}

// A message that has no time in its id can be copied as well.
func TestACopyOfAMessageWithAnyID(t *testing.T) {
	conform(t, func(e *env) {
		e.view(func(tx nodest.Tx) error {
			fork := id()
			first, second := tx.CopyOf(fork, "any", 1), tx.CopyOf(fork, "one", 2)
			e.equal("ids", []int{len(first), strings.Compare(first, second)}, []int{36, -1})
			again := id()
			e.equal("a copy of the copy", tx.CopyOf(again, first, 1), tx.CopyOf(again, "any", 1))
			return nil
		})
	})
}

// What is still to be copied can be read as its copies will be.
func TestWhatIsToBeCopiedCanBeRead(t *testing.T) {
	conform(t, func(e *env) {
		source := e.conversation()
		said := e.talk(source, "", 20)
		e.change(said[1].ID, edit("edited"))
		e.change(said[3].ID, erase)
		first := e.fork(source, said[19].ID, 4)
		second := e.fork(first.ID, first.HeadID, 2)
		e.change(said[2].ID, edit("later"))
		read := func(fork string, seq int64, limit int) (items []*nodest.Message, more, ok bool) {
			e.view(func(tx nodest.Tx) (err error) {
				items, more, ok, err = tx.ToCopy(fork, seq, limit)
				return err
			})
			return items, more, ok
		}
		named := func(messages []*nodest.Message) (lines []string) {
			for i, line := range like(messages) {
				lines = append(lines, messages[i].ID+" below "+messages[i].ParentID+": "+line)
			}
			return lines
		}
		got := map[string][]string{}
		for _, fork := range []string{first.ID, second.ID} {
			late, more, ok := read(fork, said[6].Seq, 3)
			e.equal("a page", []any{len(late), more, ok}, []any{3, true, true})
			early, more, ok := read(fork, late[0].Seq, 3)
			e.equal("the page before", []any{len(early), more, ok}, []any{2, false, true})
			got[fork] = named(append(early, late...))
			_, _, ok = read(fork, said[19].Seq, 3)
			e.equal("before what is copied", ok, false)
		}
		e.update(func(tx nodest.Tx) error { _, err := tx.CopyMore(first.ID, 14); return err })
		_, _, ok := read(second.ID, said[6].Seq, 3)
		e.equal("in a source that has not all of it", ok, false)
		e.copyAll(first.ID, 5)
		e.copyAll(second.ID, 5)
		for fork, want := range got {
			c := named(e.path(fork, map[string]string{first.ID: first.HeadID, second.ID: second.HeadID}[fork]))
			e.equal("copies", c[:5], want)
			_, _, ok := read(fork, said[6].Seq, 3)
			e.equal("when all is copied", ok, false)
		}
		err := e.db.View(context.Background(), id(), func(tx nodest.Tx) error {
			_, _, _, err := tx.ToCopy(first.ID, said[6].Seq, 3)
			return err
		})
		e.code(fault.NotFound, err)
	})
}
