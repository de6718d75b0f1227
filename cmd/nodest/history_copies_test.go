package main

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"nodest/internal/cli"
)

// archive exports a conversation.
func (g *simulation) archive(p *chatModel) (*archived, []byte) {
	g.t.Helper()
	r := g.rest(apiCall{method: http.MethodGet, path: "/conversations/" + p.id + "/export", query: map[string]string{"format": "json"}}, "")
	if got := r.code(); got != "" {
		g.t.Fatalf("%+v: r.code() is %q, want none", r.fault, got)
	}
	var a archived
	r.into(g, &a)
	return &a, r.data
}

// compareArchive compares a whole conversation with the model, including hidden
// branches and deleted messages. No text that was ever seen is missing.
func (g *simulation) compareArchive(p *chatModel) {
	g.t.Helper()
	a, _ := g.archive(p)
	if len(a.Messages) != len(p.order) {
		g.t.Fatalf("messages of %s: a.Messages has %d, want %d: %+v", p.id, len(a.Messages), len(p.order), a.Messages)
	}
	if want := p.head(); a.Conversation.HeadID != want {
		g.t.Fatalf("a.Conversation.HeadID is %q, want %q", a.Conversation.HeadID, want)
	}
	for i := range a.Messages {
		m := &a.Messages[i]
		s := p.messages[m.ID]
		if s == nil {
			g.t.Fatalf("message %s of the archive: s is nil, want a value", m.ID)
		}
		if got, want := ([]any{m.ParentID, m.Role, m.Seq, m.DeletedAt == nil}), ([]any{s.parent, s.role, s.seq, s.exists()}); !reflect.DeepEqual(got, want) {
			g.t.Fatalf("message %s: got %+v, want %+v", m.ID, got, want)
		}
		if want := s.now().status; m.Status != want {
			g.t.Fatalf("message %s: m.Status is %q, want %q", m.ID, m.Status, want)
		}
		texts := map[string]string{}
		there := map[string]bool{}
		for _, v := range m.Texts {
			texts[v.ID] = v.Text
			there[v.Text] = true
		}
		if len(m.States) > 0 {
			if got, want := texts[m.States[len(m.States)-1].RevisionID], s.now().text; got != want {
				g.t.Fatalf("message %s: got %q, want %q", m.ID, got, want)
			}
		}
		for text := range g.textsOf[m.ID] {
			if !there[text] {
				g.t.Fatalf("message %s has lost %q", m.ID, text)
			}
		}
		for k, v := range m.Swipes {
			if v.ID != s.swipes[k].id {
				g.t.Fatalf("v.ID is %q, want %q", v.ID, s.swipes[k].id)
			}
			if v.Deleted != s.swipes[k].deleted {
				g.t.Fatalf("swipe %s of message %s: v.Deleted is %v, want %v", v.ID, m.ID, v.Deleted, s.swipes[k].deleted)
			}
		}
	}
}

// opArchive exports a conversation and imports it as another one.
func (g *simulation) opArchive(p *chatModel) bool {
	if len(p.order) > 400 && !g.chance(10) {
		return false
	}
	a, file := g.archive(p)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	if err := w.WriteField("characterId", g.docs.character); err != nil {
		g.t.Fatal(err)
	}
	part, err := w.CreateFormFile("file", "chat.json")
	if err != nil {
		g.t.Fatal(err)
	}
	_, err = part.Write(file)
	if err != nil {
		g.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		g.t.Fatal(err)
	}
	g.makeRoom(p)
	g.keys++
	g.record("POST /conversations/import of %s", p.id)
	r := g.request(apiCall{method: http.MethodPost, path: "/conversations/import"}, &form, w.FormDataContentType(), fmt.Sprintf("key-%d", g.keys))
	if got := r.code(); got != "" {
		g.t.Fatalf("%+v: r.code() is %q, want none", r.fault, got)
	}
	var c wireChat
	r.into(g, &c)
	n := &chatModel{id: c.ID}
	b, _ := g.archive(n)
	if len(b.Messages) != len(a.Messages) {
		g.t.Fatalf("b.Messages has %d, want %d: %+v", len(b.Messages), len(a.Messages), b.Messages)
	}
	names := map[string]string{"": ""}
	for i := range a.Messages {
		from, to := &a.Messages[i], &b.Messages[i]
		names[from.ID] = to.ID
		if len(to.Swipes) != len(from.Swipes) {
			g.t.Fatalf("to.Swipes has %d, want %d: %+v", len(to.Swipes), len(from.Swipes), to.Swipes)
		}
		for k := range from.Swipes {
			names[from.Swipes[k].ID] = to.Swipes[k].ID
		}
	}
	n = p.copyAs(c.ID, names)
	n.partly = true
	g.chats = append(g.chats, n)
	g.checkChat(n, true)
	g.compareArchive(n)
	if len(b.Saves) != len(a.Saves) {
		g.t.Fatalf("b.Saves has %d, want %d: %+v", len(b.Saves), len(a.Saves), b.Saves)
	}
	for i := range a.Saves {
		at := slices.IndexFunc(g.saves, func(k *savePoint) bool { return k.id == a.Saves[i].ID })
		if at < 0 {
			g.t.Fatalf("save point %s of the archive: at is %d, want at least %d", a.Saves[i].ID, at, 0)
		}
		k := *g.saves[at]
		k.id, k.chat = b.Saves[i].ID, n
		k.fields.head = names[k.fields.head]
		g.saves = append(g.saves, &k)
		if k.prompt != "" {
			was := k.prompt
			k.prompt = g.prompt("/saves/" + k.id)
			if got, want := withoutMood(k.prompt), withoutMood(was); got != want {
				g.t.Fatalf("the prompt of save point %s of the copy: withoutMood(k.prompt) is %q, want %q", k.id, got, want)
			}
		}
	}
	return true
}

