package nodest_test

import (
	"testing"

	"nodest/chat"
	"nodest/llm"
	"nodest/nodest"
)

const alicia = `{"name":"Alicia","first_mes":"Hi.","description":"Another."}`

// A restore brings back the name in the greeting after the card was renamed and the
// greeting reset.
func TestARestoreRestoresTheNameOfTheGreeting(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	want, save := w.preview(), w.save()
	w.putCard(alicia)
	w.resetGreeting()
	if got := w.message(w.greeting.ID).Text(); got != "Hi." {
		t.Errorf("the greeting is %q", got)
	}
	w.restore(save)
	w.wantSamePrompt("preview", w.preview(), want)
}

// A save point of an empty chat restores the greeting of the card as it was when the
// save point was made.
func TestAnEmptySavePointKeepsItsGreeting(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	w.deleteMessage(w.greeting, "after")
	save := w.save()
	preview := func() []llm.Message {
		p, err := w.PreviewSave(t.Context(), ann, save.ID, nodest.PreviewInput{Text: w.question})
		w.must(err)
		return p.Messages
	}
	want := preview()
	w.putCard(alicia)
	w.wantSamePrompt("preview of the save point", preview(), want)
	w.restore(save)
	if got := w.texts(); got != "Hello, traveller." {
		t.Errorf("restored to %s", got)
	}
	w.wantSamePrompt("preview", w.preview(), want)

	// The old card is used until it is changed again.
	w.must(errOf(w.Chats.Reset(t.Context(), w.call(), w.ID)))
	if got := w.texts(); got != "Hello, traveller." {
		t.Errorf("reset to %s", got)
	}
	w.putCard(alicia)
	w.must(errOf(w.Chats.Reset(t.Context(), w.call(), w.ID)))
	if got := w.texts(); got != "Hi." {
		t.Errorf("reset after a change to %s", got)
	}
}

// Resetting a greeting removes what a model added to it.
func TestResettingAContinuedGreeting(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	w.model.enqueue(replyWith(" Sit down").failing(llm.CutOff("scripted", nil)))
	done, err := w.Continue(t.Context(), w.call(), nodest.GenerateInput{MessageID: w.greeting.ID})
	w.must(err)
	w.wait(done.GenerationID)
	if m := w.message(w.greeting.ID); m.Text() != "Hello, traveller. Sit down" || m.Status == chat.StatusComplete {
		t.Fatalf("continued: %q, %s", m.Text(), m.Status)
	}
	w.resetGreeting()
	m := w.message(w.greeting.ID)
	if s := m.Chosen(); s.Text != "Hello, traveller." || s.Model != "" || s.Finish != "stop" || s.ID != w.greeting.Chosen().ID {
		t.Errorf("reset: %+v", s)
	}
	if m.Status != chat.StatusComplete || m.Error != nil {
		t.Errorf("status %s, error %v", m.Status, m.Error)
	}
}
