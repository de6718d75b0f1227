package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
)

// character stores a character.
func (e *env) character() string {
	e.Helper()
	c := &character.Character{ID: id(), Name: "Ruth"}
	e.update(func(tx nodest.Tx) error { return tx.Characters.InsertCharacter(c) })
	return c.ID
}

// chat stores an empty conversation with a character.
func (e *env) chat(character string) string {
	e.Helper()
	c := &chat.Conversation{ID: id(), CharacterID: character, Settings: []byte(`{}`)}
	e.update(func(tx nodest.Tx) error { return tx.Chats.InsertConversation(c) })
	return c.ID
}

// units loads the whole memory of a character.
func (e *env) units(character string) []recall.Unit {
	e.Helper()
	return e.changes(character, &memory.Changes{}).Units
}

// changes loads what has changed in the memory of a character after what was loaded before.
func (e *env) changes(character string, before *memory.Changes) *memory.Changes {
	e.Helper()
	return e.someChanges(character, before, 0)
}

func (e *env) someChanges(character string, before *memory.Changes, limit int) (c *memory.Changes) {
	e.Helper()
	e.view(func(tx nodest.Tx) (err error) {
		c, err = tx.Memory.MemoryChanges(character, before.Version, before.Base, limit)
		return err
	})
	return c
}

// In parts, a memory is loaded as it is in one piece, and each change once, also after a chat
// was deleted. A deletion in between has everything loaded again.
func TestAMemoryIsLoadedInParts(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv, last := e.chat(character), &chat.Message{}
		say := func() {
			for range 10 {
				last = e.say(conv, last.ID, "text")
			}
		}
		deleteOther := func() {
			other := e.chat(character)
			e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(other) })
		}
		load := func() *memory.Changes {
			whole := e.changes(character, &memory.Changes{})
			c, loaded := &memory.Changes{More: true}, []string{}
			for c.More {
				before := c
				c = e.someChanges(character, before, 6)
				if c.Whole != (before.Version == 0) || len(c.Units) > 6 || c.Version <= before.Version {
					t.Fatalf("since %d: %d units up to %d, whole: %v", before.Version, len(c.Units), c.Version, c.Whole)
				}
				for _, u := range c.Units {
					loaded = append(loaded, u.ID)
				}
			}
			slices.Sort(loaded)
			if distinct := slices.Compact(slices.Clone(loaded)); c.Version != whole.Version || len(loaded) != len(whole.Units) || len(distinct) != len(loaded) {
				t.Errorf("%d units, %d distinct, up to version %d; want %d up to %d", len(loaded), len(distinct), c.Version, len(whole.Units), whole.Version)
			}
			return c
		}
		say()
		load()
		deleteOther()
		say()
		before := load()
		deleteOther()
		e.equal("whole after a deletion", e.someChanges(character, before, 6).Whole, true)
	})
}

// memoryTexts lists the texts that memory has of a conversation, one per line.
func (e *env) memoryTexts(conversation string) (lines []string) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		said, err := tx.Memory.Said(conversation, memory.SaidFilter{})
		for _, s := range said {
			lines = append(lines, fmt.Sprint(s.Seq, " ", s.Session, " ", s.Role, " ", s.Name, " ", s.Text, " ", s.Read))
		}
		return err
	})
	return lines
}

func TestEveryTextOfAMessageIsStoredInMemory(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		question := e.say(conv, "", "  Is there tea?\n<mem>系统检索到的记忆内容：\n1. tea</mem>")
		said := question.ID
		e.update(func(tx nodest.Tx) error { // a pending reply, messages that memory never reads, and one that does not count while it is hidden
			m := message(conv, question.ID, "")
			m.Role, m.Status, m.Swipes = chat.RoleAssistant, chat.StatusPending, []chat.Swipe{}
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			note := message(conv, question.ID, "a note")
			note.Role = chat.RoleSystem
			hidden := message(conv, question.ID, "hidden")
			hidden.Hidden = true
			old := message(conv, question.ID, "from a log")
			old.Extra = []byte(`{}`)
			empty := message(conv, question.ID, "<websearch>nothing said</websearch>")
			for _, m := range []*chat.Message{note, hidden, old, empty} {
				if err := tx.Chats.InsertMessage(m); err != nil {
					return err
				}
			}
			question = m
			return nil
		})
		e.change(question.ID, func(m *chat.Message) { m.Status = chat.StatusComplete; reswipe("<think>hm</think>Yes.")(m) })
		e.change(question.ID, reswipe("No."))
		e.change(question.ID, edit("Not yet."))
		e.change(question.ID, func(m *chat.Message) { m.SwipeIndex = 0 })
		e.equal("texts in memory", strings.Join(e.memoryTexts(conv), "\n"), strings.Join([]string{
			"1 1 user Ada Is there tea? false", "2 1 assistant Ada Yes. false", "2 1 assistant Ada No. false",
			"2 1 assistant Ada Not yet. false", "4 1 user Ada hidden false", "5 1 user Ada from a log true",
		}, "\n"))

		units := e.units(character)
		u := units[slices.IndexFunc(units, func(u recall.Unit) bool { return u.Order == 1 })]
		e.equal("unit", []any{u.Layer, u.Conversation, u.Session, u.Order, u.Speaker, u.Name, u.Text, u.Hash, u.Terms, u.At, u.Version},
			[]any{recall.Exchange, conv, 1, 1, lang.RoleUser, "Ada", "Is there tea?", lang.ContentHash("Is there tea?"),
				index.Join("Is there tea?"), start, 1})
		e.equal("message", u.Message, said)
	})
}

