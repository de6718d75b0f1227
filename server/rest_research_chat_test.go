package server

import (
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/websearch/provider/providertest"
)

// The user asks a character in plain words to look into something. The character says that it has begun, and some
// time later tells the result in its own words, as a message that cites the page and names the research.
func TestACharacterLooksIntoSomething(t *testing.T) {
	t.Parallel()
	h, voice := newSpeaking(t)
	h.aboutLight()
	chat, p := h.searching()
	voice.enqueue(&script{pieces: []string{"I have begun to look into it!"}})
	voice.enqueue(&script{pieces: []string{"You will not believe it. The light was automated in March 1987 [1]."}})
	h.reply(p, chat, "Please look into when the Halden Point lighthouse was automated.", nil)
	if begun := voice.first(); !strings.Contains(begun, "has just begun to look into this") {
		t.Errorf("the first request ends with %q", begun)
	}
	told := h.told(chat, 4)
	if text := told["text"]; text != "You will not believe it. The light was automated in March 1987[^1]." {
		t.Errorf("the character tells %q", text)
	}
	id := stringAt(told, "researchId")
	run := h.rest("GET", "/research/"+id, "").wants(t, 200)
	if run["messageId"] != told["id"] || run["conversationId"] != chat || run["state"] != "done" {
		t.Errorf("the research %v", run)
	}
	if asked := voice.last(); !strings.Contains(asked, "tells User what came of it") {
		t.Errorf("the last request ends with %q", asked)
	}
	refs := listAt(told, "references")
	if len(refs) != 1 || !strings.Contains(refs[0].(map[string]any)["exactQuote"].(string), "automated in March 1987") {
		t.Errorf("the references %v", refs)
	}
	if list := listAt(h.rest("GET", "/research?conversationId="+chat, "").wants(t, 200), "items"); len(list) != 1 {
		t.Errorf("%d runs", len(list))
	}
}

// A model with tools begins a research by itself, once in a reply and once in a chat at a time.
func TestAModelBeginsAResearchByItsTool(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	model := h.aboutLight()
	model.gate = make(chan struct{})
	chat, p := h.searching()
	call := []llm.ToolCall{{ID: "1", Name: "deepResearch", Arguments: `{"question":"When was the Halden Point lighthouse automated?"}`}}
	h.model.enqueue(&script{calls: call})
	h.model.enqueue(&script{pieces: []string{"I am on it."}})
	h.reply(p, chat, "I want to know everything about that lighthouse.", nil)
	if results, _ := h.model.results(); len(results) != 1 || !strings.Contains(results[0], `<research state="begun"/>`) {
		t.Errorf("the model was told %q", results)
	}
	h.model.enqueue(&script{calls: call})
	h.model.enqueue(&script{pieces: []string{"Still on it."}})
	h.reply(p, chat, "And about the keeper.", nil)
	if results, _ := h.model.results(); len(results) != 1 || !strings.Contains(results[0], "still open") {
		t.Errorf("the model was told %q", results)
	}
	close(model.gate)
	if told := h.told(chat, 6); told["text"] != "The light was automated in March 1987[^1]." || stringAt(told, "researchId") == "" { // the model is an offline one
		t.Errorf("the message %v", told)
	}
}

// A research that fails is no silence: the character says so.
func TestACharacterSaysThatAResearchHasFailed(t *testing.T) {
	t.Parallel()
	h, voice := newSpeaking(t)
	h.aboutLight().fails = func(int) error { return fault.New(fault.UpstreamAuth, "no such key") }
	h.web.search.Fail(providertest.Fault{Status: 500})
	chat, p := h.searching()
	voice.enqueue(&script{pieces: []string{"I have begun."}})
	voice.enqueue(&script{pieces: []string{"Sorry, nothing came of it."}})
	h.reply(p, chat, "Please look into when the Halden Point lighthouse was automated.", nil)
	if told := h.told(chat, 4); told["text"] != "Sorry, nothing came of it." || !strings.Contains(voice.last(), "did not work out") {
		t.Errorf("the character tells %q when asked %q", told["text"], voice.last())
	}
}

// newSpeaking starts a server whose chats have a model that is no offline one.
func newSpeaking(t *testing.T) (*testServer, *scriptedModel) {
	t.Helper()
	voice := &scriptedModel{}
	return newTestServerOf(t, parts{models: alone(nodest.Model{Generator: voice, Provider: "openai", Name: "voice"})}, nil), voice
}

// told waits until a chat has n messages and the last one is complete, and returns that.
func (h *testServer) told(chat string, n int) (last map[string]any) {
	h.t.Helper()
	eventually(h.t, "the character tells the result", func() bool {
		messages := listAt(h.rest("GET", "/conversations/"+chat+"/messages", "").wants(h.t, 200), "items")
		if len(messages) < n {
			return false
		}
		last = messages[len(messages)-1].(map[string]any)
		return last["status"] == "complete"
	})
	return last
}

// first is the last message of the oldest request.
func (v *scriptedModel) first() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	messages := v.asked[0].Messages
	return messages[len(messages)-1].Text
}
