package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nodest/llm/llmtest"
)

const ferries = `{"events":[
	{"type":"extraction_pending","extraction_id":"pending-1","sequence":1,"payload":{"task":"travel","content":"The ferry sails at nine."}},
	{"type":"extraction_pending","extraction_id":"pending-2","sequence":1,"payload":{"content":"The inn is closed."}},
	{"type":"extraction_pending","extraction_id":"pending-3","sequence":1,"payload":{"content":"Mira keeps bees."}},
	{"type":"extraction_pending","extraction_id":"pending-4","sequence":1,"payload":{"content":"The pier is long."}}]}`

// newFerries is a running server with a chat in which knowledge was proposed.
func newFerries(t *testing.T) (here *installation, p *process, character string) {
	t.Helper()
	inst := newInstallation(t, "")
	p = inst.start(t)
	here = inst.withAddrOf(p)
	imported := here.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	character, _, _ = strings.Cut(imported, " ")
	var conv struct{ ID string }
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations", map[string]any{"characterId": character}, &conv); err != nil {
		t.Fatal(err)
	}
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conv.ID+"/cognition-log/import", json.RawMessage(ferries), nil); err != nil {
		t.Fatal(err)
	}
	return here, p, character
}

// memoriesOf are the texts of the memories of a character.
func (p *process) memoriesOf(t *testing.T, character string) (texts []string) {
	t.Helper()
	var page struct {
		Items []struct{ Text, Origin string }
	}
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/characters/"+character+"/memories", nil, &page); err != nil {
		t.Fatal(err)
	}
	for _, m := range page.Items {
		texts = append(texts, m.Text+" "+m.Origin)
	}
	slices.Sort(texts)
	return texts
}

// Extractions are listed, reviewed one after the other and committed from the command line.
func TestExtractionsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	here, p, character := newFerries(t)
	if out := here.mustRun(t, "extractions", "list", "Mira"); !strings.Contains(out, "pending-2  pending") || !strings.Contains(out, "The inn is closed.") {
		t.Fatalf("the list is\n%s", out)
	}
	answers := "maybe\na\ne\nThe inn is open.\ny\nd\nq\nn\n" // the last one: no memories yet
	out, errOut, err := here.command(t, strings.NewReader(answers), "extractions", "review", "Mira")
	if err != nil {
		t.Fatalf("%v\n%s", err, errOut)
	}
	for _, want := range []string{"[1/4] pending-1", `"content": "The ferry sails at nine."`, "- ", `+   "content": "The inn is open."`, "make memories of what is approved (2)?"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var states []string
	for line := range strings.Lines(here.mustRun(t, "extractions", "list", "Mira", "--json")) {
		var x struct {
			ID    string `json:"extraction_id"`
			State string
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		states = append(states, x.ID+" "+x.State)
	}
	if want := []string{"pending-1 approved", "pending-2 approved", "pending-3 discarded", "pending-4 pending"}; !slices.Equal(states, want) {
		t.Errorf("states: %q", states)
	}
	if out := here.mustRun(t, "extractions", "commit", "Mira"); !strings.Contains(out, "2 committed, 0 failed, 2 skipped") {
		t.Errorf("the commit says\n%s", out)
	}
	if out := here.mustRun(t, "extractions", "commit", "Mira"); !strings.Contains(out, "0 committed, 0 failed, 2 skipped") {
		t.Errorf("the second commit says\n%s", out)
	}
	if got := p.memoriesOf(t, character); !slices.Equal(got, []string{"The ferry sails at nine. extraction", "The inn is open. extraction"}) {
		t.Errorf("memories: %q", got)
	}
	if out, _, err = here.command(t, strings.NewReader("a\ny\n"), "extractions", "review"); err != nil || !strings.Contains(out, "1 committed") {
		t.Errorf("of the newest chat: %v\n%s", err, out)
	}
	if _, errOut, err = here.command(t, strings.NewReader(""), "extractions", "review"); err != nil || !strings.Contains(errOut, "nothing waits for a review") {
		t.Errorf("with none left: %v\n%s", err, errOut)
	}
	if _, _, err = here.command(t, nil, "extractions", "list", "--state", "odd"); err == nil || !strings.Contains(oneLine(err), "must be one of pending") {
		t.Errorf("an unknown state: %v", err)
	}
}

// A model sets a goal and completes it, and proposes knowledge then, which the user reviews in a terminal: the parts of a
// server as they are put together, with a provider that knows its protocol.
func TestAModelSetsGoalsAndProposesKnowledge(t *testing.T) {
	t.Parallel()
	provider := llmtest.NewOpenAI(t)
	provider.Always(func(r llmtest.Request) llmtest.Reply {
		last := r.Messages[len(r.Messages)-1]
		action := map[string]string{"I want to reach the island.": "create", "I am there!": "complete"}[last.Text]
		switch {
		case strings.Contains(last.Text, "knowledge_save_pending"):
			return llmtest.Say("Here:\n```json\n" + `{"extractions":[{"content":"The ferry to the island sails at nine.","types":["fact"],"score":4}]}` + "\n```")
		case action != "" && len(r.Tools) == 1 && r.Tools[0].Name == "goal":
			return llmtest.Reply{Parts: []llmtest.Part{{Call: &llmtest.Call{ID: "call123456", Name: "goal", Args: `{"action":"` + action + `","description":"Reach the island."}`}}}}
		case len(r.Messages) == 1:
			return llmtest.Say("{}") // in the background, about the memory
		}
		return llmtest.Say("The ferry sails at nine.")
	})
	inst := newInstallation(t, "", "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+provider.URL)
	p := inst.start(t)
	here := inst.withAddrOf(p)
	mira := importedID(t, here.mustRun(t, "import", tempFile(t, "mira.json", miraCard)))
	settings := map[string]any{"cognition": map[string]any{"goals": true, "extract": true}}
	if err := p.client.Call(t.Context(), http.MethodPut, "/api/v1/characters/"+mira+"/settings", settings, nil); err != nil {
		t.Fatal(err)
	}
	chat := "/api/v1/conversations/" + newConversation(t, p.client, mira)
	for _, text := range []string{"I want to reach the island.", "When does the ferry sail?", "I am there!"} {
		if err := p.client.Call(t.Context(), http.MethodPost, chat+"/messages", map[string]any{"text": text}, nil); err != nil {
			t.Fatal(err)
		}
	}
	var goals struct {
		Items []struct{ Description, Status string }
	}
	if err := p.client.Call(t.Context(), http.MethodGet, chat+"/goals", nil, &goals); err != nil {
		t.Fatal(err)
	}
	if len(goals.Items) != 1 || goals.Items[0].Description != "Reach the island." || goals.Items[0].Status != "completed" {
		t.Fatalf("goals: %+v", goals.Items)
	}
	eventually(t, "knowledge is proposed", func() error {
		if !strings.Contains(here.mustRun(t, "extractions", "list", "Mira"), "The ferry to the island sails at nine.") {
			return errNotYet
		}
		return nil
	})
	if out, errOut, err := here.command(t, strings.NewReader("a\ny\n"), "extractions", "review", "Mira"); err != nil || !strings.Contains(out, "1 committed, 0 failed, 0 skipped") {
		t.Fatalf("%v\n%s\n%s", err, out, errOut)
	}
	if got := p.memoriesOf(t, mira); !slices.Equal(got, []string{"The ferry to the island sails at nine. extraction"}) {
		t.Errorf("memories: %q", got)
	}
	p.stop(t)
}
