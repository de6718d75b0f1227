package server

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"nodest/internal/sharedtest"
	"nodest/websearch/provider/providertest"
)

const nodestPage = "../docs/nodest-interface.md"

// documented is a row of a table of the page for people who port an app.
type documented struct{ what, method, path, body, answer string }

// rowsOf reads the rows of the tables whose columns are what it is, a request, a body and an answer.
func rowsOf(t *testing.T, page string) (rows []documented) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(cells[i], "` ")
		}
		method, path, _ := strings.Cut(cells[1], " ")
		rows = append(rows, documented{cells[0], method, strings.TrimPrefix(path, base), cells[2], cells[3]})
	}
	return rows
}

// answers reports whether got has what an answer of the page says: its members with their values,
// where … is any text but none.
func answers(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		members, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && answers(members[name], value)
		}
		return ok
	case string:
		text, ok := got.(string)
		return ok && (text == want || want == "…" && text != "")
	}
	return got == want
}

// Every row of the page works, in its order, on a server without characters.
func TestTheDocumentedCallsOfTheAppWork(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.search.Answer("", providertest.Result{Title: "The President", URL: "http://president.test/", Content: "The president lives in the capital."})
	rows := rowsOf(t, nodestPage)
	if len(rows) < 17 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	for _, row := range rows {
		if row.path == "/nodest/circle" && strings.Contains(row.body, "user-1") {
			h.model.enqueue(&script{pieces: []string{`{"thoughts":"海边！","action":{"like":true,"comment":"真好！"},"emotion":{"type":"positive","intensity":0.8}}`}})
		} else if row.path == "/nodest/circle" && strings.Contains(row.answer, "true") {
			h.model.enqueue(&script{pieces: []string{`{"thoughts":"想念大海。","post":"浪花一直追着我跑。","emotion":{"type":"positive","intensity":0.7}}`}})
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(row.answer), &want); err != nil {
			t.Fatalf("%s: %v in %s", row.what, err, row.answer)
		}
		got := h.rest(row.method, row.path, row.body).wants(t, 200)
		if !answers(got, want) {
			t.Errorf("%s %s %s\n%v, want\n%v", row.method, row.path, row.body, got, want)
		}
		if got["success"] == false && want["code"] == "not_found" && !strings.Contains(stringAt(got, "error"), "first send POST /api/v1/nodest/chat with the status 新建角色 (create)") {
			t.Errorf("%s: nothing says what to send first: %v", row.what, got["error"])
		}
	}
	if asked := h.web.search.Asked(); len(asked) == 0 {
		t.Error("the message with useToolCalls did not search the web")
	}
	for _, c := range h.rest("GET", "/characters", "").items(t) {
		if settings := h.rest("GET", "/characters/"+stringAt(c, "id")+"/settings", "").wants(t, 200); !answers(settings, map[string]any{"circle": map[string]any{"enabled": true}}) {
			t.Errorf("the character does not take part in the circle: %v", settings)
		}
	}
	if chats := h.rest("GET", "/conversations", "").items(t); len(chats) != 2 {
		t.Errorf("%d conversations, want those of character123 and conversation123", len(chats))
	}
}

// The page has the calls and the values of the original document's integration examples.
func TestTheDocumentedCallsHaveTheValuesOfTheSeed(t *testing.T) {
	t.Parallel()
	seed, err := os.ReadFile(sharedtest.Files(t, "seeds/004_*.txt")[0])
	if err != nil {
		t.Fatal(err)
	}
	_, examples, found := strings.Cut(string(seed), "## 集成指南")
	examples, _, ended := strings.Cut(examples, "### UI集成示例")
	if !found || !ended {
		t.Fatal("the seed has no integration examples")
	}
	var sent, called strings.Builder
	for _, row := range rowsOf(t, nodestPage) {
		sent.WriteString(row.path + " " + row.body + "\n")
		called.WriteString(row.what + "\n")
	}
	values := regexp.MustCompile(`"([^"\n]+)"|(\w+: (?:true|\d+))`).FindAllStringSubmatch(examples, -1)
	if len(values) < 20 {
		t.Fatalf("%d values in the seed's examples", len(values))
	}
	for _, v := range values {
		name, value, _ := strings.Cut(v[2], ": ")
		want := v[1]
		if name != "" {
			want = `"` + name + `":` + value
		}
		if !strings.Contains(sent.String(), want) {
			t.Errorf("no row sends %s", want)
		}
	}
	for _, call := range regexp.MustCompile(`\b(?:nodest|memoryService|NodeSTManager)\.(\w+)\(`).FindAllStringSubmatch(examples, -1) {
		if !strings.Contains(called.String(), call[1]) {
			t.Errorf("no row stands for %s", call[1])
		}
	}
}
