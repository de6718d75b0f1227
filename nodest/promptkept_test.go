package nodest_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/codec"
	"nodest/fault"
	"nodest/framework"
	"nodest/memory"
	"nodest/nodest"
)

// wantStored fails the test unless the prompt of a generation has the messages of want, and what is
// stored of it does not repeat a text. It returns the prompt's id.
func (s *fixture) wantStored(generationID, text string, want *framework.Prompt) (id string) {
	s.t.Helper()
	id = s.generation(generationID).PromptID
	got, err := s.Prompt(s.t.Context(), ann, id)
	s.must(err)
	if !reflect.DeepEqual(got.Prompt.Messages, want.Messages) {
		s.t.Errorf("the prompt is\n%v\nwant\n%v", got.Prompt.Messages, want.Messages)
	}
	if len(got.Prompt.Warnings) != 0 {
		s.t.Errorf("warnings: %v", got.Prompt.Warnings)
	}
	s.must(s.db.View(s.t.Context(), ann, func(tx nodest.Tx) error {
		stored, err := tx.Prompt(id)
		if err != nil {
			return err
		}
		if strings.Contains(string(stored.Body), text) {
			s.t.Errorf("the stored prompt repeats %q:\n%s", text, stored.Body)
		}
		return nil
	}))
	return id
}

// A prompt shows the summary that was sent, whatever becomes of it, and does not repeat it.
func TestAStoredPromptShowsTheSummaryThatWasSent(t *testing.T) {
	t.Parallel()
	const edited, digest = "They met, they walked, and they agreed on almost everything by the evening.", "Digest 1: they walked"
	s := newSummarisedChat(t)
	send := func() (generationID string, p *framework.Prompt) {
		m := s.sendAndWait(s.chat, "And then?")
		sent, err := s.Prompt(t.Context(), ann, s.generation(m.GenerationID).PromptID)
		s.must(err)
		return m.GenerationID, sent.Prompt
	}
	first, before := send()
	if !strings.Contains(promptText(before.Messages), digest) {
		t.Fatalf("the summary was not sent:\n%s", promptText(before.Messages))
	}
	_, err := s.Chats.EditSummary(t.Context(), s.call(), s.chat.ID, s.active().ID, edited)
	s.must(err)
	second, after := send()
	if text := promptText(after.Messages); !strings.Contains(text, edited) || strings.Contains(text, digest) {
		t.Fatalf("the edited summary was not sent:\n%s", text)
	}
	both := func() {
		t.Helper()
		a, b := s.wantStored(first, digest, before), s.wantStored(second, edited, after)
		diff, err := s.DiffPrompts(t.Context(), ann, a, b)
		s.must(err)
		if old := framework.Diff(before, after); !reflect.DeepEqual(diff, old) {
			t.Errorf("the difference is %+v, was %+v", diff, old)
		}
		_, err = s.Prompt(t.Context(), bob, a)
		s.wantCode(err, fault.NotFound)
	}
	both()
	s.must(s.Chats.DeleteSummary(t.Context(), s.call(), s.chat.ID, s.active().ID))
	both()
	s.must(s.DeleteConversation(t.Context(), s.call(), s.chat.ID))
	both()
}

// A prompt shows the texts that were recalled, in part or as memory cleaned them.
func TestAStoredPromptShowsWhatWasRecalled(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("We talked about the weather for a while, as one does. ", 25) + birthday +
		strings.Repeat(" Nobody had thought of bringing an umbrella along.", 25)
	for name, said := range map[string]string{"whole": birthday, "an excerpt": long, "cleaned": birthday + "\n\n"} {
		t.Run(name, func(t *testing.T) {
			s := newMemoryFixture(t)
			alice := s.character(alicesCard)
			s.sendAndWait(s.chatWith(alice.ID), said)
			m := s.sendAndWait(s.chatWith(alice.ID), birthdayQuestion)
			requests := s.model.allRequests()
			sent := requests[len(requests)-1].Messages
			if !strings.Contains(promptText(sent), "<mem>") || strings.Contains(promptText(sent), long) {
				t.Fatalf("sent:\n%s", promptText(sent))
			}
			repeats := birthday
			if name == "cleaned" {
				repeats = "no text"
			}
			s.wantStored(m.GenerationID, repeats, &framework.Prompt{Messages: sent})
		})
	}
}

