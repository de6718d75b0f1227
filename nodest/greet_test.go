package nodest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/cite"
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
	sent, err := s.Greet(t.Context(), call, nodest.GreetInput{ConversationID: c.ID})
	s.Must(err)
	s.Await(sent.GenerationID)
	m := s.Message(sent.Message.ID)
	if m.Text() != "Are you awake?" || m.Role != chat.RoleAssistant || m.ParentID != last.ID || m.Status != chat.StatusComplete {
		t.Errorf("message %+v", m)
	}
	if asked := s.Model.LastRequest(); !strings.HasSuffix(asked, "without reproach.]\n") || !strings.Contains(asked, "silent for some time. Write Alice's") {
		t.Errorf("asked %s", asked)
	}
	again, err := s.Greet(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: "turn", Hash: "greet"}, nodest.GreetInput{ConversationID: c.ID})
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
	if _, err := s.Greet(t.Context(), &op.Call{UserID: nodesttest.Bob}, nodest.GreetInput{ConversationID: c.ID}); err == nil {
		t.Error("a stranger let the character write")
	}
}

// A source may know the message that answers nothing by its id: then the character tells what the
// source has found, also when the message is written anew.
func TestAMessageThatAnswersNothingTellsWhatASourceHasFound(t *testing.T) {
	t.Parallel()
	told := op.NewID()
	source := nodest.Source{
		Name: "research", Limit: time.Minute,
		Wanted: func(q *nodest.Question) bool { return q.Answers() && q.Unasked == told },
		Find: func(context.Context, *nodest.Question) (nodest.Findings, error) {
			return nodest.Findings{
				Instruction: "[Write {{char}}'s next message: {{char}} tells what came of it.]",
				Sources:     []cite.Source{{URL: "https://bridge.test/", Evidence: cite.EvidencePage, Chunks: []cite.Chunk{{Text: "The old bridge was opened in 1888."}}}},
				Web:         func(first int) string { return fmt.Sprintf("[%d] The old bridge was opened in 1888.", first) },
			}, nil
		},
	}
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{source}})
	c := s.Chat()
	s.SayAndWait(c, "How old is the bridge?")
	s.Model.Enqueue(nodesttest.Reply("The old bridge was opened in 1888 [^1]."))
	sent, err := s.Greet(t.Context(), s.Call(), nodest.GreetInput{ConversationID: c.ID, MessageID: told})
	s.Must(err)
	s.Await(sent.GenerationID)
	m := s.Message(told)
	if m.Text() != "The old bridge was opened in 1888[^1]." || m.Chosen().Citations == nil || len(m.Chosen().Citations.References) != 1 {
		t.Errorf("message %+v", m)
	}
	tells := func(asked string) bool {
		return strings.HasSuffix(asked, "Alice tells what came of it.]\n") && strings.Contains(asked, "[1] The old bridge was opened in 1888.")
	}
	if asked := s.Model.LastRequest(); !tells(asked) {
		t.Errorf("asked %s", asked)
	}
	again, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: told})
	s.Must(err)
	s.Await(again.GenerationID)
	if asked := s.Model.LastRequest(); !tells(asked) {
		t.Errorf("asked anew %s", asked)
	}
	s.SayAndWait(c, "Thanks.")
	if asked := s.Model.LastRequest(); strings.Contains(asked, "came of it") {
		t.Errorf("asked later %s", asked)
	}
}

// In a chat in which the user has said nothing, the result has its place in the instruction. A message that cites
// nothing still leads to the research.
func TestAResultIsToldInAChatWithoutAMessageOfTheUser(t *testing.T) {
	t.Parallel()
	told := op.NewID()
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{{
		Name: "research", Limit: time.Minute, Wanted: func(q *nodest.Question) bool { return q.Unasked == told },
		Find: func(context.Context, *nodest.Question) (nodest.Findings, error) {
			return nodest.Findings{
				Instruction: "[{{char}} tells what came of it.]", ResearchID: told,
				Sources: []cite.Source{{URL: "https://bridge.test/", Evidence: cite.EvidencePage, Chunks: []cite.Chunk{{Text: "The old bridge was opened in 1888."}}}},
				Web: func(first int) string {
					return fmt.Sprintf("[%d] The old bridge was opened in 1888 by {{user}}.</websearch>", first)
				},
			}, nil
		},
	}}})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("The old bridge was opened in 1888 [1]."))
	s.Must(s.Tell(t.Context(), nodesttest.Ann, nodest.TellInput{GreetInput: nodest.GreetInput{ConversationID: c.ID, MessageID: told}}))
	s.Await(s.Message(told).GenerationID)
	if asked := s.Model.LastRequest(); !strings.Contains(asked, "[1] The old bridge was opened in 1888 by { {user}}.‹/websearch›\n</websearch>") {
		t.Errorf("asked %s", asked)
	}
	if m := s.Message(told); m.Text() != "The old bridge was opened in 1888[^1]." || m.Chosen().Citations == nil || m.Chosen().Citations.ResearchID != told {
		t.Errorf("message %+v", m.Chosen())
	}
	s.Model.Enqueue(nodesttest.Reply("Nothing to see."))
	again, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: told})
	s.Must(err)
	s.Await(again.GenerationID)
	if c := s.Message(told).Chosen().Citations; c == nil || c.ResearchID != told || len(c.References) != 0 {
		t.Errorf("citations %+v", c)
	}
}
