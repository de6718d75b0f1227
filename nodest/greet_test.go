package nodest_test

import (
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestACharacterWritesFirst(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	empty := s.Chat()
	c := s.Chat()
	_, newest, err := s.LastChats(t.Context(), nodesttest.Ann)
	s.Must(err)
	if newest[c.CharacterID] != c.ID || newest[empty.CharacterID] != empty.ID {
		t.Errorf("newest chats %v", newest)
	}
	last := s.SayAndWait(c, "Good night.")
	call := &op.Call{UserID: nodesttest.Ann, Key: "turn", Hash: "greet"}
	s.Model.Enqueue(nodesttest.Reply("Are you awake?"))
	sent, err := s.Greet(t.Context(), call, c.ID)
	s.Must(err)
	s.Await(sent.GenerationID)
	m := s.Message(sent.Message.ID)
	if m.Text() != "Are you awake?" || m.Role != chat.RoleAssistant || m.ParentID != last.ID || m.Status != chat.StatusComplete {
		t.Errorf("message %+v", m)
	}
	if asked := s.Model.LastRequest(); !strings.HasSuffix(asked, "without reproach.]\n") || !strings.Contains(asked, "silent for some time. Write Alice's") {
		t.Errorf("asked %s", asked)
	}
	again, err := s.Greet(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: "turn", Hash: "greet"}, c.ID)
	s.Must(err)
	if again.Message.ID != m.ID || len(s.Model.AllRequests()) != 2 {
		t.Errorf("repeated: %+v", again.Message)
	}
	if wrote, _, err := s.LastChats(t.Context(), nodesttest.Ann); err != nil || !wrote.Equal(s.Message(last.ParentID).CreatedAt) {
		t.Errorf("wrote %s, %v", wrote, err)
	}
	answer := s.SayAndWait(c, "I am now.")
	if asked := s.Model.LastRequest(); !strings.Contains(asked, "Are you awake?") || strings.Contains(asked, "silent") || answer.Text() == "" {
		t.Errorf("asked %s", asked)
	}
	if _, err := s.Greet(t.Context(), &op.Call{UserID: nodesttest.Bob}, c.ID); err == nil {
		t.Error("a stranger let the character write")
	}
}
