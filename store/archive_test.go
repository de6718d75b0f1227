package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
)

// dump reads a whole conversation.
func (e *env) dump(conversation string) (all []*chat.DumpedMessage) {
	e.Helper()
	e.view(func(tx nodest.Tx) (err error) { all, err = tx.Chats.Dump(conversation, 0, 1000); return err })
	for _, m := range all {
		e.readLine(m.Message)
	}
	return all
}

// readLine adds the line of an imported log to m.
func (e *env) readLine(m *chat.Message) {
	e.Helper()
	e.view(func(tx nodest.Tx) (err error) { m.Extra, err = tx.Chats.Line(m.ID); return err })
	e.equal("imported", m.Imported, m.Extra != nil)
}

// withFreshIDs replaces every id in a dump, as the engine does; ids maps old to new.
func withFreshIDs(all []*chat.DumpedMessage, names map[string]string) []*chat.DumpedMessage {
	name := func(old *string) {
		if *old == "" {
			return
		}
		if names[*old] == "" {
			names[*old] = id()
		}
		*old = names[*old]
	}
	for _, m := range all {
		for _, p := range []*string{&m.ID, &m.ParentID, &m.ClientMsgID} {
			name(p)
		}
		for i := range m.Swipes {
			name(&m.Swipes[i].ID)
			name(&m.Swipes[i].RevisionID)
		}
		for i := range m.Texts {
			name(&m.Texts[i].ID)
			name(&m.Texts[i].RevisionID)
		}
		for i := range m.States {
			name(&m.States[i].RevisionID)
		}
	}
	return all
}

// load stores a dump as a new conversation, without finishing it.
func (e *env) load(c *chat.Conversation, all []*chat.DumpedMessage, size int) {
	e.Helper()
	e.update(func(tx nodest.Tx) error { return tx.Chats.BeginLoad(c) })
	for ; len(all) > 0; all = all[min(size, len(all)):] {
		e.update(func(tx nodest.Tx) error { return tx.Chats.Load(c.ID, all[:min(size, len(all))]) })
	}
}

// loadTalk stores a new conversation of n consecutive messages, as an import does, which takes
// a few statements.
func (e *env) loadTalk(character string, n int) (all []*chat.Message) {
	e.Helper()
	c := &chat.Conversation{ID: id(), CharacterID: character, Version: 1, Settings: []byte(`{}`)}
	var dump []*chat.DumpedMessage
	for i := range n {
		m := message(c.ID, c.HeadID, fmt.Sprint("text ", i+1))
		m.Seq, m.Rev, c.HeadID = int64(i+1), 1, m.ID
		s := m.Swipes[0]
		dump = append(dump, &chat.DumpedMessage{
			Message: m, Texts: []chat.DumpedText{{Swipe: s, StoredAt: start}},
			States: []chat.DumpedState{{Version: 1, Rev: 1, RevisionID: s.RevisionID, Status: m.Status}},
		})
		all = append(all, m)
	}
	e.load(c, dump, n)
	e.update(func(tx nodest.Tx) error { return tx.Chats.FinishLoad(c, nil, nil) })
	return all
}

// reload copies the history's conversation into a new one through a dump, and returns
// the new conversation and the map of ids.
func (s *randomHistory) reload() (conversation string, names map[string]string) {
	s.Helper()
	names = map[string]string{}
	all := withFreshIDs(s.dump(s.conv), names)
	var c *chat.Conversation
	var states []*chat.Conversation
	var rewinds []chat.Rewind
	s.view(func(tx nodest.Tx) (err error) {
		if c, err = tx.Chats.Conversation(s.conv); err != nil {
			return err
		}
		states = nil
		for version := int64(2); version < c.Version; version++ {
			state, err := tx.Chats.StateAt(s.conv, version)
			if err != nil {
				return err
			}
			states = append(states, state)
		}
		rewinds, err = tx.Chats.Rewinds(s.conv)
		return err
	})
	c.ID = id()
	for _, state := range append(states, c) {
		state.HeadID = names[state.HeadID]
	}
	s.load(c, all, 10)
	s.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Conversation(c.ID); return err })
	s.update(func(tx nodest.Tx) error { return tx.Chats.FinishLoad(c, states, rewinds) })
	return c.ID, names
}

