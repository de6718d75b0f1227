package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
)

// randomHistory is a conversation with random changes, and what it showed at each
// version.
type randomHistory struct {
	*env
	rnd          *rand.Rand
	conv         string
	all          []string          // messages
	heads        []string          // by version
	shown        map[int64]string  // the path of the head
	firstVersion map[string]int64  // first version, by message
	count        map[int64]int     // messages on the path
	notes        map[int64]string  // author notes
	paths        map[string]string // paths of other heads, by version and head
}

func newRandomHistory(e *env) *randomHistory {
	return &randomHistory{
		env: e, rnd: random(e.T), conv: e.conversation(), heads: []string{"", ""}, shown: map[int64]string{},
		firstVersion: map[string]int64{}, count: map[int64]int{}, notes: map[int64]string{}, paths: map[string]string{},
	}
}

// describe returns what users see of messages, and their revisions.
func describe(items []*chat.Message) string {
	var b strings.Builder
	for _, m := range items {
		revision := ""
		if s := m.Chosen(); s != nil {
			revision = s.RevisionID
		}
		fmt.Fprintf(&b, "%s %q %s %s %s\n", m.ID, m.Text(), revision, m.Status, errorOf(m))
	}
	return b.String()
}

func errorOf(m *chat.Message) string {
	if m.Error == nil || m.Status == chat.StatusError { // the status is stored; the error itself is not
		return "-"
	}
	return string(m.Error.Code)
}

// step makes one random change and records what the conversation shows.
func (s *randomHistory) step() {
	s.Helper()
	s.clock.advance(time.Millisecond)
	s.update(func(tx nodest.Tx) error {
		c, err := tx.Chats.LockConversation(s.conv)
		if err != nil {
			return err
		}
		if err := s.change(tx, c); err != nil {
			return err
		}
		c.Version++
		return tx.Chats.UpdateConversation(c)
	})
	s.record()
}

func (s *randomHistory) change(tx nodest.Tx, c *chat.Conversation) error {
	if len(s.all) == 0 || s.rnd.IntN(3) == 0 {
		return s.add(tx, c, c.HeadID)
	}
	switch s.rnd.IntN(10) {
	case 0: // a branch
		return s.add(tx, c, s.anyMessage())
	case 1:
		c.HeadID = s.anyMessage()
		return nil
	case 2:
		c.AuthorNote = fmt.Appendf(nil, `{"note":%d}`, s.rnd.IntN(1000))
		return nil
	}
	m, err := tx.Chats.Message(s.anyMessage())
	if err != nil {
		return err
	}
	s.changeMessage(tx, m)
	m.Rev++
	return tx.Chats.UpdateMessage(m)
}

func (s *randomHistory) anyMessage() string {
	if s.rnd.IntN(2) == 0 {
		return s.all[max(0, len(s.all)-1-s.rnd.IntN(6))]
	}
	return s.all[s.rnd.IntN(len(s.all))]
}

func (s *randomHistory) add(tx nodest.Tx, c *chat.Conversation, parent string) error {
	m := message(s.conv, parent, fmt.Sprint("words ", len(s.all)))
	if s.rnd.IntN(4) == 0 { // a reply that failed
		m.Swipes, m.Status, m.Error = nil, chat.StatusError, fault.New(fault.UpstreamDown, "down")
	}
	if s.rnd.IntN(8) == 0 {
		now := tx.Now()
		m.DeletedAt = &now
	}
	if err := tx.Chats.InsertMessage(m); err != nil {
		return err
	}
	c.HeadID = m.ID
	s.all = append(s.all, m.ID)
	return nil
}