// makeRoom deletes conversations other than p until another one may be created.
func (g *simulation) makeRoom(p *chatModel) {
	for len(g.chats) >= maxChats {
		if o := pick(g, g.chats[1:]); o != p {
			g.opDeleteChat(o)
		}
	}
}

// opFork forks a conversation.
func (g *simulation) opFork(p *chatModel) bool {
	s := g.pickMessage(p, anyMessage)
	if s == nil || len(p.branch(s.id)) > 300 && !g.chance(5) {
		return false
	}
	g.makeRoom(p)
	body := map[string]any{}
	if s.id != p.head() || g.chance(2) {
		body["messageId"] = s.id
	}
	title := p.title
	if g.chance(2) {
		title = g.sentence()
		body["title"] = title
	}
	g.awaitSummaries()
	prompt := g.prompt("/conversations/" + p.id)
	r := g.must(apiCall{cmd: "chat.fork", method: http.MethodPost, path: "/conversations/" + p.id + "/fork", ids: toChat(p), body: body})
	var c wireChat
	r.into(g, &c)
	if g.chance(4) && !g.shared {
		g.restart()
	}
	b, _ := g.archive(&chatModel{id: c.ID})
	branch := p.branch(s.id)
	if len(b.Messages) != len(branch) {
		g.t.Fatalf("the copied branch: b.Messages has %d, want %d: %+v", len(b.Messages), len(branch), b.Messages)
	}
	whole, names := forkModel(g, p, branch, b)
	whole.id, whole.title = c.ID, title
	frame := p.now()
	frame.head = names[s.id]
	whole.states.set(0, frame)
	g.chats = append(g.chats, whole)
	g.checkChat(whole, true)
	g.compareArchive(whole)
	if s.id == p.head() {
		if got, want := withoutMood(g.prompt("/conversations/"+c.ID)), withoutMood(prompt); got != want {
			g.t.Fatalf("the prompt of the fork: got %q, want %q", got, want)
		}
	}
	return true
}

// forkModel returns the model of a copied branch, and its ids by the ids of the original.
func forkModel(g *simulation, p *chatModel, branch []*messageModel, copied *archived) (whole *chatModel, names map[string]string) {
	g.t.Helper()
	names = map[string]string{}
	whole = &chatModel{character: p.character, messages: map[string]*messageModel{}, partly: true}
	for i, was := range branch {
		to := &copied.Messages[i]
		if to.Seq != was.seq {
			g.t.Fatalf("to.Seq is %d, want %d", to.Seq, was.seq)
		}
		if len(to.Swipes) != len(was.swipes) {
			g.t.Fatalf("to.Swipes has %d, want %d: %+v", len(to.Swipes), len(was.swipes), to.Swipes)
		}
		names[was.id] = to.ID
		n := &messageModel{id: to.ID, parent: names[was.parent], role: was.role, seq: was.seq, greeting: was.greeting, rev: 1}
		l := was.now()
		for k, v := range was.swipes {
			n.swipes = append(n.swipes, &swipeModel{to.Swipes[k].ID, v.text, v.deleted})
			if v.id == l.swipe {
				l.swipe = to.Swipes[k].ID
			}
		}
		n.states.set(0, l)
		whole.messages[n.id] = n
		whole.order = append(whole.order, n)
	}
	return whole, names
}

// opBranches compares the list of branches with the model.
func (g *simulation) opBranches(p *chatModel) bool {
	g.t.Helper()
	var want, got []string
	for _, id := range p.branchEnds() {
		want = append(want, fmt.Sprint(id, id == p.head(), len(p.path(id, p.tick))))
	}
	for cursor := ""; ; {
		var page cli.PageOf[struct {
			Head         *wireMessage
			Shown        bool
			MessageCount int
		}]
		g.get(&page, "/conversations/%s/branches?limit=100&cursor=%s", p.id, cursor)
		for _, b := range page.Items {
			g.checkMessage(p, b.Head)
			got = append(got, fmt.Sprint(b.Head.ID, b.Shown, b.MessageCount))
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if !reflect.DeepEqual(got, want) {
		g.t.Fatalf("branches of %s: got is %q, want %q", p.id, got, want)
	}
	return true
}

// opSearch searches for an existing message.
func (g *simulation) opSearch(p *chatModel) bool {
	s := g.pickMessage(p, func(s *messageModel) bool { return strings.HasPrefix(s.now().text, "Sentence ") })
	if s == nil {
		return false
	}
	words := strings.Fields(s.now().text)
	query := map[string]string{"q": words[0] + " " + words[1], "conversationId": p.id, "limit": "200"}
	found := false
	for more := true; more; {
		r := g.rest(apiCall{method: http.MethodGet, path: "/messages/search", query: query}, "")
		if got := r.code(); got != "" {
			g.t.Fatalf("%+v: r.code() is %q, want none", r.fault, got)
		}
		var page cli.PageOf[struct{ Message *wireMessage }]
		r.into(g, &page)
		for _, h := range page.Items {
			g.checkMessage(p, h.Message)
			found = found || h.Message.ID == s.id
		}
		if more = page.NextCursor != nil; more {
			query["cursor"] = *page.NextCursor
		}
	}
	if !found {
		g.t.Fatalf("%q was not found", s.now().text)
	}
	return true
}
