package server

import (
	"fmt"
	"strings"
	"testing"

	"nodest/internal/op"
	"nodest/llm"
)

// Each wrong request names what is wrong.
func TestTheLogRefusesBadInput(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	log, goals, extractions := "/conversations/"+chat+"/cognition-log", "/conversations/"+chat+"/goals", "/conversations/"+chat+"/extractions"
	h.rest("POST", log+"/import", `{"events":[{"type":"extraction_pending","extraction_id":"pending-1","payload":{"content":"x"}}]}`).wants(t, 200)
	goal := stringAt(h.rest("POST", goals, `{"description":"Find the light."}`).wants(t, 201), "id")
	other := stringAt(h.rest("POST", "/conversations/"+h.newChat()+"/goals", `{"description":"Find the inn."}`).wants(t, 201), "id")
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", log + "/import", `{}`, "events"},
		{"POST", log + "/import", `{"events":"x"}`, "events"},
		{"POST", log + "/import", `{"entries":{"a":1}}`, "entries"},
		{"GET", log + "?type=,", "", "type"},
		{"GET", log + "?after=-1", "", "after"},
		{"GET", log + "?after=x", "", "after"},
		{"GET", log + "?limit=-1", "", "limit"},
		{"GET", log + "?limit=1001", "", "limit"},
		{"POST", goals, `{}`, "description"},
		{"POST", goals, `{"description":"x\u0000"}`, "description"},
		{"POST", goals, `{"description":"x","kind":"dream"}`, "kind"},
		{"POST", goals, `{"description":"x","status":"won"}`, "status"},
		{"GET", goals + "?status=won", "", "status"},
		{"GET", goals + "?limit=201", "", "limit"},
		{"PATCH", "/goals/" + goal, `{"description":""}`, "description"},
		{"PATCH", "/goals/" + goal, `{"status":""}`, "status"},
		{"GET", extractions + "?state=open", "", "state"},
		{"GET", extractions + "?limit=201", "", "limit"},
		{"POST", extractions + "/pending-1/review", `{}`, "decision"},
		{"POST", extractions + "/pending-1/review", `{"decision":"edit"}`, "editedPayload"},
		{"POST", extractions + "/pending-1/review", `{"decision":"edit","editedPayload":null}`, "editedPayload"},
		{"POST", extractions + "/pending-1/review", `{"decision":"edit","editedPayload":[]}`, "editedPayload"},
		{"POST", extractions + "/pending-1/review", `{"decision":"edit","editedPayload":"x"}`, "editedPayload"},
		{"POST", extractions + "/pending-1/review", `{"decision":"edit","editedPayload":{"content":7}}`, "editedPayload"},
		{"POST", extractions + "/pending-1/review", `{"decision":"edit","editedPayload":{"content":"  "}}`, "editedPayload"},
	} {
		t.Run(c.method+" "+c.path[strings.LastIndex(c.path, "/"):]+" "+c.body[:min(len(c.body), 60)], func(t *testing.T) {
			h.rest(c.method, c.path, c.body).refuses(t, 400, "invalid_field", c.field)
		})
	}
	h.rest("POST", goals, `{"description":"`+strings.Repeat("x", 501)+`"}`).refuses(t, 413, "too_large")
	h.rest("POST", goals, `{"description":"x","parentId":"`+other+`"}`).refuses(t, 404, "not_found")
	h.rest("POST", extractions+"/pending-9/review", `{"decision":"approve"}`).refuses(t, 404, "not_found")
	h.rest("PATCH", "/goals/"+goal, `{"status":"completed"}`, `If-Match: "7"`).refuses(t, 412, "precondition_failed")
	many := `{"type":"odd"}` + strings.Repeat(`,{"type":"odd"}`, 10_000)
	h.rest("POST", log+"/import", `{"events":[`+many+`]}`).refuses(t, 413, "too_large")
	if got := h.logOf(chat, ""); len(got) != 1 {
		t.Errorf("the log has %d events", len(got))
	}
}

