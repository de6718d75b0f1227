package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/internal/op"
	"nodest/llm"
)

// seedLog is a log in the format, with an event of each type, one of an unknown type, and unknown members.
const seedLog = `{"trace_id":"trace-xxx","events":[
	{"type":"query","sequence":42,"goal_id":"1","query":"Where is the harbour?","response":"In the north.","source_ids":["knowledge-a1b2","knowledge-c3d4"],
		"sources":[{"id":"knowledge-a1b2","task":"t","content":"c <b>"},{"id":"knowledge-c3d4","task":"","content":""}],"timestamp":"2026-03-20T10:00:00"},
	{"type":"evaluation","query_sequence":42,"knowledge_id":"knowledge-a1b2","eval_result":{"status":"helpful","reason":"r"},"evaluated_at_trigger":"goal_completion","timestamp":"2026-03-20T10:05:00"},
	{"type":"extraction_pending","extraction_id":"pending-a1b2c3d4","sequence":88,"goal_id":"g1","branch_id":"b","payload":{"task":"t","content":"c","types":["tool"],"mine":{"x":1}},"timestamp":"2026-03-20T10:10:00"},
	{"type":"extraction_reviewed","extraction_id":"pending-a1b2c3d4","decision":"approve","timestamp":"2026-04-15T14:00:00"},
	{"type":"extraction_committed","extraction_id":"pending-a1b2c3d4","knowledge_id":"knowledge-new-1","timestamp":"2026-04-15T14:05:00"},
	{"type":"reflection","sequence_range":[43,120],"summary":"s","consumed_at":"2026-04-07T20:05:00","timestamp":"2026-04-07T20:00:00"},
	{"type":"odd","mine":[1,2]}
]}`

// logOf is the log of a conversation, with what narrows it.
func (h *testServer) logOf(chat, query string) []any {
	h.t.Helper()
	d := h.rest("GET", "/conversations/"+chat+"/cognition-log"+query, "").wants(h.t, 200)
	if d["trace_id"] != chat {
		h.t.Errorf("the trace is %v", d["trace_id"])
	}
	return d["events"].([]any)
}

// A log that was imported is read back member for member, also in parts and by type. Importing it again adds nothing.
func TestALogIsReadBackAsItWasImported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := "/conversations/" + chat + "/cognition-log"
	if got := h.logOf(chat, ""); len(got) != 0 {
		t.Fatalf("a new chat has %v", got)
	}
	for i, want := range []string{`{"added":7,"known":0,"unplaced":[]}`, `{"added":0,"known":7,"unplaced":[]}`} {
		if got := h.rest("POST", path+"/import", seedLog); got.wants(t, 200) == nil || strings.TrimSpace(string(got.body)) != want {
			t.Errorf("import %d: %s", i, got.body)
		}
	}
	var want struct{ Events []any }
	h.must(json.Unmarshal([]byte(seedLog), &want))
	if got := h.logOf(chat, ""); string(op.MustJSON(got)) != string(op.MustJSON(want.Events)) {
		t.Errorf("the log is\n%s\nwant\n%s", op.MustJSON(got), op.MustJSON(want.Events))
	}
	if got := h.logOf(chat, "?type=odd,reflection"); len(got) != 2 || got[1].(map[string]any)["type"] != "odd" {
		t.Errorf("two types: %v", got)
	}
	first := h.rest("GET", path+"?limit=4", "").wants(t, 200)
	rest := h.logOf(chat, fmt.Sprintf("?after=%v", first["next_after"]))
	if len(first["events"].([]any)) != 4 || len(rest) != 3 || rest[0].(map[string]any)["type"] != "extraction_committed" {
		t.Errorf("in parts: %v, %v", first, rest)
	}
	whole := h.rest("GET", path, "").body
	if again := h.rest("POST", path+"/import", string(whole)).wants(t, 200); again["added"] != 0.0 || again["known"] != 7.0 {
		t.Errorf("an export imported: %v", again)
	}
}

