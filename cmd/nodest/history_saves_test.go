package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// kept is a save point and what it stands for.
type kept struct {
	id     string
	chat   *plain
	tick   int
	frame  frame0
	prompt string // "" = of an empty conversation
	auto   bool
}

// prompt is what would be sent to the model, byte for byte. path names a
// conversation or a save point.
func (g *game) prompt(path string) string {
	g.t.Helper()
	r := g.rest(act{method: http.MethodPost, path: path + "/prompt", body: map[string]any{"text": "And the lamp in the storm?"}}, "")
	require.Empty(g.t, r.code(), "%+v", r.fault)
	var got struct{ Messages json.RawMessage }
	r.into(g, &got)
	return string(got.Messages)
}

func toSave(k *kept) map[string]string { return map[string]string{"saveId": k.id} }

// wireSave is a save point as the test reads it.
type wireKept struct {
	ID, ConversationID, HeadID, PreviewText string
	MessageCount                            int
	Automatic                               bool
}

// keep takes in a save point of what is shown.
func (g *game) keep(p *plain, s *wireKept, prompt string) *kept {
	g.t.Helper()
	require.Equal(g.t, p.id, s.ConversationID)
	require.Equal(g.t, p.head(), s.HeadID)
	require.Equal(g.t, len(p.shown()), s.MessageCount)
	k := &kept{id: s.ID, chat: p, tick: p.tick, frame: p.now(), prompt: prompt, auto: s.Automatic}
	if s.HeadID == "" {
		k.prompt = "" // what is shown after restoring it is a greeting
	}
	g.saves = append(g.saves, k)
	return k
}

// mostSaves is how many save points of a conversation there are at a time.
const mostSaves = 30

func (g *game) opSave(p *plain) bool {
	if len(g.savesOf(p)) >= mostSaves {
		return g.opDeleteSave(p)
	}
	r := g.do(act{
		cmd: "save.create", method: http.MethodPost, path: "/conversations/" + p.id + "/saves", ids: toChat(p),
		body: map[string]any{"description": g.sentence()},
	})
	if g.busy(p, r) {
		return true
	}
	var s wireKept
	r.into(g, &s)
	g.keep(p, &s, g.prompt("/conversations/"+p.id))
	return true
}

func (g *game) savesOf(p *plain) []*kept {
	var found []*kept
	for _, k := range g.saves {
		if k.chat == p {
			found = append(found, k)
		}
	}
	return found
}

// aSave is one of the save points of a conversation; nil if it has none.
func (g *game) aSave(p *plain) *kept {
	found := g.savesOf(p)
	if len(found) == 0 {
		return nil
	}
	return pick(g, found)
}

func (g *game) opRestore(p *plain) bool {
	k := g.aSave(p)
	if k == nil {
		return false
	}
	g.restore(k)
	return true
}

// restore sets a conversation back, and compares the prompt with the one that the
// save point was made with.
func (g *game) restore(k *kept) {
	g.t.Helper()
	p := k.chat
	now := g.prompt("/conversations/" + p.id)
	r := g.must(act{cmd: "save.restore", method: http.MethodPost, path: "/saves/" + k.id + "/restore", ids: toSave(k)})
	var got struct {
		Conversation wireChat
		Head         *string
		Before       *wireKept
	}
	r.into(g, &got)
	rewound := len(p.jumps) > 0 && p.jumps[len(p.jumps)-1].at == p.tick
	require.Equal(g.t, !rewound, got.Before != nil, "a save point of what was shown before")
	if got.Before != nil {
		require.True(g.t, got.Before.Automatic)
		g.keep(p, got.Before, now)
	}
	p.change(func() {
		p.rewind(k.tick, k.frame.head)
		p.frame(func(f *frame0) { *f = k.frame })
		if k.frame.head == "" {
			g.greeted(p, *got.Conversation.HeadID)
		}
	})
	require.Equal(g.t, p.now(), got.Conversation.frame())
	require.Equal(g.t, p.head(), *got.Head)
	prompt := g.prompt("/conversations/" + p.id)
	if k.prompt != "" {
		require.Equal(g.t, k.prompt, prompt, "the prompt after restoring save point %s", k.id)
	}
}

