package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/internal/op"
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

// What cannot be placed is reported; the rest of the document is imported.
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