// translated returns the history as it must read with the new ids.
func (s *randomHistory) translated(conversation string, names map[string]string) *randomHistory {
	old := make([]string, 0, 2*len(names))
	for from, to := range names {
		old = append(old, from, to)
	}
	r := strings.NewReplacer(old...)
	n := &randomHistory{
		env: s.env, rnd: s.rnd, conv: conversation, shown: map[int64]string{}, firstVersion: map[string]int64{},
		count: s.count, notes: s.notes, paths: map[string]string{},
	}
	for _, id := range s.all {
		n.all = append(n.all, names[id])
	}
	for _, id := range s.heads {
		n.heads = append(n.heads, names[id])
	}
	for version, text := range s.shown {
		n.shown[version] = r.Replace(text)
	}
	for id, version := range s.firstVersion {
		n.firstVersion[names[id]] = version
	}
	for at, text := range s.paths {
		n.paths[r.Replace(at)] = r.Replace(text)
	}
	return n
}

// dumpLines returns everything in a dump of a conversation except the conversation's
// id, one message per line.
func dumpLines(all []*chat.DumpedMessage) (lines []string) {
	for _, m := range all {
		m.ConversationID = ""
		line, err := json.Marshal(m)
		lines = append(lines, fmt.Sprint(string(line), string(m.Message.Extra), err))
	}
	return lines
}

func TestALoadedDumpEqualsItsConversation(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := newRandomHistory(e)
		for range atLeast(4, 40) {
			for range 20 {
				s.step()
			}
			s.rewind(2 + s.rnd.Int64N(int64(len(s.heads))-2))
		}
		s.update(func(tx nodest.Tx) error { // a message with every field set
			c, err := tx.Chats.LockConversation(s.conv)
			if err != nil {
				return err
			}
			m := message(s.conv, s.heads[len(s.heads)-1], "all of it")
			reswipe("second")(m)
			edit("edited")(m)
			m.ClientMsgID, m.Extra, m.Greeting, m.Hidden, m.AuthorID = id(), []byte(`{"x": 1}`), true, true, id()
			m.CreatedAt = start.Add(-time.Hour)
			c.HeadID = m.ID
			c.Version++
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			s.all = append(s.all, m.ID)
			return tx.Chats.UpdateConversation(c)
		})
		s.record()
		conversation, names := s.reload()
		n := s.translated(conversation, names)
		n.verify()
		want := dumpLines(withFreshIDs(e.dump(s.conv), names))
		for i, got := range dumpLines(e.dump(conversation)) {
			e.equal("the dump of what was loaded", got, want[i])
		}

		var before, after []string
		e.view(func(tx nodest.Tx) error {
			for _, one := range []struct {
				conv string
				tips *[]string
			}{{s.conv, &before}, {conversation, &after}} {
				items, _, err := tx.Chats.Tips(one.conv, "", 1000)
				if err != nil {
					return err
				}
				for _, m := range items {
					*one.tips = append(*one.tips, fmt.Sprint(m.Seq, m.Text()))
				}
			}
			return nil
		})
		e.equal("tips", after, before)
		const place = "SELECT %s FROM messages WHERE conversation_id = ? ORDER BY seq"
		for _, column := range []string{"depth", "chain"} {
			query := fmt.Sprintf(place, column)
			e.equal(column, e.queryInts(query, conversation), e.queryInts(query, s.conv))
		}

		// The copy can be changed and rewound.
		for range 20 {
			n.step()
		}
		for range 3 {
			n.rewind(2 + n.rnd.Int64N(int64(len(n.heads))-2))
		}
		n.verify()
	})
}

func TestALoadIsFinishedOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		dumped := func(seq int64, parent string) *chat.DumpedMessage {
			m := message("", parent, "a")
			m.Seq, m.Rev = seq, 1
			return &chat.DumpedMessage{
				Message: m, Texts: []chat.DumpedText{{Swipe: m.Swipes[0], StoredAt: start}},
				States: []chat.DumpedState{{Version: 1, Rev: 1, RevisionID: m.Swipes[0].RevisionID, Status: m.Status}},
			}
		}
		load := func(c *chat.Conversation, m *chat.DumpedMessage) func(tx nodest.Tx) error {
			return func(tx nodest.Tx) error { return tx.Chats.Load(c.ID, []*chat.DumpedMessage{m}) }
		}
		theirs := e.say(e.conversation(), "", "private")
		c := &chat.Conversation{ID: id(), Version: 3}
		m := dumped(9, "")
		e.load(c, []*chat.DumpedMessage{m}, 1)
		e.refused(fault.Invalid, load(c, dumped(10, theirs.ID))) // the parent is in another conversation
		c.HeadID = m.ID
		finish := func(tx nodest.Tx) error { return tx.Chats.FinishLoad(c, nil, nil) }
		e.update(finish)
		e.refused(fault.NotFound, finish) // it is already finished
		e.refused(fault.NotFound, load(c, dumped(10, m.ID)))
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(c.ID) })
		e.refused(fault.NotFound, load(c, dumped(10, m.ID)))
	})
}
