package nodest_test

import (
	"strings"
	"testing"

	"nodest/nodest"
)

func TestExtraGreetingsOfTheAppAreSwipes(t *testing.T) {
	h := newHome(t)
	file := `{"roleCard":{"name":"Ada","first_mes":"Hi, {{user}}."},"extraGreetings":["Ho, {{user}}.",""],"worldBook":{"entries":{}}}`
	got, err := h.ImportCharacter(t.Context(), h.call(), []byte(file), "ada.json")
	must(t, err)
	conv, err := h.CreateConversation(t.Context(), h.call(), nodest.ConversationInput{CharacterID: got.Character.ID})
	must(t, err)
	m, err := h.Message(t.Context(), me, conv.HeadID)
	must(t, err)
	if len(m.Swipes) != 2 || m.Swipes[0].Text != "Hi, User." || m.Swipes[1].Text != "Ho, User." || m.SwipeIndex != 0 {
		t.Errorf("swipes = %+v", m.Swipes)
	}
}

func TestBlocksInAnImportedLogAreNotSent(t *testing.T) {
	h := newHome(t)
	ch := h.character(t, alice)
	log := `{"chat_metadata":{},"user_name":"unused","character_name":"unused"}
{"name":"Mia","is_user":true,"mes":"What is <mem> for?"}
{"name":"Alice","is_user":false,"mes":"<mem>She likes tea.</mem>\n\nTea?"}
`
	conv, err := h.ImportChat(t.Context(), h.call(), ch.ID, []byte(log), "log.jsonl")
	must(t, err)
	p, err := h.PreviewPrompt(t.Context(), me, nodest.PreviewInput{ConversationID: conv.ID, Text: "Yes."})
	must(t, err)
	var sent []string
	for _, m := range p.Messages {
		sent = append(sent, m.Text)
	}
	all := strings.Join(sent, "\n")
	if strings.Contains(all, "likes tea") || !strings.Contains(all, "\nTea?\n") {
		t.Errorf("a block of a reply was sent again:\n%s", all)
	}
	if !strings.Contains(all, "What is <mem> for?") {
		t.Errorf("the user's own words were changed:\n%s", all)
	}
	data, _, err := h.ExportChat(t.Context(), me, conv.ID)
	must(t, err)
	if !strings.Contains(string(data), "likes tea") {
		t.Error("the log that came in is not the one that goes out")
	}
}