// An entry that cannot be placed is reported; the rest of the document is imported.
func TestAnOldLogIsImported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := "/conversations/" + chat + "/cognition-log"
	old := `{"entries":[{"sequence":3,"query":"ferry","source_ids":["a"],"eval_result":{"status":"unused","reason":"x"}},{"note":1},"x"]}`
	got := h.rest("POST", path+"/import", old).wants(t, 200)
	if got["added"] != 2.0 || len(got["unplaced"].([]any)) != 2 || !strings.Contains(fmt.Sprint(got["unplaced"]), "index:1 reason:neither a type nor a query") {
		t.Errorf("imported: %v", got)
	}
	events := h.logOf(chat, "?type=evaluation")
	if len(events) != 1 || stringAt(events[0].(map[string]any), "eval_result.status") != "unused" {
		t.Errorf("evaluations: %v", events)
	}
	if _, dated := events[0].(map[string]any)["timestamp"]; dated {
		t.Error("a time was made up")
	}
	h.rest("POST", path+"/import", `{}`).refuses(t, 400, "invalid_field", "events")
	h.rest("POST", path+"/import", `{"events":{}}`).refuses(t, 400, "invalid_field", "events")
	h.rest("GET", path+"?type=query,", "").refuses(t, 400, "invalid_field", "type")
	h.rest("GET", path+"?limit=2000", "").refuses(t, 400, "invalid_field", "limit")
	h.rest("GET", "/conversations/"+h.newCharacter()+"/cognition-log", "").refuses(t, 404, "not_found")
}

// A search of documents that the model asks for, and one of the web before the request, are a query each, in the
// transaction of the reply. The response is the reply, and goes when its message is deleted for good.
func TestWhatIsLookedUpForAReplyIsLogged(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	base := h.newBase("Harbour notes")
	file := h.addFile("harbour.md", harbour, "knowledgeBaseId="+base)["id"].(string)
	h.processed(file)
	h.web.pages(t, map[string]string{"halden-point.test": lighthousePage})
	h.web.search.Answer("", lighthouseResult)
	chat, p := h.knowing(base)
	h.rest("PATCH", "/conversations/"+chat, `{"settings":{"searchEnabled":true}}`).wants(t, 200)
	h.model.enqueue(&script{calls: []llm.ToolCall{call("a", "searchKnowledgeBase", `{"query":"Who kept the light?"}`)}})
	h.model.enqueue(&script{pieces: []string{"In March 1987, after Maren Oduya the zorbalik."}})
	reply, _ := h.reply(p, chat, lighthouseQuestion, nil)

	events := h.logOf(chat, "")
	if len(events) != 2 {
		t.Fatalf("the log has %s", op.MustJSON(events))
	}
	web, documents := events[0].(map[string]any), events[1].(map[string]any)
	for _, q := range []map[string]any{web, documents} {
		if q["type"] != "query" || q["sequence"] != reply["seq"] || q["response"] != reply["text"] || q["goal_id"] != nil || q["query_id"] == "" || q["timestamp"] == "" {
			t.Errorf("the query is %s", op.MustJSON(q))
		}
	}
	page := web["sources"].([]any)[0].(map[string]any)
	if page["id"] != "http://halden-point.test/history" || page["task"] != "Halden Point Lighthouse: a short history" || !strings.Contains(stringAt(page, "content"), "1987") || len([]rune(stringAt(page, "content"))) > 500 {
		t.Errorf("the page is %s", op.MustJSON(page))
	}
	chunk := documents["sources"].([]any)[0].(map[string]any)
	if documents["query"] != "Who kept the light?" || !strings.HasPrefix(stringAt(chunk, "id"), file+".") || !strings.Contains(harbour, stringAt(chunk, "content")) ||
		documents["source_ids"].([]any)[0] != chunk["id"] {
		t.Errorf("the documents are %s", op.MustJSON(documents))
	}
	h.rest("DELETE", "/files/"+file, "").wants(t, 204)
	h.rested()
	if left := string(op.MustJSON(h.logOf(chat, ""))); strings.Contains(left, "Maren Oduya kept") || !strings.Contains(left, file) {
		t.Errorf("after the document was deleted: %s", left)
	}
	h.rest("DELETE", "/messages/"+reply["id"].(string), "").wants(t, 200)
	clock.leap(31 * 24 * time.Hour)
	h.maintain()
	if left := h.logOf(chat, ""); len(left) != 0 {
		t.Errorf("after the message was deleted for good: %s", op.MustJSON(left))
	}
}

