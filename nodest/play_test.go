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

// The variables of greetings count as their texts do: a small card does not make a huge chat.
func TestTheVariablesOfGreetingsAreBounded(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	greetings := strings.TrimSuffix(strings.Repeat(`"{{setvar::a::{{description}}}}{{setvar::b::{{description}}}}Hi.",`, 100), ",")
	c := s.ChatWith(s.importCard(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","description":"` + strings.Repeat("x", 30_000) + `",
		"first_mes":"Hi.","alternate_greetings":[` + greetings + `]}}`).ID)
	stored := 0
	for _, swipe := range s.Message(s.head(c.ID)).Swipes {
		if swipe.PlayID != "" {
			stored++
		}
	}
	if stored == 0 || stored*60_000 > 1<<20 {
		t.Errorf("%d greetings have variables", stored)
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

// A chat can have texts of its own in the place of the card's; a save point brings them back.
func TestAChatHasTextsInThePlaceOfTheCards(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.ChatWith(s.importCard(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","scenario":"A garden.","system_prompt":"Be kind.","mes_example":"<START>\n{{char}}: Tea?","first_mes":"Hello."}}`).ID)
	has := func(what string, texts ...string) {
		t.Helper()
		all := nodesttest.PromptText(s.preview(c, "Hi.").Messages)
		for _, text := range texts {
			if !strings.Contains(all, text) {
				t.Errorf("%s: %q is not in\n%s", what, text, all)
			}
		}
	}
	has("the card", "A garden.", "Be kind.", "Tea?")
	patch := func(settings string) error {
		_, err := s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: c.ID, Settings: json.RawMessage(settings)})
		return err
	}
	s.Must(patch(`{"overrides":{"scenario":"A storm at {{char}}'s.","systemPrompt":"Be brief."}}`))
	has("the chat", "A storm at Alice's.", "Be brief.", "Tea?")
	for settings, says := range map[string]string{
		`{"overrides":{"scenario":7}}`: "invalid_field: settings.overrides.scenario", `{"overrides":{"plot":"x"}}`: "invalid_field: settings.plot",
		`{"overrides":{"mesExample":"` + strings.Repeat("x", chat.MaxOverride+1) + `"}}`: "too_large: settings.overrides.mesExample",
	} {
		if err := patch(settings); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%.60s: %v", settings, err)
		}
	}
	has("after what was refused", "A storm at Alice's.")
	s.Must(patch(`{}`))
	has("the card again", "A garden.", "Be kind.")
}

// A greeting that is put back has the variables that the card sets now, also if its text is the same.
func TestAGreetingThatIsPutBackHasItsVariables(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.ChatWith(s.importCard(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","first_mes":"{{setvar::mood::calm}}Hello."}}`).ID)
	_, err := s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: c.ID, Variables: json.RawMessage(`{"mood":"wild"}`)})
	s.Must(err)
	_, err = s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: s.head(c.ID)})
	s.Must(err)
	if own, _ := s.variables(c.ID); own != `{"mood":"calm"}` {
		t.Errorf("the variables are %s", own)
	}
}

// Messages that were deleted on the branch do not count for the interval, whether or not the chat is longer than the prompt.
func TestDeletedMessagesDoNotCountForTheIntervalOfANote(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.ChatWith(s.importCard(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","first_mes":"Hello."}}`).ID)
	_, err := s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: c.ID, AuthorNote: json.RawMessage(`{"content":"It rains.","interval":3}`)})
	s.Must(err)
	for i := range 11 {
		s.SayAndWait(c, strings.Repeat("The tide comes in. ", 400))
		if i < 2 { // an exchange that is gone
			reply := s.Message(s.head(c.ID))
			s.SayAndWait(c, "Go on.")
			for _, id := range []string{reply.ID, reply.ParentID} {
				_, err := s.Chats.DeleteMessage(t.Context(), s.Call(), id, chat.ScopeOne)
				s.Must(err)
			}
		}
	}
	due := map[int]bool{}
	for _, few := range []int{3000, 100_000} {
		p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "Next.", Options: character.TurnOptions{ContextTokens: &few}})
		s.Must(err)
		due[few] = strings.Contains(nodesttest.PromptText(p.Messages), "It rains.")
	}
	if !due[3000] || !due[100_000] {
		t.Errorf("the twelfth message of the user has the note: %v", due)
	}
}
