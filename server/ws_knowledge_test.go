package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/llm"
)

// knowing starts a chat with a character that has a knowledge base of h.user's, or one that
// h.user may read.
func (h *testServer) knowing(base string) (chat string, p *wsClient) {
	h.t.Helper()
	chat = h.newChat()
	c := h.rest("GET", "/conversations/"+chat, "").wants(h.t, 200)
	h.rest("PUT", "/characters/"+stringAt(c, "characterId")+"/knowledge/"+base, "").wants(h.t, 200)
	p, _ = h.connect(map[string]any{"deviceId": "phone"})
	return chat, p
}

func call(id, name, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// results are the results of tools in the newest request, and all its texts.
func (v *scriptedModel) results() (results []string, texts string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.asked[len(v.asked)-1].Messages {
		texts += m.Text + "\n"
		if m.Result != nil {
			results = append(results, m.Result.Text)
		}
	}
	return results, texts
}

// A character with a knowledge base searches it, reads, and cites what it has read. Clients see
// what it does, but no text of the documents besides the quotes.
func TestAReplyCitesTheDocumentsThatItHasRead(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	b := h.newBase("Harbour notes")
	f := h.addFile("harbour.md", harbour, "knowledgeBaseId="+b)["id"].(string)
	h.processed(f)
	chat, p := h.knowing(b)
	h.model.enqueue(&script{pieces: []string{"Let me see. "}, calls: []llm.ToolCall{call("a", "searchKnowledgeBase", `{"query":"Who kept the light?"}`)}})
	h.model.enqueue(&script{calls: []llm.ToolCall{call("b", "readKnowledge", fmt.Sprintf(`{"fileIds":[%q]}`, f))}})
	h.model.enqueue(&script{pieces: []string{"Maren Oduya kept it for twenty years [1]. ", "It has 400 steps [1]."}})
	reply, gen := h.reply(p, chat, "Who kept the light before it was automated?", nil)
	if want := "Maren Oduya kept it for twenty years[^1]. It has 400 steps."; reply["text"] != want {
		t.Errorf("the reply is %q, want %q", reply["text"], want)
	}
	ref := field[[]any](t, p.event("gen.references", gen), "references")[0].(map[string]any)
	if ref["kind"] != "knowledge" || ref["fileId"] != f || ref["title"] != "harbour.md" || !strings.Contains(harbour, ref["exactQuote"].(string)) ||
		ref["url"] != "nodest:file/"+f+"#chunk="+ref["chunkId"].(string) {
		t.Errorf("the reference is %v", ref)
	}
	trace, _ := json.Marshal(reply["tools"])
	if want := fmt.Sprintf(`{"path":"tools","reads":[%q],"rounds":3,"searches":[{"hits":1,"query":"Who kept the light?"}]}`, f); string(trace) != want {
		t.Errorf("the trace is %s, want %s", trace, want)
	}
	var states []string
	for _, fr := range p.all() {
		if fr.Ev == "gen.tool" {
			states = append(states, field[string](t, fr, "tool")+" "+field[string](t, fr, "state"))
			if raw, _ := json.Marshal(dataOf(t, fr)); strings.Contains(string(raw), "Oduya") {
				t.Errorf("an event has text of a document: %s", raw)
			}
		}
	}
	if got := strings.Join(states, ", "); got != "searchKnowledgeBase started, searchKnowledgeBase finished, readKnowledge started, readKnowledge finished" {
		t.Errorf("the events are %s", got)
	}
	results, texts := h.model.results()
	if len(results) != 2 || !strings.Contains(results[0], `<chunk ref="1"`) || !strings.Contains(results[1], "</knowledge_base_files>") {
		t.Errorf("the model got %q", results)
	}
	if !strings.Contains(texts, "<character_knowledge>") || !strings.Contains(texts, `name="Harbour notes"`) {
		t.Errorf("the prompt does not name the knowledge base:\n%s", texts)
	}

	h.reply(p, chat, "Thank you!", nil)
	results, texts = h.model.results()
	if len(results) != 0 || strings.Contains(texts, "[^1]") || strings.Contains(texts, "automated in March") {
		t.Errorf("results or marks are in the next prompt: %q\n%s", results, texts)
	}
}

// A grant that ends while a reply is written ends what its tools can reach.
func TestAGrantThatEndsDuringAReplyEndsItsReading(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	ann := h.newMember("ann")
	var b, f string
	h.as(ann, func() {
		b = h.newBase("Ann's")
		f = h.addFile("harbour.md", harbour, "knowledgeBaseId="+b)["id"].(string)
		h.processed(f)
		h.rest("PUT", "/knowledge-bases/"+b+"/grants/"+h.user.ID, `{"role":"read"}`).wants(t, 200)
	})
	chat, p := h.knowing(b)
	h.model.enqueue(&script{calls: []llm.ToolCall{call("a", "searchKnowledgeBase", `{"query":"lighthouse"}`)}})
	reading := h.model.enqueue(&script{
		pieces: []string{"Hm. "}, gate: make(chan struct{}),
		calls: []llm.ToolCall{call("b", "readKnowledge", fmt.Sprintf(`{"fileIds":[%q]}`, f)), call("c", "searchKnowledgeBase", `{"query":"Maren Oduya's years"}`)},
	})
	h.model.enqueue(&script{pieces: []string{"I cannot say."}})
	gen := field[string](t, p.ok("chat.send", h.newKey(), map[string]any{"conversationId": chat, "text": "Who kept the light?"}), "generationId")
	await(t, reading.requested, "the second request")
	h.as(ann, func() { h.rest("DELETE", "/knowledge-bases/"+b+"/grants/"+h.user.ID, "").wants(t, 204) })
	reading.gate <- struct{}{}
	p.event("gen.done", gen)
	results, _ := h.model.results()
	if len(results) != 3 || !strings.Contains(results[1], `error="not_found"`) || strings.Contains(results[1]+results[2], "Oduya kept") {
		t.Errorf("after the grant had ended the tools answered %q", results)
	}

	h.model.enqueue(&script{pieces: []string{"No."}})
	h.reply(p, chat, "And now?", nil)
	if _, texts := h.model.results(); strings.Contains(texts, "Ann's") {
		t.Error("the next prompt still names the knowledge base")
	}
}

// A citation in a reply outlives its file: title and quote stay, and the reference says that the
// file is gone, for as long as the user may not read it.
func TestAReferenceOutlivesItsFile(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	ann := h.newMember("ann")
	var b, f string
	share := func() { h.rest("PUT", "/knowledge-bases/"+b+"/grants/"+h.user.ID, `{"role":"read"}`).wants(t, 200) }
	h.as(ann, func() {
		b = h.newBase("Ann's")
		f = h.addFile("harbour.md", harbour, "knowledgeBaseId="+b)["id"].(string)
		h.processed(f)
		share()
	})
	chat, p := h.knowing(b)
	h.model.enqueue(&script{pieces: []string{"Maren Oduya kept it for twenty years [1]."}})
	reply, _ := h.reply(p, chat, "Who kept the light before it was automated?", map[string]any{"useToolCalls": false})

	expect := func(when string, gone bool) {
		t.Helper()
		single := h.rest("GET", "/messages/"+stringAt(reply, "id"), "").wants(t, 200)
		page := h.rest("GET", "/conversations/"+chat+"/messages?limit=1", "").items(t)[0]
		command := field[[]any](t, p.ok("chat.history", "", map[string]any{"conversationId": chat, "limit": 1}), "items")[0].(map[string]any)
		for from, m := range map[string]map[string]any{"message": single, "messages": page, "chat.history": command} {
			ref := m["references"].([]any)[0].(map[string]any)
			if (ref["gone"] == true) != gone || ref["title"] != "harbour.md" || !strings.Contains(harbour, ref["exactQuote"].(string)) {
				t.Errorf("%s: in %s the reference is %v", when, from, ref)
			}
		}
		if status := h.rest("GET", "/files/"+f+"/text", "").status; (status == 404) != gone {
			t.Errorf("%s: opening it answers %d", when, status)
		}
	}
	expect("at first", false)
	h.as(ann, func() { h.rest("DELETE", "/knowledge-bases/"+b+"/grants/"+h.user.ID, "").wants(t, 204) })
	expect("after the grant has ended", true)
	h.rest("PATCH", "/messages/"+stringAt(reply, "id"), `{"text":"She kept it for twenty years [^1]."}`).wants(t, 200)
	h.as(ann, share)
	expect("shared again", false)
	h.as(ann, func() { h.rest("DELETE", "/files/"+f, "").wants(t, 204) })
	expect("deleted", true)
}

// A model without tools gets the passages with the message, and small talk gets none.
func TestAModelThatMayNotCallToolsGetsPassages(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	b := h.newBase("Harbour notes")
	h.processed(h.addFile("harbour.md", harbour, "knowledgeBaseId="+b)["id"].(string))
	chat, p := h.knowing(b)
	h.model.enqueue(&script{pieces: []string{"Maren Oduya kept it for twenty years [1]."}})
	reply, _ := h.reply(p, chat, "Who kept the light before it was automated?", map[string]any{"useToolCalls": false})
	if _, texts := h.model.results(); !strings.Contains(texts, "<knowledge>") || !strings.Contains(texts, `ref="1"`) {
		t.Errorf("no passages in\n%s", texts)
	}
	if trace, _ := json.Marshal(reply["tools"]); !strings.Contains(string(trace), `"path":"inject"`) || len(reply["references"].([]any)) != 1 {
		t.Errorf("trace %s, references %v", trace, reply["references"])
	}
	h.model.enqueue(&script{pieces: []string{"Fine."}})
	h.reply(p, chat, "How are you?", map[string]any{"useToolCalls": false})
	if results, _ := h.model.results(); len(results) != 0 || strings.Contains(h.model.last(), "<knowledge>") {
		t.Error("small talk was searched for")
	}
}