func TestAPauseOfFourHoursStartsANewSession(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.chat(e.character())
		said := func(parent, text string) string { return e.say(conv, parent, text).ID }
		first := said("", "a")
		e.clock.advance(4*time.Hour - time.Millisecond)
		second := said(first, "b")
		e.clock.advance(4 * time.Hour)
		third := said(second, "c")
		e.clock.advance(9 * time.Hour)
		e.change(second, edit("b again"))
		e.change(first, reswipe("a too"))
		said(third, "d")
		e.equal("sessions", e.memoryTexts(conv), []string{
			"1 1 user Ada a false", "1 1 user Ada a too false", "2 1 user Ada b false", "2 1 user Ada b again false",
			"3 2 user Ada c false", "4 3 user Ada d false"})
	})
}

func TestMemoryTreatsCopiesLikeTheirOriginals(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		all := e.talk(conv, "", 12)
		e.clock.advance(5 * time.Hour)
		last := e.say(conv, all[11].ID, "later")
		e.change(all[3].ID, reswipe("another"))
		e.update(func(tx nodest.Tx) error { return tx.Memory.ForgetTexts(character, all[1].Swipes[0].RevisionID) })

		fork := &chat.Conversation{ID: id(), CharacterID: character}
		e.forkTo(fork, conv, last.ID)
		want := e.memoryTexts(conv)
		for i := range want {
			want[i] = strings.Replace(want[i], " false", " true", 1)
		}
		e.equal("texts", len(want), 13)
		e.equal("of the fork", strings.Join(e.memoryTexts(fork.ID), "\n"), strings.Join(want, "\n"))
		e.clock.advance(5 * time.Hour)
		e.say(fork.ID, fork.HeadID, "on")
		e.equal("a text after it", e.memoryTexts(fork.ID)[13], "14 3 user Ada on false")

		// An archive also brings older texts.
		before := e.changes(character, &memory.Changes{})
		s := &randomHistory{env: e, conv: conv}
		copied, _ := s.reload()
		old := e.memoryTexts(copied)
		slices.Sort(old)
		all4 := slices.Clone(want)
		all4 = append(all4, "2 1 user Ada text 2 true") // forgetting does not extend to the archive's copy
		slices.Sort(all4)
		e.equal("of the archive", strings.Join(old, "\n"), strings.Join(all4, "\n"))
		c := e.changes(character, before)
		e.equal("units that came with it", []any{c.Whole, len(c.Units) - len(before.Units), len(c.Gone)}, []any{true, 14, 0})
	})
}

func TestAnImportIsReadOnRequest(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.chat(e.character())
		unread := func() (n int) {
			e.view(func(tx nodest.Tx) error {
				said, err := tx.Memory.Said(conv, memory.SaidFilter{Unread: true})
				n = len(said)
				return err
			})
			return n
		}
		all := e.talk(conv, "", 40) // more than a user sends in one update
		e.equal("unread texts of an import", unread(), 0)
		next := e.say(conv, all[39].ID, "and now")
		e.equal("unread", unread(), 1)
		e.update(func(tx nodest.Tx) error { return tx.Memory.MarkUnread(conv) })
		e.equal("unread on demand", unread(), 41)
		e.update(func(tx nodest.Tx) error {
			return tx.Memory.MarkRead(conv, next.Swipes[0].RevisionID, all[0].Swipes[0].RevisionID, id())
		})
		e.equal("unread after two were read", unread(), 39)
	})
}

func TestTextsAreReadInPages(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.chat(e.character())
		all := e.talk(conv, "", 6)
		for range 3 {
			e.change(all[3].ID, edit("again"))
		}
		seqs := func(f memory.SaidFilter) (seqs []int64) {
			e.view(func(tx nodest.Tx) error {
				said, err := tx.Memory.Said(conv, f)
				for _, s := range said {
					seqs = append(seqs, s.Seq)
				}
				return err
			})
			return seqs
		}
		e.equal("the first", seqs(memory.SaidFilter{Limit: 2}), []int64{1, 2})
		e.equal("the last", seqs(memory.SaidFilter{Before: 99, Limit: 2}), []int64{5, 6})
		e.equal("before", seqs(memory.SaidFilter{Before: 5, Limit: 2}), []int64{4, 4, 4, 4})
		e.equal("all of a message", seqs(memory.SaidFilter{Limit: 4}), []int64{1, 2, 3, 4, 4, 4, 4})
		e.view(func(tx nodest.Tx) error {
			c, err := tx.Chats.Conversation(conv)
			if err != nil {
				return err
			}
			said, err := tx.Memory.SaidByID(c.CharacterID, all[4].Swipes[0].RevisionID, id())
			e.equal("by id", []any{len(said), said[0].Text, said[0].CharacterID}, []any{1, "text 5", c.CharacterID})
			return err
		})
	})
}

