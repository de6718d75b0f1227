package server

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"nodest/internal/op"
	"nodest/llm"
)

// dreamsOf are the routes of the documents and dreams of a character, with bodies that are right.
func dreamsOf(character string) map[string]string {
	path := "/characters/" + character
	return map[string]string{
		"POST " + path + "/dream": `{"force":true}`, "GET " + path + "/dream/runs": "", "GET " + path + "/memory-documents": "",
		"GET " + path + "/memory-documents/user.md": "", "PUT " + path + "/memory-documents/user.md": `{"text":"x"}`, "DELETE " + path + "/memory-documents/user.md": "",
		"GET " + path + "/memory-documents/user.md/versions": "", "POST " + path + "/memory-documents/user.md/rollback": `{"version":1}`,
	}
}

func TestDreamsAndDocumentsOfOthersAreNotFound(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mine := h.newCharacter()
	h.rest("PUT", h.documentsOf(mine)+"/user.md", `{"text":"Mine alone."}`).wants(t, 200)
	deleted := h.newCharacter()
	h.rest("DELETE", "/characters/"+deleted, "").wants(t, 204)
	all := func(character string) {
		t.Helper()
		for route, body := range dreamsOf(character) {
			method, path, _ := strings.Cut(route, " ")
			if got := h.rest(method, path, body); got.status != 404 || strings.Contains(string(got.body), "Mine") {
				t.Errorf("%s: %d %s", route, got.status, got.body)
			}
		}
	}
	all(deleted)
	all(op.NewID())
	h.as(h.newToken(h.createMia().ID), func() { all(mine) })
	if got := linesOf(h.rest("GET", h.documentsOf(mine)+"/user.md", "").wants(t, 200)); len(got) != 1 || got[0] != "L1 user Mine alone." {
		t.Errorf("the document: %q", got)
	}
	if runs := h.rest("GET", "/characters/"+mine+"/dream/runs", "").items(t); len(runs) != 0 {
		t.Errorf("somebody began %v", runs)
	}
}

func TestRequestsAboutDreamsAndDocumentsThatAreWrong(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	character := h.newCharacter()
	documents, dream := h.documentsOf(character), "/characters/"+character+"/dream"
	h.rest("PUT", documents+"/user.md", `{"text":"x"}`).wants(t, 200)
	for _, name := range []string{"USER.md", "user", "user.md.exe", "archive.md", ".md", "用户.md", "a b.md", "user.md\x00", strings.Repeat("a", 41) + ".md"} {
		if got := h.rest("PUT", documents+"/"+url.PathEscape(name), `{"text":"x"}`); got.status != 400 && got.status != 404 {
			t.Errorf("a document called %q: %d %s", name, got.status, got.body)
		}
	}
	for _, tt := range []struct{ method, path, body, field string }{
		{"PUT", documents + "/user.md", `{}`, "text"},
		{"PUT", documents + "/user.md", `{"text":7}`, "text"},
		{"PUT", documents + "/user.md", `{"locked":"yes"}`, "locked"},
		{"PUT", documents + "/user.md", `{"text":"x","author":"dream"}`, "author"},
		{"POST", documents + "/user.md/rollback", `{"version":-1}`, "version"},
		{"POST", documents + "/archive.md/rollback", `{"version":1}`, "path"},
		{"GET", documents + "/user.md?version=first", "", "version"},
		{"GET", documents + "/user.md/versions?limit=none", "", "limit"},
		{"GET", dream + "/runs?cursor=%2F", "", "cursor"},
		{"POST", dream, `{"force":"yes"}`, "force"},
		{"POST", dream, `{"scope":"all"}`, "scope"},
	} {
		h.rest(tt.method, tt.path, tt.body).refuses(t, 400, "invalid_field", tt.field)
	}
	h.rest("GET", documents+"/user.md?version=2", "").refuses(t, 404, "not_found")
	if items := h.rest("GET", documents, "").items(t); len(items) != 1 {
		t.Errorf("the documents: %v", items)
	}
	if runs := h.rest("GET", dream+"/runs", "").items(t); len(runs) != 0 {
		t.Errorf("the runs: %v", runs)
	}
}

