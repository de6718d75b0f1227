package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/internal/op"
	"nodest/llm"
)

// member is a member of an event of the format: its name, and a value of its type.
type member struct {
	name string
	like any // nil = anything
}

// formats are the members of the events in the order of the format; "timestamp" is the last one.
var formats = map[string][]member{
	"query": {{"type", ""}, {"sequence", 0.0}, {"goal_id", ""}, {"query", ""}, {"response", ""}, {"source_ids", []any{}}, {"sources", []any{}}, {"timestamp", ""}},
	"evaluation": {
		{"type", ""}, {"query_sequence", 0.0}, {"knowledge_id", ""}, {"eval_result", map[string]any{}}, {"evaluated_at_trigger", ""}, {"timestamp", ""},
	},
	"extraction_pending": {
		{"type", ""}, {"extraction_id", ""}, {"sequence", 0.0}, {"goal_id", ""}, {"branch_id", ""}, {"payload", map[string]any{}}, {"timestamp", ""},
	},
	"extraction_reviewed":  {{"type", ""}, {"extraction_id", ""}, {"decision", ""}, {"timestamp", ""}},
	"extraction_committed": {{"type", ""}, {"extraction_id", ""}, {"knowledge_id", ""}, {"timestamp", ""}},
	"reflection":           {{"type", ""}, {"sequence_range", []any{}}, {"summary", ""}, {"timestamp", ""}},

	"source":      {{"id", ""}, {"task", ""}, {"content", ""}},
	"eval_result": {{"status", ""}, {"reason", ""}},
	"payload": {
		{"task", ""}, {"content", ""}, {"types", []any{}}, {"tags", map[string]any{}}, {"score", 0.0}, {"scopes", nil}, {"owner", nil}, {"resource_ids", []any{}},
		{"source_name", ""}, {"source_category", ""}, {"urls", []any{}}, {"agent_id", ""}, {"submitted_by", ""}, {"capability_ids", []any{}}, {"tool_ids", []any{}},
	},
}

// additions are the members that we add to the format.
var additions = []string{"query_id", "edited_payload", "consumed_at", "notes"}

// hasFormat compares the members of an object with a format: each is there, has its type and its place.
func hasFormat(t *testing.T, format string, object json.RawMessage) map[string]any {
	t.Helper()
	var names []string
	d := json.NewDecoder(bytes.NewReader(object))
	_, err := d.Token()
	for err == nil && d.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = d.Token(); err == nil {
			names, err = append(names, fmt.Sprint(name)), d.Decode(&value)
		}
	}
	var values map[string]any
	if err != nil || json.Unmarshal(object, &values) != nil {
		t.Fatalf("no object: %s", object)
	}
	var want []string
	for _, m := range formats[format] {
		want = append(want, m.name)
		if m.like != nil && fmt.Sprintf("%T", values[m.name]) != fmt.Sprintf("%T", m.like) {
			t.Errorf("%s of %s", m.name, object)
		}
	}
	if got := slices.DeleteFunc(names, func(n string) bool { return slices.Contains(additions, n) }); !slices.Equal(got, want) {
		t.Errorf("a %s has the members %v, want %v", format, got, want)
	}
	return values
}

// wantFormat compares the events of a log with the format, field by field, and returns how many there are of each type.
func wantFormat(t *testing.T, events []json.RawMessage, since time.Time) map[string]int {
	t.Helper()
	counts, last := map[string]int{}, since
	for _, raw := range events {
		var e struct {
			Type       string
			Timestamp  time.Time
			Sources    []json.RawMessage
			SourceIDs  []string        `json:"source_ids"`
			EvalResult json.RawMessage `json:"eval_result"`
			Payload    json.RawMessage
			ConsumedAt *time.Time `json:"consumed_at"`
		}
		if err := json.Unmarshal(raw, &e); err != nil || formats[e.Type] == nil {
			t.Fatalf("%s: %v", raw, err)
		}
		hasFormat(t, e.Type, raw)
		if counts[e.Type]++; e.Timestamp.Before(last) || e.Timestamp.After(time.Now().Add(time.Minute)) {
			t.Errorf("the time of %s is before %s", raw, last)
		}
		last = e.Timestamp
		var ids []string
		for _, s := range e.Sources {
			ids = append(ids, stringAt(hasFormat(t, "source", s), "id"))
		}
		if !slices.Equal(ids, e.SourceIDs) {
			t.Errorf("source_ids are %v, want %v", e.SourceIDs, ids)
		}
		switch e.Type {
		case "evaluation":
			hasFormat(t, "eval_result", e.EvalResult)
		case "extraction_pending":
			hasFormat(t, "payload", e.Payload)
		case "reflection":
			if e.ConsumedAt == nil || e.ConsumedAt.Before(e.Timestamp) {
				t.Errorf("it was not consumed: %s", raw)
			}
		}
	}
	return counts
}

