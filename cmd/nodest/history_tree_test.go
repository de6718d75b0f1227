package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"
)

func (g *simulation) opDelete(p *chatModel) bool {
	s := g.pickMessage(p, anyMessage)
	if s == nil || s.greeting && !g.chance(10) {
		return false
	}
	scope := pick(g, []string{"", "one", "after", "swipe"})
	if scope == "after" && len(p.subtree(s, (*messageModel).exists)) > 12 && !g.chance(10) {
		return false
	}
	a := apiCall{cmd: "message.delete", method: http.MethodDelete, path: "/messages/" + s.id, ids: toMessage(s)}
	if scope != "" {
		a.query = map[string]string{"scope": scope}
	}
	r := g.do(a)
	left := s.visibleSwipes()
	if scope == "swipe" && len(left) < 2 {
		require.Equal(g.t, "invalid_field", r.code())
		return true
	}
	require.Empty(g.t, r.code(), "%+v", r.fault)
	var got struct {
		MessageIDs            []string
		HeadID, RestoredUntil string
	}
	r.into(g, &got)
	p.change(func() {
		if scope == "swipe" {
			at := s.swipeIndex()
			s.swipe(s.now().swipe).deleted = true
			to := at + 1
			if to == len(left) {
				to = at - 1
			}
			p.selectSwipe(s, left[to], "")
			return
		}
		gone := []*messageModel{s}
		if scope == "after" {
			gone = p.subtree(s, (*messageModel).exists)
		}
		p.remove(gone, got.RestoredUntil)
		require.ElementsMatch(g.t, messageIDs(gone), got.MessageIDs)
	})
	require.Equal(g.t, p.head(), got.HeadID)
	if scope == "swipe" {
		r := g.rest(apiCall{method: http.MethodGet, path: "/messages/" + s.id}, "")
		g.applyChange(p, s, &response{data: []byte(`{"message":` + string(r.data) + `}`)})
	}
	return true
}

func messageIDs(list []*messageModel) []string {
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.id
	}
	return ids
}

