package main

import (
	"fmt"
	"slices"
	"strings"
)

// chatModel is a simple model of a conversation: a tree from which nothing is ever
// removed, with the past states of everything by tick. What the product computes from
// versions and pointers, the model looks up.
type chatModel struct {
	id, character string
	title         string
	tick          int // incremented by every change
	states        timeline[chatFields]
	jumps         []jump // in order
	messages      map[string]*messageModel
	order         []*messageModel // as stored: parents before children
	active        *activeGeneration
	partly        bool // created with a history, of which devices got no events
}

// chatFields holds the fields of a conversation.
type chatFields struct {
	head, persona, note, settings string
}

// jump records that at a tick the conversation was rewound to an older one.
type jump struct{ at, to int }

// messageModel is a message.
type messageModel struct {
	id, parent, role string
	seq              int64
	greeting         bool
	born             int
	rev              int64 // as last seen
	states           timeline[messageState]
	swipes           []*swipeModel
}

// messageState is what a message shows at some tick.
type messageState struct {
	swipe    string // the selected one; "" = none yet
	text     string
	status   string
	deletion string // id of the delete operation; "" = not deleted
}

// swipeModel is a swipe.
type swipeModel struct {
	id      string
	text    string
	deleted bool
}

// activeGeneration is a generation that has not ended yet.
type activeGeneration struct {
	gen, kind string
	message   *messageModel
	sibling   bool   // the reply is a new message beside the one that it regenerates
	swipe     string // continue: the swipe that it extends
	base      string
}

// timeline is the history of a value.
type timeline[T comparable] []dated[T]

type dated[T comparable] struct {
	tick  int
	value T
}

func (p timeline[T]) now() T { return p[len(p)-1].value }

// at returns the value at a tick; ok is false before the first one.
func (p timeline[T]) at(tick int) (what T, ok bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].tick <= tick {
			return p[i].value, true
		}
	}
	return what, false
}

func (p *timeline[T]) set(tick int, what T) {
	if n := len(*p); n > 0 && (*p)[n-1].tick == tick {
		(*p)[n-1].value = what
		return
	}
	*p = append(*p, dated[T]{tick, what})
}

func newChatModel(id, character string) *chatModel {
	p := &chatModel{id: id, character: character, messages: map[string]*messageModel{}}
	p.states.set(0, chatFields{settings: "{}"})
	return p
}

func (p *chatModel) now() chatFields { return p.states.now() }
func (p *chatModel) head() string    { return p.now().head }

// change applies one change, at the next tick.
func (p *chatModel) change(f func()) {
	p.tick++
	f()
}

func (p *chatModel) setFields(f func(*chatFields)) {
	now := p.now()
	f(&now)
	p.states.set(p.tick, now)
}

func (p *chatModel) setHead(id string) { p.setFields(func(f *chatFields) { f.head = id }) }

// insert adds a message; parents come before their children.
func (p *chatModel) insert(m *wireMessage) *messageModel {
	s := &messageModel{id: m.ID, role: m.Role, seq: m.Seq, greeting: m.Greeting, born: p.tick, rev: m.Rev}
	if m.ParentID != nil {
		s.parent = *m.ParentID
	}
	l := messageState{status: m.Status}
	for i, v := range m.Swipes {
		s.swipes = append(s.swipes, &swipeModel{id: v.ID, text: v.Text})
		if i == m.SwipeIndex {
			l.swipe, l.text = v.ID, v.Text
		}
	}
	s.states.set(p.tick, l)
	p.messages[s.id] = s
	p.order = append(p.order, s)
	return s
}

func (p *chatModel) setState(s *messageModel, f func(*messageState)) {
	l := s.states.now()
	f(&l)
	s.states.set(p.tick, l)
}

func (s *messageModel) now() messageState { return s.states.now() }
func (s *messageModel) exists() bool      { return s.now().deletion == "" }

// visibleSwipes returns the swipes that are not deleted.
func (s *messageModel) visibleSwipes() []*swipeModel {
	var left []*swipeModel
	for _, v := range s.swipes {
		if !v.deleted {
			left = append(left, v)
		}
	}
	return left
}

func (s *messageModel) swipe(id string) *swipeModel {
	for _, v := range s.swipes {
		if v.id == id {
			return v
		}
	}
	return nil
}

// swipeIndex returns the index of the selected swipe among the visible ones.
func (s *messageModel) swipeIndex() int {
	for i, v := range s.visibleSwipes() {
		if v.id == s.now().swipe {
			return i
		}
	}
	return 0
}

// setText replaces the text of the selected swipe.
func (p *chatModel) setText(s *messageModel, text string) {
	p.setState(s, func(l *messageState) { l.text = text })
	s.swipe(s.now().swipe).text = text
}

