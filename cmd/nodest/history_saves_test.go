package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"nodest/internal/cli"
)

// savePoint is a save point and what it must restore.
type savePoint struct {
	id     string
	chat   *chatModel
	tick   int
	fields chatFields
	prompt string // "" if the conversation was empty
	auto   bool
}

// prompt returns what would be sent to the model, without what is recalled. path is
// that of a conversation or a save point.
func (g *simulation) prompt(path string) string { return g.preview(path, "And the lamp in the storm?") }

// preview is prompt for a given user message.
func (g *simulation) preview(path, text string) string {
	g.t.Helper()
	g.awaitSummaries()
	r := g.rest(apiCall{method: http.MethodPost, path: path + "/prompt", body: map[string]any{"text": text}}, "")
	if got := r.code(); got != "" {
		g.t.Fatalf("%+v: r.code() is %q, want none", r.fault, got)
	}
	var got struct{ Messages json.RawMessage }
	r.into(g, &got)
	rest, recalled := withoutRecall(got.Messages)
	g.checkRecalled(recalled, path)
	return rest
}

func toSave(k *savePoint) map[string]string { return map[string]string{"saveId": k.id} }

// wireSave is a save point as the API returns it.
type wireSave struct {
	ID, ConversationID, HeadID, PreviewText string
	MessageCount                            int
	Automatic                               bool
}

// addSave adds a save point of the current state.
func (g *simulation) addSave(p *chatModel, s *wireSave, prompt string) *savePoint {
	g.t.Helper()
	if s.ConversationID != p.id {
		g.t.Fatalf("s.ConversationID is %q, want %q", s.ConversationID, p.id)
	}
	if want := p.head(); s.HeadID != want {
		g.t.Fatalf("s.HeadID is %q, want %q", s.HeadID, want)
	}
	if want := len(p.shown()); s.MessageCount != want {
		g.t.Fatalf("s.MessageCount is %d, want %d", s.MessageCount, want)
	}
	k := &savePoint{id: s.ID, chat: p, tick: p.tick, fields: p.now(), prompt: prompt, auto: s.Automatic}
	if s.HeadID == "" {
		k.prompt = "" // restoring it shows a greeting
	}
	g.saves = append(g.saves, k)
	return k
}

// maxSaves is how many save points a conversation has at a time.
const maxSaves = 30

func (g *simulation) opSave(p *chatModel) bool {
	if len(g.savesOf(p)) >= maxSaves {
		return g.opDeleteSave(p)
	}
	g.awaitSummaries()
	r := g.do(apiCall{
		cmd: "save.create", method: http.MethodPost, path: "/conversations/" + p.id + "/saves", ids: toChat(p),
		body: map[string]any{"description": g.sentence()},
	})
	if g.busy(p, r) {
		return true
	}
	var s wireSave
	r.into(g, &s)
	g.addSave(p, &s, g.prompt("/conversations/"+p.id))
	return true
}

func (g *simulation) savesOf(p *chatModel) []*savePoint {
	var found []*savePoint
	for _, k := range g.saves {
		if k.chat == p {
			found = append(found, k)
		}
	}
	return found
}

// pickSave returns a random save point of a conversation, nil if it has none.
func (g *simulation) pickSave(p *chatModel) *savePoint {
	found := g.savesOf(p)
	if len(found) == 0 {
		return nil
	}
	return pick(g, found)
}

func (g *simulation) opRestore(p *chatModel) bool {
	k := g.pickSave(p)
	if k == nil {
		return false
	}
	g.restore(k)
	return true
}