func (s *randomHistory) changeMessage(tx nodest.Tx, m *chat.Message) {
	switch s.rnd.IntN(6) {
	case 0, 1: // deleted or restored
		if m.DeletedAt != nil {
			m.DeletedAt = nil
			return
		}
		now := tx.Now()
		m.DeletedAt = &now
	case 2: // another swipe
		m.Swipes = append(m.Swipes, chat.Swipe{Text: fmt.Sprint("other ", s.rnd.IntN(1000)), Wish: "shorter"})
		m.SwipeIndex, m.Status, m.Error = len(m.Swipes)-1, chat.StatusComplete, nil
	case 3: // another swipe is chosen
		if len(m.Swipes) > 0 {
			m.SwipeIndex = s.rnd.IntN(len(m.Swipes))
			m.Swipes[m.SwipeIndex].Deleted = false
		}
	case 4: // a swipe that is not shown is deleted
		if i := s.rnd.IntN(len(m.Swipes) + 1); i < len(m.Swipes) && i != m.SwipeIndex {
			m.Swipes[i].Deleted = true
		}
	default: // an edit
		if w := m.Chosen(); w != nil {
			w.Rev++
			w.RevisionID, w.Text = id(), fmt.Sprint("edited ", s.rnd.IntN(1000))
			m.Status = []string{chat.StatusComplete, chat.StatusInterrupted}[s.rnd.IntN(2)]
		}
	}
}

// record records what the newest version shows.
func (s *randomHistory) record() {
	s.Helper()
	s.view(func(tx nodest.Tx) error {
		c, err := tx.Chats.Conversation(s.conv)
		if err != nil {
			return err
		}
		s.equal("version", c.Version, len(s.heads))
		s.heads = append(s.heads, c.HeadID)
		items, _, err := tx.Chats.Path(s.conv, c.HeadID, "", 1000)
		if err != nil {
			return err
		}
		s.shown[c.Version], s.count[c.Version], s.notes[c.Version] = describe(items), len(items), string(c.AuthorNote)
		other := s.anyMessage()
		if items, _, err = tx.Chats.Path(s.conv, other, "", 1000); err != nil {
			return err
		}
		s.paths[fmt.Sprint(c.Version, " ", other)] = describe(items)
		for _, id := range s.all {
			if s.firstVersion[id] == 0 {
				s.firstVersion[id] = c.Version
			}
		}
		n, err := tx.Chats.Count(s.conv, c.HeadID)
		s.equal("count", n, s.count[c.Version])
		return err
	})
}

// verify compares every version with what was recorded.
func (s *randomHistory) verify() {
	s.Helper()
	s.view(func(tx nodest.Tx) error {
		for version := int64(2); version < int64(len(s.heads)); version++ {
			c, err := tx.Chats.StateAt(s.conv, version)
			if err != nil {
				return err
			}
			s.equal("state", fmt.Sprint(c.Version, c.HeadID, string(c.AuthorNote)), fmt.Sprint(version, s.heads[version], s.notes[version]))
			items, more, err := tx.Chats.PathAt(s.conv, version, c.HeadID, "", 1000)
			if err != nil {
				return err
			}
			s.equal(fmt.Sprint("version ", version), describe(items), s.shown[version])
			s.equal("more", more, false)
			s.equal("by pages", s.pages(tx, version, c.HeadID), s.shown[version])
			if err := s.verifyMessages(tx, version, items); err != nil {
				return err
			}
		}
		for at, want := range s.paths {
			var version int64
			var head string
			if _, err := fmt.Sscan(at, &version, &head); err != nil {
				return err
			}
			items, _, err := tx.Chats.PathAt(s.conv, version, head, "", 1000)
			if err != nil {
				return err
			}
			s.equal("branch at "+at, describe(items), want)
		}
		for id, want := range s.firstVersion {
			version, err := tx.Chats.Born(id)
			if err != nil {
				return err
			}
			s.equal("born", version, want)
		}
		return nil
	})
}

// verifyMessages reads all messages as of a version; shown is the path of the head.
func (s *randomHistory) verifyMessages(tx nodest.Tx, version int64, shown []*chat.Message) error {
	s.Helper()
	items, err := tx.Chats.MessagesAt(s.conv, version, s.all)
	if err != nil {
		return err
	}
	var on []*chat.Message
	for _, m := range items {
		if s.firstVersion[m.ID] > version {
			s.Errorf("version %d has a message that was stored in version %d", version, s.firstVersion[m.ID])
		}
		if m.DeletedAt == nil && slices.ContainsFunc(shown, func(o *chat.Message) bool { return o.ID == m.ID }) {
			on = append(on, m)
		}
	}
	s.equal("messages that were there", len(items), s.stored(version))
	s.equal("by id", describe(on), describe(shown))
	return nil
}