// Shown agrees with a walk along the path for every text that ever existed, across
// edits, swipes, deletions, branches and restores.
func TestShownTextsAreThoseOnThePath(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := newRandomHistory(e)
		other := newRandomHistory(e)
		for range atLeast(90, 400) {
			if s.rnd.IntN(12) == 0 && len(s.heads) > 3 {
				s.restore()
			} else {
				s.step()
			}
			other.step()
			s.compareShown(nil)
			s.compareShown(&memory.Place{ConversationID: s.conv, HeadID: s.anyMessage()})
			version := 1 + s.rnd.Int64N(int64(len(s.heads)-1))
			s.compareShown(&memory.Place{ConversationID: s.conv, HeadID: s.heads[version], Version: version})
			s.compareShown(&memory.Place{ConversationID: other.conv, HeadID: other.anyMessage()})
		}
		s.compareShown(&memory.Place{ConversationID: s.conv})
		s.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(s.conv) })
		s.view(func(tx nodest.Tx) error {
			shown, err := tx.Memory.Shown(nil, s.evidence(tx))
			e.equal("a text of a deleted conversation is shown", slices.Contains(shown, true), false)
			return err
		})
	})
}

// restore returns to an older version.
func (s *randomHistory) restore() {
	s.Helper()
	s.update(func(tx nodest.Tx) error {
		c, err := tx.Chats.LockConversation(s.conv)
		if err != nil {
			return err
		}
		version := 2 + s.rnd.Int64N(c.Version-1)
		if _, _, err := tx.Chats.Rewind(c, version, s.heads[version]); err != nil {
			return err
		}
		c.HeadID = s.heads[version]
		c.Version++
		return tx.Chats.UpdateConversation(c)
	})
	s.record()
}

// evidence refers to all texts that the conversation ever had.
func (s *randomHistory) evidence(tx nodest.Tx) (all []memory.Evidence) {
	s.Helper()
	ids, err := store.QueryIn[struct{ RevisionID, ID string }](tx, "SELECT r.id AS revision_id, m.id FROM revisions r JOIN messages m ON m.id = r.message_id"+
		" WHERE m.conversation_id = ? ORDER BY m.seq, r.id", s.conv)
	if err != nil {
		s.Fatal(err)
	}
	for _, row := range ids {
		all = append(all, memory.Evidence{ConversationID: s.conv, MessageID: row.ID, RevisionID: row.RevisionID})
	}
	return all
}

func (s *randomHistory) compareShown(here *memory.Place) {
	s.Helper()
	s.view(func(tx nodest.Tx) error {
		texts := s.evidence(tx)
		shown, err := tx.Memory.Shown(here, texts)
		if err != nil {
			return err
		}
		head := s.heads[len(s.heads)-1]
		if here != nil && here.ConversationID == s.conv {
			head = here.HeadID
		}
		var path []*chat.Message
		if here != nil && here.Version != 0 {
			path, _, err = tx.Chats.PathAt(s.conv, here.Version, head, "", 1000)
		} else {
			path, _, err = tx.Chats.Path(s.conv, head, "", 1000)
		}
		if err != nil {
			return err
		}
		want := map[string]bool{}
		for _, m := range path {
			if c := m.Chosen(); c != nil {
				want[c.RevisionID] = true
			}
		}
		for i, e := range texts {
			s.equal(fmt.Sprint("shown at ", here, " of ", e), shown[i], want[e.RevisionID])
		}
		return nil
	})
}

func TestAForkShowsItsOwnTexts(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		all := e.talk(conv, "", 20)
		fork := &chat.Conversation{ID: id(), CharacterID: character}
		from := e.beginFork(fork, conv, all[14].ID, 3)
		shown := func() (n int) {
			e.view(func(tx nodest.Tx) error {
				said, err := tx.Memory.Said(fork.ID, memory.SaidFilter{})
				var evidence []memory.Evidence
				for _, s := range said {
					evidence = append(evidence, s.Evidence)
				}
				seen, err2 := tx.Memory.Shown(nil, evidence)
				for _, ok := range seen {
					if ok {
						n++
					}
				}
				e.equal("errors", []error{err, err2}, []error{nil, nil})
				return nil
			})
			return n
		}
		e.finishFork(fork, from, 4)
		e.equal("shown in the end", shown(), 15)
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(conv) })
		e.equal("shown without the original", shown(), 15)
	})
}
