package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/internal/op"
	"nodest/websearch/provider/providertest"
)

// evaluates puts evaluations of a source into the log of a chat.
func (h *testServer) evaluates(chat, source, status string, times int) {
	h.t.Helper()
	var events []string
	for range times {
		events = append(events, fmt.Sprintf(`{"type":"evaluation","query_sequence":1,"query_id":%q,"knowledge_id":%q,"eval_result":{"status":%q,"reason":"r"},"evaluated_at_trigger":"task_completion"}`,
			op.NewID(), source, status))
	}
	h.rest("POST", "/conversations/"+chat+"/cognition-log/import", `{"events":[`+strings.Join(events, ",")+`]}`).wants(h.t, 200)
}

// Evaluations move a memory up and down; its score says by how much. Those of another user, and of another character, do not.
func TestEvaluationsMoveAMemory(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := h.memoriesOf(chat)
	h.addMemory(path, "The ferry to Skarn sails at nine.", "")
	h.addMemory(path, "The ferry to Skarn sails at noon.", "")
	ranked := func() (ids []string, moved []float64) {
		t.Helper()
		for _, m := range h.rest("GET", path+"?q=When+does+the+ferry+to+Skarn+sail", "").items(t) {
			ids, moved = append(ids, stringAt(m, "id")), append(moved, m["parts"].(map[string]any)["feedback"].(float64))
		}
		if len(ids) != 2 {
			t.Fatalf("%d memories are found", len(ids))
		}
		return ids, moved
	}
	before, moved := ranked()
	if moved[0] != 0 || moved[1] != 0 {
		t.Errorf("nothing was evaluated: %v", moved)
	}
	h.as(h.newMember("stranger"), func() {
		theirs := stringAt(h.rest("POST", "/conversations", `{"characterId":"`+h.newCharacter()+`"}`).wants(t, 201), "id")
		h.evaluates(theirs, before[0], "harmful", 3)
	})
	h.evaluates(h.newChat(), before[0], "harmful", 3) // with another character
	if after, moved := ranked(); !slices.Equal(after, before) || moved[0] != 0 {
		t.Errorf("others moved it: %v", moved)
	}
	h.evaluates(chat, before[0], "harmful", 3)
	h.evaluates(chat, before[1], "unused", 3)
	if after, moved := ranked(); after[0] != before[1] || moved[0] != 0 || moved[1] >= 0 {
		t.Errorf("after a harmful one: %v, %v", after, moved)
	}
	h.evaluates(chat, before[0], "helpful", 20)
	if after, moved := ranked(); after[0] != before[0] || moved[0] <= 0 {
		t.Errorf("after helpful ones: %v, %v", after, moved)
	}
	_, reply := h.turn(chat, "When does the ferry to Skarn sail?", "At nine.")
	used := h.rest("GET", "/messages/"+reply+"/memories", "").wants(t, 200)["items"].([]any)
	if len(used) == 0 || !strings.Contains(string(op.MustJSON(used[0])), `"feedback":0.`) {
		t.Errorf("the reply does not tell why: %s", op.MustJSON(used))
	}
	h.rest("DELETE", "/conversations/"+chat, "").wants(t, 204)
	if after, moved := ranked(); !slices.Equal(after, before) || moved[0] != 0 {
		t.Errorf("with the chat its evaluations are gone: %v", moved)
	}
}

// Evaluations move a chunk of a document, and those of a whole file each of its chunks.
func TestEvaluationsMoveDocuments(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	base := h.newBase("Ferries")
	for _, hour := range []string{"nine", "noon"} {
		h.processed(h.addFile(hour+".md", "The ferry to Skarn sails at "+hour+".", "knowledgeBaseId="+base)["id"].(string))
	}
	chat := h.newChat()
	ranked := func() (ids, files []string, factors []float64) {
		t.Helper()
		found := h.rest("POST", "/knowledge-bases/search", `{"query":"When does the ferry to Skarn sail?","knowledgeBaseIds":["`+base+`"]}`).wants(t, 200)
		for _, c := range found["chunks"].([]any) {
			c := c.(map[string]any)
			ids, files, factors = append(ids, stringAt(c, "id")), append(files, stringAt(c, "fileId")), append(factors, c["factor"].(float64))
		}
		if len(ids) != 2 {
			t.Fatalf("%d chunks are found", len(ids))
		}
		return ids, files, factors
	}
	before, files, factors := ranked()
	if factors[0] != 1 || factors[1] != 1 {
		t.Errorf("nothing was evaluated: %v", factors)
	}
	h.as(h.newMember("stranger"), func() {
		theirs := stringAt(h.rest("POST", "/conversations", `{"characterId":"`+h.newCharacter()+`"}`).wants(t, 201), "id")
		h.evaluates(theirs, before[0], "harmful", 3)
	})
	if after, _, factors := ranked(); !slices.Equal(after, before) || factors[0] != 1 {
		t.Errorf("a stranger moved them: %v", factors)
	}
	h.evaluates(chat, before[0], "harmful", 3)
	h.evaluates(chat, before[1], "helpful", 3)
	if after, _, factors := ranked(); after[0] != before[1] || factors[0] <= 1 || factors[1] >= 1 {
		t.Errorf("after evaluations of chunks: %v, %v", after, factors)
	}
	h.evaluates(chat, files[0], "helpful", 20)
	h.evaluates(chat, files[1], "harmful", 20)
	if after, _, factors := ranked(); after[0] != before[0] || factors[0] <= 1 || factors[1] >= 1 {
		t.Errorf("after evaluations of files: %v, %v", after, factors)
	}
}