// An answer from documents that a client asks for belongs to its conversation, at its newest message. The answer goes when
// the document is deleted.
func TestAnAnswerFromDocumentsIsLoggedInItsChat(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	base := h.newBase("Harbour notes")
	file := h.addFile("harbour.md", harbour, "knowledgeBaseId="+base)["id"].(string)
	h.processed(file)
	chat := h.newChat()
	h.turn(chat, "Hello", "Ahoy.")
	messages := h.rest("GET", "/conversations/"+chat+"/messages", "").wants(t, 200)["items"].([]any)
	for _, of := range []string{`,"conversationId":"` + chat + `"`, ""} {
		h.model.enqueue(&script{pieces: []string{"Maren Oduya kept it [1]."}})
		h.rest("POST", "/knowledge/ask", `{"question":"Who kept the light?","knowledgeBaseIds":["`+base+`"]`+of+`}`).wants(t, 200)
	}
	events := h.logOf(chat, "")
	if len(events) != 1 {
		t.Fatalf("the log has %s", op.MustJSON(events))
	}
	q := events[0].(map[string]any)
	if q["type"] != "query" || q["query"] != "Who kept the light?" || !strings.HasPrefix(stringAt(q, "response"), "Maren Oduya kept it") ||
		q["sequence"] != messages[len(messages)-1].(map[string]any)["seq"] || !strings.HasPrefix(q["source_ids"].([]any)[0].(string), file+".") {
		t.Errorf("the query is %s", op.MustJSON(q))
	}
	h.rest("DELETE", "/files/"+file, "").wants(t, 204)
	h.rested()
	if left := string(op.MustJSON(h.logOf(chat, ""))); strings.Contains(left, "Maren Oduya") || !strings.Contains(left, file) {
		t.Errorf("after the document was deleted: %s", left)
	}
}

// Recalled memories are logged as a query only if the character's settings say so, and a turn without a search never is.
func TestMemoriesAreLoggedOnlyIfTheSettingsSaySo(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	fact := h.addMemory(h.memoriesOf(chat), "Mia keeps a zorbalik in the barn.", "")
	h.turn(chat, "What does Mia keep in the barn?", "A zorbalik.")
	if got := h.logOf(chat, ""); len(got) != 0 {
		t.Errorf("the log has %v", got)
	}
	h.rest("PUT", "/characters/"+h.characterOf(chat)+"/settings", `{"cognition":{"logMemoryQueries":true}}`).wants(t, 200)
	other := h.newChatWith(h.characterOf(chat))
	h.turn(other, "What does Mia keep in the barn?", "A zorbalik, of course.")
	events := h.logOf(other, "?type=query")
	if len(events) != 1 || !strings.Contains(string(op.MustJSON(events)), fact) || stringAt(events[0].(map[string]any), "response") != "A zorbalik, of course." {
		t.Fatalf("the log has %s", op.MustJSON(events))
	}
	h.rest("DELETE", h.memoriesOf(chat)+"/"+fact+"?purge=true", "").wants(t, 204)
	if left := string(op.MustJSON(h.logOf(other, ""))); strings.Contains(left, "Mia keeps a zorbalik in") {
		t.Errorf("after the memory was purged: %s", left)
	}
}

// When a goal ends, what was looked up is evaluated source by source, once, with the trigger; the model sees the conversation and
// the parts of the instruction, and nothing of it becomes a message.
func TestAnEndedGoalHasWhatWasLookedUpEvaluated(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.pages(t, map[string]string{"halden-point.test": lighthousePage})
	h.web.search.Answer("", lighthouseResult)
	chat, p := h.searching()
	goal := stringAt(h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"Learn about the light."}`).wants(t, 201), "id")
	h.model.enqueue(&script{pieces: []string{"In March 1987 [1]."}})
	h.reply(p, chat, lighthouseQuestion, nil)
	query := h.logOf(chat, "?type=query")[0].(map[string]any)
	if query["goal_id"] != goal {
		t.Errorf("the goal of the query is %v, want %s", query["goal_id"], goal)
	}
	messages := len(h.texts(chat))
	verdict := fmt.Sprintf(`{"query_sequence":%v,"assessments":[{"knowledge_id":"http://halden-point.test/history","eval_status":"helpful","reason":"It has the year."},
		{"source_id":"http://other.test/","status":"helpful"},{"source_id":"http://halden-point.test/history","status":"splendid"}]}`, query["sequence"])
	h.model.enqueue(&script{pieces: []string{"Here it is:\n```json\n{\"evaluations\":[" + verdict + "]}\n```"}})
	h.rest("PATCH", "/goals/"+goal, `{"status":"completed"}`).wants(t, 200)
	eventually(t, "the query is evaluated", func() bool { return len(h.logOf(chat, "?type=evaluation")) > 0 })
	e := h.logOf(chat, "?type=evaluation")
	one := e[0].(map[string]any)
	if len(e) != 1 || one["query_sequence"] != query["sequence"] || one["query_id"] != query["query_id"] || one["knowledge_id"] != "http://halden-point.test/history" ||
		stringAt(one, "eval_result.status") != "helpful" || one["evaluated_at_trigger"] != "goal_completion" {
		t.Errorf("evaluations: %s", op.MustJSON(e))
	}
	_, texts := h.model.results()
	at := 0
	for _, part := range []string{lighthouseQuestion, "You assess knowledge", "Current task", "Current goal", "Query ", "halden-point.test/history", "source by source", "## Statuses", `{"evaluations"`} {
		i := strings.Index(texts[at:], part)
		if i < 0 {
			t.Fatalf("%q is not in its place in\n%s", part, texts)
		}
		at += i
	}
	if n := len(h.texts(chat)); n != messages {
		t.Errorf("%d messages, were %d", n, messages)
	}
	h.rest("PATCH", "/goals/"+goal, `{"status":"active"}`).wants(t, 200)
	h.rest("PATCH", "/goals/"+goal, `{"status":"abandoned"}`).wants(t, 200)
	h.rested()
	if again := h.logOf(chat, "?type=evaluation"); len(again) != 1 {
		t.Errorf("evaluated again: %s", op.MustJSON(again))
	}
	h.rest("POST", "/conversations/"+chat+"/goals", `{"description":" "}`).refuses(t, 400, "invalid_field", "description")
	h.rest("PATCH", "/goals/"+goal, `{"status":"won"}`).refuses(t, 400, "invalid_field", "status")
}

