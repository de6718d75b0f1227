package nodest_test

import (
	"math"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// The cost of a message is mostly the number of its statements. Whoever needs another one changes
// these numbers, and so says what it is for.
func TestAMessageNeedsFewStatements(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	c := s.Chat()
	count := func(what string, most int64, do func()) {
		t.Helper()
		do() // the first one prepares what later ones find
		fewest := int64(math.MaxInt64)
		for range 10 { // who reads beside the others may find less of their work done
			before := s.DB.Statements()
			do()
			if fewest = min(fewest, s.DB.Statements()-before); fewest <= most {
				break
			}
		}
		t.Logf("%s: %d statements", what, fewest)
		if fewest > most {
			t.Errorf("%s ran %d statements, at most %d were expected", what, fewest, most)
		}
	}
	count("a message without a reply", 21, func() {
		_, err := s.Send(t.Context(), &op.Call{UserID: nodesttest.Ann, Hash: "h"}, nodest.SendInput{ConversationID: c.ID, Text: "A note.", NoReply: true})
		s.Must(err)
	})
	count("a turn", 66, func() { s.SayAndWait(c, "And now?") })
	count("a page of messages", 9, func() {
		_, err := s.Chats.History(t.Context(), nodesttest.Ann, c.ID, "", 50)
		s.Must(err)
	})
}

// Others wait while a message is stored, so nothing is compiled there.
func TestDocumentsOfAMessageAreCompiledBefore(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	c := s.Chat()
	compiled := func() (yes bool) {
		s.Must(s.DB.Chats().View(t.Context(), nodesttest.Ann, func(tx chat.Tx) error {
			setup, err := s.Chats.CompiledSetup(tx, c, character.TurnOptions{})
			yes = setup != nil
			return err
		}))
		return yes
	}
	if compiled() {
		t.Error("the documents of a new character are compiled already")
	}
	_, err := s.Send(t.Context(), &op.Call{UserID: nodesttest.Ann, Hash: "h"}, nodest.SendInput{ConversationID: c.ID, Text: "A note.", NoReply: true})
	s.Must(err)
	if !compiled() {
		t.Error("they are not compiled for a message")
	}
}
