package nodest_test

import (
	"context"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/llm"
	"nodest/nodest"
)

func said(role, name, text string) *chat.Message {
	return &chat.Message{Role: role, Name: name, Swipes: []chat.Swipe{{Text: text}}}
}

// A turn over messages that are stored nowhere, by several speakers, is a turn like every other: its
// sources are asked, its prompt is stored, its reply is streamed and metered. No chat changes.
func TestATurnNeedsNoStoredChat(t *testing.T) {
	t.Parallel()
	var asked string
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{
		testSource("slow", func(_ context.Context, q *nodest.Question) (nodest.Findings, error) {
			asked = q.Text
			return nodest.Findings{}, nil
		}),
	}})
	c := s.chat()
	now := func() (conv *chat.Conversation) {
		s.view(func(tx nodest.Tx) (err error) {
			conv, err = tx.Chats.Conversation(c.ID)
			return err
		})
		return conv
	}
	s.sendAndWait(c, "In the chat")
	before := now()
	s.model.enqueue(replyWith("To ", "both."))
	id, err := s.ReplyTo(t.Context(), s.call(), c.ID, []*chat.Message{
		said(chat.RoleUser, "Ben", "I keep goats."), said(chat.RoleAssistant, "Alice", "How many?"), said(chat.RoleUser, "Ana", "And I keep bees."),
	})
	s.must(err)
	g := s.wait(id)
	if g.Status != chat.GenDone || g.Text != "To both." || s.events.deltas(t, id, "text", 0) != "To both." {
		t.Errorf("%s: %q", g.Status, g.Text)
	}
	sent := s.model.lastRequest()
	if !strings.Contains(sent, "I keep goats.") || !strings.HasSuffix(strings.TrimSpace(sent), "And I keep bees.") || strings.Contains(sent, "In the chat") || asked != "And I keep bees." {
		t.Errorf("asked about %q, the model:\n%s", asked, sent)
	}
	kept, err := s.Prompt(t.Context(), ann, g.PromptID)
	s.must(err)
	if last := kept.Prompt.Messages[len(kept.Prompt.Messages)-1]; last.Role != llm.User || last.Text != "And I keep bees." {
		t.Errorf("the stored prompt ends with %+v", last)
	}
	rows, err := s.Usage(t.Context(), ann, "", "")
	s.must(err)
	if len(rows) != 1 || rows[0].Requests != 2 {
		t.Errorf("metered: %+v", rows)
	}
	if after := now(); after.Version != before.Version || after.HeadID != before.HeadID {
		t.Errorf("the chat was %+v, and is %+v", before, after)
	}
}
