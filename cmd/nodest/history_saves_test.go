package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/stretchr/testify/require"
)

// kept is a save point and what it stands for.
type kept struct {
	id     string
	chat   *plain
	tick   int
	frame  setup
	prompt string // "" = of an empty conversation
	auto   bool
}

// prompt is what would be sent to the model, byte for byte but for what is recalled.
// path names a conversation or a save point.
func (g *game) prompt(path string) string { return g.preview(path, "And the lamp in the storm?") }

// preview is prompt for a text that the user may say.
func (g *game) preview(path, text string) string {
	g.t.Helper()
	g.calm()
	r := g.rest(act{method: http.MethodPost, path: path + "/prompt", body: map[string]any{"text": text}}, "")
	require.Empty(g.t, r.code(), "%+v", r.fault)
	var got struct{ Messages json.RawMessage }
	r.into(g, &got)
	rest, recalled := withoutRecall(got.Messages)
	g.trueRecall(recalled, path)
	return rest
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
	g.calm()
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
	if rewound && got.Before != nil { // a summary was made or changed since, which the game does not follow
		var list pageOf[overlay]
		g.get(&list, "/conversations/%s/summaries", p.id)
		require.NotEmpty(g.t, list.Items, "a save point of what the last restore made")
	}
	require.True(g.t, rewound || got.Before != nil, "a save point of what was shown before")
	if got.Before != nil {
		require.True(g.t, got.Before.Automatic)
		g.keep(p, got.Before, now)
	}
	p.change(func() {
		p.rewind(k.tick, k.frame.head)
		p.frame(func(f *setup) { *f = k.frame })
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
	var imported struct{ Save wireKept }
	r.into(g, &imported)
	s := imported.Save
	n := &kept{id: s.ID, chat: to, frame: k.frame, auto: s.Automatic}
	n.frame.head = s.HeadID
	to.partly = true
	to.change(func() { g.arrives(to, n, k) })
	g.saves = append(g.saves, n)
	g.readSave(n)
	if n.frame.head != "" {
		n.prompt = g.prompt("/saves/" + n.id)
		if !summarised(k.prompt) {
			require.Equal(g.t, withoutMood(k.prompt), withoutMood(n.prompt), "the prompt of the copy of save point %s", k.id)
		}
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
