package chat_test

import (
	"testing"

	"nodest/chat"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

const alicia = `{"name":"Alicia","first_mes":"Hi.","description":"Another."}`

// A restore brings back the name in the greeting after the card was renamed and the
// greeting reset.
func TestARestoreRestoresTheNameOfTheGreeting(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	want, save := w.Preview(), w.Save()
	w.PutCard(alicia)
	w.ResetGreeting()
	if got := w.Message(w.Greeting.ID).Text(); got != "Hi." {
		t.Errorf("the greeting is %q", got)
	}
	w.Restore(save)
	w.WantSamePrompt("preview", w.Preview(), want)
}

// A save point of an empty chat restores the greeting of the card as it was when the
// save point was made.
func TestAnEmptySavePointKeepsItsGreeting(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	w.DeleteMessage(w.Greeting, "after")
	save := w.Save()
	preview := func() []llm.Message {
		p, err := w.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{Text: w.Question})
		w.Must(err)
		return p.Messages
	}
	want := preview()
	w.PutCard(alicia)
	w.WantSamePrompt("preview of the save point", preview(), want)
	w.Restore(save)
	if got := w.Texts(); got != "Hello, traveller." {
		t.Errorf("restored to %s", got)
	}
	w.WantSamePrompt("preview", w.Preview(), want)

	// The old card is used until it is changed again.
	w.Must(nodesttest.ErrOf(w.Chats.Reset(t.Context(), w.Call(), w.ID)))
	if got := w.Texts(); got != "Hello, traveller." {
		t.Errorf("reset to %s", got)
	}
	w.PutCard(alicia)
	w.Must(nodesttest.ErrOf(w.Chats.Reset(t.Context(), w.Call(), w.ID)))
	if got := w.Texts(); got != "Hi." {
		t.Errorf("reset after a change to %s", got)
	}
}

// Resetting a greeting removes what a model added to it.
func TestResettingAContinuedGreeting(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	w.Model.Enqueue(nodesttest.Reply(" Sit down").Failing(llm.CutOff("scripted", nil)))
	done, err := w.Continue(t.Context(), w.Call(), nodest.GenerateInput{MessageID: w.Greeting.ID})
	w.Must(err)
	w.Await(done.GenerationID)
	if m := w.Message(w.Greeting.ID); m.Text() != "Hello, traveller. Sit down" || m.Status == chat.StatusComplete {
		t.Fatalf("continued: %q, %s", m.Text(), m.Status)
	}
	w.ResetGreeting()
	m := w.Message(w.Greeting.ID)
	if s := m.Chosen(); s.Text != "Hello, traveller." || s.Model != "" || s.Finish != "stop" || s.ID != w.Greeting.Chosen().ID {
		t.Errorf("reset: %+v", s)
	}
	if m.Status != chat.StatusComplete || m.Error != nil {
		t.Errorf("status %s, error %v", m.Status, m.Error)
	}
}
