package nodest_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/nodest"
)

func TestThePreviewIsWhatWouldBeSent(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.sendAndWait(c, "Hello")
	preview, err := s.PreviewPrompt(t.Context(), ann, nodest.PreviewInput{ConversationID: c.ID, Text: "Who are you?"})
	s.must(err)
	asked := len(s.model.allRequests())
	s.sendAndWait(c, "Who are you?")
	all := s.model.allRequests()
	if !reflect.DeepEqual(preview.Messages, all[len(all)-1].Messages) || asked != len(all)-1 {
		t.Errorf("preview:\n%v\nsent:\n%v", preview.Messages, all[len(all)-1].Messages)
	}
	if preview.Tokens <= 0 || preview.Budget != 6000 || len(preview.Entries) == 0 {
		t.Errorf("tokens %d, budget %d, %d entries", preview.Tokens, preview.Budget, len(preview.Entries))
	}
	if _, err := s.PreviewPrompt(t.Context(), ann, nodest.PreviewInput{ConversationID: c.ID}); err != nil {
		t.Errorf("as a continue: %v", err)
	}
	missing := character.TurnOptions{Provider: "missing"}
	if _, err := s.PreviewPrompt(t.Context(), ann, nodest.PreviewInput{ConversationID: c.ID, Options: missing}); err != nil {
		t.Errorf("without a provider: %v", err)
	}
}

func TestAStoredPromptIsTheRequest(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	first := s.sendAndWait(c, "Roll {{roll::1000000}} and {{random::a::b::c}}")
	second := s.sendAndWait(c, "Again")
	for i, m := range []*chat.Message{first, second} {
		p, err := s.Prompt(t.Context(), ann, s.generation(m.GenerationID).PromptID)
		s.must(err)
		if !reflect.DeepEqual(p.Prompt.Messages, s.model.allRequests()[i].Messages) {
			t.Errorf("stored:\n%v\nsent:\n%v", p.Prompt.Messages, s.model.allRequests()[i].Messages)
		}
		if p.ConversationID != c.ID || p.GenerationID != m.GenerationID {
			t.Errorf("prompt = %+v", p)
		}
	}
	// It does not change with the chat.
	_, err := s.Edit(t.Context(), s.call(), chat.EditInput{MessageID: first.ID, Text: "Something else."})
	s.must(err)
	promptID := s.generation(second.GenerationID).PromptID
	p, err := s.Prompt(t.Context(), ann, promptID)
	s.must(err)
	if !reflect.DeepEqual(p.Prompt.Messages, s.model.allRequests()[1].Messages) {
		t.Errorf("after an edit the stored prompt is:\n%v", p.Prompt.Messages)
	}
	diff, err := s.DiffPrompts(t.Context(), ann, s.generation(first.GenerationID).PromptID, promptID)
	s.must(err)
	if len(diff.Changes) == 0 || diff.Same == 0 {
		t.Errorf("difference = %+v", diff)
	}
	_, err = s.Prompt(t.Context(), ann, "nothing")
	s.wantCode(err, fault.NotFound)
}

// The prompt of a long chat has only what fits the budget and reports that messages
// were dropped.
func TestALongChatIsCutToTheBudget(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	for i := range 150 {
		_, err := s.Send(t.Context(), s.call(), nodest.SendInput{ConversationID: c.ID, NoReply: true,
			Text: fmt.Sprintf("message %03d of a chat that is longer than the context of the model", i)})
		s.must(err)
	}
	small := 1024
	p, err := s.PreviewPrompt(t.Context(), ann, nodest.PreviewInput{ConversationID: c.ID, Text: "And now?",
		Options: character.TurnOptions{ContextTokens: &small}})
	s.must(err)
	if p.Tokens > p.Budget || p.Budget != 768 {
		t.Errorf("%d tokens in a budget of %d", p.Tokens, p.Budget)
	}
	texts := promptText(p.Messages)
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
	ch, err := s.Characters.Create(t.Context(), s.call(), character.Input{
		RoleCard:   json.RawMessage(alicesCard),
		WorldBook:  json.RawMessage(`{"entries":{"0":{"comment":"own","content":"own lore","position":4,"depth":1,"constant":true}}}`),
		AuthorNote: json.RawMessage(`{"charname":"Alice","username":"Ann","content":"note of the card","injection_depth":1}`),
	})
	s.must(err)
	book := func(name string, in character.ResourceInput) *character.Resource {
		in.Name = name
		in.Document = json.RawMessage(fmt.Sprintf(`{"entries":{"9":{"comment":%q,"content":"%s lore","position":4,"depth":1,"constant":true}}}`, name, name))
		r, err := s.Characters.CreateResource(t.Context(), s.call(), character.WorldBook, in)
		s.must(err)
		return r
	}
	bound := book("bound", character.ResourceInput{Characters: []string{ch.ID}})
	global := book("global", character.ResourceInput{})
	persona, err := s.Characters.CreateResource(t.Context(), s.call(), character.Persona,
		character.ResourceInput{Name: "Ann", Document: json.RawMessage(`{"name":"Ann","description":"A sailor."}`)})
	s.must(err)
	_, err = s.Characters.PutUserSettings(t.Context(), s.call(), character.UserSettings{
		PersonaID:       persona.ID,
		GlobalWorldBook: character.GlobalResource{Enabled: true, ID: global.ID},
		CustomSetting:   json.RawMessage(`{"content":"likes the sea"}`),
	}, 0)
	s.must(err)

	c := s.chatWith(ch.ID)
	s.sendAndWait(c, "Hello {{user}}")
	for _, part := range []string{"own lore", "bound lore", "global lore", "note of the card", "A sailor.", "likes the sea", "Hello Ann"} {
		if !strings.Contains(s.model.lastRequest(), part) {
			t.Errorf("the prompt lacks %q:\n%s", part, s.model.lastRequest())
		}
	}
	_, err = s.Chats.UpdateConversation(t.Context(), s.call(), chat.ConversationPatch{ID: c.ID,
		AuthorNote: json.RawMessage(`{"charname":"Alice","username":"Ann","content":"note of the chat","injection_depth":1}`)})
	s.must(err)
	_, err = s.Characters.Update(t.Context(), s.call(), ch.ID, character.Input{
		WorldBook: json.RawMessage(`{"entries":{"0":{"comment":"own","content":"new lore","position":4,"depth":1,"constant":true}}}`)}, false, 0)
	s.must(err)
	s.must(s.Characters.DeleteResource(t.Context(), s.call(), character.WorldBook, bound.ID))
	s.sendAndWait(c, "Hello again")
	for part, there := range map[string]bool{
		"new lore": true, "own lore": false, "bound lore": false, "note of the chat": true, "note of the card": false,
	} {
		if strings.Contains(s.model.lastRequest(), part) != there {
			t.Errorf("%q in the prompt: %t, want %t\n%s", part, !there, there, s.model.lastRequest())
		}
	}
}
