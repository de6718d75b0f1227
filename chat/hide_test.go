package chat_test

import (
	"bytes"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// hide hides a message, or shows it again.
func hide(w *nodesttest.FullChat, m *chat.Message, hidden bool) *chat.Message {
	w.T.Helper()
	out, err := w.Chats.HideMessage(w.T.Context(), w.Call(), chat.HideInput{MessageID: m.ID, Hidden: &hidden})
	w.Must(err)
	return out.Message
}

func TestAHiddenMessageIsInNoPrompt(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	before, text := w.Preview(), firstWords(w.First)
	if !strings.Contains(nodesttest.PromptText(before), text) {
		t.Fatalf("%q is not in the prompt", text)
	}
	save := w.Save()
	m := hide(w, w.First, true)
	if !m.Hidden || m.Rev != w.First.Rev+1 {
		t.Errorf("message = %+v", m)
	}
	if got := nodesttest.PromptText(w.Preview()); strings.Contains(got, text) {
		t.Errorf("%q is still in the prompt", text)
	}
	if shown := w.Texts(); !strings.Contains(shown, text) {
		t.Errorf("readers do not see it: %s", shown)
	}
	t.Run("the same again changes nothing", func(t *testing.T) {
		if again := hide(w, w.First, true); again.Rev != m.Rev {
			t.Errorf("rev %d, want %d", again.Rev, m.Rev)
		}
	})
	t.Run("a fork keeps it", func(t *testing.T) {
		fork, err := w.Chats.Fork(t.Context(), w.Call(), chat.ForkInput{ConversationID: w.ID})
		w.Must(err)
		if got := promptOf(w, fork.ID); strings.Contains(got, text) {
			t.Errorf("the fork sends it: %s", got)
		}
	})
	t.Run("a fork of before does not have it", func(t *testing.T) {
		hidden := w.Save()
		w.Restore(save)
		w.WantSamePrompt("after the restore", w.Preview(), before)
		w.Restore(hidden)
		if got := nodesttest.PromptText(w.Preview()); strings.Contains(got, text) {
			t.Errorf("the save point does not hide it")
		}
	})
	t.Run("shown again", func(t *testing.T) {
		hide(w, w.First, false)
		w.WantSamePrompt("shown again", w.Preview(), before)
	})
}

func promptOf(w *nodesttest.FullChat, conversationID string) string {
	p, err := w.PreviewPrompt(w.T.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: conversationID, Text: w.Question})
	w.Must(err)
	return nodesttest.PromptText(p.Messages)
}

// A prompt that was sent is read as it was, whatever was hidden since.
func TestAStoredPromptStaysAsItWasSent(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	reply := w.SayAndWait(w.Conversation, "More.")
	asked := w.Model.LastRequest()
	hide(w, w.First, true)
	p, err := w.Prompt(t.Context(), nodesttest.Ann, w.Generation(reply.GenerationID).PromptID)
	w.Must(err)
	if got := nodesttest.PromptText(p.Prompt.Messages); got != asked {
		t.Errorf("it reads\n%s\nwant\n%s", got, asked)
	}
}

func TestHidingIsRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	_, all := h.NewChat(t, 2)
	yes := true
	for name, c := range map[string]struct {
		in   chat.HideInput
		code fault.Code
		on   string
	}{
		"without saying which":   {chat.HideInput{MessageID: all[1].ID}, fault.Invalid, "hidden"},
		"of another revision":    {chat.HideInput{MessageID: all[1].ID, Hidden: &yes, IfRev: 7}, fault.Conflict, ""},
		"of no message":          {chat.HideInput{MessageID: "none", Hidden: &yes}, fault.NotFound, ""},
		"of a message of others": {chat.HideInput{MessageID: all[1].ID, Hidden: &yes}, fault.NotFound, ""},
	} {
		call := h.Call()
		if strings.Contains(name, "others") {
			call.UserID = nodesttest.Bob
		}
		_, err := h.Chats.HideMessage(t.Context(), call, c.in)
		if !fault.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A summary that has words of a message that is hidden does not stay as it is.
func TestASummaryOfAHiddenMessageIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	was := s.ActiveSummary()
	yes := true
	_, err := s.Chats.HideMessage(t.Context(), s.Call(), chat.HideInput{MessageID: s.Covered(1).ID, Hidden: &yes})
	nodesttest.Must(t, err)
	if now := s.ActiveSummary(); now != nil {
		t.Errorf("active summary: %+v, want none", now)
	}
	s.RunIdleJobs()
	if now := s.ActiveSummary(); now == nil || now.ID == was.ID || now.Stale {
		t.Errorf("no new summary: %+v", now)
	}
}

func TestFilesKeepWhatIsHidden(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	hide(w, w.First, true)
	save := w.Save()
	hide(w, w.First, false)
	t.Run("archive", func(t *testing.T) {
		file, _, err := nodesttest.Written(t.Context(), w.Archives.ExportArchive, nodesttest.Ann, w.ID)
		w.Must(err)
		conv, err := w.Archives.ImportArchive(t.Context(), w.Call(), w.CharacterID, file)
		w.Must(err)
		if got := promptOf(w, conv.ID); !strings.Contains(got, firstWords(w.First)) {
			t.Errorf("it is hidden: %s", got)
		}
		saves, err := w.Chats.Saves(t.Context(), nodesttest.Ann, conv.ID, false, "", 0)
		w.Must(err)
		_, err = w.Chats.RestoreSave(t.Context(), w.Call(), saves.Items[0].ID)
		w.Must(err)
		if got := promptOf(w, conv.ID); strings.Contains(got, firstWords(w.First)) {
			t.Errorf("it is not hidden: %s", got)
		}
	})
	t.Run("chat log", func(t *testing.T) {
		w.Restore(save)
		file, _, err := nodesttest.Written(t.Context(), w.Archives.ExportChat, nodesttest.Ann, w.ID)
		w.Must(err)
		if n := bytes.Count(file, []byte(`"is_system":true`)); n != 1 {
			t.Errorf("%d lines are hidden: %s", n, file)
		}
		done, err := w.Archives.ImportChat(t.Context(), w.Call(), w.CharacterID, file, "a.jsonl")
		w.Must(err)
		if got := promptOf(w, done.Conversation.ID); strings.Contains(got, firstWords(w.First)) {
			t.Errorf("it is not hidden: %s", got)
		}
	})
}

// firstWords are those of a text before a regex script of the chat changes it.
func firstWords(m *chat.Message) string {
	words, _, _ := strings.Cut(m.Text(), ",")
	return words + ","
}