// An extraction is reviewed as often as the user likes, the latest decision counts, and a commit makes one memory of it.
func TestAReviewedExtractionBecomesOneMemory(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := "/conversations/" + chat + "/extractions"
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	h.rest("POST", "/conversations/"+chat+"/cognition-log/import", `{"events":[
		{"type":"extraction_pending","extraction_id":"pending-1","sequence":1,"payload":{"content":"The ferry sails at nine.","mine":1}},
		{"type":"extraction_pending","extraction_id":"pending-2","sequence":1,"payload":{"content":"The inn is closed."}},
		{"type":"extraction_pending","extraction_id":"pending-3","sequence":1,"payload":{"task":"empty"}}]}`).wants(t, 200)
	states := func() (all []string) {
		t.Helper()
		for _, x := range h.rest("GET", path, "").wants(t, 200)["items"].([]any) {
			all = append(all, stringAt(x.(map[string]any), "state"))
		}
		return all
	}
	h.rest("POST", path+"/pending-1/review", `{"decision":"edit"}`).refuses(t, 400, "invalid_field", "editedPayload")
	h.rest("POST", path+"/pending-1/review", `{"decision":"edit","editedPayload":{"content":""}}`).refuses(t, 400, "invalid_field", "editedPayload")
	h.rest("POST", path+"/pending-1/review", `{"decision":"maybe"}`).refuses(t, 400, "invalid_field", "decision")
	h.rest("POST", path+"/pending-9/review", `{"decision":"approve"}`).refuses(t, 404, "not_found")
	h.rest("POST", path+"/pending-1/review", `{"decision":"discard"}`).wants(t, 200)
	edited := h.rest("POST", path+"/pending-1/review", `{"decision":"edit","editedPayload":{"content":"The ferry sails at ten."}}`).wants(t, 200)
	if stringAt(edited, "payload.content") != "The ferry sails at ten." || stringAt(edited, "proposed.content") != "The ferry sails at nine." {
		t.Errorf("edited: %v", edited)
	}
	h.rest("POST", path+"/pending-2/review", `{"decision":"approve"}`).wants(t, 200)
	alias := h.rest("POST", "/api/traces/"+chat+"/extractions/pending-2/review", `{"decision":"edit","edited_payload":{"content":"The inn is open."}}`).wants(t, 200)
	if stringAt(alias, "payload.content") != "The inn is open." || stringAt(alias, "proposed.content") != "The inn is closed." {
		t.Errorf("by the other path: %v", alias)
	}
	h.rest("POST", path+"/pending-2/review", `{"decision":"discard"}`).wants(t, 200)
	if got := fmt.Sprint(states()); got != "[approved discarded pending]" {
		t.Errorf("states: %s", got)
	}
	report := h.rest("POST", path+"/commit", "").wants(t, 200)
	done := report["committed"].([]any)
	if len(done) != 1 || len(report["failed"].([]any)) != 0 || fmt.Sprint(report["skipped"]) != "[pending-2 pending-3]" {
		t.Fatalf("the report is %s", op.MustJSON(report))
	}
	memories := h.rest("GET", h.memoriesOf(chat), "").items(t)
	if len(memories) != 1 || memories[0]["id"] != stringAt(done[0].(map[string]any), "knowledge_id") || memories[0]["text"] != "The ferry sails at ten." || memories[0]["origin"] != "extraction" {
		t.Errorf("memories: %v", memories)
	}
	if again := h.rest("POST", path+"/commit", "").wants(t, 200); len(again["committed"].([]any)) != 0 || len(h.rest("GET", h.memoriesOf(chat), "").items(t)) != 1 {
		t.Errorf("again: %v", again)
	}
	h.rest("POST", path+"/pending-1/review", `{"decision":"approve"}`).refuses(t, 409, "conflict")
	p.event("extraction.reviewed", "")
	p.event("extraction.committed", "")
	if n := len(h.logOf(chat, "?type=extraction_committed")); n != 1 {
		t.Errorf("%d commits", n)
	}
}