// A long log is stored in several transactions: the answer counts all of it, a repeated call has the same answer, and a
// repeated import adds what is missing.
func TestALongLogIsImportedOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := "/conversations/" + h.newChat() + "/cognition-log/import"
	document := func(n int) string {
		var events []string
		for i := range n {
			events = append(events, fmt.Sprintf(`{"type":"odd","n":%d}`, i))
		}
		return `{"events":[` + strings.Join(events, ",") + `,7]}`
	}
	wants := func(got map[string]any, added, known float64) {
		t.Helper()
		if got["added"] != added || got["known"] != known || len(got["unplaced"].([]any)) != 1 {
			t.Errorf("%s; want %v added and %v known", op.MustJSON(got), added, known)
		}
	}
	wants(h.rest("POST", path, document(600)).wants(t, 200), 600, 0)
	for range 2 {
		wants(h.rest("POST", path, document(1300), "Idempotency-Key: long").wants(t, 200), 700, 600)
	}
	wants(h.rest("POST", path, document(1300)).wants(t, 200), 0, 1300)
	h.rest("POST", path, document(1200), "Idempotency-Key: long").refuses(t, 422, "key_reused")
}

// Whatever a foreign document has in the places of ids, the log keeps it or reports it.
func TestALogWithStrangeIdsIsImported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	strange := []string{
		`{"type":"a\u0000b","x":"\u0000"}`,
		`{"type":"query","query_id":"\u0000","sequence":1,"query":"q","source_ids":[null],"sources":[{"id":"\u0000"},{"id":7}]}`,
		`{"type":"query","query_id":"` + strings.Repeat("q", 5000) + `","sequence":99999999999999999999}`,
		`{"type":"evaluation","query_sequence":-1,"knowledge_id":"\u0000.1","eval_result":7}`,
		`{"type":"evaluation","query_sequence":1.5,"knowledge_id":"http://","eval_result":{"status":"helpful"}}`,
		`{"type":"extraction_pending","extraction_id":"\u0000\ud800","payload":{"content":"x"}}`,
		`{"type":"extraction_reviewed","extraction_id":{"a":1},"decision":"approve"}`,
		`{"type":"reflection","sequence_range":[9223372036854775807,-1],"summary":7}`,
		`{"type":"reflection","sequence_range":[1,2,3],"consumed_at":{}}`,
	}
	done := h.rest("POST", "/conversations/"+chat+"/cognition-log/import", `{"events":[`+strings.Join(strange, ",")+`]}`).wants(t, 200)
	if n := done["added"].(float64) + float64(len(done["unplaced"].([]any))); n != float64(len(strange)) {
		t.Errorf("%v of %d", done, len(strange))
	}
	if got := h.logOf(chat, ""); float64(len(got)) != done["added"] {
		t.Errorf("the log has %d events: %v", len(got), done)
	}
	h.rest("GET", "/conversations/"+chat+"/extractions", "").wants(t, 200)
	h.rest("POST", "/conversations/"+chat+"/extractions/commit", "").wants(t, 200)
}

// In a foreign log null means that a member is absent; a null in a list is no event.
func TestNullsOfAForeignLogAreAbsent(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	imports := func(document string, added int) []any {
		t.Helper()
		done := h.rest("POST", "/conversations/"+chat+"/cognition-log/import", document).wants(t, 200)
		if done["added"] != float64(added) {
			t.Errorf("%v of %s", done, document)
		}
		return done["unplaced"].([]any)
	}
	imports(`{"trace_id":null,"entries":null,"next_after":null,"events":[
		{"type":"query","sequence":null,"goal_id":null,"query":null,"response":null,"source_ids":null,"sources":null,"query_id":null,"timestamp":null},
		{"type":"evaluation","query_sequence":null,"knowledge_id":null,"eval_result":null,"evaluated_at_trigger":null,"timestamp":7},
		{"type":"extraction_pending","extraction_id":"pending-1","sequence":null,"goal_id":null,"branch_id":null,"payload":null},
		{"type":"extraction_pending","extraction_id":"pending-2","payload":{"content":"The inn is closed.","task":null}},
		{"type":"extraction_reviewed","extraction_id":"pending-2","decision":"approve","edited_payload":null},
		{"type":"reflection","sequence_range":null,"summary":null,"consumed_at":null}]}`, 6)
	imports(`{"events":null,"entries":[{"type":null,"query":"When?","sequence":3,"source_ids":["a"],"eval_result":null,"status":"helpful","evaluated_at":null}]}`, 2)
	if unplaced := imports(`{"events":[null,{"type":"odd"}]}`, 1); len(unplaced) != 1 || unplaced[0].(map[string]any)["index"] != 0.0 {
		t.Errorf("unplaced: %v", unplaced)
	}
	if log := h.logOf(chat, ""); len(log) != 9 || stringAt(log[7].(map[string]any), "eval_result.status") != "helpful" {
		t.Errorf("the log is %s", op.MustJSON(log))
	}
	if items := h.rest("GET", "/conversations/"+chat+"/extractions", "").wants(t, 200)["items"].([]any); len(items) != 2 {
		t.Errorf("extractions: %v", items)
	}
	if report := h.rest("POST", "/conversations/"+chat+"/extractions/commit", "").wants(t, 200); len(report["committed"].([]any)) != 1 {
		t.Errorf("the report is %v", report)
	}
}