// The stored form does not grow with the chat, and shows what was sent whatever becomes of the chat.
func TestAStoredPromptOfALongChatIsSmall(t *testing.T) {
	t.Parallel()
	const messages, most = 2000, 3 << 10
	s := newFixture(t, nodest.Options{})
	s.realModel = &nodest.Model{Generator: s.model, Provider: "scripted", Name: "scripted", ContextTokens: 1 << 20}
	c, err := s.Archives.ImportArchive(t.Context(), s.call(), s.character(alicesCard).ID, longArchive(messages))
	s.must(err)
	m := s.sendAndWait(c, "Who was there?")
	s.regenerate(m.ID, "")
	s.sendAndWait(c, "And then?")
	requests := s.model.allRequests()
	check := func() {
		t.Helper()
		for i, ev := range s.started() {
			p, err := s.Prompt(t.Context(), ann, ev)
			s.must(err)
			if sent := requests[i].Messages; !reflect.DeepEqual(p.Prompt.Messages, sent) || len(sent) < messages {
				t.Errorf("prompt %d has %d messages, %d were sent", i, len(p.Prompt.Messages), len(sent))
			}
			s.view(func(tx nodest.Tx) error {
				stored, err := tx.Prompt(ev)
				if err != nil {
					return err
				}
				if size := len(codec.Pack(stored.Body)); size > most {
					t.Errorf("a prompt of %d messages takes %d bytes, want %d at most", messages, size, most)
				}
				return nil
			})
		}
	}
	check()
	path, err := s.Chats.History(t.Context(), ann, c.ID, "", 100)
	s.must(err)
	save, err := s.Chats.CreateSave(t.Context(), s.call(), chat.SaveInput{ConversationID: c.ID})
	s.must(err)
	s.edit(chat.EditInput{MessageID: path.Items[10].ID, Text: "It was another story altogether."})
	_, err = s.Chats.DeleteMessage(t.Context(), s.call(), path.Items[20].ID, "")
	s.must(err)
	s.edit(chat.EditInput{MessageID: path.Items[30].ID, Text: "A branch.", Mode: "branch"})
	check()
	_, err = s.Chats.RestoreSave(t.Context(), s.call(), save.ID)
	s.must(err)
	check()
	s.must(s.DeleteConversation(t.Context(), s.call(), c.ID))
	check()
}

// started returns the ids of the prompts that were sent.
func (s *fixture) started() (ids []string) {
	s.t.Helper()
	for _, ev := range s.events.all() {
		var started struct{ PromptID string }
		if ev.Type == "gen.started" {
			s.must(json.Unmarshal(ev.Data, &started))
			ids = append(ids, started.PromptID)
		}
	}
	return ids
}

// A text that scripts, macros or wishes changed, and a reply of which blocks were left out, is shown as it was sent.
func TestAStoredPromptShowsTextsThatWereChanged(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.character(alicesCard)
	_, err := s.Characters.Update(t.Context(), s.call(), ch.ID, character.Input{RegexScripts: json.RawMessage(
		`[{"id":"1","scriptName":"shout","findRegex":"/tea/g","replaceString":"TEA","placement":[1],"promptOnly":false},
		{"id":"2","scriptName":"hush","findRegex":"/loud/g","replaceString":"quiet","placement":[1,2],"promptOnly":true}]`)}, false, 0)
	s.must(err)
	c := s.chatWith(ch.ID)
	s.model.enqueue(replyWith("<mem>What she knows of the loud harbour.</mem>A loud harbour, {{user}}."))
	s.sendAndWait(c, "Is there tea in the harbour where all of the ships come in, {{char}}?")
	m := s.sendAndWait(c, "I would like some tea, and a place that is not as loud as this one is tonight.")
	s.regenerate(m.ID, "In one sentence that has no adjective.")
	s.sendAndWait(c, "Good.")
	for i, id := range s.started() {
		p, err := s.Prompt(t.Context(), ann, id)
		s.must(err)
		if sent := s.model.allRequests()[i].Messages; !reflect.DeepEqual(p.Prompt.Messages, sent) {
			t.Errorf("prompt %d is\n%s\nsent was\n%s", i, promptText(p.Prompt.Messages), promptText(sent))
		}
	}
	if last := s.model.lastRequest(); !strings.Contains(last, "some TEA") || !strings.Contains(last, "as quiet as") || strings.Contains(last, "<mem>") {
		t.Errorf("sent:\n%s", last)
	}
}

// A memory that is purged is in no stored prompt any more, from that moment on.
func TestAPurgeRemovesThePromptsThatUsedAMemory(t *testing.T) {
	t.Parallel()
	for name, purge := range map[string]func(s *fixture, characterID string, fact *memory.Memory) error{
		"one": func(s *fixture, characterID string, fact *memory.Memory) error {
			return s.memory.Delete(t.Context(), s.call(), characterID, fact.ID, true)
		},
		"all": func(s *fixture, characterID string, _ *memory.Memory) error {
			_, err := s.memory.Forget(t.Context(), s.call(), characterID, memory.ForgetInput{All: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemoryFixture(t)
			alice := s.character(alicesCard)
			before := s.sendAndWait(s.chatWith(alice.ID), "Good morning.")
			fact := s.addFact(alice.ID, birthday)
			after := s.sendAndWait(s.chatWith(alice.ID), birthdayQuestion)
			if !strings.Contains(s.model.lastRequest(), birthday) {
				t.Fatalf("sent:\n%s", s.model.lastRequest())
			}
			promptID := s.generation(after.GenerationID).PromptID
			_, err := s.Prompt(t.Context(), ann, promptID)
			s.must(err)
			s.must(purge(s, alice.ID, fact))
			_, err = s.Prompt(t.Context(), ann, promptID)
			s.wantCode(err, fault.NotFound)
			_, err = s.Prompt(t.Context(), ann, s.generation(before.GenerationID).PromptID)
			s.must(err)
			s.events.clear() // they named the memory
		})
	}
}
