package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// memo is what the user wants remembered.
type memo struct {
	id, text, status string // of the newest version
}

// mostMemos is how many there are at a time.
const mostMemos = 30

func (g *game) toMemory(m *memo) map[string]string {
	return map[string]string{"characterId": g.docs.character, "memoryId": m.id}
}

func (g *game) memoryPath(m *memo) string {
	return "/characters/" + g.docs.character + "/memories/" + m.id
}

// opMemory uses one of the rights that a user has over memories.
func (g *game) opMemory(*plain) bool {
	if len(g.memos) == 0 || len(g.memos) < mostMemos && g.chance(3) {
		return g.remembers()
	}
	m := pick(g, g.memos)
	switch {
	case len(g.memos) >= mostMemos || g.chance(8):
		g.must(act{method: http.MethodDelete, path: g.memoryPath(m), query: map[string]string{"purge": "true"}})
		g.memos = slices.DeleteFunc(g.memos, func(o *memo) bool { return o == m })
		r := g.rest(act{method: http.MethodGet, path: g.memoryPath(m) + "/history"}, "")
		require.Equal(g.t, "not_found", r.code(), "a memory that was purged")
	case m.status == "retired":
		r := g.must(act{cmd: "memory.restore", method: http.MethodPost, path: g.memoryPath(m) + "/restore", ids: g.toMemory(m)})
		g.remembered(r, m, m.text, "active")
	case g.chance(2):
		g.must(act{cmd: "memory.delete", method: http.MethodDelete, path: g.memoryPath(m), ids: g.toMemory(m)})
		m.status = "retired"
	default:
		text := "Memo: " + g.sentence()
		r := g.must(act{cmd: "memory.edit", method: http.MethodPatch, path: g.memoryPath(m), ids: g.toMemory(m), body: map[string]any{"text": text}})
		g.remembered(r, m, text, "active")
	}
	return true
}

func (g *game) remembers() bool {
	text := "Memo: " + g.sentence()
	character := map[string]string{"characterId": g.docs.character}
	r := g.must(act{cmd: "memory.create", method: http.MethodPost, path: "/characters/" + g.docs.character + "/memories", ids: character, body: map[string]any{"text": text}})
	m := &memo{}
	g.remembered(r, m, text, "active")
	g.memos = append(g.memos, m)
	return true
}

// remembered takes in the answer to what made or changed a memory.
func (g *game) remembered(r *reply, m *memo, text, status string) {
	g.t.Helper()
	var got struct{ ID, Text, Status string }
	r.into(g, &got)
	require.Equal(g.t, []string{text, status}, []string{got.Text, got.Status})
	*m = memo{got.ID, text, status}
}