// rawLog is the log of a conversation as it is exported, and its events.
func (h *testServer) rawLog(chat string) (document string, events []json.RawMessage) {
	h.t.Helper()
	a := h.rest("GET", "/conversations/"+chat+"/cognition-log", "")
	a.wants(h.t, 200)
	var d struct {
		TraceID string `json:"trace_id"`
		Events  []json.RawMessage
	}
	if h.must(json.Unmarshal(a.body, &d)); d.TraceID != chat {
		h.t.Errorf("the trace is %s", d.TraceID)
	}
	return string(a.body), d.Events
}

// One conversation passes through everything: it looks things up on the web and in documents, the end of a goal has that
// evaluated and knowledge proposed, the user reviews it, a commit keeps it, and a dream reflects on the conversation. The
// log has the format, and survives an export and an import, also as a file of the older kind.
func TestAConversationPassesThroughTheWholeLog(t *testing.T) {
	t.Parallel()
	since := time.Now().Add(-time.Second)
	h := newTestServer(t, nil)
	base := h.newBase("Harbour notes")
	h.processed(h.addFile("harbour.md", harbour, "knowledgeBaseId="+base)["id"].(string))
	h.web.pages(t, map[string]string{"halden-point.test": lighthousePage})
	h.web.search.Answer("", lighthouseResult)
	chat, p := h.knowing(base)
	character := h.characterOf(chat)
	h.rest("PATCH", "/conversations/"+chat, `{"settings":{"searchEnabled":true}}`).wants(t, 200)
	h.rest("PUT", "/characters/"+character+"/settings", `{"cognition":{"extract":true}}`).wants(t, 200)
	h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"Visit Halden Point."}`).wants(t, 201)
	goal := stringAt(h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"Learn about the light."}`).wants(t, 201), "id")

	h.model.enqueue(&script{calls: []llm.ToolCall{call("a", "searchKnowledgeBase", `{"query":"Who kept the light?"}`)}})
	h.model.enqueue(&script{pieces: []string{"It was automated in March 1987 [1]. Maren Oduya kept it before [2]."}})
	reply, _ := h.reply(p, chat, lighthouseQuestion, nil)
	queries := h.logOf(chat, "?type=query")
	if len(queries) != 2 {
		t.Fatalf("the log has %s", op.MustJSON(queries))
	}
	var verdicts []string
	for i, q := range queries {
		q := q.(map[string]any)
		if q["goal_id"] != goal || q["sequence"] != reply["seq"] || q["response"] != reply["text"] {
			t.Errorf("the query is %s", op.MustJSON(q))
		}
		verdicts = append(verdicts, fmt.Sprintf(`{"query_sequence":%v,"assessments":[{"source_id":%q,"status":%q,"reason":"It has the year."}]}`,
			q["sequence"], q["source_ids"].([]any)[0], []string{"helpful", "neutral"}[i]))
	}

	h.model.enqueue(&script{pieces: []string{`{"extractions":[{"task":"dates of the light","content":"The light of Halden Point was automated in 1987.","types":["fact"],"tags":{"place":"Halden"},"score":4},
		{"content":"Maren Oduya kept the light for twenty years."},{"content":"Lighthouses are nice."}]}`}})
	h.model.enqueue(&script{pieces: []string{"```json\n" + `{"evaluations":[` + strings.Join(verdicts, ",") + "]}\n```"}})
	messages := h.texts(chat)
	h.rest("PATCH", "/goals/"+goal, `{"status":"completed"}`).wants(t, 200)
	eventually(t, "the branches have run", func() bool { return len(h.logOf(chat, "?type=evaluation,extraction_pending")) == 5 })
	p.event("extraction.pending", "")

	path := "/conversations/" + chat + "/extractions"
	items := h.rest("GET", path+"?state=pending", "").items(t)
	for i, decision := range []string{
		`{"decision":"edit","editedPayload":{"content":"The light of Halden Point was automated in March 1987.","score":5}}`, `{"decision":"approve"}`, `{"decision":"discard"}`,
	} {
		h.rest("POST", path+"/"+stringAt(items[i], "extraction_id")+"/review", decision).wants(t, 200)
	}
	report := h.rest("POST", path+"/commit", "").wants(t, 200)
	if len(report["committed"].([]any)) != 2 || len(report["failed"].([]any)) != 0 || len(report["skipped"].([]any)) != 1 {
		t.Errorf("the report is %v", report)
	}
	p.event("extraction.committed", "")
	if kept := stringsAt(h.rest("GET", h.memoriesOf(chat), "").items(t), "text"); !slices.Contains(kept, "The light of Halden Point was automated in March 1987.") ||
		!slices.Contains(kept, "Maren Oduya kept the light for twenty years.") || len(kept) != 2 {
		t.Errorf("memories: %q", kept)
	}

	h.turn(chat, "I bought a red bicycle yesterday.", "How nice.")
	asked := h.rest("GET", "/conversations/"+chat+"/messages", "").wants(t, 200)["items"].([]any)
	seq := asked[len(asked)-2].(map[string]any)["seq"]
	h.dreamer = &dreaming{
		reflect:   fmt.Sprintf(`{"notes":[{"text":"User bought a red bicycle.","kind":"event","seqs":[%v]}]}`, seq),
		integrate: `{"updates":[{"path":"user.md","do":"add","text":"User bought a red bicycle.","notes":[1]}]}`,
	}
	if run := h.dream(p, character, `{"force":true}`); run["state"] != "done" || run["consumed"] != 1.0 {
		t.Errorf("the dream: %v", run)
	}

	document, events := h.rawLog(chat)
	want := map[string]int{"query": 2, "evaluation": 2, "extraction_pending": 3, "extraction_reviewed": 3, "extraction_committed": 2, "reflection": 1}
	if got := wantFormat(t, events, since); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the log has %v, want %v", got, want)
	}

	for what, body := range map[string]string{"export": document, "old file": `{"entries":` + string(op.MustJSON(events)) + `}`} {
		other := h.newChatWith(character)
		done := h.rest("POST", "/conversations/"+other+"/cognition-log/import", body).wants(t, 200)
		if done["added"] != float64(len(events)) || len(done["unplaced"].([]any)) != 0 {
			t.Errorf("%s: %v", what, done)
		}
		if _, again := h.rawLog(other); string(op.MustJSON(again)) != string(op.MustJSON(events)) {
			t.Errorf("%s: imported\n%s\nas\n%s", what, op.MustJSON(events), op.MustJSON(again))
		}
		if r := h.rest("POST", "/conversations/"+other+"/extractions/commit", "").wants(t, 200); len(r["committed"].([]any)) != 0 {
			t.Errorf("%s: committed again: %v", what, r)
		}
	}

	h.model.enqueue(&script{pieces: []string{"Gladly."}})
	h.reply(p, chat, "Tell me more about it.", nil)
	if _, texts := h.model.results(); strings.Contains(texts, "You assess knowledge") || strings.Contains(texts, "knowledge_save_pending") || strings.Contains(texts, "assessments") {
		t.Errorf("a branch is in the prompt:\n%s", texts)
	}
	if now := h.texts(chat); len(now) != len(messages)+4 {
		t.Errorf("the chat has the messages\n%s", strings.Join(now, "\n"))
	}
}