// Evaluations of pages in a side branch move their hosts in the searches of later replies, which tell so.
func TestEvaluationsMoveHosts(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.pages(t, map[string]string{"one.test": lighthousePage, "two.test": `<!DOCTYPE html><html lang="en"><head><title>Keepers of Halden Point</title></head><body><article>
		<h1>Keepers of Halden Point</h1><p>Since 1868 eleven keepers have lived at the Halden Point lighthouse, most of them with their families and a cow.</p>
		<p>Its last keeper, Ida Molvig, left when the lighthouse was automated in March 1987, and gave the log books to the village library.</p></article></body></html>`})
	h.web.search.Answer("", providertest.Result{Title: "Halden Point Lighthouse", URL: "http://one.test/history", Content: "The lighthouse was first lit in 1868."},
		providertest.Result{Title: "Halden Point Lighthouse", URL: "http://two.test/history", Content: "The lighthouse was first lit in 1868."})
	type page struct {
		url    string
		factor any // nil = it was not moved
	}
	ask := func(p *wsClient, chat string) (pages []page) {
		t.Helper()
		h.model.enqueue(&script{pieces: []string{"In March 1987 [1]."}})
		_, gen := h.reply(p, chat, lighthouseQuestion, nil)
		for _, search := range dataOf(t, p.event("gen.context", gen))["search"].([]any) {
			for _, one := range search.(map[string]any)["pages"].([]any) {
				one := one.(map[string]any)
				pages = append(pages, page{stringAt(one, "url"), one["factor"]})
			}
		}
		if len(pages) != 2 {
			t.Fatalf("the pages are %v", pages)
		}
		return pages
	}
	judges := func(chat, worse, better string) {
		t.Helper()
		goal := stringAt(h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"Learn about the light."}`).wants(t, 201), "id")
		var verdicts []string
		for _, q := range h.logOf(chat, "?type=query") {
			verdicts = append(verdicts, fmt.Sprintf(`{"query_sequence":%v,"assessments":[{"source_id":%q,"status":"harmful","reason":"r"},{"source_id":%q,"status":"helpful","reason":"r"}]}`,
				q.(map[string]any)["sequence"], worse, better))
		}
		known := len(h.logOf(chat, "?type=evaluation"))
		h.model.enqueue(&script{pieces: []string{`{"evaluations":[` + strings.Join(verdicts, ",") + `]}`}})
		h.rest("PATCH", "/goals/"+goal, `{"status":"completed"}`).wants(t, 200)
		eventually(t, "the pages are judged", func() bool { return len(h.logOf(chat, "?type=evaluation")) == known+2 })
	}
	chat, p := h.searching()
	before := ask(p, chat)
	if before[0].factor != nil || before[1].factor != nil {
		t.Errorf("nothing was evaluated: %v", before)
	}
	judges(chat, before[0].url, before[1].url)
	after := ask(p, chat)
	if after[0].url != before[1].url || after[0].factor.(float64) <= 1 || after[1].factor.(float64) >= 1 {
		t.Errorf("the pages were %v, and are %v", before, after)
	}
	h.as(h.newMember("stranger"), func() {
		theirs := stringAt(h.rest("POST", "/conversations", `{"characterId":"`+h.newCharacter()+`"}`).wants(t, 201), "id")
		h.rest("PATCH", "/conversations/"+theirs, `{"settings":{"searchEnabled":true}}`).wants(t, 200)
		q, _ := h.connect(map[string]any{"deviceId": "laptop"})
		if got := ask(q, theirs); !slices.Equal(got, before) {
			t.Errorf("a stranger gets %v, want %v", got, before)
		}
	})
	for range 3 {
		judges(chat, before[1].url, before[0].url)
		after = ask(p, chat)
	}
	if after[0].url != before[0].url || after[0].factor.(float64) <= 1 || after[1].factor.(float64) >= 1 {
		t.Errorf("the pages are %v", after)
	}
}