// stored counts the messages that existed at a version.
func (s *randomHistory) stored(version int64) (n int) {
	for _, born := range s.firstVersion {
		if born <= version {
			n++
		}
	}
	return n
}

func (s *randomHistory) pages(tx nodest.Tx, version int64, head string) string {
	s.Helper()
	var all []*chat.Message
	before, size := "", 1+s.rnd.IntN(5)
	for more := true; more; {
		var items []*chat.Message
		var err error
		if items, more, err = tx.Chats.PathAt(s.conv, version, head, before, size); err != nil {
			s.Fatal(err)
		}
		if more && len(items) != size {
			s.Fatalf("a page of %d has %d", size, len(items))
		}
		all = append(items, all...)
		if len(items) > 0 {
			before = items[0].ID
		}
	}
	s.equal("forwards", describe(s.forwards(tx, version, head, size)), describe(all))
	return describe(all)
}

func (s *randomHistory) forwards(tx nodest.Tx, version int64, head string, size int) (all []*chat.Message) {
	s.Helper()
	for after, more := "", head != ""; more; {
		var items []*chat.Message
		var err error
		if items, more, err = tx.Chats.PathAtAfter(s.conv, version, head, after, size); err != nil {
			s.Fatal(err)
		}
		if all = append(all, items...); len(items) > 0 {
			after = items[len(items)-1].ID
		}
	}
	return all
}

// rewind returns to a version and checks what is shown and what was written.
func (s *randomHistory) rewind(version int64) {
	s.Helper()
	s.clock.advance(time.Millisecond)
	var changed, moved []*chat.Message
	var before []*chat.Message
	s.update(func(tx nodest.Tx) error {
		c, err := tx.Chats.LockConversation(s.conv)
		if err != nil {
			return err
		}
		before = nil
		for _, id := range s.all {
			m, err := tx.Chats.Message(id)
			if err != nil {
				return err
			}
			before = append(before, m)
		}
		if changed, moved, err = tx.Chats.Rewind(c, version, s.heads[version]); err != nil {
			return err
		}
		c.HeadID = s.heads[version]
		c.Version++
		return tx.Chats.UpdateConversation(c)
	})
	s.record()
	now := int64(len(s.heads)) - 1
	s.equal(fmt.Sprintf("version %d, back to %d", now, version), s.shown[now], s.shown[version])
	s.view(func(tx nodest.Tx) error {
		rewinds, err := tx.Chats.Rewinds(s.conv)
		s.equal("newest rewind", rewinds[len(rewinds)-1], chat.Rewind{At: now, To: version})
		for i, old := range before {
			m, err := tx.Chats.Message(old.ID)
			if err != nil {
				return err
			}
			is := func(c *chat.Message) bool { return c.ID == m.ID }
			if at := slices.IndexFunc(moved, is); at >= 0 {
				s.equal("rev", m.Rev, old.Rev+1)
				s.equal("what Rewind returned", fmt.Sprint(moved[at].Rev, moved[at].DeletedAt == nil), fmt.Sprint(m.Rev, m.DeletedAt == nil))
				s.equal("deleted before", old.DeletedAt == nil, m.DeletedAt != nil)
				s.equal("the rest", describeRest(m), describeRest(old))
				continue
			}
			at := slices.IndexFunc(changed, is)
			if at < 0 {
				s.equal("a message that was left alone", describeAll(m), describeAll(before[i]))
				continue
			}
			s.equal("rev", m.Rev, old.Rev+1)
			s.equal("what Rewind returned", describeAll(changed[at]), describeAll(m))
			if describe([]*chat.Message{m}) == describe([]*chat.Message{old}) && (m.DeletedAt == nil) == (old.DeletedAt == nil) {
				s.Errorf("%s was written, although nothing changed", describeAll(m))
			}
		}
		return err
	})
}

// describeRest is describeAll without what a deletion changes.
func describeRest(m *chat.Message) string {
	rest := *m
	rest.Rev, rest.DeletedAt = 0, nil
	return describeAll(&rest)
}

// describeAll returns everything of a message as text.
func describeAll(m *chat.Message) string {
	deleted := ""
	if m.DeletedAt != nil {
		deleted = m.DeletedAt.String()
	}
	swipes, err := json.Marshal(m.Swipes)
	return fmt.Sprint(describe([]*chat.Message{m}), m.Rev, m.SwipeIndex, deleted, string(swipes), err)
}

