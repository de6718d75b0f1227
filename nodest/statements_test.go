package nodest_test

import (
	"math"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/nodest"
	"nodest/op"
)

// What a message costs is mostly the number of its statements. Whoever needs another one changes
// these numbers, and so says what it is for.
func TestAMessageNeedsFewStatements(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	c := s.chat()
	count := func(what string, most int64, do func()) {
		t.Helper()
		do() // the first one prepares what later ones find
		fewest := int64(math.MaxInt64)
		for range 10 { // who reads beside the others may find less of their work done
			before := s.db.Statements()
			do()
			if fewest = min(fewest, s.db.Statements()-before); fewest <= most {
				break
			}
		}
		t.Logf("%s: %d statements", what, fewest)
		if fewest > most {
			t.Errorf("%s ran %d statements, at most %d were expected", what, fewest, most)
		}
	}
	count("a message without a reply", 21, func() {
		_, err := s.Send(t.Context(), &op.Call{UserID: ann, Hash: "h"}, nodest.SendInput{ConversationID: c.ID, Text: "A note.", NoReply: true})
		s.must(err)
	})
	count("a turn", 66, func() { s.sendAndWait(c, "And now?") })
	count("a page of messages", 7, func() {
		_, err := s.Chats.History(t.Context(), ann, c.ID, "", 50)
		s.must(err)
	})
}

// Others wait while a message is stored, so nothing is compiled there.
func TestDocumentsOfAMessageAreCompiledBefore(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	c := s.chat()
	compiled := func() (yes bool) {
		s.must(s.db.Chats().View(t.Context(), ann, func(tx chat.Tx) error {
			setup, err := s.Chats.CompiledSetup(tx, c, character.TurnOptions{})
			yes = setup != nil
			return err
		}))
		return yes
	}
	if compiled() {
		t.Error("the documents of a new character are compiled already")
	}
	_, err := s.Send(t.Context(), &op.Call{UserID: ann, Hash: "h"}, nodest.SendInput{ConversationID: c.ID, Text: "A note.", NoReply: true})
	s.must(err)
	if !compiled() {
		t.Error("they are not compiled for a message")
	}
}