// restore restores a save point and compares the prompt with the one at the time of
// saving.
func (g *simulation) restore(k *savePoint) {
	g.t.Helper()
	p := k.chat
	now := g.prompt("/conversations/" + p.id)
	r := g.must(apiCall{cmd: "save.restore", method: http.MethodPost, path: "/saves/" + k.id + "/restore", ids: toSave(k)})
	var got struct {
		Conversation wireChat
		Head         *string
		Before       *wireSave
	}
	r.into(g, &got)
	rewound := len(p.jumps) > 0 && p.jumps[len(p.jumps)-1].at == p.tick
	if rewound && got.Before != nil { // a summary has changed since, which the model does not track
		var list cli.PageOf[wireSummary]
		g.get(&list, "/conversations/%s/summaries", p.id)
		if len(list.Items) == 0 {
			g.t.Fatalf("a save point of what the last restore made: list.Items is %+v, want more", list.Items)
		}
	}
	if !rewound && got.Before == nil {
		g.t.Fatal("a save point of what was shown before")
	}
	if got.Before != nil {
		if !got.Before.Automatic {
			g.t.Fatal("got.Before.Automatic is false, want true")
		}
		g.addSave(p, got.Before, now)
	}
	p.change(func() {
		p.rewind(k.tick, k.fields.head)
		p.setFields(func(f *chatFields) { *f = k.fields })
		if k.fields.head == "" {
			g.applyNewGreeting(p, *got.Conversation.HeadID)
		}
	})
	if found, want := got.Conversation.fields(), p.now(); !reflect.DeepEqual(found, want) {
		g.t.Fatalf("got.Conversation.fields() is %+v, want %+v", found, want)
	}
	if want := p.head(); *got.Head != want {
		g.t.Fatalf("*got.Head is %q, want %q", *got.Head, want)
	}
	prompt := g.prompt("/conversations/" + p.id)
	if k.prompt != "" {
		if prompt != k.prompt {
			g.t.Fatalf("the prompt after restoring save point %s: prompt is %q, want %q", k.id, prompt, k.prompt)
		}
	}
}

func (g *simulation) opPreviewSave(p *chatModel) bool {
	k := g.pickSave(p)
	if k == nil || k.prompt == "" {
		return false
	}
	if got := g.prompt("/saves/" + k.id); got != k.prompt {
		g.t.Fatalf("the prompt of save point %s: got %q, want %q", k.id, got, k.prompt)
	}
	return true
}

// opReadSave compares the messages of a save point with those shown at the time.
func (g *simulation) opReadSave(p *chatModel) bool {
	k := g.pickSave(p)
	if k == nil {
		return false
	}
	g.readSave(k)
	return true
}

func (g *simulation) readSave(k *savePoint) []string {
	g.t.Helper()
	var got struct {
		wireSave
		Messages          []struct{ ID, Text, Sender string }
		NodestChatHistory struct {
			Parts []struct {
				Role  string
				Parts []struct{ Text string }
			}
		}
	}
	g.get(&got, "/saves/%s", k.id)
	var want, is, ids []string
	for _, s := range k.chat.path(k.fields.head, k.tick) {
		l, _ := s.states.at(k.tick)
		sender := "bot"
		if s.role == "user" {
			sender = "user"
		}
		want = append(want, s.id+" "+sender+" "+l.text)
	}
	for _, m := range got.Messages {
		is = append(is, m.ID+" "+m.Sender+" "+m.Text)
		ids = append(ids, m.ID)
	}
	if !reflect.DeepEqual(is, want) {
		g.t.Fatalf("messages of save point %s: is is %q, want %q", k.id, is, want)
	}
	if got.MessageCount != len(want) {
		g.t.Fatalf("got.MessageCount is %d, want %d", got.MessageCount, len(want))
	}
	return ids
}

func (g *simulation) opListSaves(p *chatModel) bool {
	var page cli.PageOf[wireSave]
	g.get(&page, "/conversations/%s/saves?automatic=true&limit=200", p.id)
	var want, got []string
	for _, k := range g.savesOf(p) {
		want = append(want, k.id)
	}
	for _, s := range page.Items {
		got = append(got, s.ID)
	}
	wantSame(g.t, "what is saved of "+p.id, got, want)
	return true
}

func (g *simulation) opDeleteSave(p *chatModel) bool {
	k := g.pickSave(p)
	if k == nil {
		return false
	}
	g.must(apiCall{cmd: "save.delete", method: http.MethodDelete, path: "/saves/" + k.id, ids: toSave(k)})
	g.saves = slices.DeleteFunc(g.saves, func(o *savePoint) bool { return o == k })
	r := g.rest(apiCall{method: http.MethodGet, path: "/saves/" + k.id}, "")
	if got := r.code(); got != "not_found" {
		g.t.Fatalf("r.code() is %q, want %q", got, "not_found")
	}
	return true
}

