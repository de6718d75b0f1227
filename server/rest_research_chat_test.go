package server

import (
	"strings"
	"testing"

	"nodest/llm"
)

// The user asks a character in plain words to look into something. The character says that it has begun, and some
// time later tells the result in its own words, as a message that cites the page and names the research.
func TestACharacterLooksIntoSomething(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.aboutLight()
	chat, p := h.searching()
	h.model.enqueue(&script{pieces: []string{"I have begun to look into it!"}})
	h.model.enqueue(&script{pieces: []string{"You will not believe it. The light was automated in March 1987 [1]."}})
	h.reply(p, chat, "Please look into when the Halden Point lighthouse was automated.", nil)
	if begun := h.model.first(); !strings.Contains(begun, "has just begun to look into this") {
		t.Errorf("the first request ends with %q", begun)
	}
	told := h.told(chat, 4)
	if text := told["text"]; text != "You will not believe it. The light was automated in March 1987[^1]." {
		t.Errorf("the character tells %q", text)
	}
	id := stringAt(told, "citations.researchId")
	run := h.rest("GET", "/research/"+id, "").wants(t, 200)
	if run["messageId"] != told["id"] || run["conversationId"] != chat || run["state"] != "done" {
		t.Errorf("the research %v", run)
	}
	if asked := h.model.last(); !strings.Contains(asked, "tells Admin what came of it") {
		t.Errorf("the last request ends with %q", asked)
	}
	refs := listAt(told, "citations.references")
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
	call := []llm.ToolCall{{ID: "1", Name: "deepResearch", Arguments: []byte(`{"question":"When was the Halden Point lighthouse automated?"}`)}}
	h.model.enqueue(&script{calls: call})
	h.model.enqueue(&script{pieces: []string{"I am on it."}})
	h.reply(p, chat, "I want to know everything about that lighthouse.", nil)
	if asked := h.model.last(); !strings.Contains(asked, `<research state="begun"/>`) {
		t.Errorf("the model was told %q", asked)
	}
	h.model.enqueue(&script{calls: call})
	h.model.enqueue(&script{pieces: []string{"Still on it."}})
	h.reply(p, chat, "And about the keeper.", nil)
	if asked := h.model.last(); !strings.Contains(asked, "still open") {
		t.Errorf("the model was told %q", asked)
	}
	close(model.gate)
	h.told(chat, 6)
}

// A research that fails is no silence: the character says so.
func TestACharacterSaysThatAResearchHasFailed(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.aboutLight()
	h.web.search.Fail()
	chat, p := h.searching()
	h.model.enqueue(&script{pieces: []string{"I have begun."}})
	h.model.enqueue(&script{pieces: []string{"Sorry, nothing came of it."}})
	h.reply(p, chat, "Please look into when the Halden Point lighthouse was automated.", nil)
	if told := h.told(chat, 4); told["text"] != "Sorry, nothing came of it." {
		t.Errorf("the character tells %q", told["text"])
	}
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