// Only what can be a memory is approved; what an imported log approves nevertheless fails with a code.
func TestWhatCannotBeAMemoryIsNotApproved(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := "/conversations/" + chat + "/extractions"
	long := strings.Repeat("茶", 2001)
	h.rest("POST", "/conversations/"+chat+"/cognition-log/import", `{"events":[
		{"type":"extraction_pending","extraction_id":"pending-1","sequence":1,"payload":{"task":"empty"}},
		{"type":"extraction_pending","extraction_id":"pending-2","sequence":1,"payload":{"content":"`+long+`"}},
		{"type":"extraction_pending","extraction_id":"pending-3","sequence":1,"payload":{"content":"The inn is closed."}},
		{"type":"extraction_pending","extraction_id":"pending-4","sequence":1},
		{"type":"extraction_reviewed","extraction_id":"pending-4","decision":"approve"}]}`).wants(t, 200)
	for _, id := range []string{"pending-1", "pending-2", "pending-4"} {
		h.rest("POST", path+"/"+id+"/review", `{"decision":"approve"}`).refuses(t, 409, "conflict")
	}
	for _, content := range []string{long, "", " ", "\u200b"} {
		h.rest("POST", path+"/pending-3/review", `{"decision":"edit","editedPayload":{"content":"`+content+`"}}`).refuses(t, 400, "invalid_field", "editedPayload")
	}
	h.rest("POST", path+"/pending-1/review", `{"decision":"edit","editedPayload":{"content":"The ferry sails at ten."}}`).wants(t, 200)
	h.rest("POST", path+"/pending-1/review", `{"decision":"approve"}`).refuses(t, 409, "conflict")
	report := h.rest("POST", path+"/commit", "").wants(t, 200)
	failed := report["failed"].([]any)
	if len(failed) != 1 || stringAt(failed[0].(map[string]any), "code") != "conflict" || stringAt(failed[0].(map[string]any), "extraction_id") != "pending-4" {
		t.Errorf("failed: %v", failed)
	}
	if done := report["committed"].([]any); len(done) != 1 || fmt.Sprint(report["skipped"]) != "[pending-2 pending-3]" {
		t.Errorf("the report is %s", op.MustJSON(report))
	}
}

// With the setting, knowledge is proposed before a summary, which the owner's devices hear of; nothing of it is a message.
func TestKnowledgeIsProposedBeforeASummary(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	h.rest("PUT", "/characters/"+h.characterOf(chat)+"/settings", `{"cognition":{"extract":true}}`).wants(t, 200)
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	for range 6 {
		h.turn(chat, "When does the ferry sail?", "At nine.")
	}
	messages := len(h.texts(chat))
	h.model.enqueue(&script{pieces: []string{"好的：\n```json\n{\"extractions\":[{\"content\":\"The ferry sails at nine.\"}]}\n```"}})
	h.rest("POST", "/conversations/"+chat+"/summaries?wait=1", "").wants(t, 201)
	told := p.event("extraction.pending", "")
	items := h.rest("GET", "/conversations/"+chat+"/extractions?state=pending", "").items(t)
	if len(items) != 1 || stringAt(items[0], "payload.content") != "The ferry sails at nine." || !strings.Contains(string(told.Data), stringAt(items[0], "extraction_id")) || strings.Contains(string(told.Data), "ferry") {
		t.Fatalf("proposed: %v; told: %s", items, told.Data)
	}
	if _, texts := h.model.results(); !strings.Contains(texts, "You keep what a conversation has taught") {
		t.Errorf("the model saw %s", texts)
	}
	if n := len(h.texts(chat)); n != messages {
		t.Errorf("%d messages, were %d", n, messages)
	}
}
