package main

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// archive writes a conversation as a file.
func (g *game) archive(p *plain) (*archived, []byte) {
	g.t.Helper()
	r := g.rest(act{method: http.MethodGet, path: "/conversations/" + p.id + "/export", query: map[string]string{"format": "json"}}, "")
	require.Empty(g.t, r.code(), "%+v", r.fault)
	var a archived
	r.into(g, &a)
	return &a, r.data
}

// compareArchive compares all of a conversation with what is believed, hidden
// branches and deleted messages too. No text that was ever seen is missing.
func (g *game) compareArchive(p *plain) {
	g.t.Helper()
	a, _ := g.archive(p)
	require.Len(g.t, a.Messages, len(p.line), "messages of %s", p.id)
	require.Equal(g.t, p.head(), a.Conversation.HeadID)
	for i := range a.Messages {
		m := &a.Messages[i]
		s := p.spots[m.ID]
		require.NotNil(g.t, s, "message %s of the archive", m.ID)
		require.Equal(g.t, []any{s.parent, s.role, s.seq, s.living()}, []any{m.ParentID, m.Role, m.Seq, m.DeletedAt == nil}, "message %s", m.ID)
		require.Equal(g.t, s.now().status, m.Status, "message %s", m.ID)
		texts := map[string]string{}
		there := map[string]bool{}
		for _, v := range m.Texts {
			texts[v.ID] = v.Text
			there[v.Text] = true
		}
		if len(m.States) > 0 {
			require.Equal(g.t, s.now().text, texts[m.States[len(m.States)-1].RevisionID], "message %s", m.ID)
		}
		for text := range g.words[m.ID] {
			require.True(g.t, there[text], "message %s has lost %q", m.ID, text)
		}
		for k, v := range m.Swipes {
			require.Equal(g.t, s.swipes[k].id, v.ID)
			require.Equal(g.t, s.swipes[k].gone, v.Deleted, "swipe %s of message %s", v.ID, m.ID)
		}
	}
}

// opArchive writes a conversation as a file and reads it as another one.
func (g *game) opArchive(p *plain) bool {
	if len(p.line) > 400 && !g.chance(10) {
		return false
	}
	a, file := g.archive(p)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	require.NoError(g.t, w.WriteField("characterId", g.docs.character))
	part, err := w.CreateFormFile("file", "chat.json")
	require.NoError(g.t, err)
	_, err = part.Write(file)
	require.NoError(g.t, err)
	require.NoError(g.t, w.Close())
	g.makeRoom(p)
	g.keys++
	g.note("POST /conversations/import of %s", p.id)
	r := g.request(act{method: http.MethodPost, path: "/conversations/import"}, &form, w.FormDataContentType(), fmt.Sprintf("key-%d", g.keys))
	require.Empty(g.t, r.code(), "%+v", r.fault)
	var c wireChat
	r.into(g, &c)
	n := &plain{id: c.ID}
	b, _ := g.archive(n)
	require.Len(g.t, b.Messages, len(a.Messages))
	names := map[string]string{"": ""}
	for i := range a.Messages {
		from, to := &a.Messages[i], &b.Messages[i]
		names[from.ID] = to.ID
		require.Len(g.t, to.Swipes, len(from.Swipes))
		for k := range from.Swipes {
			names[from.Swipes[k].ID] = to.Swipes[k].ID
		}
	}
	n = p.copied(c.ID, names)
	n.partly = true
	g.chats = append(g.chats, n)
	g.look(n, true)
	g.compareArchive(n)
	require.Len(g.t, b.Saves, len(a.Saves))
	for i := range a.Saves {
		at := slices.IndexFunc(g.saves, func(k *kept) bool { return k.id == a.Saves[i].ID })
		require.GreaterOrEqual(g.t, at, 0, "save point %s of the archive", a.Saves[i].ID)
		k := *g.saves[at]
		k.id, k.chat = b.Saves[i].ID, n
		k.frame.head = names[k.frame.head]
		g.saves = append(g.saves, &k)
		if k.prompt != "" {
			was := k.prompt
			k.prompt = g.prompt("/saves/" + k.id)
			require.Equal(g.t, withoutMood(was), withoutMood(k.prompt), "the prompt of save point %s of the copy", k.id)
		}
	}
	return true
}

