package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// proposed is a chat whose user has said two things, of which the branch has proposed knowledge. It returns the messages.
func (h *testServer) proposed() (chat string, said []map[string]any) {
	h.t.Helper()
	chat = h.newChat()
	h.rest("PUT", "/characters/"+h.characterOf(chat)+"/settings",
		`{"cognition":{"extract":true},"memory":{"enabled":true},"retrieval":{"enabled":true,"shareAcrossConversations":false}}`).wants(h.t, 200)
	goal := stringAt(h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"Learn about the harbour."}`).wants(h.t, 201), "id")
	for _, text := range []string{"The lamp in the harbour is green.", "Maren keeps nine bees at home."} {
		h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"`+text+`","reply":false}`).wants(h.t, 200)
	}
	h.model.enqueue(&script{pieces: []string{`{"extractions":[{"content":"The lamp in the harbour is green."},{"content":"Maren keeps nine bees at home."}]}`}})
	h.rest("PATCH", "/goals/"+goal, `{"status":"completed"}`).wants(h.t, 200)
	eventually(h.t, "the branch has run", func() bool { return len(h.logOf(chat, "?type=extraction_pending")) == 2 })
	for _, m := range h.rest("GET", "/conversations/"+chat+"/messages", "").items(h.t) {
		if m["role"] == "user" {
			said = append(said, m)
		}
	}
	return chat, said
}

// approve approves the extractions of a chat, and returns the statuses of the answers.
func (h *testServer) approve(chat string) (statuses []int) {
	h.t.Helper()
	path := "/conversations/" + chat + "/extractions"
	for _, id := range stringsAt(h.rest("GET", path, "").items(h.t), "extraction_id") {
		statuses = append(statuses, h.rest("POST", path+"/"+id+"/review", `{"decision":"approve"}`).status)
	}
	return statuses
}

// A text that the user forgets takes its words out of the proposals, which cannot be approved any more; the next branch does
// not see it.
func TestAForgottenMessageLeavesNoProposal(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat, _ := h.proposed()
	found := h.rest("POST", h.memoriesOf(chat)+"/forget", `{"query":"nine bees","dryRun":true}`).wants(t, 200)
	var id string
	for _, m := range found["memories"].([]any) {
		if m := m.(map[string]any); m["layer"] == "exchange" && strings.Contains(m["text"].(string), "bees") {
			id = stringAt(m, "id")
		}
	}
	h.rest("POST", h.memoriesOf(chat)+"/forget", fmt.Sprintf(`{"ids":[%q],"dryRun":false}`, id)).wants(t, 200)
	if document, _ := h.rawLog(chat); strings.Contains(document, "bees") || !strings.Contains(document, "lamp") {
		t.Errorf("the log is %s", document)
	}
	if got := h.approve(chat); !slices.Equal(got, []int{200, 409}) {
		t.Errorf("approvals: %v", got)
	}
	goal := stringAt(h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"More."}`).wants(t, 201), "id")
	h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"The door is red.","reply":false}`).wants(t, 200)
	h.model.enqueue(&script{pieces: []string{`{"extractions":[{"content":"The door is red."}]}`}})
	h.rest("PATCH", "/goals/"+goal, `{"status":"completed"}`).wants(t, 200)
	eventually(t, "the branch has run again", func() bool { return len(h.logOf(chat, "?type=extraction_pending")) == 3 })
	if _, texts := h.model.results(); strings.Contains(texts, "bees") || !strings.Contains(texts, "lamp") {
		t.Errorf("the branch has seen\n%s", texts)
	}
}

// A memory that a commit made has the messages of its chat as evidence, goes with the chat, and is told in
// no other one if chats do not share.
func TestACommittedMemoryGoesWithItsChat(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat, said := h.proposed()
	memories := h.memoriesOf(chat)
	h.approve(chat)
	if report := h.rest("POST", "/conversations/"+chat+"/extractions/commit", "").wants(t, 200); len(report["committed"].([]any)) != 2 {
		t.Fatalf("the report is %v", report)
	}
	for _, m := range h.rest("GET", memories, "").items(t) {
		evidence := m["evidence"].([]any)
		if len(evidence) != 1 || m["conversationId"] != chat || !slices.ContainsFunc(said, func(s map[string]any) bool {
			return s["text"] == m["text"] && s["id"] == stringAt(evidence[0].(map[string]any), "messageId")
		}) {
			t.Errorf("the memory is %v", m)
		}
	}
	other := h.newChatWith(h.characterOf(chat))
	told := map[bool]bool{}
	for _, share := range []bool{true, false} {
		h.rest("PUT", strings.TrimSuffix(memories, "/memories")+"/settings", fmt.Sprintf(`{"retrieval":{"enabled":true,"shareAcrossConversations":%v}}`, share)).wants(t, 200)
		h.turn(other, "Who keeps nine bees?", "I wonder.")
		_, texts := h.model.results()
		told[share] = strings.Contains(texts, "Maren keeps nine bees at home.")
	}
	if !told[true] || told[false] {
		t.Errorf("told in another chat, by whether chats share: %v", told)
	}
	found := func() []map[string]any {
		return h.rest("GET", memories+"?q=nine+bees+of+Maren&layer=fact", "").items(t)
	}
	if got := found(); len(got) == 0 {
		t.Error("it is not found before")
	}
	h.rest("DELETE", "/conversations/"+chat, "").wants(t, 204)
	if got := found(); len(got) != 0 {
		t.Errorf("found behind the chat: %v", got)
	}
}
