package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/internal/op"
	"nodest/llm"
)

// With the setting, a model sets a goal while it writes; what is looked up then belongs to the goal, and is evaluated when
// the model completes it.
func TestTheModelSetsGoalsWhileItWrites(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.pages(t, map[string]string{"halden-point.test": lighthousePage})
	h.web.search.Answer("", lighthouseResult)
	chat, p := h.searching()
	h.turn(chat, "Hello.", "Hello.")
	if names := h.model.offered(); slices.Contains(names, "goal") {
		t.Fatalf("without the setting, the tools are %v", names)
	}
	h.rest("PUT", "/characters/"+h.characterOf(chat)+"/settings", `{"cognition":{"goals":true}}`).wants(t, 200)
	h.model.enqueue(&script{calls: []llm.ToolCall{call("a", "goal", `{"action":"create","description":"Learn about the light."}`)}})
	h.model.enqueue(&script{pieces: []string{"Let us find out."}})
	h.reply(p, chat, "I want to know all about the light.", nil)
	if results, _ := h.model.results(); len(results) != 1 || results[0] != "<goal>created: Learn about the light.</goal>" {
		t.Errorf("the model is told %q", results)
	}
	goals := h.rest("GET", "/conversations/"+chat+"/goals", "").items(t)
	if len(goals) != 1 || goals[0]["status"] != "active" || goals[0]["description"] != "Learn about the light." {
		t.Fatalf("goals: %v", goals)
	}
	h.model.enqueue(&script{pieces: []string{"In March 1987 [1]."}})
	h.reply(p, chat, lighthouseQuestion, nil)
	query := h.logOf(chat, "?type=query")[0].(map[string]any)
	if _, texts := h.model.results(); query["goal_id"] != goals[0]["id"] || !strings.Contains(texts, "Active goals:\n- \"Learn about the light.\"") {
		t.Errorf("the query is %v, the request\n%s", query, texts)
	}
	h.model.enqueue(&script{calls: []llm.ToolCall{call("b", "goal", `{"action":"complete","description":"learn about the light"}`)}})
	judged := fmt.Sprintf(`{"evaluations":[{"query_sequence":%v,"assessments":[{"source_id":"http://halden-point.test/history","status":"helpful","reason":"r"}]}]}`, query["sequence"])
	for range 2 { // the end of the reply and the evaluation, in any order
		h.model.enqueue(&script{pieces: []string{judged}})
	}
	h.reply(p, chat, "Thank you, that is all.", nil)
	eventually(t, "the query is evaluated", func() bool { return len(h.logOf(chat, "?type=evaluation")) > 0 })
	if e := h.logOf(chat, "?type=evaluation")[0].(map[string]any); e["evaluated_at_trigger"] != "goal_completion" {
		t.Errorf("the evaluation is %s", op.MustJSON(e))
	}
	if goals = h.rest("GET", "/conversations/"+chat+"/goals?status=completed", "").items(t); len(goals) != 1 {
		t.Errorf("completed: %v", goals)
	}
}

// Calls that mean nothing change nothing, and the model is told why.
func TestTheModelIsToldWhyAGoalCannotBeSet(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	h.rest("PUT", "/characters/"+h.characterOf(chat)+"/settings", `{"cognition":{"goals":true}}`).wants(t, 200)
	for _, description := range []string{"Bake bread.", "Mend the roof."} {
		h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"`+description+`"}`).wants(t, 201)
	}
	for _, tt := range []struct{ arguments, want string }{
		{`{"action":"create","description":" bake bread"}`, "this goal is active already"},
		{`{"action":"win","description":"Bake bread."}`, "must be create, complete or abandon"},
		{`{"action":"complete","description":"Sail home."}`, "no active goal has this description. Active goals:\n- &quot;Mend the roof.&quot;\n- &quot;Bake bread.&quot;"},
		{`{"action":"complete"}`, `&quot;description&quot; is required`},
		{`{"action":"abandon","description":"mend the roof"}`, "abandoned: Mend the roof."},
		{`{"action":"complete","description":"Sail home."}`, "no active goal has this description. Active goals:\n- &quot;Bake bread.&quot;"},
	} {
		h.model.enqueue(&script{calls: []llm.ToolCall{call("a", "goal", tt.arguments)}})
		h.model.enqueue(&script{pieces: []string{"Well."}})
		h.reply(p, chat, "Go on.", nil)
		if results, _ := h.model.results(); len(results) != 1 || !strings.Contains(results[0], tt.want) {
			t.Errorf("%s: the model is told %q", tt.arguments, results)
		}
	}
	var states []string
	for _, g := range h.rest("GET", "/conversations/"+chat+"/goals", "").items(t) {
		states = append(states, fmt.Sprint(g["description"], " ", g["status"]))
	}
	if want := []string{"Mend the roof. abandoned", "Bake bread. active"}; !slices.Equal(states, want) {
		t.Errorf("goals: %q", states)
	}
}

// A long goal is ended by the part of its description that the model is told.
func TestTheModelEndsALongGoalByWhatItIsTold(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	h.rest("PUT", "/characters/"+h.characterOf(chat)+"/settings", `{"cognition":{"goals":true}}`).wants(t, 200)
	long := strings.Repeat("Sail home. ", 20)
	h.rest("POST", "/conversations/"+chat+"/goals", `{"description":"`+long+`"}`).wants(t, 201)
	h.model.enqueue(&script{calls: []llm.ToolCall{call("a", "goal", `{"action":"complete","description":"`+long[:100]+`"}`)}})
	h.model.enqueue(&script{pieces: []string{"Well."}})
	h.reply(p, chat, "We are there.", nil)
	if _, texts := h.model.results(); !strings.Contains(texts, "\n- \""+long[:100]+"\"") {
		t.Errorf("the request is\n%s", texts)
	}
	if goals := h.rest("GET", "/conversations/"+chat+"/goals?status=completed", "").items(t); len(goals) != 1 {
		t.Errorf("completed: %v", goals)
	}
}

// Calls of one answer, which are carried out side by side, never set the same goal twice.
func TestCallsSideBySideSetAGoalOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	h.rest("PUT", "/characters/"+h.characterOf(chat)+"/settings", `{"cognition":{"goals":true}}`).wants(t, 200)
	for i := range 5 {
		create := fmt.Sprintf(`{"action":"create","description":"Sail %d times."}`, i)
		h.model.enqueue(&script{calls: []llm.ToolCall{call("a", "goal", create), call("b", "goal", create)}})
		h.model.enqueue(&script{pieces: []string{"Well."}})
		h.reply(p, chat, "Go on.", nil)
		results, _ := h.model.results()
		slices.Sort(results)
		if want := fmt.Sprintf("<goal>created: Sail %d times.</goal>", i); !slices.Equal(results, []string{want, "<goal>this goal is active already</goal>"}) {
			t.Errorf("the model is told %q", results)
		}
	}
	if goals := h.rest("GET", "/conversations/"+chat+"/goals", "").items(t); len(goals) != 5 {
		t.Errorf("%d goals", len(goals))
	}
}