// makeRoom leaves a place for another conversation beside p.
func (g *game) makeRoom(p *plain) {
	for len(g.chats) >= most {
		if o := pick(g, g.chats[1:]); o != p {
			g.opForget(o)
		}
	}
}

// opFork makes a conversation of a branch.
func (g *game) opFork(p *plain) bool {
	s := g.somewhere(p, anySpot)
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
	g.calm()
	prompt := g.prompt("/conversations/" + p.id)
	r := g.must(act{cmd: "chat.fork", method: http.MethodPost, path: "/conversations/" + p.id + "/fork", ids: toChat(p), body: body})
	var c wireChat
	r.into(g, &c)
	if g.chance(4) && !g.shared {
		g.restart()
	}
	b, _ := g.archive(&plain{id: c.ID})
	way := p.branch(s.id)
	require.Len(g.t, b.Messages, len(way), "the copied branch")
	whole, names := forked(g, p, way, b)
	whole.id, whole.title = c.ID, title
	frame := p.now()
	frame.head = names[s.id]
	whole.looks.set(0, frame)
	g.chats = append(g.chats, whole)
	g.look(whole, true)
	g.compareArchive(whole)
	if s.id == p.head() {
		require.Equal(g.t, withoutMood(prompt), withoutMood(g.prompt("/conversations/"+c.ID)), "the prompt of the fork")
	}
	return true
}

// forked is a branch under the names that its copy has.
func forked(g *game, p *plain, way []*spot, copied *archived) (whole *plain, names map[string]string) {
	g.t.Helper()
	names = map[string]string{}
	whole = &plain{character: p.character, spots: map[string]*spot{}, partly: true}
	for i, was := range way {
		to := &copied.Messages[i]
		require.Equal(g.t, was.seq, to.Seq)
		require.Len(g.t, to.Swipes, len(was.swipes))
		names[was.id] = to.ID
		n := &spot{id: to.ID, parent: names[was.parent], role: was.role, seq: was.seq, greeting: was.greeting, rev: 1}
		l := was.now()
		for k, v := range was.swipes {
			n.swipes = append(n.swipes, &variant{to.Swipes[k].ID, v.text, v.gone})
			if v.id == l.swipe {
				l.swipe = to.Swipes[k].ID
			}
		}
		n.looks.set(0, l)
		whole.spots[n.id] = n
		whole.line = append(whole.line, n)
	}
	return whole, names
}

// opBranches compares the ends of all branches.
func (g *game) opBranches(p *plain) bool {
	g.t.Helper()
	var want, got []string
	for _, id := range p.tips() {
		want = append(want, fmt.Sprint(id, id == p.head(), len(p.path(id, p.tick))))
	}
	for cursor := ""; ; {
		var page pageOf[struct {
			Head         *wireSpot
			Shown        bool
			MessageCount int
		}]
		g.get(&page, "/conversations/%s/branches?limit=100&cursor=%s", p.id, cursor)
		for _, b := range page.Items {
			g.agree(p, b.Head)
			got = append(got, fmt.Sprint(b.Head.ID, b.Shown, b.MessageCount))
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	require.Equal(g.t, want, got, "branches of %s", p.id)
	return true
}

// opSearch looks for a message that is there.
func (g *game) opSearch(p *plain) bool {
	s := g.somewhere(p, func(s *spot) bool { return strings.HasPrefix(s.now().text, "Sentence ") })
	if s == nil {
		return false
	}
	words := strings.Fields(s.now().text)
	query := map[string]string{"q": words[0] + " " + words[1], "conversationId": p.id, "limit": "200"}
	found := false
	for more := true; more; {
		r := g.rest(act{method: http.MethodGet, path: "/messages/search", query: query}, "")
		require.Empty(g.t, r.code(), "%+v", r.fault)
		var page pageOf[struct{ Message *wireSpot }]
		r.into(g, &page)
		for _, h := range page.Items {
			g.agree(p, h.Message)
			found = found || h.Message.ID == s.id
		}
		if more = page.NextCursor != nil; more {
			query["cursor"] = *page.NextCursor
		}
	}
	require.True(g.t, found, "%q was not found", s.now().text)
	return true
}
