package nodest_test

import (
	"strings"
	"testing"

	"nodest/chat"
	"nodest/nodest"
	"nodest/op"
)

func TestACharacterWritesFirst(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	empty := s.chat()
	c := s.chat()
	_, newest, err := s.LastChats(t.Context(), ann)
	s.must(err)
	if newest[c.CharacterID] != c.ID || newest[empty.CharacterID] != empty.ID {
		t.Errorf("newest chats %v", newest)
	}
	last := s.sendAndWait(c, "Good night.")
	call := &op.Call{UserID: ann, Key: "turn", Hash: "greet"}
	s.model.enqueue(replyWith("Are you awake?"))
	sent, err := s.Greet(t.Context(), call, c.ID)
	s.must(err)
	s.wait(sent.GenerationID)
	m := s.message(sent.Message.ID)
	if m.Text() != "Are you awake?" || m.Role != chat.RoleAssistant || m.ParentID != last.ID || m.Status != chat.StatusComplete {
		t.Errorf("message %+v", m)
	}
	if asked := s.model.lastRequest(); !strings.HasSuffix(asked, "without reproach.]\n") || !strings.Contains(asked, "silent for some time. Write Alice's") {
		t.Errorf("asked %s", asked)
	}
	again, err := s.Greet(t.Context(), &op.Call{UserID: ann, Key: "turn", Hash: "greet"}, c.ID)
	s.must(err)
	if again.Message.ID != m.ID || len(s.model.allRequests()) != 2 {
		t.Errorf("repeated: %+v", again.Message)
	}
	if wrote, _, err := s.LastChats(t.Context(), ann); err != nil || !wrote.Equal(s.message(last.ParentID).CreatedAt) {
		t.Errorf("wrote %s, %v", wrote, err)
	}
	answer := s.sendAndWait(c, "I am now.")
	if asked := s.model.lastRequest(); !strings.Contains(asked, "Are you awake?") || strings.Contains(asked, "silent") || answer.Text() == "" {
		t.Errorf("asked %s", asked)
	}
	if _, err := s.Greet(t.Context(), &op.Call{UserID: bob}, c.ID); err == nil {
		t.Error("a stranger let the character write")
	}
}
