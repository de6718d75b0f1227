package nodest_test

import (
	"reflect"
	"strings"
	"testing"

	"nodest/fault"
	"nodest/framework"
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
