package nodest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// countingCard counts its prompts in variables of the chat and of the user.
const countingCard = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","description":"Turn {{incvar::n}} of {{incglobalvar::all}}.","first_mes":"Hello."}}`

// variables are those of a conversation and of the user, as JSON.
func (s *fixture) variables(conversationID string) (own, all string) {
	s.T.Helper()
	conv, err := s.Chats.Conversation(s.T.Context(), nodesttest.Ann, conversationID)
	s.Must(err)
	globals, err := s.Characters.Variables(s.T.Context(), nodesttest.Ann)
	s.Must(err)
	return string(conv.Play.Variables), string(globals)
}

// Each reply hands its variables on; what is written again begins where it began, and a reply that fails
// changes nothing.
func TestVariablesAreKeptWithTheReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.importCard(countingCard)
	c := s.ChatWith(ch.ID)
	want := func(what, own, all string) {
		t.Helper()
		if n, g := s.variables(c.ID); n != own || g != all {
			t.Errorf("%s: %s and %s, want %s and %s", what, n, g, own, all)
		}
	}
	s.SayAndWait(c, "One.")
	want("first reply", `{"n":1}`, `{"all":1}`)
	second := s.SayAndWait(c, "Two.")
	want("second reply", `{"n":2}`, `{"all":2}`)
	if p := s.preview(c, "Three."); !strings.Contains(nodesttest.PromptText(p.Messages), "Turn 3 of 3.") {
		t.Errorf("preview: %s", nodesttest.PromptText(p.Messages))
	}
	want("a preview", `{"n":2}`, `{"all":2}`)
	s.RegenerateReply(second.ID, "")
	want("another swipe", `{"n":2}`, `{"all":3}`)

	s.Model.Enqueue(nodesttest.Reply().Failing(errors.New("down")))
	sent := s.Say(c, "Three.")
	s.Await(sent.GenerationID)
	want("a failed reply", `{"n":2}`, `{"all":3}`)
	s.RegenerateReply(sent.Message.ID, "")
	want("and again", `{"n":3}`, `{"all":4}`)
	_, err := s.Chats.ChooseHead(t.Context(), s.Call(), c.ID, second.ID)
	s.Must(err)
	want("an earlier head", `{"n":2}`, `{"all":4}`)
}

// A reply whose process dies has the variables of its text.
func TestVariablesSurviveACrash(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.ChatWith(s.importCard(countingCard).ID)
	s.SayAndWait(c, "One.")
	s.Crash()
	s.SayAndWait(c, "Two.")
	if own, all := s.variables(c.ID); own != `{"n":2}` || all != `{"all":2}` {
		t.Errorf("%s and %s", own, all)
	}
	_, err := s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: c.ID, Variables: json.RawMessage(`{"n":9}`)})
	s.Must(err)
	s.SayAndWait(c, "Three.")
	if own, _ := s.variables(c.ID); own != `{"n":10}` {
		t.Errorf("after a change by the user: %s", own)
	}
}

// Macros that count messages count the whole chat, however little of it a prompt has room for.
func TestALongChatIsCountedWhole(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.ChatWith(s.importCard(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","description":"After message {{lastMessageId}} of {{model}}.","first_mes":"Hello."}}`).ID)
	long := strings.Repeat("The tide comes in. ", 400)
	for range 12 {
		s.SayAndWait(c, long)
	}
	few := 3000
	p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "Next.", Options: character.TurnOptions{ContextTokens: &few}})
	s.Must(err)
	if text := nodesttest.PromptText(p.Messages); len(p.Messages) > 12 || !strings.Contains(text, "After message 25 of scripted.") {
		t.Errorf("%d messages: %.200s", len(p.Messages), text)
	}
}

// A greeting has the variables that it sets, and each of its swipes its own; its other macros are replaced once.
func TestAGreetingSetsVariables(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.ChatWith(s.importCard(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","description":"Mood: {{getvar::mood}}.",
		"first_mes":"{{// for readers of the card}}{{setvar::mood::calm}}Good {{random::day,day}}, <USER>.","alternate_greetings":["{{setvar::mood::wild}}Ahoy!","Plain."]}}`).ID)
	want := func(what, text, own string) {
		t.Helper()
		conv, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID)
		s.Must(err)
		if got := conv.LastMessage.Text; got != text {
			t.Errorf("%s: the greeting is %q, want %q", what, got, text)
		}
		if got := string(conv.Play.Variables); got != own {
			t.Errorf("%s: the variables are %s, want %s", what, got, own)
		}
	}
	want("first", "Good day, User.", `{"mood":"calm"}`)
	if p := s.preview(c, "Hi."); !strings.Contains(nodesttest.PromptText(p.Messages), "Mood: calm.") {
		t.Errorf("preview: %s", nodesttest.PromptText(p.Messages))
	}
	for _, next := range []struct{ text, own string }{{"Ahoy!", `{"mood":"wild"}`}, {"Plain.", ""}} {
		_, err := s.Chats.ChooseSwipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: s.head(c.ID), Swipe: "next"})
		s.Must(err)
		want("another swipe", next.text, next.own)
	}
	_, err := s.Chats.ChooseSwipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: s.head(c.ID), Swipe: "prev"})
	s.Must(err)
	s.SayAndWait(c, "Hi.")
	if own, _ := s.variables(c.ID); own != `{"mood":"wild"}` {
		t.Errorf("after a reply: %s", own)
	}
	_, err = s.Chats.Reset(t.Context(), s.Call(), c.ID)
	s.Must(err)
	want("begun anew", "Good day, User.", `{"mood":"calm"}`)
}

// An author's note with an interval of 3 is in every third request even if the chat is longer than the prompt.
func TestTheIntervalOfANoteCountsALongChat(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.ChatWith(s.importCard(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","first_mes":"Hello."}}`).ID)
	_, err := s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: c.ID, AuthorNote: json.RawMessage(`{"content":"It rains.","interval":3}`)})
	s.Must(err)
	few := 3000
	for i := range 12 {
		p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "Next.", Options: character.TurnOptions{ContextTokens: &few}})
		s.Must(err)
		if due := strings.Contains(nodesttest.PromptText(p.Messages), "It rains."); due != (i%3 == 2) {
			t.Errorf("message %d of the user, %d messages: the note is there: %v", i+1, len(p.Messages), due)
		}
		s.SayAndWait(c, strings.Repeat("The tide comes in. ", 40*(1+i%3)))
	}
}