// selectSwipe selects a swipe.
func (p *chatModel) selectSwipe(s *messageModel, v *swipeModel, status string) {
	p.setState(s, func(l *messageState) { l.swipe, l.text, l.status = v.id, v.text, status })
}

// branch returns the messages from the root to id, including deleted ones.
func (p *chatModel) branch(id string) []*messageModel {
	var branch []*messageModel
	for s := p.messages[id]; s != nil; s = p.messages[s.parent] {
		branch = append(branch, s)
	}
	slices.Reverse(branch)
	return branch
}

// path returns the messages of a branch that were shown at a tick.
func (p *chatModel) path(id string, tick int) []*messageModel {
	var path []*messageModel
	for _, s := range p.branch(id) {
		if l, ok := s.states.at(tick); ok && l.deletion == "" {
			path = append(path, s)
		}
	}
	return path
}

func (p *chatModel) shown() []*messageModel { return p.path(p.head(), p.tick) }

// nearestExisting returns id, or its nearest ancestor that is not deleted.
func (p *chatModel) nearestExisting(id string) string {
	path := p.path(id, p.tick)
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1].id
}

func (p *chatModel) children(id string) []*messageModel {
	var children []*messageModel
	for _, s := range p.order {
		if s.parent == id {
			children = append(children, s)
		}
	}
	return children
}

// subtree returns a message and its descendants that pick accepts.
func (p *chatModel) subtree(first *messageModel, pick func(*messageModel) bool) []*messageModel {
	all := []*messageModel{first}
	for _, c := range p.children(first.id) {
		for _, s := range p.subtree(c, pick) {
			if s != c || pick(c) {
				all = append(all, s)
			}
		}
	}
	return all
}

// replyTo returns the reply that is regenerated when the message is edited: the shown
// one, else the newest.
func (p *chatModel) replyTo(m *messageModel) *messageModel {
	var newest *messageModel
	for _, s := range p.children(m.id) {
		if !s.exists() || s.role != "assistant" {
			continue
		}
		if slices.Contains(p.shown(), s) {
			return s
		}
		newest = s
	}
	return newest
}

// hasChildren reports whether a message has children that are not deleted.
func (p *chatModel) hasChildren(s *messageModel) bool {
	return slices.ContainsFunc(p.children(s.id), (*messageModel).exists)
}

