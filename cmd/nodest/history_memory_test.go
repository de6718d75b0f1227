package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"nodest/internal/cli"
)

// memoryModel is a memory that the user has written.
type memoryModel struct {
	id, text, status string // as in the latest version
}

// maxMemories is how many of them exist at a time.
const maxMemories = 30

func (g *simulation) toMemory(m *memoryModel) map[string]string {
	return map[string]string{"characterId": g.docs.character, "memoryId": m.id}
}

func (g *simulation) memoryPath(m *memoryModel) string {
	return "/characters/" + g.docs.character + "/memories/" + m.id
}

// opMemory creates, edits, retires, restores or purges a memory.
func (g *simulation) opMemory(*chatModel) bool {
	if len(g.memories) == 0 || len(g.memories) < maxMemories && g.chance(3) {
		return g.createMemory()
	}
	m := pick(g, g.memories)
	switch {
	case len(g.memories) >= maxMemories || g.chance(8):
		g.must(apiCall{method: http.MethodDelete, path: g.memoryPath(m), query: map[string]string{"purge": "true"}})
		g.memories = slices.DeleteFunc(g.memories, func(o *memoryModel) bool { return o == m })
		r := g.rest(apiCall{method: http.MethodGet, path: g.memoryPath(m) + "/history"}, "")
		if got := r.code(); got != "not_found" {
			g.t.Fatalf("a memory that was purged: r.code() is %q, want %q", got, "not_found")
		}
	case m.status == "retired":
		r := g.must(apiCall{cmd: "memory.restore", method: http.MethodPost, path: g.memoryPath(m) + "/restore", ids: g.toMemory(m)})
		g.applyMemory(r, m, m.text, "active")
	case g.chance(2):
		g.must(apiCall{cmd: "memory.delete", method: http.MethodDelete, path: g.memoryPath(m), ids: g.toMemory(m)})
		m.status = "retired"
	default:
		text := "Memo: " + g.sentence()
		r := g.must(apiCall{cmd: "memory.edit", method: http.MethodPatch, path: g.memoryPath(m), ids: g.toMemory(m), body: map[string]any{"text": text}})
		g.applyMemory(r, m, text, "active")
	}
	return true
}

func (g *simulation) createMemory() bool {
	text := "Memo: " + g.sentence()
	character := map[string]string{"characterId": g.docs.character}
	r := g.must(apiCall{cmd: "memory.create", method: http.MethodPost, path: "/characters/" + g.docs.character + "/memories", ids: character, body: map[string]any{"text": text}})
	m := &memoryModel{}
	g.applyMemory(r, m, text, "active")
	g.memories = append(g.memories, m)
	return true
}

// applyMemory updates the model after a memory was created or changed.
func (g *simulation) applyMemory(r *response, m *memoryModel, text, status string) {
	g.t.Helper()
	var got struct{ ID, Text, Status string }
	r.into(g, &got)
	if found, want := ([]string{got.Text, got.Status}), ([]string{text, status}); !reflect.DeepEqual(found, want) {
		g.t.Fatalf("[]string{got.Text, got.Status} is %q, want %q", found, want)
	}
	*m = memoryModel{got.ID, text, status}
}

