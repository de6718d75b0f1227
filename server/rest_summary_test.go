package server

import (
	"fmt"
	"strings"
	"testing"

	"nodest/internal/op"
)

// makeSummary adds enough messages to a conversation to summarize it, and returns
// the id of the summary.
func (h *testServer) makeSummary(chat string) string {
	h.t.Helper()
	for i := range 9 {
		h.rest("POST", "/conversations/"+chat+"/messages", fmt.Sprintf(`{"text":"On day %d we crossed the river and met a miller.","reply":false}`, i+1)).wants(h.t, 200)
	}
	return stringAt(h.rest("POST", "/conversations/"+chat+"/summaries?wait=1", "").wants(h.t, 201), "id")
}

// A summary replaces the middle of a chat in requests to the model, can be edited,
// and has no effect any more once deleted.
func TestSummaryLifecycle(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	phone, _ := h.connect(nil)
	path := "/conversations/" + chat + "/summaries"
	if p := h.rest("POST", path+"?wait=1", "").refuses(t, 409, "conflict"); p.Details["reason"] == nil {
		t.Errorf("nothing to summarise: %+v", p)
	}
	id := h.makeSummary(chat)
	made := phone.event("memory.summary", "")
	if made.Conv != chat || field[string](t, made, "summaryId") != id || field[string](t, made, "op") != "created" {
		t.Errorf("event %s", made.Data)
	}
	list := h.rest("GET", path, "").items(t)
	if len(list) != 1 || list[0]["id"] != id || list[0]["active"] != true || list[0]["isMemorySummary"] != true {
		t.Fatalf("summaries: %v", list)
	}
	sent := func() string {
		return string(h.rest("POST", "/conversations/"+chat+"/prompt", `{"text":"And now?"}`).body)
	}
	if strings.Contains(sent(), "On day 4 we crossed the river and met a miller.\"") {
		t.Errorf("the middle is sent word for word: %s", sent())
	}
	edited := h.rest("PATCH", path+"/"+id, `{"summary":"They met many millers."}`).wants(t, 200)
	if edited["summary"] != "They met many millers." || edited["method"] != "user" || edited["active"] != true || !strings.Contains(sent(), "They met many millers.") {
		t.Errorf("edited: %v", edited)
	}
	for range 2 {
		h.rest("DELETE", path+"/"+id, "", "Idempotency-Key: gone").wants(t, 204)
	}
	h.rest("DELETE", path+"/"+id, "").refuses(t, 404, "not_found")
	if got := h.rest("GET", path, "").items(t); len(got) != 0 || strings.Contains(sent(), "millers") {
		t.Errorf("after deleting: %v", got)
	}
	for range 2 {
		if got := h.rest("POST", path, "", "Idempotency-Key: later").wants(t, 202); got["queued"] != true {
			t.Errorf("later: %v", got)
		}
	}
	waitFor(phone, "another summary", func(frames []*frame) *frame {
		for _, f := range frames {
			if f.Ev == "memory.summary" && field[string](t, f, "op") == "created" && field[string](t, f, "summaryId") != id {
				return f
			}
		}
		return nil
	})
}

func TestInvalidSummaryRequests(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := "/conversations/" + chat + "/summaries"
	id := h.makeSummary(chat)
	messages := h.rest("GET", "/conversations/"+chat+"/messages", "").items(t)
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "?wait=perhaps", `{}`, "wait"},
		{"POST", "?wait=1&wait=0", `{}`, "wait"},
		{"POST", "?wiat=1", `{}`, "wiat"},
		{"POST", "?wait=1&length=100", `{}`, "length"},
		{"PATCH", "/" + id + "?active=true", `{"summary":"They met millers."}`, "active"},
		{"PATCH", "/" + id, `{"summary":"\u200b \u2060\n"}`, "summary"},
		{"POST", "", `{"from":7}`, "from"},
		{"POST", "", `{"length":100}`, "length"},
		{"POST", "?wait=1", `{"from":"` + stringAt(messages[6], "id") + `","to":"` + stringAt(messages[4], "id") + `"}`, "to"},
		{"POST", "?wait=1", `{"from":"` + stringAt(messages[2], "id") + `"}`, "from"},
		{"POST", "", `{"to":"` + stringAt(messages[len(messages)-3], "id") + `"}`, "to"},
		{"PATCH", "/" + id, `{"summary":""}`, "summary"},
		{"PATCH", "/" + id, `{}`, "summary"},
		{"PATCH", "/" + id, `{"summary":"` + strings.Repeat("a", 2001) + `"}`, "summary"},
		{"PATCH", "/" + id, `{"text":"x"}`, "text"},
	} {
		t.Run(c.method+" "+c.path+" "+c.body[:min(len(c.body), 60)], func(t *testing.T) {
			h.rest(c.method, path+c.path, c.body).refuses(t, 400, "invalid_field", c.field)
		})
	}
	for _, name := range []string{"from", "to"} {
		for _, query := range []string{"", "?wait=1"} {
			h.rest("POST", path+query, `{"`+name+`":"`+op.NewID()+`"}`).refuses(t, 404, "not_found")
		}
	}
	other := h.newChat()
	h.rest("PATCH", "/conversations/"+other+"/summaries/"+id, `{"summary":"They met millers."}`).refuses(t, 404, "not_found")
	h.rest("DELETE", "/conversations/"+other+"/summaries/"+id, "").refuses(t, 404, "not_found")
	if got := h.rest("GET", path, "").items(t); len(got) != 1 || got[0]["method"] == "user" {
		t.Errorf("it has changed: %v", got)
	}
}

// A repeated request with the same idempotency key returns the same summary.
func TestCreatingASummaryIsIdempotent(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := "/conversations/" + chat + "/summaries"
	h.makeSummary(chat)
	h.turn(chat, "And on we went.", "Yes.")
	first := h.rest("POST", path+"?wait=1", "", "Idempotency-Key: once").wants(t, 201)
	again := h.rest("POST", path+"?wait=true", "", "Idempotency-Key: once")
	if diff := fmt.Sprint(first); fmt.Sprint(again.wants(t, 201)) != diff || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("first %v\nagain %s", first, again.body)
	}
	h.rest("POST", path, "", "Idempotency-Key: once").refuses(t, 422, "key_reused")
	if got := h.rest("GET", path, "").items(t); len(got) != 2 || got[0]["active"] != true || got[1]["active"] != false || got[0]["baseId"] != got[1]["id"] {
		t.Errorf("summaries: %v", got)
	}
}