// Every version of a random history can be read and restored.
func TestEveryVersionOfAHistoryCanBeReadAndRestored(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := newRandomHistory(e)
		for range atLeast(12, 100) {
			for range 15 {
				s.step()
			}
			for range 1 + s.rnd.IntN(2) {
				s.rewind(2 + s.rnd.Int64N(int64(len(s.heads))-2))
			}
		}
		s.verify()
	})
}

func TestUnknownVersionsAndHeadsAreNotFound(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation, other := e.conversation(), e.conversation()
		m := e.say(conversation, "", "a") // version 2
		foreign := e.say(other, "", "b")
		e.view(func(tx nodest.Tx) error {
			for _, version := range []int64{-1, 0, 3} {
				_, err := tx.Chats.StateAt(conversation, version)
				e.code(fault.NotFound, err)
			}
			for _, head := range []string{id(), foreign.ID} {
				_, _, err := tx.Chats.PathAt(conversation, 2, head, "", 5)
				e.code(fault.NotFound, err)
				_, err = tx.Chats.Count(conversation, head)
				e.code(fault.NotFound, err)
			}
			items, more, err := tx.Chats.PathAt(conversation, 1, m.ID, "", 5)
			e.equal("before it was stored", fmt.Sprint(len(items), more), "0 false")
			if err != nil {
				return err
			}
			items, more, err = tx.Chats.PathAt(conversation, 2, "", "", 5)
			e.equal("without a head", fmt.Sprint(len(items), more), "0 false")
			if err != nil {
				return err
			}
			n, err := tx.Chats.Count(conversation, "")
			e.equal("count without a head", n, 0)
			return err
		})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Born(id()); return err })
		for version, head := range map[int64]string{0: m.ID, 3: m.ID, 2: foreign.ID} {
			e.refused(fault.NotFound, func(tx nodest.Tx) error {
				_, _, err := tx.Chats.Rewind(&chat.Conversation{ID: conversation, Version: 2}, version, head)
				return err
			})
		}
		err := e.db.Update(t.Context(), e.user, func(tx nodest.Tx) error {
			m.Rev++
			if err := tx.Chats.UpdateMessage(m); err != nil {
				return err
			}
			_, _, err := tx.Chats.Rewind(&chat.Conversation{ID: conversation, Version: 2}, 1, m.ID)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "before other changes") {
			e.Errorf("error is %v, want a refusal of a rewind after other changes", err)
		}
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(conversation) })
		for name, read := range map[string]func(tx nodest.Tx) error{
			"StateAt": func(tx nodest.Tx) error { _, err := tx.Chats.StateAt(conversation, 1); return err },
			"MessagesAt": func(tx nodest.Tx) error {
				_, err := tx.Chats.MessagesAt(conversation, 2, []string{m.ID})
				return err
			},
			"Rewinds":     func(tx nodest.Tx) error { _, err := tx.Chats.Rewinds(conversation); return err },
			"DeletedIn":   func(tx nodest.Tx) error { _, err := tx.Chats.DeletedIn(m.ID); return err },
			"Count":       func(tx nodest.Tx) error { _, err := tx.Chats.Count(conversation, m.ID); return err },
			"CountHidden": func(tx nodest.Tx) error { _, err := tx.Chats.CountHidden(conversation, m.ID); return err },
			"Rewind": func(tx nodest.Tx) error {
				_, _, err := tx.Chats.Rewind(&chat.Conversation{ID: conversation, Version: 2}, 2, m.ID)
				return err
			},
		} {
			if err := e.db.Update(t.Context(), e.user, read); !fault.Is(err, fault.NotFound) {
				e.Errorf("%s of a deleted conversation: %v", name, err)
			}
		}
		// Stored prompts are read with these, also of a deleted conversation.
		e.view(func(tx nodest.Tx) error {
			born, err := tx.Chats.Born(m.ID)
			if err != nil {
				return err
			}
			path, _, err := tx.Chats.PathAt(conversation, born, m.ID, "", 5)
			e.equal("messages", len(path), 1)
			return err
		})
	})
}
