package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
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
		if got := r.code(); got != "invalid_field" {
			g.t.Fatalf("r.code() is %q, want %q", got, "invalid_field")
		}
		return true
	}
	if got := r.code(); got != "" {
		g.t.Fatalf("%+v: r.code() is %q, want none", r.fault, got)
	}
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
		wantSame(g.t, "what is deleted", got.MessageIDs, messageIDs(gone))
	})
	if want := p.head(); got.HeadID != want {
		g.t.Fatalf("got.HeadID is %q, want %q", got.HeadID, want)
	}
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
	wantSame(g.t, "what is restored", got.MessageIDs, messageIDs(back))
	if want := p.head(); got.HeadID != want {
		g.t.Fatalf("got.HeadID is %q, want %q", got.HeadID, want)
	}
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
	if got, want := c.fields(), p.now(); !reflect.DeepEqual(got, want) {
		g.t.Fatalf("c.fields() is %+v, want %+v", got, want)
	}
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
	if got, want := c.fields(), p.now(); !reflect.DeepEqual(got, want) {
		g.t.Fatalf("c.fields() is %+v, want %+v", got, want)
	}
	return true
}

// applyNewGreeting adds the greeting of a restarted chat.
func (g *simulation) applyNewGreeting(p *chatModel, id string) {
	g.t.Helper()
	var m wireMessage
	g.get(&m, "/messages/%s", id)
	if p.messages[id] != nil {
		g.t.Fatalf("a greeting that was there: p.messages[id] is %+v, want nil", p.messages[id])
	}
	if m.ParentID != nil {
		g.t.Fatalf("m.ParentID is %+v, want nil", m.ParentID)
	}
	if !m.Greeting {
		g.t.Fatal("m.Greeting is false, want true")
	}
	texts := make([]string, len(m.Swipes))
	for i, v := range m.Swipes {
		texts[i] = v.Text
	}
	if want := g.docs.cardGreetings(texts); !reflect.DeepEqual(texts, want) {
		g.t.Fatalf("the greeting of a card: texts is %q, want %q", texts, want)
	}
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
	if got := r.code(); got != "conflict" {
		g.t.Fatalf("r.code() is %q, want %q", got, "conflict")
	}
	var current struct{ Current *wireMessage }
	if err := json.Unmarshal(r.fault.Details, &current); err != nil {
		g.t.Fatal(err)
	}
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
	if got := replies[first].code(); got != "" {
		g.t.Fatalf("replies[first].code() is %q, want none", got)
	}
	if got := replies[1-first].code(); got != "conflict" {
		g.t.Fatalf("replies[1-first].code() is %q, want %q", got, "conflict")
	}
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
	if got := g.do(a).code(); got != "not_found" {
		g.t.Fatalf("g.do(a).code() is %q, want %q", got, "not_found")
	}
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
		if got, want := c.fields(), p.now(); !reflect.DeepEqual(got, want) {
			g.t.Fatalf("c.fields() is %+v, want %+v", got, want)
		}
	}
	return true
}
