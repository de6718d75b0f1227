package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"
)

func (g *game) opDelete(p *plain) bool {
	s := g.somewhere(p, anySpot)
	if s == nil || s.greeting && !g.chance(10) {
		return false
	}
	scope := pick(g, []string{"", "one", "after", "swipe"})
	if scope == "after" && len(p.below(s, (*spot).living)) > 12 && !g.chance(10) {
		return false
	}
	a := act{cmd: "message.delete", method: http.MethodDelete, path: "/messages/" + s.id, ids: toMessage(s)}
	if scope != "" {
		a.query = map[string]string{"scope": scope}
	}
	r := g.do(a)
	left := s.left()
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
			at := s.index()
			s.variant(s.now().swipe).gone = true
			to := at + 1
			if to == len(left) {
				to = at - 1
			}
			p.choose(s, left[to], "")
			return
		}
		gone := []*spot{s}
		if scope == "after" {
			gone = p.below(s, (*spot).living)
		}
		p.remove(gone, got.RestoredUntil)
		require.ElementsMatch(g.t, idsOfSpots(gone), got.MessageIDs)
	})
	require.Equal(g.t, p.head(), got.HeadID)
	if scope == "swipe" {
		r := g.rest(act{method: http.MethodGet, path: "/messages/" + s.id}, "")
		g.changed(p, s, &reply{data: []byte(`{"message":` + string(r.data) + `}`)})
	}
	return true
}

func idsOfSpots(list []*spot) []string {
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.id
	}
	return ids
}