// opCopySave exports a save point and imports it into its own or another
// conversation.
func (g *simulation) opCopySave(p *chatModel) bool {
	k := g.pickSave(p)
	if k == nil || len(p.path(k.fields.head, k.tick)) > 40 || len(g.savesOf(p)) >= maxSaves {
		return false
	}
	to := p
	if g.chance(3) {
		to = pick(g, g.chats)
		g.awaitGeneration(to)
	}
	file := g.rest(apiCall{method: http.MethodGet, path: "/saves/" + k.id + "/export"}, "")
	if got := file.code(); got != "" {
		g.t.Fatalf("%+v: file.code() is %q, want none", file.fault, got)
	}
	g.keys++
	g.record("POST /conversations/%s/saves/import of %s", to.id, k.id)
	a := apiCall{method: http.MethodPost, path: "/conversations/" + to.id + "/saves/import", wait: true}
	r := g.request(a, bytes.NewReader(file.data), "application/json", fmt.Sprintf("key-%d", g.keys))
	if got := r.code(); got != "" {
		g.t.Fatalf("%+v: r.code() is %q, want none", r.fault, got)
	}
	var imported struct{ Save wireSave }
	r.into(g, &imported)
	s := imported.Save
	n := &savePoint{id: s.ID, chat: to, fields: k.fields, auto: s.Automatic}
	n.fields.head = s.HeadID
	to.partly = true
	to.change(func() { g.applyImportedSave(to, n, k) })
	g.saves = append(g.saves, n)
	g.readSave(n)
	if n.fields.head != "" {
		n.prompt = g.prompt("/saves/" + n.id)
		if !hasSummary(k.prompt) {
			if got, want := withoutMood(n.prompt), withoutMood(k.prompt); got != want {
				g.t.Fatalf("the prompt of the copy of save point %s: withoutMood(n.prompt) is %q, want %q", k.id, got, want)
			}
		}
	}
	return true
}

// applyImportedSave adds the branch of an imported save point n, a copy of k.
func (g *simulation) applyImportedSave(to *chatModel, n, k *savePoint) {
	g.t.Helper()
	n.tick = to.tick
	var got struct{ Messages []struct{ ID string } }
	g.get(&got, "/saves/%s", n.id)
	path := k.chat.path(k.fields.head, k.tick)
	if len(got.Messages) != len(path) {
		g.t.Fatalf("got.Messages has %d, want %d: %+v", len(got.Messages), len(path), got.Messages)
	}
	parent := ""
	for i, was := range path {
		var m wireMessage
		g.get(&m, "/messages/%s", got.Messages[i].ID)
		g.checkParent(&m, parent)
		l, _ := was.states.at(k.tick)
		if m.Text != l.text {
			g.t.Fatalf("m.Text is %q, want %q", m.Text, l.text)
		}
		if m.Role != was.role {
			g.t.Fatalf("m.Role is %q, want %q", m.Role, was.role)
		}
		if to.messages[m.ID] != nil {
			g.t.Fatalf("to.messages[m.ID] is %+v, want nil", to.messages[m.ID])
		}
		to.insert(&m)
		g.recordTexts(&m)
		parent = m.ID
	}
	if n.fields.head != parent {
		g.t.Fatalf("n.fields.head is %q, want %q", n.fields.head, parent)
	}
	a, _ := g.archive(to)
	for i := range a.Messages {
		if s := to.messages[a.Messages[i].ID]; s.born == to.tick {
			s.addDeletedSwipes(&a.Messages[i])
		}
	}
}

// addDeletedSwipes adds the deleted swipes of an imported message, which only archives
// contain.
func (s *messageModel) addDeletedSwipes(m *archivedMessage) {
	for i, v := range m.Swipes {
		if !v.Deleted {
			continue
		}
		at := slices.IndexFunc(m.Texts, func(t archivedText) bool { return t.SwipeID == v.ID })
		s.swipes = slices.Insert(s.swipes, i, &swipeModel{v.ID, m.Texts[at].Text, true})
	}
}

// archived holds the fields of an archive that the tests compare.
type archived struct {
	Conversation struct{ HeadID, Title string }
	Messages     []archivedMessage
	Saves        []struct{ ID, HeadID string }
}

type archivedMessage struct {
	ID, ParentID, Role, Status string
	Seq                        int64
	SwipeIndex                 int
	DeletedAt                  *string
	Swipes                     []struct {
		ID      string
		Deleted bool
	}
	Texts  []archivedText
	States []struct{ RevisionID string }
}

type archivedText struct {
	ID      string `json:"revisionId"`
	SwipeID string `json:"id"`
	Text    string
	Rev     int64
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
