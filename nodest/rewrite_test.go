package nodest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// importedChat imports a chat in which ann's message has the text and is answered.
func (s *fixture) importedChat(characterID, text string) (c *chat.Conversation, said, reply *chat.Message) {
	s.T.Helper()
	line, err := json.Marshal(text)
	s.Must(err)
	log := fmt.Sprintf(`{"chat_metadata":{},"user_name":"unused","character_name":"unused"}
{"name":"Alice","is_user":false,"mes":"Hello."}
{"name":"Mia","is_user":true,"mes":%s}
{"name":"Alice","is_user":false,"mes":"As before."}
`, line)
	got, err := s.Archives.ImportChat(s.T.Context(), s.Call(), characterID, []byte(log), "log.jsonl")
	s.Must(err)
	c = got.Conversation
	page, err := s.Chats.History(s.T.Context(), nodesttest.Ann, c.ID, "", 200)
	s.Must(err)
	return c, page.Items[len(page.Items)-2], page.Items[len(page.Items)-1]
}

// A wish inside an imported text belongs to the reply that came with it: a regenerate
// removes it from the request, and later prompts include it only while the old reply
// is chosen.
func TestAWishInsideAnImportedTextIsStrippedOnRegenerate(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	alice := s.Character(nodesttest.PlainAlice)
	for _, block := range []string{"\n\n【重写要求】warmer", "\n【重写要求】warmer\nand longer", "\n\n[Rewrite request] warmer"} {
		c, said, reply := s.importedChat(alice.ID, "Tell me."+block)
		m := s.RegenerateReply(reply.ID, "")
		if sent := s.Model.LastRequest(); strings.Contains(sent, "warmer") || !strings.Contains(sent, "[user] Tell me.\n") {
			t.Errorf("%q: regenerated from\n%s", block, sent)
		}
		if text := s.Message(said.ID).Text(); text != "Tell me."+block {
			t.Errorf("%q: the user's message became %q", block, text)
		}
		s.SayAndWait(c, "Go on.")
		if sent := s.Model.LastRequest(); strings.Contains(sent, "warmer") {
			t.Errorf("%q: later it is sent again\n%s", block, sent)
		}
		_, err := s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: m.ID, Swipe: "prev"})
		nodesttest.Must(t, err)
		s.SayAndWait(c, "And then?")
		if sent := s.Model.LastRequest(); !strings.Contains(sent, "warmer") || !strings.Contains(sent, "As before.") {
			t.Errorf("%q: the first reply lost what it was written on\n%s", block, sent)
		}
	}
}

func TestANewWishReplacesOneInAnImportedText(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	_, _, reply := s.importedChat(s.Character(nodesttest.PlainAlice).ID, "Tell me.\n\n【重写要求】warmer")
	s.RegenerateReply(reply.ID, "shorter")
	if sent := s.Model.LastRequest(); strings.Contains(sent, "warmer") || !strings.Contains(sent, "Tell me.\n\n[Rewrite request] shorter\n") {
		t.Errorf("sent:\n%s", sent)
	}
}

// Removing the wish never leaves a message empty.
func TestAnImportedTextThatIsOnlyAWish(t *testing.T) {
	t.Parallel()
	for wish, want := range map[string]string{"": "[user] warmer\n", "shorter": "[user] [Rewrite request] shorter\n"} {
		s := newFixture(t, nodest.Options{})
		_, said, reply := s.importedChat(s.Character(nodesttest.PlainAlice).ID, "【重写要求】warmer")
		s.RegenerateReply(reply.ID, wish)
		if sent := s.Model.LastRequest(); !strings.Contains(sent, want) || strings.Contains(sent, "重写要求") {
			t.Errorf("wish %q: sent\n%s", wish, sent)
		}
		if text := s.Message(said.ID).Text(); text != "【重写要求】warmer" {
			t.Errorf("the user's message became %q", text)
		}
	}
}

// A wish inside an imported text is not part of the question to the memory.
func TestAWishInsideAnImportedTextRecallsNothing(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	s.SayAndWait(s.ChatWith(alice.ID), nodesttest.Birthday)
	for text, recall := range map[string]bool{
		"And where does Clara celebrate?": true, "hmm\n\n【重写要求】mention where Clara celebrates her birthday": false,
	} {
		_, _, reply := s.importedChat(alice.ID, text)
		g, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
		nodesttest.Must(t, err)
		s.Await(g.GenerationID)
		if memories, _, _ := s.ContextOf(g.GenerationID); (len(memories) > 0) != recall {
			t.Errorf("%q recalls %v", text, memories)
		}
	}
}

// A wish mark inside a sentence is ordinary text.
func TestAWishMarkInsideASentenceIsText(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	const text = "Why does my old log say 【重写要求】 everywhere?"
	_, _, reply := s.importedChat(s.Character(nodesttest.PlainAlice).ID, text)
	s.RegenerateReply(reply.ID, "")
	if sent := s.Model.LastRequest(); !strings.Contains(sent, text) {
		t.Errorf("sent:\n%s", sent)
	}
}