// A chat that is deleted while the model judges gets no evaluation, and nobody asks again.
func TestADeletedChatIsNotEvaluated(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.pages(t, map[string]string{"halden-point.test": lighthousePage})
	h.web.search.Answer("", lighthouseResult)
	chat, p := h.searching()
	goal := stringAt(h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"Learn about the light."}`).wants(t, 201), "id")
	h.model.enqueue(&script{pieces: []string{"In March 1987 [1]."}})
	h.reply(p, chat, lighthouseQuestion, nil)
	judging := h.model.enqueue(&script{pieces: []string{`{"evaluations":[]}`}, gate: make(chan struct{})})
	h.rest("PATCH", "/goals/"+goal, `{"status":"completed"}`).wants(t, 200)
	<-judging.requested
	h.rest("DELETE", "/conversations/"+chat, "").wants(t, 204)
	<-judging.ended // it was stopped
	h.rested()
	h.rest("GET", "/conversations/"+chat+"/cognition-log", "").refuses(t, 404, "not_found")
	h.rest("GET", "/conversations/"+chat+"/goals", "").refuses(t, 404, "not_found")
	h.rest("PATCH", "/goals/"+goal, `{"status":"active"}`).refuses(t, 404, "not_found")
	h.rest("GET", "/conversations/"+chat+"/extractions", "").refuses(t, 404, "not_found")
	h.rest("POST", "/conversations/"+chat+"/extractions/commit", "").refuses(t, 404, "not_found")
	h.rest("POST", "/conversations/"+chat+"/cognition-log/import", `{"events":[{"type":"odd"}]}`).refuses(t, 404, "not_found")
	if all := h.rest("GET", "/jobs?state=failed", "").items(t); len(all) != 0 {
		t.Errorf("failed: %v", all)
	}
}

// A document that the model reads without a search was looked up, too, with the user's message as the question; one that a
// search has shown is not looked up again.
func TestDocumentsThatAreReadAreLogged(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	base := h.newBase("Harbour notes")
	file := h.addFile("harbour.md", harbour, "knowledgeBaseId="+base)["id"].(string)
	h.processed(file)
	chat, p := h.knowing(base)
	reads := []llm.ToolCall{call("a", "readKnowledge", fmt.Sprintf(`{"fileIds":[%q]}`, file))}
	h.model.enqueue(&script{calls: reads})
	h.model.enqueue(&script{pieces: []string{"Maren Oduya kept it for twenty years [1]."}})
	h.reply(p, chat, "What is in harbour.md?", nil)
	events := h.logOf(chat, "?type=query")
	if len(events) != 1 || stringAt(events[0].(map[string]any), "query") != "What is in harbour.md?" || !strings.Contains(string(op.MustJSON(events)), file+".") {
		t.Fatalf("the log has %s", op.MustJSON(events))
	}
	h.model.enqueue(&script{calls: []llm.ToolCall{call("a", "searchKnowledgeBase", `{"query":"Who kept the light?"}`)}})
	h.model.enqueue(&script{calls: reads})
	h.model.enqueue(&script{pieces: []string{"She did [1]."}})
	h.reply(p, chat, "Who was it?", nil)
	if events = h.logOf(chat, "?type=query"); len(events) != 2 || stringAt(events[1].(map[string]any), "query") != "Who kept the light?" {
		t.Errorf("the log has %s", op.MustJSON(events))
	}
}
