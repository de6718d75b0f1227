package nodest_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/codec"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// wantStored fails the test unless the prompt of a generation has the messages of want, and what is
// stored of it does not repeat a text. It returns the prompt's id.
func (s *fixture) wantStored(generationID, text string, want *framework.Prompt) (id string) {
	s.T.Helper()
	id = s.Generation(generationID).PromptID
	got, err := s.Prompt(s.T.Context(), nodesttest.Ann, id)
	s.Must(err)
	if !reflect.DeepEqual(got.Prompt.Messages, want.Messages) {
		s.T.Errorf("the prompt is\n%v\nwant\n%v", got.Prompt.Messages, want.Messages)
	}
	if len(got.Prompt.Warnings) != 0 {
		s.T.Errorf("warnings: %v", got.Prompt.Warnings)
	}
	s.Must(s.DB.View(s.T.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		stored, err := tx.Prompt(id)
		if err != nil {
			return err
		}
		if strings.Contains(string(stored.Body), text) {
			s.T.Errorf("the stored prompt repeats %q:\n%s", text, stored.Body)
		}
		return nil
	}))
	return id
}

// A prompt shows the summary that was sent, whatever becomes of it, and does not repeat it.
func TestAStoredPromptShowsTheSummaryThatWasSent(t *testing.T) {
	t.Parallel()
	const edited, digest = "They met, they walked, and they agreed on almost everything by the evening.", "Digest 1: they walked"
	s := nodesttest.NewSummarisedChat(t)
	send := func() (generationID string, p *framework.Prompt) {
		m := s.SayAndWait(s.Conversation, "And then?")
		sent, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(m.GenerationID).PromptID)
		s.Must(err)
		return m.GenerationID, sent.Prompt
	}
	first, before := send()
	if !strings.Contains(nodesttest.PromptText(before.Messages), digest) {
		t.Fatalf("the summary was not sent:\n%s", nodesttest.PromptText(before.Messages))
	}
	_, err := s.Chats.EditSummary(t.Context(), s.Call(), s.Conversation.ID, s.ActiveSummary().ID, edited)
	s.Must(err)
	second, after := send()
	if text := nodesttest.PromptText(after.Messages); !strings.Contains(text, edited) || strings.Contains(text, digest) {
		t.Fatalf("the edited summary was not sent:\n%s", text)
	}
	both := func() {
		t.Helper()
		f := &fixture{s.Fixture}
		a, b := f.wantStored(first, digest, before), f.wantStored(second, edited, after)
		diff, err := s.DiffPrompts(t.Context(), nodesttest.Ann, a, b)
		s.Must(err)
		if old := framework.Diff(before, after); !reflect.DeepEqual(diff, old) {
			t.Errorf("the difference is %+v, was %+v", diff, old)
		}
		_, err = s.Prompt(t.Context(), nodesttest.Bob, a)
		s.WantCode(err, fault.NotFound)
	}
	both()
	s.Must(s.Chats.DeleteSummary(t.Context(), s.Call(), s.Conversation.ID, s.ActiveSummary().ID))
	both()
	s.Must(s.DeleteConversation(t.Context(), s.Call(), s.Conversation.ID))
	both()
}