// opListMemories compares the list of memories with the model.
func (g *simulation) opListMemories(*chatModel) bool {
	want, got := map[string]memoryModel{}, map[string]memoryModel{}
	for _, m := range g.memories {
		want[m.id] = *m
	}
	for cursor := ""; ; {
		var page cli.PageOf[struct{ ID, Text, Status, Origin string }]
		g.get(&page, "/characters/%s/memories?status=any&limit=200&cursor=%s", g.docs.character, cursor)
		for _, m := range page.Items {
			if m.Origin == "user" && m.Status != "superseded" {
				got[m.ID] = memoryModel{m.ID, m.Text, m.Status}
			}
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if !reflect.DeepEqual(got, want) {
		g.t.Fatalf("memories written by the user: got is %+v, want %+v", got, want)
	}
	return true
}

// noneActive reports whether no reply is being written anywhere.
func (g *simulation) noneActive() bool {
	return !slices.ContainsFunc(g.chats, func(p *chatModel) bool { return p.active != nil })
}

// foundUnit is a search result.
type foundUnit struct {
	ID, Layer, Text string
	Memory          *struct{ Origin string }
	Said            *struct{ ConversationID, MessageID string }
}

// opSearchMemory searches for a word. Messages are found only while they are shown,
// memories only while they are active.
func (g *simulation) opSearchMemory(*chatModel) bool {
	if !g.noneActive() {
		return false
	}
	const most = 100
	word := pick(g, []string{"harbour", "lamp", "storm", "map"})
	var page cli.PageOf[foundUnit]
	g.get(&page, "/characters/%s/memories?mode=recall&limit=%d&q=%s", g.docs.character, most, word)
	found := map[string]bool{}
	for i := range page.Items {
		g.checkHit(&page.Items[i])
		found[page.Items[i].Text] = true
	}
	if len(page.Items) == most {
		return true
	}
	for _, m := range g.memories {
		if m.status != "active" || strings.Contains(m.text, " the "+word+".") {
			if want := m.status == "active"; found[m.text] != want {
				g.t.Fatalf("%s memory %q, asked for %s: found[m.text] is %v, want %v", m.status, m.text, word, found[m.text], want)
			}
		}
	}
	for _, p := range g.chats {
		for _, s := range p.shown() {
			if l := s.now(); s.role == "user" && l.swipe != "" && strings.HasSuffix(l.text, " the "+word+".") {
				if !found[l.text] {
					g.t.Fatalf("%q is shown in %s and was not found", l.text, p.id)
				}
			}
		}
	}
	return true
}

// checkHit checks that a search result is a shown message or an active memory.
func (g *simulation) checkHit(u *foundUnit) {
	g.t.Helper()
	if u.Said == nil {
		if u.Memory.Origin == "user" {
			if !slices.ContainsFunc(g.memories, func(m *memoryModel) bool { return m.id == u.ID && m.status == "active" }) {
				g.t.Fatalf("memory %q", u.Text)
			}
		}
		return
	}
	at := slices.IndexFunc(g.chats, func(p *chatModel) bool { return p.id == u.Said.ConversationID })
	if at < 0 {
		g.t.Fatalf("%q of a conversation that is not there: at is %d, want at least %d", u.Text, at, 0)
	}
	s := g.chats[at].messages[u.Said.MessageID]
	if !slices.Contains(g.chats[at].shown(), s) {
		g.t.Fatalf("%q is not shown, want a text that is", u.Text)
	}
	if want := strings.TrimSpace(s.now().text); u.Text != want {
		g.t.Fatalf("the text that is shown: u.Text is %q, want %q", u.Text, want)
	}
}

// memBlock matches what recall appends to a message.
var (
	memBlock  = regexp.MustCompile(`(?s)\s*<mem>.*?</mem>|\s*<response_guidelines>.*?</response_guidelines>`)
	sentences = regexp.MustCompile(`Sentence \d+ about`)
)

// withoutRecall separates a prompt from what was recalled for it. What is recalled may
// change although the chat has not, because of other chats or new embeddings. The rest
// must stay the same to the byte.
func withoutRecall(prompt json.RawMessage) (rest string, recalled []string) {
	var doc any
	if err := json.Unmarshal(prompt, &doc); err != nil {
		return string(prompt), nil
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			recalled = append(recalled, memBlock.FindAllString(v, -1)...)
			return memBlock.ReplaceAllString(v, "")
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for name := range v {
				v[name] = walk(v[name])
			}
		}
		return v
	}
	return jsonText(walk(doc)), recalled
}

// checkRecalled checks that what was recalled exists: on a shown branch, on the branch
// of the prompt, or in the user's memories.
func (g *simulation) checkRecalled(recalled []string, path string) {
	g.t.Helper()
	if len(recalled) == 0 || !g.noneActive() {
		return
	}
	g.done["recalls"]++
	there := map[string]bool{}
	add := func(text string) {
		for _, name := range sentences.FindAllString(text, -1) {
			there[name] = true
		}
	}
	for _, p := range g.chats {
		for _, s := range p.shown() {
			add(s.now().text)
		}
	}
	for _, k := range g.saves {
		if path == "/saves/"+k.id {
			for _, s := range k.chat.path(k.fields.head, k.tick) {
				l, _ := s.states.at(k.tick)
				add(l.text)
			}
		}
	}
	for _, m := range g.memories {
		if m.status == "active" {
			add(m.text)
		}
	}
	for _, name := range sentences.FindAllString(strings.Join(recalled, "\n"), -1) {
		if !there[name] {
			g.t.Fatalf("%q was recalled for %s but does not exist", name, path)
		}
	}
}

// awaitSummaries waits until no summary is being written.
func (g *simulation) awaitSummaries() {
	g.t.Helper()
	eventually(g.t, "the summaries", func() error {
		for _, j := range dueJobs(g.t, g.p.client, g.docs.character, time.Second) {
			if strings.Contains(j.Kind, "summar") {
				return fmt.Errorf("%s is %s: %w", j.Kind, j.State, errNotYet)
			}
		}
		return nil
	})
}

// wireSummary is a summary as the API returns it.
type wireSummary struct {
	ID, Summary string
	Generation  int
	Active      bool
}

// activeSummary returns the active summary of a conversation, nil if there is none.
func (g *simulation) activeSummary(p *chatModel) *wireSummary {
	g.t.Helper()
	g.awaitSummaries()
	var list cli.PageOf[wireSummary]
	g.get(&list, "/conversations/%s/summaries", p.id)
	var active *wireSummary
	for i := range list.Items {
		if list.Items[i].Active {
			if active != nil {
				g.t.Fatalf("two summaries are active: active is %+v, want nil", active)
			}
			active = &list.Items[i]
		}
		if i != 0 && list.Items[i].Generation >= list.Items[i-1].Generation {
			g.t.Fatalf("generations of %s", p.id)
		}
	}
	return active
}

// opSummarise creates a summary, if there is something to summarise.
func (g *simulation) opSummarise(p *chatModel) bool {
	g.awaitSummaries()
	r := g.do(apiCall{method: http.MethodPost, path: "/conversations/" + p.id + "/summaries", query: map[string]string{"wait": "1"}})
	if r.fault != nil {
		if got := r.code(); got != "conflict" {
			g.t.Fatalf("%+v: r.code() is %q, want %q", r.fault, got, "conflict")
		}
		g.done["nothing to summarise"]++
		return true
	}
	var made wireSummary
	r.into(g, &made)
	if !made.Active {
		g.t.Fatal("made.Active is false, want true")
	}
	if got := g.activeSummary(p).ID; got != made.ID {
		g.t.Fatalf("g.activeSummary(p).ID is %q, want %q", got, made.ID)
	}
	return true
}

// opChangeSummary deletes or edits the active summary. Save points must not change.
func (g *simulation) opChangeSummary(p *chatModel) bool {
	s := g.activeSummary(p)
	if s == nil {
		return false
	}
	path := "/conversations/" + p.id + "/summaries/" + s.ID
	ids := map[string]string{"conversationId": p.id, "summaryId": s.ID}
	if g.chance(2) {
		g.must(apiCall{method: http.MethodPatch, path: path, body: map[string]any{"summary": "In short: " + g.sentence()}})
		if got := g.activeSummary(p).ID; got != s.ID {
			g.t.Fatalf("g.activeSummary(p).ID is %q, want %q", got, s.ID)
		}
	} else {
		g.must(apiCall{cmd: "summary.delete", method: http.MethodDelete, path: path, ids: ids})
		if now := g.activeSummary(p); now != nil {
			if now.ID == s.ID {
				g.t.Fatalf("got %q, want another", now.ID)
			}
		}
	}
	return true
}

// hasSummary reports whether a prompt contains a summary. Exported save points contain
// none.
func hasSummary(prompt string) bool { return strings.Contains(prompt, "--- CONVERSATION SUMMARY") }
