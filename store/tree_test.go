package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store/storetest"
)

// tree reads the tree of a conversation, a line for each run and each mark.
func (e *env) tree(conversation string, limit int) (lines []string) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		lines = nil
		t, err := tx.Chats.Tree(conversation, limit)
		if err != nil {
			return err
		}
		for _, r := range t.Runs {
			e.equal("ids of the previews", []string{r.First.ID, r.Last.ID}, []string{r.ID, r.HeadID})
			lines = append(lines, runLine(r))
		}
		if t.Head != nil {
			lines = append(lines, fmt.Sprintf("head %+v", *t.Head))
		}
		for _, s := range t.Saves {
			lines = append(lines, fmt.Sprintf("save %+v", s))
		}
		if t.Truncated {
			lines = append(lines, "truncated")
		}
		return nil
	})
	return lines
}

func runLine(r *chat.Run) string {
	return fmt.Sprintf("%s..%s %q..%q below %q to %s, %d, %t", r.ID, r.HeadID, r.First.Text, r.Last.Text, r.ParentID, r.LeafID, r.MessageCount, r.Shown)
}

// treeModel makes the tree of messages, by seq, from what each of them says.
type treeModel struct {
	all   []*chat.Message
	byID  map[string]*chat.Message
	below map[string][]*chat.Message // that are not deleted, by the next above that is not
}

func newTreeModel(all []*chat.DumpedMessage) *treeModel {
	t := &treeModel{byID: map[string]*chat.Message{}, below: map[string][]*chat.Message{}}
	for _, m := range all {
		t.all, t.byID[m.ID] = append(t.all, m.Message), m.Message
	}
	for _, m := range t.all {
		if m.DeletedAt == nil {
			up := t.living(m.ParentID)
			t.below[up] = append(t.below[up], m)
		}
	}
	return t
}

// living is a message, or the next above it that is not deleted.
func (t *treeModel) living(id string) string {
	for id != "" && t.byID[id].DeletedAt != nil {
		id = t.byID[id].ParentID
	}
	return id
}

func (t *treeModel) leaf(m *chat.Message) *chat.Message {
	leaf := m
	for _, below := range t.below[m.ID] {
		if l := t.leaf(below); leaf == m || l.Seq > leaf.Seq {
			leaf = l
		}
	}
	return leaf
}

func (t *treeModel) lines(head string, saves []*chat.Save) (lines []string) {
	shown := map[string]bool{}
	for id := t.living(head); id != ""; id = t.living(t.byID[id].ParentID) {
		shown[id] = true
	}
	places := map[string]chat.RunPlace{}
	for _, first := range t.all {
		up := t.living(first.ParentID)
		if first.DeletedAt != nil || up != "" && len(t.below[up]) == 1 {
			continue
		}
		r := &chat.Run{ID: first.ID, ParentID: up, LeafID: t.leaf(first).ID, Shown: shown[first.ID], First: first.Preview()}
		for m := first; m != nil; {
			r.MessageCount++
			r.HeadID, r.Last = m.ID, m.Preview()
			places[m.ID] = chat.RunPlace{RunID: r.ID, MessageID: m.ID, Position: r.MessageCount}
			if m = nil; len(t.below[r.HeadID]) == 1 {
				m = t.below[r.HeadID][0]
			}
		}
		lines = append(lines, runLine(r))
	}
	if at, ok := places[t.living(head)]; ok {
		lines = append(lines, fmt.Sprintf("head %+v", at))
	}
	for _, s := range slices.Backward(saves) {
		if at, ok := places[t.living(s.HeadID)]; ok {
			lines = append(lines, fmt.Sprintf("save %+v", chat.PlacedSave{ID: s.ID, RunPlace: at}))
		}
	}
	return lines
}

// The tree of random conversations is the one that a walk over all messages finds.
func TestTreeOfRandomConversations(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := newRandomHistory(e)
		var saves []*chat.Save
		var merged bool
		for range atLeast(12, 120) {
			for range 10 {
				s.step()
			}
			e.clock.advance(time.Second)
			head := s.heads[len(s.heads)-1]
			save := &chat.Save{ID: id(), ConversationID: s.conv, HeadID: head}
			e.update(func(tx nodest.Tx) error { return tx.Chats.InsertSave(save) })
			saves = append(saves, save)
			all := e.dump(s.conv)
			got, want := e.tree(s.conv, 1000), newTreeModel(all).lines(head, saves)
			e.equal("tree", strings.Join(got, "\n"), strings.Join(want, "\n"))
			merged = merged || len(all) > 20 && len(got) > 20
		}
		if !merged {
			e.Fatal("the trees were too small")
		}
	})
}

func TestATreeOfOneRun(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.equal("empty tree", e.tree(conversation, 5), []string(nil))
		long := strings.Repeat("界\x00\x01", 100)
		m := e.say(conversation, "", long+"!")
		e.view(func(tx nodest.Tx) error {
			t, err := tx.Chats.Tree(conversation, 5)
			if err == nil {
				e.equal("preview", t.Runs[0].First.Text, string([]rune(long)[:200]))
			}
			return err
		})
		e.change(m.ID, deleteMessage)
		e.equal("tree without its only message", e.tree(conversation, 5), []string(nil))
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(conversation) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Tree(conversation, 5); return err })
	})
}

// A tree with too many runs loses those that were used least lately, and stays in one
// piece; of the shown branch its end stays.
func TestALargeTreeIsCut(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		roots := e.talk(conversation, "", 3)
		for range 4 {
			e.talk(conversation, roots[2].ID, 2)
		}
		e.say(conversation, roots[0].ID, "the shown branch")
		firsts := func(limit int) (ids []string) {
			e.view(func(tx nodest.Tx) error {
				t, err := tx.Chats.Tree(conversation, limit)
				if err != nil {
					return err
				}
				e.equal("truncated", t.Truncated, limit < 7) // the root's, one below it with four below that, and the shown one
				ids = nil
				for _, r := range t.Runs {
					ids = append(ids, r.ID)
				}
				return nil
			})
			return ids
		}
		all := firsts(7)
		e.equal("number of runs", len(all), 7)
		e.equal("six runs", firsts(6), append(slices.Clone(all[:2]), all[3:]...))
		e.equal("three runs", firsts(3), []string{all[0], all[1], all[6]})
		e.equal("two runs", firsts(2), []string{all[0], all[6]})
		e.equal("one run", firsts(1), []string{all[6]})
	})
}

// The cost of a tree grows with its branches, not with its messages.
func BenchmarkTree(b *testing.B) {
	for _, shape := range []struct{ messages, every int }{{10_000, 10_000}, {10_000, 100}, {10_000, 10}, {10_000, 2}} {
		b.Run(fmt.Sprintf("%d messages with a branch every %d", shape.messages, shape.every), func(b *testing.B) {
			db := storetest.Open(b)
			user := storetest.User(b, db)
			conversation := id()
			if err := db.Update(b.Context(), user, func(tx nodest.Tx) error {
				if err := tx.Chats.InsertConversation(&chat.Conversation{ID: conversation, CharacterID: id()}); err != nil {
					return err
				}
				up := ""
				for i := range shape.messages {
					m := message(conversation, up, strings.Repeat("tea ", 100))
					if err := tx.Chats.InsertMessage(m); err != nil {
						return err
					}
					if i%shape.every != 1 {
						up = m.ID
					}
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := db.View(b.Context(), user, func(tx nodest.Tx) error { _, err := tx.Chats.Tree(conversation, 1000); return err }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