func (g *game) opUndelete(p *plain) bool {
	var found []*spot
	for _, s := range p.line {
		swipeGone := slices.ContainsFunc(s.swipes, func(v *variant) bool { return v.gone })
		if !s.living() && s.now().gone != "empty" || s.living() && swipeGone {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return false
	}
	s := pick(g, found)
	r := g.must(act{cmd: "message.restore", method: http.MethodPost, path: "/messages/" + s.id + "/restore", ids: toMessage(s)})
	var got struct {
		MessageIDs []string
		HeadID     string
	}
	r.into(g, &got)
	back := []*spot{s}
	p.change(func() {
		if !s.living() {
			back = p.bringBack(s)
			return
		}
		for _, v := range s.swipes {
			v.gone = false
		}
	})
	require.ElementsMatch(g.t, idsOfSpots(back), got.MessageIDs)
	require.Equal(g.t, p.head(), got.HeadID)
	return true
}

func (g *game) opHead(p *plain) bool {
	s := g.somewhere(p, anySpot)
	if g.chance(2) {
		tips := p.tips()
		if len(tips) > 0 {
			s = p.spots[pick(g, tips)]
		}
	}
	if s == nil {
		return false
	}
	r := g.must(act{
		cmd: "chat.head", method: http.MethodPut, path: "/conversations/" + p.id + "/head", ids: toChat(p), body: map[string]any{"messageId": s.id},
	})
	p.chosen(s)
	var c wireChat
	r.into(g, &c)
	require.Equal(g.t, p.now(), c.frame())
	return true
}

// opReset begins anew.
func (g *game) opReset(p *plain) bool {
	if p.writing != nil && p.writing.sibling {
		return false
	}
	r := g.do(act{cmd: "chat.reset", method: http.MethodPost, path: "/conversations/" + p.id + "/reset", ids: toChat(p)})
	if g.busy(p, r) {
		return true
	}
	var c wireChat
	r.into(g, &c)
	p.change(func() { g.greeted(p, *c.HeadID) })
	require.Equal(g.t, p.now(), c.frame())
	return true
}

// greeted takes in a fresh greeting.
func (g *game) greeted(p *plain, id string) {
	g.t.Helper()
	var m wireSpot
	g.get(&m, "/messages/%s", id)
	require.Nil(g.t, p.spots[id], "a greeting that was there")
	require.Nil(g.t, m.ParentID)
	require.True(g.t, m.Greeting)
	texts := make([]string, len(m.Swipes))
	for i, v := range m.Swipes {
		texts[i] = v.Text
	}
	require.Equal(g.t, g.docs.greetings(texts), texts, "the greeting of a card")
	p.insert(&m)
	p.lead(id)
	g.witness(&m)
}

// opStale changes a message as a device does that has not heard of the last change.
func (g *game) opStale(p *plain) bool {
	s := g.somewhere(p, hasText)
	if s == nil {
		return false
	}
	a := act{cmd: "message.edit", method: http.MethodPatch, path: "/messages/" + s.id, ids: toMessage(s), body: map[string]any{"text": g.sentence(), "ifRev": g.rev(p, s) + 3}}
	if g.chance(2) {
		a = act{cmd: "message.swipe", method: http.MethodPost, path: "/messages/" + s.id + "/swipe", ids: toMessage(s), body: map[string]any{"swipe": "next", "ifRev": g.rev(p, s) + 3}}
	}
	r := g.do(a)
	require.Equal(g.t, "conflict", r.code())
	var current struct{ Current *wireSpot }
	require.NoError(g.t, json.Unmarshal(r.fault.Details, &current))
	g.agree(p, current.Current)
	return true
}

// rev is the newest rev of a message. An app does not hear it of a message that
// was deleted and came back.
func (g *game) rev(p *plain, s *spot) int64 {
	g.t.Helper()
	var m wireSpot
	g.get(&m, "/messages/%s", s.id)
	g.agree(p, &m)
	return m.Rev
}

// opRace lets both devices change one message at the same time, both at its
// newest rev: one of them does.
func (g *game) opRace(p *plain) bool {
	s := g.somewhere(p, hasText)
	if s == nil {
		return false
	}
	rev := g.rev(p, s)
	var replies [2]*reply
	texts := [2]string{g.sentence(), g.sentence()}
	var wg sync.WaitGroup
	for i := range replies {
		g.keys++
		key := fmt.Sprintf("key-%d", g.keys)
		wg.Go(func() {
			body := map[string]any{"text": texts[i], "ifRev": rev}
			replies[i] = g.rest(act{cmd: "message.edit", method: http.MethodPatch, path: "/messages/" + s.id, ids: toMessage(s), body: body}, key)
		})
	}
	wg.Wait()
	first := 0
	if replies[0].fault != nil {
		first = 1
	}
	require.Empty(g.t, replies[first].code())
	require.Equal(g.t, "conflict", replies[1-first].code())
	p.change(func() { p.say(s, texts[first]) })
	g.changed(p, s, replies[first])
	return true
}

// opWrong asks for what cannot be.
func (g *game) opWrong(p *plain) bool {
	other := pick(g, g.chats)
	if other == p || other.head() == "" {
		return false
	}
	a := act{cmd: "chat.head", method: http.MethodPut, path: "/conversations/" + p.id + "/head", ids: toChat(p), body: map[string]any{"messageId": other.head()}}
	if g.chance(2) {
		a = act{
			cmd: "chat.send", method: http.MethodPost, path: "/conversations/" + p.id + "/messages", ids: toChat(p),
			body: map[string]any{"text": "Lost.", "parentId": other.head(), "reply": false},
		}
	}
	require.Equal(g.t, "not_found", g.do(a).code())
	return true
}

// opFrame changes what a conversation is besides its messages.
func (g *game) opFrame(p *plain) bool {
	body := map[string]any{}
	var change func(f *setup)
	switch g.rng.IntN(4) {
	case 0:
		title := g.sentence()
		body["title"] = title
		change = func(*setup) { p.title = title }
	case 1:
		persona := pick(g, append(g.docs.personas[:len(g.docs.personas):len(g.docs.personas)], ""))
		body["personaId"] = persona
		change = func(f *setup) { f.persona = persona }
	case 2:
		note := map[string]any{"content": g.sentence(), "injection_depth": g.rng.IntN(4)}
		body["authorNote"] = note
		change = func(f *setup) { f.note = jsonText(note) }
	case 3:
		settings := map[string]any{"temperature": float64(g.rng.IntN(20)) / 10}
		body["settings"] = settings
		change = func(f *setup) { f.settings = jsonText(settings) }
	}
	r := g.must(act{cmd: "chat.update", method: http.MethodPatch, path: "/conversations/" + p.id, ids: toChat(p), body: body})
	var c wireChat
	r.into(g, &c)
	p.change(func() { p.frame(change) })
	if p.writing == nil {
		require.Equal(g.t, p.now(), c.frame())
	}
	return true
}