func (g *simulation) opUndelete(p *chatModel) bool {
	var found []*messageModel
	for _, s := range p.order {
		swipeGone := slices.ContainsFunc(s.swipes, func(v *swipeModel) bool { return v.deleted })
		if !s.exists() && s.now().deletion != "empty" || s.exists() && swipeGone {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return false
	}
	s := pick(g, found)
	r := g.must(apiCall{cmd: "message.restore", method: http.MethodPost, path: "/messages/" + s.id + "/restore", ids: toMessage(s)})
	var got struct {
		MessageIDs []string
		HeadID     string
	}
	r.into(g, &got)
	back := []*messageModel{s}
	p.change(func() {
		if !s.exists() {
			back = p.undelete(s)
			return
		}
		for _, v := range s.swipes {
			v.deleted = false
		}
	})
	require.ElementsMatch(g.t, messageIDs(back), got.MessageIDs)
	require.Equal(g.t, p.head(), got.HeadID)
	return true
}

func (g *simulation) opHead(p *chatModel) bool {
	s := g.pickMessage(p, anyMessage)
	if g.chance(2) {
		tips := p.branchEnds()
		if len(tips) > 0 {
			s = p.messages[pick(g, tips)]
		}
	}
	if s == nil {
		return false
	}
	r := g.must(apiCall{
		cmd: "chat.head", method: http.MethodPut, path: "/conversations/" + p.id + "/head", ids: toChat(p), body: map[string]any{"messageId": s.id},
	})
	p.moveHead(s)
	var c wireChat
	r.into(g, &c)
	require.Equal(g.t, p.now(), c.fields())
	return true
}

// opReset restarts the chat.
func (g *simulation) opReset(p *chatModel) bool {
	if p.active != nil && p.active.sibling {
		return false
	}
	r := g.do(apiCall{cmd: "chat.reset", method: http.MethodPost, path: "/conversations/" + p.id + "/reset", ids: toChat(p)})
	if g.busy(p, r) {
		return true
	}
	var c wireChat
	r.into(g, &c)
	p.change(func() { g.applyNewGreeting(p, *c.HeadID) })
	require.Equal(g.t, p.now(), c.fields())
	return true
}

// applyNewGreeting adds the greeting of a restarted chat.
func (g *simulation) applyNewGreeting(p *chatModel, id string) {
	g.t.Helper()
	var m wireMessage
	g.get(&m, "/messages/%s", id)
	require.Nil(g.t, p.messages[id], "a greeting that was there")
	require.Nil(g.t, m.ParentID)
	require.True(g.t, m.Greeting)
	texts := make([]string, len(m.Swipes))
	for i, v := range m.Swipes {
		texts[i] = v.Text
	}
	require.Equal(g.t, g.docs.cardGreetings(texts), texts, "the greeting of a card")
	p.insert(&m)
	p.setHead(id)
	g.recordTexts(&m)
}

// opStale edits a message with an ifRev that is not the current one.
func (g *simulation) opStale(p *chatModel) bool {
	s := g.pickMessage(p, hasText)
	if s == nil {
		return false
	}
	a := apiCall{cmd: "message.edit", method: http.MethodPatch, path: "/messages/" + s.id, ids: toMessage(s), body: map[string]any{"text": g.sentence(), "ifRev": g.rev(p, s) + 3}}
	if g.chance(2) {
		a = apiCall{cmd: "message.swipe", method: http.MethodPost, path: "/messages/" + s.id + "/swipe", ids: toMessage(s), body: map[string]any{"swipe": "next", "ifRev": g.rev(p, s) + 3}}
	}
	r := g.do(a)
	require.Equal(g.t, "conflict", r.code())
	var current struct{ Current *wireMessage }
	require.NoError(g.t, json.Unmarshal(r.fault.Details, &current))
	g.checkMessage(p, current.Current)
	return true
}

// rev reads the current rev of a message: after a delete and restore, no event has
// it.
func (g *simulation) rev(p *chatModel, s *messageModel) int64 {
	g.t.Helper()
	var m wireMessage
	g.get(&m, "/messages/%s", s.id)
	g.checkMessage(p, &m)
	return m.Rev
}

// opRace lets both devices edit a message at once with the current rev: one of them
// succeeds.
func (g *simulation) opRace(p *chatModel) bool {
	s := g.pickMessage(p, hasText)
	if s == nil {
		return false
	}
	rev := g.rev(p, s)
	var replies [2]*response
	texts := [2]string{g.sentence(), g.sentence()}
	var wg sync.WaitGroup
	for i := range replies {
		g.keys++
		key := fmt.Sprintf("key-%d", g.keys)
		wg.Go(func() {
			body := map[string]any{"text": texts[i], "ifRev": rev}
			replies[i] = g.rest(apiCall{cmd: "message.edit", method: http.MethodPatch, path: "/messages/" + s.id, ids: toMessage(s), body: body}, key)
		})
	}
	wg.Wait()
	first := 0
	if replies[0].fault != nil {
		first = 1
	}
	require.Empty(g.t, replies[first].code())
	require.Equal(g.t, "conflict", replies[1-first].code())
	p.change(func() { p.setText(s, texts[first]) })
	g.applyChange(p, s, replies[first])
	return true
}

// opInvalid uses a message of another conversation.
func (g *simulation) opInvalid(p *chatModel) bool {
	other := pick(g, g.chats)
	if other == p || other.head() == "" {
		return false
	}
	a := apiCall{cmd: "chat.head", method: http.MethodPut, path: "/conversations/" + p.id + "/head", ids: toChat(p), body: map[string]any{"messageId": other.head()}}
	if g.chance(2) {
		a = apiCall{
			cmd: "chat.send", method: http.MethodPost, path: "/conversations/" + p.id + "/messages", ids: toChat(p),
			body: map[string]any{"text": "Lost.", "parentId": other.head(), "reply": false},
		}
	}
	require.Equal(g.t, "not_found", g.do(a).code())
	return true
}

// opUpdateChat changes the fields of a conversation.
func (g *simulation) opUpdateChat(p *chatModel) bool {
	body := map[string]any{}
	var change func(f *chatFields)
	switch g.rng.IntN(4) {
	case 0:
		title := g.sentence()
		body["title"] = title
		change = func(*chatFields) { p.title = title }
	case 1:
		persona := pick(g, append(g.docs.personas[:len(g.docs.personas):len(g.docs.personas)], ""))
		body["personaId"] = persona
		change = func(f *chatFields) { f.persona = persona }
	case 2:
		note := map[string]any{"content": g.sentence(), "injection_depth": g.rng.IntN(4)}
		body["authorNote"] = note
		change = func(f *chatFields) { f.note = jsonText(note) }
	case 3:
		settings := map[string]any{"temperature": float64(g.rng.IntN(20)) / 10}
		body["settings"] = settings
		change = func(f *chatFields) { f.settings = jsonText(settings) }
	}
	r := g.must(apiCall{cmd: "chat.update", method: http.MethodPatch, path: "/conversations/" + p.id, ids: toChat(p), body: body})
	var c wireChat
	r.into(g, &c)
	p.change(func() { p.setFields(change) })
	if p.active == nil {
		require.Equal(g.t, p.now(), c.fields())
	}
	return true
}