func (g *game) opPreviewSave(p *plain) bool {
	k := g.aSave(p)
	if k == nil || k.prompt == "" {
		return false
	}
	require.Equal(g.t, k.prompt, g.prompt("/saves/"+k.id), "the prompt of save point %s", k.id)
	return true
}

// opReadSave compares the messages of a save point with what was shown then.
func (g *game) opReadSave(p *plain) bool {
	k := g.aSave(p)
	if k == nil {
		return false
	}
	g.readSave(k)
	return true
}

func (g *game) readSave(k *kept) []string {
	g.t.Helper()
	var got struct {
		wireKept
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
	for _, s := range k.chat.path(k.frame.head, k.tick) {
		l, _ := s.looks.at(k.tick)
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
	require.Equal(g.t, want, is, "messages of save point %s", k.id)
	require.Equal(g.t, len(want), got.MessageCount)
	return ids
}

func (g *game) opListSaves(p *plain) bool {
	var page pageOf[wireKept]
	g.get(&page, "/conversations/%s/saves?automatic=true&limit=200", p.id)
	var want, got []string
	for _, k := range g.savesOf(p) {
		want = append(want, k.id)
	}
	for _, s := range page.Items {
		got = append(got, s.ID)
	}
	require.ElementsMatch(g.t, want, got, "save points of %s", p.id)
	return true
}

func (g *game) opDeleteSave(p *plain) bool {
	k := g.aSave(p)
	if k == nil {
		return false
	}
	g.must(act{cmd: "save.delete", method: http.MethodDelete, path: "/saves/" + k.id, ids: toSave(k)})
	g.saves = slices.DeleteFunc(g.saves, func(o *kept) bool { return o == k })
	r := g.rest(act{method: http.MethodGet, path: "/saves/" + k.id}, "")
	require.Equal(g.t, "not_found", r.code())
	return true
}

// opCopySave writes a save point as a file and reads it into a conversation, its
// own or another one.
func (g *game) opCopySave(p *plain) bool {
	k := g.aSave(p)
	if k == nil || len(p.path(k.frame.head, k.tick)) > 40 || len(g.savesOf(p)) >= mostSaves {
		return false
	}
	to := p
	if g.chance(3) {
		to = pick(g, g.chats)
		g.settle(to)
	}
	file := g.rest(act{method: http.MethodGet, path: "/saves/" + k.id + "/export"}, "")
	require.Empty(g.t, file.code(), "%+v", file.fault)
	g.keys++
	g.note("POST /conversations/%s/saves/import of %s", to.id, k.id)
	a := act{method: http.MethodPost, path: "/conversations/" + to.id + "/saves/import", wait: true}
	r := g.request(a, bytes.NewReader(file.data), "application/json", fmt.Sprintf("key-%d", g.keys))
	require.Empty(g.t, r.code(), "%+v", r.fault)
	var s wireKept
	r.into(g, &s)
	n := &kept{id: s.ID, chat: to, frame: k.frame, auto: s.Automatic}
	n.frame.head = s.HeadID
	to.partly = true
	to.change(func() { g.arrives(to, n, k) })
	g.saves = append(g.saves, n)
	g.readSave(n)
	if n.frame.head != "" {
		n.prompt = g.prompt("/saves/" + n.id)
		require.Equal(g.t, withoutMood(k.prompt), withoutMood(n.prompt), "the prompt of the copy of save point %s", k.id)
	}
	return true
}

// arrives takes in the branch that came with a save point n, a copy of k.
func (g *game) arrives(to *plain, n, k *kept) {
	g.t.Helper()
	n.tick = to.tick
	var got struct{ Messages []struct{ ID string } }
	g.get(&got, "/saves/%s", n.id)
	path := k.chat.path(k.frame.head, k.tick)
	require.Len(g.t, got.Messages, len(path))
	parent := ""
	for i, was := range path {
		var m wireSpot
		g.get(&m, "/messages/%s", got.Messages[i].ID)
		g.follows(&m, parent)
		l, _ := was.looks.at(k.tick)
		require.Equal(g.t, l.text, m.Text)
		require.Equal(g.t, was.role, m.Role)
		require.Nil(g.t, to.spots[m.ID])
		to.insert(&m)
		g.witness(&m)
		parent = m.ID
	}
	require.Equal(g.t, parent, n.frame.head)
	a, _ := g.archive(to)
	for i := range a.Messages {
		if s := to.spots[a.Messages[i].ID]; s.born == to.tick {
			s.hidden(&a.Messages[i])
		}
	}
}

// hidden adds the swipes of a new message that are deleted: only archives show
// them.
func (s *spot) hidden(m *archivedSpot) {
	for i, v := range m.Swipes {
		if !v.Deleted {
			continue
		}
		at := slices.IndexFunc(m.Texts, func(t archivedText) bool { return t.SwipeID == v.ID })
		s.swipes = slices.Insert(s.swipes, i, &variant{v.ID, m.Texts[at].Text, true})
	}
}

// archived is what the test reads of an archive.
type archived struct {
	Conversation struct{ HeadID, Title string }
	Messages     []archivedSpot
	Saves        []struct{ ID, HeadID string }
}

type archivedSpot struct {
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
	ID, SwipeID, Text string
	Rev               int64
}

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
		if k.prompt != "" {
			was := k.prompt
			k.prompt = g.prompt("/saves/" + k.id)
			require.Equal(g.t, withoutMood(was), withoutMood(k.prompt), "the prompt of save point %s of the copy", k.id)
		}
		g.saves = append(g.saves, &k)
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
	prompt := g.prompt("/conversations/" + p.id)
	r := g.must(act{cmd: "chat.fork", method: http.MethodPost, path: "/conversations/" + p.id + "/fork", ids: toChat(p), body: body})
	var c wireChat
	r.into(g, &c)
	if g.chance(4) && !g.shared {
		g.restart() // while it is being copied
	}
	var first []string // what is read while it is being copied
	if g.chance(2) {
		first = g.pages(c.ID)
	}
	b, _ := g.archive(&plain{id: c.ID})
	way := p.branch(s.id)
	require.Len(g.t, b.Messages, len(way), "the copied branch")
	names := map[string]string{}
	whole := &plain{id: c.ID, character: p.character, title: title, spots: map[string]*spot{}, partly: true}
	for i, was := range way {
		to := &b.Messages[i]
		require.Equal(g.t, was.seq, to.Seq)
		names[was.id] = to.ID
		n := &spot{id: to.ID, parent: names[was.parent], role: was.role, seq: was.seq, greeting: was.greeting, rev: 1}
		l := was.now()
		require.Len(g.t, to.Swipes, len(was.swipes))
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
	frame := p.now()
	frame.head = names[s.id]
	whole.looks.set(0, frame)
	g.chats = append(g.chats, whole)
	if first != nil {
		require.Equal(g.t, idsOfSpots(whole.shown()), first, "the fork while it was being copied")
	}
	g.look(whole, true)
	g.compareArchive(whole)
	if s.id == p.head() {
		require.Equal(g.t, withoutMood(prompt), withoutMood(g.prompt("/conversations/"+c.ID)), "the prompt of the fork")
	}
	return true
}

// pages reads a whole conversation, oldest first.
func (g *game) pages(id string) []string {
	g.t.Helper()
	ids := []string{}
	for before := ""; ; {
		var page pageOf[*wireSpot]
		g.get(&page, "/conversations/%s/messages?limit=40&before=%s", id, before)
		var these []string
		for _, m := range page.Items {
			these = append(these, m.ID)
		}
		ids = append(these, ids...)
		if page.NextCursor == nil {
			return ids
		}
		before = *page.NextCursor
	}
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

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