// opListMemories compares what the user wanted remembered with what is.
func (g *game) opListMemories(*plain) bool {
	want, got := map[string]memo{}, map[string]memo{}
	for _, m := range g.memos {
		want[m.id] = *m
	}
	for cursor := ""; ; {
		var page pageOf[struct{ ID, Text, Status, Origin string }]
		g.get(&page, "/characters/%s/memories?status=any&limit=200&cursor=%s", g.docs.character, cursor)
		for _, m := range page.Items {
			if m.Origin == "user" && m.Status != "superseded" {
				got[m.ID] = memo{m.ID, m.Text, m.Status}
			}
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	require.Equal(g.t, want, got, "what the user wanted remembered")
	return true
}

// quiet says that no reply is being written anywhere.
func (g *game) quiet() bool {
	return !slices.ContainsFunc(g.chats, func(p *plain) bool { return p.writing != nil })
}

// foundUnit is a hit of a search in the memory.
type foundUnit struct {
	ID, Layer, Text string
	Memory          *struct{ Origin string }
	Said            *struct{ ConversationID, MessageID string }
}

// opSearchMemory looks for a word. What was said is found when it is shown, and
// only then; what the user wrote when it is active.
func (g *game) opSearchMemory(*plain) bool {
	if !g.quiet() {
		return false
	}
	const most = 100
	word := pick(g, []string{"harbour", "lamp", "storm", "map"})
	var page pageOf[foundUnit]
	g.get(&page, "/characters/%s/memories?mode=recall&limit=%d&q=%s", g.docs.character, most, word)
	found := map[string]bool{}
	for i := range page.Items {
		g.counts(&page.Items[i])
		found[page.Items[i].Text] = true
	}
	if len(page.Items) == most {
		return true
	}
	for _, m := range g.memos {
		if m.status != "active" || strings.Contains(m.text, " the "+word+".") {
			require.Equal(g.t, m.status == "active", found[m.text], "%s memory %q, asked for %s", m.status, m.text, word)
		}
	}
	for _, p := range g.chats {
		for _, s := range p.shown() {
			if l := s.now(); s.role == "user" && l.swipe != "" && strings.HasSuffix(l.text, " the "+word+".") {
				require.True(g.t, found[l.text], "%q is shown in %s and was not found", l.text, p.id)
			}
		}
	}
	return true
}

// counts checks that a unit that was found is there to be found.
func (g *game) counts(u *foundUnit) {
	g.t.Helper()
	if u.Said == nil {
		if u.Memory.Origin == "user" {
			require.True(g.t, slices.ContainsFunc(g.memos, func(m *memo) bool { return m.id == u.ID && m.status == "active" }), "memory %q", u.Text)
		}
		return
	}
	at := slices.IndexFunc(g.chats, func(p *plain) bool { return p.id == u.Said.ConversationID })
	require.GreaterOrEqual(g.t, at, 0, "%q of a conversation that is not there", u.Text)
	s := g.chats[at].spots[u.Said.MessageID]
	require.Contains(g.t, g.chats[at].shown(), s, "%q is not shown", u.Text)
	require.Equal(g.t, strings.TrimSpace(s.now().text), u.Text, "the text that is shown")
}

// memBlock is what a recall puts behind a message.
var (
	memBlock  = regexp.MustCompile(`(?s)\s*<mem>.*?</mem>|\s*<response_guidelines>.*?</response_guidelines>`)
	sentences = regexp.MustCompile(`Sentence \d+ about`)
)

// withoutRecall is a prompt without what was recalled for it, and that. What is
// recalled may change without the chat: something was said elsewhere, or a vector was
// made. Everything else is the same to the byte.
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

// trueRecall checks that what was recalled stands somewhere: on a shown branch, on
// one that the prompt is of, or in the user's memories.
func (g *game) trueRecall(recalled []string, path string) {
	g.t.Helper()
	if len(recalled) == 0 || !g.quiet() {
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
			for _, s := range k.chat.path(k.frame.head, k.tick) {
				l, _ := s.looks.at(k.tick)
				add(l.text)
			}
		}
	}
	for _, m := range g.memos {
		if m.status == "active" {
			add(m.text)
		}
	}
	for _, name := range sentences.FindAllString(strings.Join(recalled, "\n"), -1) {
		require.True(g.t, there[name], "%q was recalled for %s and stands nowhere", name, path)
	}
}

// calm waits until no summary is being written: it may come into force at any time.
func (g *game) calm() {
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

// overlay is a summary as the test reads it.
type overlay struct {
	ID, Summary string
	Generation  int
	Active      bool
}

// inForce is the summary that stands for a part of a conversation; nil if none does.
func (g *game) inForce(p *plain) *overlay {
	g.t.Helper()
	g.calm()
	var list pageOf[overlay]
	g.get(&list, "/conversations/%s/summaries", p.id)
	var active *overlay
	for i := range list.Items {
		if list.Items[i].Active {
			require.Nil(g.t, active, "two summaries are in force")
			active = &list.Items[i]
		}
		require.True(g.t, i == 0 || list.Items[i].Generation < list.Items[i-1].Generation, "generations of %s", p.id)
	}
	return active
}

// opSummarise has a summary written where there is something to summarise.
func (g *game) opSummarise(p *plain) bool {
	g.calm()
	r := g.do(act{method: http.MethodPost, path: "/conversations/" + p.id + "/summaries", query: map[string]string{"wait": "1"}})
	if r.fault != nil {
		require.Equal(g.t, "conflict", r.code(), "%+v", r.fault)
		g.done["nothing to summarise"]++
		return true
	}
	var made overlay
	r.into(g, &made)
	require.True(g.t, made.Active)
	require.Equal(g.t, made.ID, g.inForce(p).ID)
	return true
}

// opChangeSummary deletes the summary in force or writes another text. Save points
// show what they showed.
func (g *game) opChangeSummary(p *plain) bool {
	s := g.inForce(p)
	if s == nil {
		return false
	}
	path := "/conversations/" + p.id + "/summaries/" + s.ID
	ids := map[string]string{"conversationId": p.id, "summaryId": s.ID}
	if g.chance(2) {
		g.must(act{method: http.MethodPatch, path: path, body: map[string]any{"summary": "In short: " + g.sentence()}})
		require.Equal(g.t, s.ID, g.inForce(p).ID)
	} else {
		g.must(act{cmd: "summary.delete", method: http.MethodDelete, path: path, ids: ids})
		if now := g.inForce(p); now != nil {
			require.NotEqual(g.t, s.ID, now.ID)
		}
	}
	return true
}

// summarised tells a prompt in which a summary stands for a part of the chat. Files of
// save points have the messages alone.
func summarised(prompt string) bool { return strings.Contains(prompt, "--- CONVERSATION SUMMARY") }
