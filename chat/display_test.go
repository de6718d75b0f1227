package chat_test

import (
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

const starred = `{"scriptName":"stars","findRegex":"/Message/g","replaceString":"***","placement":[1],"markdownOnly":true}`

// shownTexts are the texts of a chat as readers see them.
func shownTexts(w *nodesttest.FullChat) (texts string, displays bool) {
	w.T.Helper()
	page, err := w.Chats.History(w.T.Context(), nodesttest.Ann, w.ID, "", 0)
	w.Must(err)
	var all []string
	for _, m := range page.Items {
		text := m.Text()
		if m.Display != nil {
			text = *m.Display
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n"), page.Displays
}

func TestDisplayScriptsChangeTextsForReaders(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	w.Update(w.Script, character.ResourceInput{Document: []byte(starred)})
	if texts, displays := shownTexts(w); displays || strings.Contains(texts, "***") {
		t.Errorf("in the NodeST dialect readers see %t %q", displays, texts)
	}
	_, err := w.Characters.Update(t.Context(), w.Call(), w.CharacterID, character.Input{Dialect: "sillytavern"}, false, 0)
	w.Must(err)
	texts, displays := shownTexts(w)
	if !displays || !strings.Contains(texts, "*** 0, now.") || strings.Contains(texts, "Message") {
		t.Errorf("readers see %t %q", displays, texts)
	}
	m, err := w.Chats.Message(t.Context(), nodesttest.Ann, w.First.ID)
	w.Must(err)
	if m.Display == nil || *m.Display != "*** 0, now." || m.Text() != "Message 0, now." {
		t.Errorf("the message is %+v", m)
	}
	w.Update(w.Script, character.ResourceInput{Document: []byte(strings.Replace(starred, "markdownOnly", "promptOnly", 1))})
	if texts, displays := shownTexts(w); displays || strings.Contains(texts, "***") {
		t.Errorf("without such a script readers see %t %q", displays, texts)
	}
}

// A chat is readable also where what it is played with is not.
func TestAChatIsReadableWithoutTheDocumentsOfItsDisplay(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	other := w.Character(nodesttest.PlainAlice)
	_, err := w.Chats.UpdateConversation(t.Context(), w.Call(), chat.ConversationPatch{ID: w.ID, Settings: []byte(`{"characterId":"` + other.ID + `"}`)})
	w.Must(err)
	w.Must(w.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(other.ID) }))
	if texts, _ := shownTexts(w); !strings.Contains(texts, "Message 0") {
		t.Errorf("readers see %q", texts)
	}
	w.Must(nodesttest.ErrOf(w.Chats.Message(t.Context(), nodesttest.Ann, w.First.ID)))
}

// Depths are counted as in prompts: without hidden messages. A hidden one has none, so scripts for any depth change it.
func TestHiddenMessagesDoNotCountForDisplayScripts(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	_, err := w.Characters.Update(t.Context(), w.Call(), w.CharacterID, character.Input{Dialect: "sillytavern"}, false, 0)
	w.Must(err)
	w.Update(w.Script, character.ResourceInput{Document: []byte(`{"scriptName":"depth","findRegex":"/^/","replaceString":"*","placement":[1,2],"markdownOnly":true,"minDepth":2,"maxDepth":2}`)})
	starred := func() (places []int) {
		t.Helper()
		page, err := w.Chats.History(t.Context(), nodesttest.Ann, w.ID, "", 0)
		w.Must(err)
		for i, m := range page.Items {
			if m.Display != nil {
				places = append(places, len(page.Items)-1-i)
			}
			alone, err := w.Chats.Message(t.Context(), nodesttest.Ann, m.ID)
			w.Must(err)
			if (alone.Display != nil) != (m.Display != nil) {
				t.Errorf("message %d from the end differs when it is read alone", len(page.Items)-1-i)
			}
		}
		return places
	}
	page, err := w.Chats.History(t.Context(), nodesttest.Ann, w.ID, "", 0)
	w.Must(err)
	if got := starred(); !slices.Equal(got, []int{2}) {
		t.Errorf("starred from the end: %v", got)
	}
	hide(w, page.Items[len(page.Items)-2], true)
	if got := starred(); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("starred from the end with a hidden message: %v", got)
	}
	hide(w, page.Items[len(page.Items)-2], false)
	if got := starred(); !slices.Equal(got, []int{2}) {
		t.Errorf("starred from the end when it is shown again: %v", got)
	}
}
