package nodest_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestThePreviewIsWhatWouldBeSent(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.SayAndWait(c, "Hello")
	preview, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "Who are you?"})
	s.Must(err)
	asked := len(s.Model.AllRequests())
	s.SayAndWait(c, "Who are you?")
	all := s.Model.AllRequests()
	if !reflect.DeepEqual(preview.Messages, all[len(all)-1].Messages) || asked != len(all)-1 {
		t.Errorf("preview:\n%v\nsent:\n%v", preview.Messages, all[len(all)-1].Messages)
	}
	if preview.Tokens <= 0 || preview.Budget != 6000 || len(preview.Entries) == 0 {
		t.Errorf("tokens %d, budget %d, %d entries", preview.Tokens, preview.Budget, len(preview.Entries))
	}
	if _, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID}); err != nil {
		t.Errorf("as a continue: %v", err)
	}
	missing := character.TurnOptions{Provider: "missing"}
	if _, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Options: missing}); err != nil {
		t.Errorf("without a provider: %v", err)
	}
}

func TestAStoredPromptIsTheRequest(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	first := s.SayAndWait(c, "Roll {{roll::1000000}} and {{random::a::b::c}}")
	second := s.SayAndWait(c, "Again")
	for i, m := range []*chat.Message{first, second} {
		p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(m.GenerationID).PromptID)
		s.Must(err)
		if !reflect.DeepEqual(p.Prompt.Messages, s.Model.AllRequests()[i].Messages) {
			t.Errorf("stored:\n%v\nsent:\n%v", p.Prompt.Messages, s.Model.AllRequests()[i].Messages)
		}
		if p.ConversationID != c.ID || p.GenerationID != m.GenerationID {
			t.Errorf("prompt = %+v", p)
		}
	}
	// It does not change with the chat.
	_, err := s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: first.ID, Text: "Something else."})
	s.Must(err)
	promptID := s.Generation(second.GenerationID).PromptID
	p, err := s.Prompt(t.Context(), nodesttest.Ann, promptID)
	s.Must(err)
	if !reflect.DeepEqual(p.Prompt.Messages, s.Model.AllRequests()[1].Messages) {
		t.Errorf("after an edit the stored prompt is:\n%v", p.Prompt.Messages)
	}
	diff, err := s.DiffPrompts(t.Context(), nodesttest.Ann, s.Generation(first.GenerationID).PromptID, promptID)
	s.Must(err)
	if len(diff.Changes) == 0 || diff.Same == 0 {
		t.Errorf("difference = %+v", diff)
	}
	_, err = s.Prompt(t.Context(), nodesttest.Ann, "nothing")
	s.WantCode(err, fault.NotFound)
}

// The prompt of a long chat has only what fits the budget and reports that messages
// were dropped.
func TestALongChatIsCutToTheBudget(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	for i := range 150 {
		_, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, NoReply: true,
			Text: fmt.Sprintf("message %03d of a chat that is longer than the context of the model", i)})
		s.Must(err)
	}
	small := 1024
	p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "And now?",
		Options: character.TurnOptions{ContextTokens: &small}})
	s.Must(err)
	if p.Tokens > p.Budget || p.Budget != 768 {
		t.Errorf("%d tokens in a budget of %d", p.Tokens, p.Budget)
	}
	texts := nodesttest.PromptText(p.Messages)
	if !strings.Contains(texts, "message 149") || strings.Contains(texts, "message 001") || !strings.Contains(texts, "And now?") {
		t.Errorf("the prompt has:\n%s", texts)
	}
	dropped := 0
	for _, d := range p.Dropped {
		if d.Reason == "budget" {
			dropped++
		}
	}
	if dropped == 0 {
		t.Errorf("the dropped messages are not reported: %+v", p.Dropped)
	}
}

// A prompt combines the character's own documents with the global and the bound ones;
// a change of any of them is used from the next turn on.
func TestDocumentsOfATurn(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch, err := s.Characters.Create(t.Context(), s.Call(), character.Input{
		RoleCard:   json.RawMessage(nodesttest.PlainAlice),
		WorldBook:  json.RawMessage(`{"entries":{"0":{"comment":"own","content":"own lore","position":4,"depth":1,"constant":true}}}`),
		AuthorNote: json.RawMessage(`{"charname":"Alice","username":"Ann","content":"note of the card","injection_depth":1}`),
	})
	s.Must(err)
	book := func(name string, in character.ResourceInput) *character.Resource {
		in.Name = name
		in.Document = json.RawMessage(fmt.Sprintf(`{"entries":{"9":{"comment":%q,"content":"%s lore","position":4,"depth":1,"constant":true}}}`, name, name))
		r, err := s.Characters.CreateResource(t.Context(), s.Call(), character.WorldBook, in)
		s.Must(err)
		return r
	}
	bound := book("bound", character.ResourceInput{Characters: []string{ch.ID}})
	global := book("global", character.ResourceInput{})
	persona, err := s.Characters.CreateResource(t.Context(), s.Call(), character.Persona,
		character.ResourceInput{Name: "Ann", Document: json.RawMessage(`{"name":"Ann","description":"A sailor."}`)})
	s.Must(err)
	_, err = s.Characters.PutUserSettings(t.Context(), s.Call(), character.UserSettings{
		PersonaID:       persona.ID,
		GlobalWorldBook: character.GlobalResource{Enabled: true, ID: global.ID},
		CustomSetting:   json.RawMessage(`{"content":"likes the sea"}`),
	}, 0)
	s.Must(err)

	c := s.ChatWith(ch.ID)
	s.SayAndWait(c, "Hello {{user}}")
	for _, part := range []string{"own lore", "bound lore", "global lore", "note of the card", "A sailor.", "likes the sea", "Hello Ann"} {
		if !strings.Contains(s.Model.LastRequest(), part) {
			t.Errorf("the prompt lacks %q:\n%s", part, s.Model.LastRequest())
		}
	}
	_, err = s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: c.ID,
		AuthorNote: json.RawMessage(`{"charname":"Alice","username":"Ann","content":"note of the chat","injection_depth":1}`)})
	s.Must(err)
	_, err = s.Characters.Update(t.Context(), s.Call(), ch.ID, character.Input{
		WorldBook: json.RawMessage(`{"entries":{"0":{"comment":"own","content":"new lore","position":4,"depth":1,"constant":true}}}`)}, false, 0)
	s.Must(err)
	s.Must(s.Characters.DeleteResource(t.Context(), s.Call(), character.WorldBook, bound.ID))
	s.SayAndWait(c, "Hello again")
	for part, there := range map[string]bool{
		"new lore": true, "own lore": false, "bound lore": false, "note of the chat": true, "note of the card": false,
	} {
		if strings.Contains(s.Model.LastRequest(), part) != there {
			t.Errorf("%q in the prompt: %t, want %t\n%s", part, !there, there, s.Model.LastRequest())
		}
	}
}