// While a dream runs, another order is answered with it. A document that the user locks meanwhile stays
// as it is, and so does one that they write.
func TestADreamMeetsWhatTheUserDoesMeanwhile(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	asked, answer := make(chan string), make(chan string)
	h.dreamer = llm.AskerFunc(func(ctx context.Context, p llm.Prompt) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case asked <- p.Text:
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case text := <-answer:
			return text, nil
		}
	})
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	chat := h.newChat()
	character := h.characterOf(chat)
	h.rest("PUT", h.documentsOf(character)+"/user.md", `{"text":"Mine."}`).wants(t, 200)
	h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"Yesterday I bought a red bicycle.","reply":false}`).wants(t, 200)

	first := h.rest("POST", "/characters/"+character+"/dream", `{"force":true}`).wants(t, 202)
	<-asked
	for _, body := range []string{`{}`, `{"force":true}`, `{"dryRun":true}`} {
		if again := h.rest("POST", "/characters/"+character+"/dream", body).wants(t, 202); stringAt(again, "id") != stringAt(first, "id") {
			t.Errorf("%s began another run: %v", body, again)
		}
	}
	if run := h.rest("GET", "/characters/"+character+"/dream/runs", "").items(t)[0]; run["state"] != "running" || run["finishedAt"] != nil {
		t.Errorf("the run: %v", run)
	}
	answer <- `{"notes":[{"text":"User bought a red bicycle.","seqs":[2]}]}`
	const update = `{"updates":[{"path":"user.md","do":"add","text":"User bought a red bicycle.","notes":[1]}]}`
	<-asked // with the lines as they are
	h.rest("PUT", h.documentsOf(character)+"/user.md", `{"text":"Mine.\nMine too."}`).wants(t, 200)
	answer <- update
	if again := <-asked; !strings.Contains(again, "Mine too.") {
		t.Errorf("what the user wrote meanwhile is not in %s", again)
	}
	h.rest("PUT", h.documentsOf(character)+"/user.md", `{"locked":true}`).wants(t, 200)
	answer <- update
	<-asked // a second later, by the next attempt
	answer <- update
	waitFor(p, "the end of the dream", func(frames []*frame) *frame {
		for _, f := range frames {
			if f.Ev == "dream.finished" {
				return f
			}
		}
		return nil
	})
	document := h.rest("GET", h.documentsOf(character)+"/user.md", "").wants(t, 200)
	if got := linesOf(document); len(got) != 2 || document["version"].(float64) != 2 {
		t.Errorf("the lines: %q", got)
	}
}

func TestNothingIsLeftOfADeletedMemoryDocument(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	chat, other := h.newChat(), h.newChat()
	path := h.documentsOf(h.characterOf(chat)) + "/user.md"
	h.rest("PUT", path, `{"text":"Mia keeps a zorbalik."}`, "Idempotency-Key: first").wants(t, 200)
	h.turn(chat, "What is in the barn?", "An animal.")
	h.rest("PUT", path, `{"text":"Mia keeps a quavendo."}`, "Idempotency-Key: second").wants(t, 200)
	h.turn(chat, "And now?", "Another one.")
	sent := h.rest("POST", "/conversations/"+other+"/messages", `{"text":"Hello"}`).wants(t, 200)
	h.rested()
	words := []string{"zorbalik", "quavendo"}
	for _, word := range words {
		h.wantWords(word, "memory_document_versions.lines", "prompts.body")
	}
	h.rest("DELETE", path, "").wants(t, 204)
	h.rest("GET", "/prompts/"+stringAt(sent, "promptId"), "").wants(t, 200) // the prompt of another character
	h.wantGone(clock, words)
}

// An order whose key is repeated begins one run, also when that has ended.
func TestADreamThatIsOrderedTwiceWithOneKeyIsDreamtOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	character := h.newCharacter()
	path := "/characters/" + character + "/dream"
	first := h.rest("POST", path, `{"force":true}`, "Idempotency-Key: k").wants(t, 202)
	p.event("dream.finished", "")
	again := h.rest("POST", path, `{"force":true}`, "Idempotency-Key: k").wants(t, 202)
	if stringAt(again, "id") != stringAt(first, "id") || again["state"] != "done" || len(h.rest("GET", path+"/runs", "").items(t)) != 1 {
		t.Errorf("%v, then %v", first, again)
	}
}