// A prompt shows the texts that were recalled, in part or as memory cleaned them.
func TestAStoredPromptShowsWhatWasRecalled(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("We talked about the weather for a while, as one does. ", 25) + nodesttest.Birthday +
		strings.Repeat(" Nobody had thought of bringing an umbrella along.", 25)
	for name, said := range map[string]string{"whole": nodesttest.Birthday, "an excerpt": long, "cleaned": nodesttest.Birthday + "\n\n"} {
		t.Run(name, func(t *testing.T) {
			s := newMemoryFixture(t)
			alice := s.Character(nodesttest.PlainAlice)
			s.SayAndWait(s.ChatWith(alice.ID), said)
			m := s.SayAndWait(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
			requests := s.Model.AllRequests()
			sent := requests[len(requests)-1].Messages
			if !strings.Contains(nodesttest.PromptText(sent), "<mem>") || strings.Contains(nodesttest.PromptText(sent), long) {
				t.Fatalf("sent:\n%s", nodesttest.PromptText(sent))
			}
			repeats := nodesttest.Birthday
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
	s.RealModel = &nodest.Model{Generator: s.Model, Provider: "scripted", Name: "scripted", ContextTokens: 1 << 20}
	c, err := s.Archives.ImportArchive(t.Context(), s.Call(), s.Character(nodesttest.PlainAlice).ID, nodesttest.LongArchive(messages))
	s.Must(err)
	m := s.SayAndWait(c, "Who was there?")
	s.RegenerateReply(m.ID, "")
	s.SayAndWait(c, "And then?")
	requests := s.Model.AllRequests()
	check := func() {
		t.Helper()
		for i, ev := range s.started() {
			p, err := s.Prompt(t.Context(), nodesttest.Ann, ev)
			s.Must(err)
			if sent := requests[i].Messages; !reflect.DeepEqual(p.Prompt.Messages, sent) || len(sent) < messages {
				t.Errorf("prompt %d has %d messages, %d were sent", i, len(p.Prompt.Messages), len(sent))
			}
			s.View(func(tx nodest.Tx) error {
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
	path, err := s.Chats.History(t.Context(), nodesttest.Ann, c.ID, "", 100)
	s.Must(err)
	save, err := s.Chats.CreateSave(t.Context(), s.Call(), chat.SaveInput{ConversationID: c.ID})
	s.Must(err)
	s.edit(chat.EditInput{MessageID: path.Items[10].ID, Text: "It was another story altogether."})
	_, err = s.Chats.DeleteMessage(t.Context(), s.Call(), path.Items[20].ID, "")
	s.Must(err)
	s.edit(chat.EditInput{MessageID: path.Items[30].ID, Text: "A branch.", Mode: "branch"})
	check()
	_, err = s.Chats.RestoreSave(t.Context(), s.Call(), save.ID)
	s.Must(err)
	check()
	s.Must(s.DeleteConversation(t.Context(), s.Call(), c.ID))
	check()
}

// started returns the ids of the prompts that were sent.
func (s *fixture) started() (ids []string) {
	s.T.Helper()
	for _, ev := range s.Events.All() {
		var started struct{ PromptID string }
		if ev.Type == "gen.started" {
			s.Must(json.Unmarshal(ev.Data, &started))
			ids = append(ids, started.PromptID)
		}
	}
	return ids
}

// A text that scripts, macros or wishes changed, and a reply of which blocks were left out, is shown as it was sent.
func TestAStoredPromptShowsTextsThatWereChanged(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.Character(nodesttest.PlainAlice)
	_, err := s.Characters.Update(t.Context(), s.Call(), ch.ID, character.Input{RegexScripts: json.RawMessage(
		`[{"id":"1","scriptName":"shout","findRegex":"/tea/g","replaceString":"TEA","placement":[1],"promptOnly":false},
		{"id":"2","scriptName":"hush","findRegex":"/loud/g","replaceString":"quiet","placement":[1,2],"promptOnly":true}]`)}, false, 0)
	s.Must(err)
	c := s.ChatWith(ch.ID)
	s.Model.Enqueue(nodesttest.Reply("<mem>What she knows of the loud harbour.</mem>A loud harbour, {{user}}."))
	s.SayAndWait(c, "Is there tea in the harbour where all of the ships come in, {{char}}?")
	m := s.SayAndWait(c, "I would like some tea, and a place that is not as loud as this one is tonight.")
	s.RegenerateReply(m.ID, "In one sentence that has no adjective.")
	s.SayAndWait(c, "Good.")
	for i, id := range s.started() {
		p, err := s.Prompt(t.Context(), nodesttest.Ann, id)
		s.Must(err)
		if sent := s.Model.AllRequests()[i].Messages; !reflect.DeepEqual(p.Prompt.Messages, sent) {
			t.Errorf("prompt %d is\n%s\nsent was\n%s", i, nodesttest.PromptText(p.Prompt.Messages), nodesttest.PromptText(sent))
		}
	}
	if last := s.Model.LastRequest(); !strings.Contains(last, "some TEA") || !strings.Contains(last, "as quiet as") || strings.Contains(last, "<mem>") {
		t.Errorf("sent:\n%s", last)
	}
}

// A memory that is purged is in no stored prompt any more, from that moment on.
func TestAPurgeRemovesThePromptsThatUsedAMemory(t *testing.T) {
	t.Parallel()
	for name, purge := range map[string]func(s *fixture, characterID string, fact *memory.Memory) error{
		"one": func(s *fixture, characterID string, fact *memory.Memory) error {
			return s.Memory.Delete(t.Context(), s.Call(), characterID, fact.ID, true)
		},
		"all": func(s *fixture, characterID string, _ *memory.Memory) error {
			_, err := s.Memory.Forget(t.Context(), s.Call(), characterID, memory.ForgetInput{All: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemoryFixture(t)
			alice := s.Character(nodesttest.PlainAlice)
			before := s.SayAndWait(s.ChatWith(alice.ID), "Good morning.")
			fact := s.AddFact(alice.ID, nodesttest.Birthday)
			after := s.SayAndWait(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
			if !strings.Contains(s.Model.LastRequest(), nodesttest.Birthday) {
				t.Fatalf("sent:\n%s", s.Model.LastRequest())
			}
			promptID := s.Generation(after.GenerationID).PromptID
			_, err := s.Prompt(t.Context(), nodesttest.Ann, promptID)
			s.Must(err)
			s.Must(purge(s, alice.ID, fact))
			_, err = s.Prompt(t.Context(), nodesttest.Ann, promptID)
			s.WantCode(err, fault.NotFound)
			_, err = s.Prompt(t.Context(), nodesttest.Ann, s.Generation(before.GenerationID).PromptID)
			s.Must(err)
			s.Events.Clear() // they named the memory
		})
	}
}