// branchEnds returns the ids of the last messages of all branches.
func (p *chatModel) branchEnds() []string {
	followed := map[string]bool{}
	for _, s := range slices.Backward(p.order) { // children come after their parents
		if s.exists() || followed[s.id] {
			followed[s.parent] = true
		}
	}
	var ids []string
	for _, s := range slices.Backward(p.order) {
		if s.exists() && !followed[s.id] {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// remove deletes messages in one operation, stamp.
func (p *chatModel) remove(gone []*messageModel, stamp string) {
	head := p.head()
	for _, s := range gone {
		p.setState(s, func(l *messageState) { l.deletion = stamp })
	}
	if s := p.messages[head]; s != nil && !s.exists() {
		p.setHead(p.nearestExisting(head))
	}
}

// restorable returns what is restored together with a deleted message.
func (p *chatModel) restorable(first *messageModel) []*messageModel {
	stamp := first.now().deletion
	return p.subtree(first, func(s *messageModel) bool { return s.now().deletion == stamp })
}

// deletedIn is the tick at which a message was deleted.
func (s *messageModel) deletedIn() (tick int) {
	for _, state := range slices.Backward(s.states) {
		if state.value.deletion == "" {
			break
		}
		tick = state.tick
	}
	return tick
}

func (p *chatModel) undelete(first *messageModel) []*messageModel {
	back := p.restorable(first)
	if p.head() == p.nearestExisting(first.id) {
		shown := slices.MaxFunc(back, func(a, b *messageModel) int { return int(a.seq - b.seq) }).id
		if before, ok := p.states.at(first.deletedIn() - 1); ok && slices.Contains(messageIDs(back), before.head) {
			shown = before.head
		}
		p.setHead(shown)
	}
	for _, s := range back {
		p.setState(s, func(l *messageState) { l.deletion = "" })
	}
	return back
}

// rewind shows a branch as it was at a tick.
func (p *chatModel) rewind(to int, head string) {
	for _, s := range p.branch(head) {
		then, ok := s.states.at(to)
		if !ok {
			continue
		}
		now := s.now()
		switch { // a deletion keeps its id
		case then.deletion != "" && now.deletion == "":
			then.deletion = fmt.Sprintf("rewind %d", p.tick)
		case then.deletion != "":
			then.deletion = now.deletion
		}
		if then == now {
			continue
		}
		p.setState(s, func(l *messageState) { *l = then })
		if v := s.swipe(then.swipe); v != nil {
			v.text, v.deleted = then.text, false
		}
	}
	p.jumps = append(p.jumps, jump{p.tick, to})
	p.setHead(head)
}

// includes reports whether the state at a tick descends from the change at tick born.
func (p *chatModel) includes(tick, born int) bool {
	for i := len(p.jumps) - 1; i >= 0; i-- {
		j := p.jumps[i]
		if j.at > tick {
			continue
		}
		if born >= j.at {
			return born <= tick
		}
		tick = j.to
	}
	return born <= tick
}

// moveHead makes a message the head. A branch that a rewind has left is shown as it was
// before the rewind.
func (p *chatModel) moveHead(s *messageModel) {
	if p.head() == s.id {
		return
	}
	p.change(func() {
		last := p.tick - 1
		if p.includes(last, s.born) {
			p.setHead(s.id)
			return
		}
		for !p.includes(last, s.born) {
			last--
		}
		p.rewind(last, s.id)
		p.setState(s, func(l *messageState) { l.deletion = "" }) // it may have been deleted then and restored later
	})
}

// copyAs returns the same conversation with other ids; names maps old to new ones.
func (p *chatModel) copyAs(id string, names map[string]string) *chatModel {
	c := &chatModel{id: id, character: p.character, title: p.title, tick: p.tick, jumps: slices.Clone(p.jumps), messages: map[string]*messageModel{}}
	for _, l := range p.states {
		l.value.head = names[l.value.head]
		c.states = append(c.states, l)
	}
	for _, s := range p.order {
		n := &messageModel{
			id: names[s.id], parent: names[s.parent], role: s.role, seq: s.seq, greeting: s.greeting, born: s.born,
			rev: s.rev, states: slices.Clone(s.states),
		}
		for i := range n.states {
			n.states[i].value.swipe = names[n.states[i].value.swipe]
		}
		for _, v := range s.swipes {
			n.swipes = append(n.swipes, &swipeModel{names[v.id], v.text, v.deleted})
		}
		c.messages[n.id] = n
		c.order = append(c.order, n)
	}
	return c
}

// endGeneration applies the end of the active generation. For continue, text
// includes the text before.
func (p *chatModel) endGeneration(status, text, swipe string) {
	w := p.active
	p.active = nil
	word := map[string]string{"done": "complete", "failed": "error"}[status]
	if word == "" {
		word = status // cancelled, interrupted
	}
	empty := strings.TrimSpace(strings.TrimPrefix(text, w.base)) == ""
	s := w.message
	if empty && !w.sibling && w.kind != "reply" {
		return // no change
	}
	p.change(func() {
		switch {
		case empty && w.sibling:
			p.setState(s, func(l *messageState) { l.deletion, l.status = "empty", word })
		case empty:
			p.setState(s, func(l *messageState) { l.status = word })
		case w.kind == "continue":
			p.extendSwipe(w, swipe, text, word)
		default:
			v := &swipeModel{id: swipe, text: text}
			s.swipes = append(s.swipes, v)
			whole := word == "complete" || word == "cancelled"
			if s.now().swipe == "" || whole {
				p.selectSwipe(s, v, word)
			}
			if h := p.messages[p.head()]; w.sibling && whole && (h == nil || h.seq <= s.seq) {
				p.setHead(s.id)
			}
		}
	})
}

func (p *chatModel) extendSwipe(w *activeGeneration, swipe, text, word string) {
	v := w.message.swipe(swipe)
	if v == nil {
		w.message.swipes = append(w.message.swipes, &swipeModel{id: swipe, text: text})
		return
	}
	v.text = text
	if w.message.now().swipe == swipe {
		p.selectSwipe(w.message, v, word)
	}
}

// diff describes a difference between the model and a message; "" = none.
func (s *messageModel) diff(m *wireMessage) string {
	l := s.now()
	var ids, texts []string
	for _, v := range m.Swipes {
		ids, texts = append(ids, v.ID), append(texts, v.Text)
	}
	var wantIDs, wantTexts []string
	for _, v := range s.visibleSwipes() {
		wantIDs, wantTexts = append(wantIDs, v.id), append(wantTexts, v.text)
	}
	parent := ""
	if m.ParentID != nil {
		parent = *m.ParentID
	}
	for what, pair := range map[string][2]any{
		"parent": {s.parent, parent}, "role": {s.role, m.Role}, "text": {l.text, m.Text}, "status": {l.status, m.Status},
		"swipes": {wantIDs, ids}, "texts of the swipes": {wantTexts, texts}, "swipeIndex": {s.swipeIndex(), m.SwipeIndex}, "seq": {s.seq, m.Seq},
	} {
		if a, b := fmt.Sprintf("%q", pair[0]), fmt.Sprintf("%q", pair[1]); a != b {
			return fmt.Sprintf("message %s: %s: want %s, got %s", s.id, what, a, b)
		}
	}
	return ""
}
