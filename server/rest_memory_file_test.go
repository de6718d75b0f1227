package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Memories exported from one character can be imported into another. Wrong lines are
// reported by number, and the other lines are imported.
func TestMemoryExportAndImport(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path, other := h.newMemoriesPath(), h.newMemoriesPath()
	h.addMemory(path, "Mia keeps bees.", `,"kind":"profile","pinned":true,"importance":0.9`)
	h.addMemory(path, "Mia was in Lyon.", `,"kind":"event","eventTime":"2025-03-01T00:00:00Z"`)
	file := h.rest("GET", path+"/export", "")
	file.wants(t, 200)
	if kind := file.header.Get("Content-Type"); kind != "application/x-ndjson" {
		t.Errorf("content type %s", kind)
	}
	for i, line := range bytes.Split(bytes.TrimSpace(file.body), []byte("\n")) {
		if !json.Valid(line) {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
	got := h.rest("POST", other+"/import", string(file.body), "Content-Type: application/x-ndjson").wants(t, 200)
	if got["kind"] != "memories" || !strings.Contains(other, stringAt(got, "id")) || !strings.Contains(fmt.Sprint(got["warnings"]), `lines of type "settings"`) {
		t.Fatalf("import: %v", got)
	}
	if got := got["memories"].(map[string]any); got["created"] != 2.0 || len(got["failed"].([]any)) != 0 {
		t.Fatalf("import: %v", got)
	}
	list := func(path string) string {
		memories := h.rest("GET", path, "").items(t)
		slices.SortFunc(memories, func(a, b map[string]any) int { return strings.Compare(stringAt(a, "text"), stringAt(b, "text")) })
		var b strings.Builder
		for _, m := range memories {
			fmt.Fprintln(&b, m["text"], m["kind"], m["subject"], m["pinned"], m["importance"], m["eventTime"])
		}
		return b.String()
	}
	if a, b := list(path), list(other); a != b {
		t.Errorf("exported\n%simported\n%s", a, b)
	}
	again := h.upload("POST", other+"/import", "memories.jsonl", file.body).wants(t, 200)["memories"].(map[string]any)
	if again["created"] != 0.0 || again["skipped"] != 2.0 {
		t.Errorf("again: %v", again)
	}

	broken := "{\"text\":\"Mia sails.\"}\nnot JSON\n\n{\"text\":\"\"}\n{\"text\":\"x\",\"kind\":\"rumour\"}\n[1]\n{\"text\":\"Mia swims.\"}\n{\"type\":\"suggestion\"}"
	answered := h.rest("POST", other+"/import", broken, "Content-Type: text/plain").wants(t, 200)
	if w := fmt.Sprint(answered["warnings"]); !strings.Contains(w, "line 8") || !strings.Contains(w, "suggestion") {
		t.Errorf("warnings: %s", w)
	}
	report := answered["memories"].(map[string]any)
	var lines []float64
	for _, f := range report["failed"].([]any) {
		lines = append(lines, f.(map[string]any)["line"].(float64))
	}
	if report["created"] != 2.0 || !slices.Equal(lines, []float64{2, 4, 5, 6}) {
		t.Errorf("broken lines: %v", report)
	}
	h.rest("POST", other+"/import", "x", "Content-Type: image/png").refuses(t, 415, "unsupported_media_type")
	h.upload("POST", other+"/import", "a.jsonl", bytes.Repeat([]byte("x"), 33<<20)).refuses(t, 413, "too_large")
	h.rest("POST", other+"/import", strings.Repeat("x", 33<<20), "Content-Type: application/x-ndjson").refuses(t, 413, "too_large")
}

// A fact that a newer text contradicts names that text, from which the fact that replaced
// it was learned. What the user retires names none.
func TestARetiredFactNamesWhatEndedIt(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := h.memoriesOf(chat)
	p, _ := h.connect(nil)
	says := func(text, done string) (message string) {
		message = stringAt(h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"`+text+`","reply":false}`).wants(t, 200), "userMessage.id")
		h.rest("POST", "/conversations/"+chat+"/memory/extract", "").wants(t, 202)
		waitFor(p, done, func(frames []*frame) *frame {
			for _, f := range frames {
				if f.Ev == "memory.written" && field[string](t, f, "op") == done {
					return f
				}
			}
			return nil
		})
		return message
	}
	says("I live in Oslo.", "added")
	h.rest("POST", path+"/import", `{"text":"User lives in Paris","kind":"profile"}`, "Content-Type: application/json").wants(t, 200)
	ended := says("I moved to Lisbon.", "retired")
	byUser := h.addMemory(path, "Mia keeps bees.", "")
	h.rest("DELETE", path+"/"+byUser, "").wants(t, 204)
	retired := h.rest("GET", path+"?status=retired", "").items(t)
	if len(retired) != 2 {
		t.Fatalf("retired: %v", retired)
	}
	for _, f := range retired {
		texts, _ := f["endedBy"].([]any)
		if f["id"] == byUser {
			if f["endedBy"] != nil {
				t.Errorf("by the user: %v", f)
			}
			continue
		}
		if len(texts) != 1 || texts[0].(map[string]any)["messageId"] != ended {
			t.Errorf("ended by %v, not %s", f["endedBy"], ended)
		}
	}
	active := h.rest("GET", path, "").items(t)
	if len(active) != 1 || active[0]["text"] != "User moved to Lisbon" || active[0]["evidence"].([]any)[0].(map[string]any)["messageId"] != ended {
		t.Errorf("active: %v", active)
	}
}

// Two devices change the text of a fact: the later one learns that it has not seen
// the other's. A new version has another id, and an id names the fact in all versions.
func TestAnEditOfAnOldVersionIsRefused(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	id := h.addMemory(path, "Mia keeps bees.", "")
	edit := func(body string, headers ...string) *restResponse {
		return h.rest("PATCH", path+"/"+id, body, headers...)
	}
	if tag := edit(`{"importance":0.9,"ifVersion":1}`).header.Get("ETag"); tag != `"1"` {
		t.Errorf("without a new text: %s", tag)
	}
	first := edit(`{"text":"Mia keeps goats.","ifVersion":1}`)
	if m := first.wants(t, 200); m["version"] != 2.0 || first.header.Get("ETag") != `"2"` {
		t.Errorf("a new version: %v", m)
	}
	if p := edit(`{"text":"Mia keeps cats.","ifVersion":1}`).refuses(t, 412, "precondition_failed"); p.Details["version"] != 2.0 {
		t.Errorf("details: %v", p.Details)
	}
	edit(`{"text":"Mia keeps cats."}`, `If-Match: "1"`).refuses(t, 412, "precondition_failed")
	if got := h.rest("GET", path, "").items(t); len(got) != 1 || got[0]["text"] != "Mia keeps goats." {
		t.Errorf("after the refusals: %v", got)
	}
	h.addMemory(path, "Mia keeps owls.", "")
	edit(`{"text":"Mia keeps owls."}`, "If-Match: "+first.header.Get("ETag")).refuses(t, 409, "conflict") // it is not old
	edit(`{"text":"Mia keeps cats."}`, "If-Match: "+first.header.Get("ETag")).wants(t, 200)
	edit(`{"text":"Mia keeps dogs.","ifVersion":0}`).wants(t, 200)
}
