package main

import (
	"fmt"
	"slices"
	"strings"
)

// plain is a conversation as the test believes it to be: a tree that nothing is
// ever taken out of, and of each thing what it was from which tick on. It knows
// no chains, versions or pointers; what the product computes is looked up here.
type plain struct {
	id, character string
	title         string
	tick          int // grows with every change
	looks         past[setup]
	jumps         []jump // by at
	spots         map[string]*spot
	line          []*spot // in the order of storing
	writing       *writing
	partly        bool // a fork: what came before its copies is not known by ids
}

// setup is what a conversation is besides its messages.
type setup struct {
	head, persona, note, settings string
}

// jump says that a tick went back to what an older one showed.
type jump struct{ at, to int }

// spot is a message.
type spot struct {
	id, parent, role string
	seq              int64
	greeting         bool
	born             int
	rev              int64 // last seen
	looks            past[look]
	swipes           []*variant
}

// look is what a message shows.
type look struct {
	swipe  string // chosen; "" = none yet
	text   string
	status string
	gone   string // stamp of the delete; "" = it is there
}

// variant is a swipe.
type variant struct {
	id   string
	text string
	gone bool
}

// writing is a generation that has not ended yet.
type writing struct {
	gen, kind string
	spot      *spot
	sibling   bool   // it stands beside the reply that it rewrites
	swipe     string // continue: that it lengthens
	base      string
}

// past is what something was, by tick.
type past[T comparable] []stamped[T]

type stamped[T comparable] struct {
	tick int
	what T
}

func (p past[T]) now() T { return p[len(p)-1].what }

// at is what it was at a tick; ok is false before its first one.
func (p past[T]) at(tick int) (what T, ok bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].tick <= tick {
			return p[i].what, true
		}
	}
	return what, false
}

func (p *past[T]) set(tick int, what T) {
	if n := len(*p); n > 0 && (*p)[n-1].tick == tick {
		(*p)[n-1].what = what
		return
	}
	*p = append(*p, stamped[T]{tick, what})
}

func newPlain(id, character string) *plain {
	p := &plain{id: id, character: character, spots: map[string]*spot{}}
	p.looks.set(0, setup{settings: "{}"})
	return p
}

func (p *plain) now() setup   { return p.looks.now() }
func (p *plain) head() string { return p.now().head }

// change is one step of the conversation.
func (p *plain) change(f func()) {
	p.tick++
	f()
}

func (p *plain) frame(f func(*setup)) {
	now := p.now()
	f(&now)
	p.looks.set(p.tick, now)
}

func (p *plain) lead(id string) { p.frame(func(f *setup) { f.head = id }) }

// insert adds a message; parents come before their children.
func (p *plain) insert(m *wireSpot) *spot {
	s := &spot{id: m.ID, role: m.Role, seq: m.Seq, greeting: m.Greeting, born: p.tick, rev: m.Rev}
	if m.ParentID != nil {
		s.parent = *m.ParentID
	}
	l := look{status: m.Status}
	for i, v := range m.Swipes {
		s.swipes = append(s.swipes, &variant{id: v.ID, text: v.Text})
		if i == m.SwipeIndex {
			l.swipe, l.text = v.ID, v.Text
		}
	}
	s.looks.set(p.tick, l)
	p.spots[s.id] = s
	p.line = append(p.line, s)
	return s
}

func (p *plain) show(s *spot, f func(*look)) {
	l := s.looks.now()
	f(&l)
	s.looks.set(p.tick, l)
}

func (s *spot) now() look    { return s.looks.now() }
func (s *spot) living() bool { return s.now().gone == "" }

// left are the swipes that are not deleted.
func (s *spot) left() []*variant {
	var left []*variant
	for _, v := range s.swipes {
		if !v.gone {
			left = append(left, v)
		}
	}
	return left
}

func (s *spot) variant(id string) *variant {
	for _, v := range s.swipes {
		if v.id == id {
			return v
		}
	}
	return nil
}

// index is the place of the chosen swipe among those that are left.
func (s *spot) index() int {
	for i, v := range s.left() {
		if v.id == s.now().swipe {
			return i
		}
	}
	return 0
}

// say puts another text into the chosen swipe.
func (p *plain) say(s *spot, text string) {
	p.show(s, func(l *look) { l.text = text })
	s.variant(s.now().swipe).text = text
}

// choose shows a swipe.
func (p *plain) choose(s *spot, v *variant, status string) {
	p.show(s, func(l *look) { l.swipe, l.text, l.status = v.id, v.text, status })
}

// branch is the way from the root to a message, deleted ones too.
func (p *plain) branch(id string) []*spot {
	var way []*spot
	for s := p.spots[id]; s != nil; s = p.spots[s.parent] {
		way = append(way, s)
	}
	slices.Reverse(way)
	return way
}

// path is what is shown of a branch at a tick.
func (p *plain) path(id string, tick int) []*spot {
	var path []*spot
	for _, s := range p.branch(id) {
		if l, ok := s.looks.at(tick); ok && l.gone == "" {
			path = append(path, s)
		}
	}
	return path
}

func (p *plain) shown() []*spot { return p.path(p.head(), p.tick) }

// before is the nearest message on the way to id, or itself, that is there.
func (p *plain) before(id string) string {
	path := p.path(id, p.tick)
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1].id
}

func (p *plain) children(id string) []*spot {
	var children []*spot
	for _, s := range p.line {
		if s.parent == id {
			children = append(children, s)
		}
	}
	return children
}

// below is a message and everything that follows it, as far as pick goes on.
func (p *plain) below(first *spot, pick func(*spot) bool) []*spot {
	all := []*spot{first}
	for _, c := range p.children(first.id) {
		for _, s := range p.below(c, pick) {
			if s != c || pick(c) {
				all = append(all, s)
			}
		}
	}
	return all
}

// replyTo is the reply to a message that an edit writes anew: the shown one, else
// the newest.
func (p *plain) replyTo(m *spot) *spot {
	var newest *spot
	for _, s := range p.children(m.id) {
		if !s.living() || s.role != "assistant" {
			continue
		}
		if slices.Contains(p.shown(), s) {
			return s
		}
		newest = s
	}
	return newest
}

// answered says whether something that is there follows a message directly.
func (p *plain) answered(s *spot) bool {
	return slices.ContainsFunc(p.children(s.id), (*spot).living)
}

// tips are the ends of all branches: nothing that is there stands below them.
func (p *plain) tips() []string {
	followed := map[string]bool{}
	for _, s := range slices.Backward(p.line) { // children come after their parents
		if s.living() || followed[s.id] {
			followed[s.parent] = true
		}
	}
	var ids []string
	for _, s := range slices.Backward(p.line) {
		if s.living() && !followed[s.id] {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// remove deletes messages under one stamp.
func (p *plain) remove(gone []*spot, stamp string) {
	head := p.head()
	for _, s := range gone {
		p.show(s, func(l *look) { l.gone = stamp })
	}
	if s := p.spots[head]; s != nil && !s.living() {
		p.lead(p.before(head))
	}
}

// restorable is what comes back with a deleted message.
func (p *plain) restorable(first *spot) []*spot {
	stamp := first.now().gone
	return p.below(first, func(s *spot) bool { return s.now().gone == stamp })
}

func (p *plain) bringBack(first *spot) []*spot {
	back := p.restorable(first)
	if p.head() == p.before(first.id) {
		p.lead(slices.MaxFunc(back, func(a, b *spot) int { return int(a.seq - b.seq) }).id)
	}
	for _, s := range back {
		p.show(s, func(l *look) { l.gone = "" })
	}
	return back
}

// rewind shows a branch as it was at a tick.
func (p *plain) rewind(to int, head string) {
	for _, s := range p.branch(head) {
		then, ok := s.looks.at(to)
		if !ok {
			continue
		}
		now := s.now()
		switch { // when it was deleted is told by what deleted it
		case then.gone != "" && now.gone == "":
			then.gone = fmt.Sprintf("rewind %d", p.tick)
		case then.gone != "":
			then.gone = now.gone
		}
		if then == now {
			continue
		}
		p.show(s, func(l *look) { *l = then })
		if v := s.variant(then.swipe); v != nil {
			v.text, v.gone = then.text, false
		}
	}
	p.jumps = append(p.jumps, jump{p.tick, to})
	p.lead(head)
}

// from says whether what was there at a tick grew out of what was born at another.
func (p *plain) from(tick, born int) bool {
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

// chosen makes a message the head. A branch that a rewind has left shows again
// what it showed when it was left.
func (p *plain) chosen(s *spot) {
	if p.head() == s.id {
		return
	}
	p.change(func() {
		last := p.tick - 1
		if p.from(last, s.born) {
			p.lead(s.id)
			return
		}
		for !p.from(last, s.born) {
			last--
		}
		p.rewind(last, s.id)
		p.show(s, func(l *look) { l.gone = "" }) // it may have been deleted there, and brought back from elsewhere
	})
}

// copied is the same conversation under other ids, all by names.
func (p *plain) copied(id string, names map[string]string) *plain {
	c := &plain{id: id, character: p.character, title: p.title, tick: p.tick, jumps: slices.Clone(p.jumps), spots: map[string]*spot{}}
	for _, l := range p.looks {
		l.what.head = names[l.what.head]
		c.looks = append(c.looks, l)
	}
	for _, s := range p.line {
		n := &spot{
			id: names[s.id], parent: names[s.parent], role: s.role, seq: s.seq, greeting: s.greeting, born: s.born,
			rev: s.rev, looks: slices.Clone(s.looks),
		}
		for i := range n.looks {
			n.looks[i].what.swipe = names[n.looks[i].what.swipe]
		}
		for _, v := range s.swipes {
			n.swipes = append(n.swipes, &variant{names[v.id], v.text, v.gone})
		}
		c.spots[n.id] = n
		c.line = append(c.line, n)
	}
	return c
}

// land is the end of what was being written: text, or for a continue the text that
// stood there and what was added.
func (p *plain) land(status, text, swipe string) {
	w := p.writing
	p.writing = nil
	word := map[string]string{"done": "complete", "failed": "error"}[status]
	if word == "" {
		word = status // cancelled, interrupted
	}
	empty := strings.TrimSpace(strings.TrimPrefix(text, w.base)) == ""
	s := w.spot
	if empty && !w.sibling && w.kind != "reply" {
		return // nothing has changed
	}
	p.change(func() {
		switch {
		case empty && w.sibling:
			p.show(s, func(l *look) { l.gone, l.status = "empty", word })
		case empty:
			p.show(s, func(l *look) { l.status = word })
		case w.kind == "continue":
			p.lengthen(w, swipe, text, word)
		default:
			v := &variant{id: swipe, text: text}
			s.swipes = append(s.swipes, v)
			whole := word == "complete" || word == "cancelled"
			if s.now().swipe == "" || whole {
				p.choose(s, v, word)
			}
			if h := p.spots[p.head()]; w.sibling && whole && (h == nil || h.seq <= s.seq) {
				p.lead(s.id)
			}
		}
	})
}

func (p *plain) lengthen(w *writing, swipe, text, word string) {
	v := w.spot.variant(swipe)
	if v == nil {
		w.spot.swipes = append(w.spot.swipes, &variant{id: swipe, text: text})
		return
	}
	v.text = text
	if w.spot.now().swipe == swipe {
		p.choose(w.spot, v, word)
	}
}

// differs tells what of a message is not as believed; "" = nothing.
func (s *spot) differs(m *wireSpot) string {
	l := s.now()
	var ids, texts []string
	for _, v := range m.Swipes {
		ids, texts = append(ids, v.ID), append(texts, v.Text)
	}
	var wantIDs, wantTexts []string
	for _, v := range s.left() {
		wantIDs, wantTexts = append(wantIDs, v.id), append(wantTexts, v.text)
	}
	parent := ""
	if m.ParentID != nil {
		parent = *m.ParentID
	}
	for what, pair := range map[string][2]any{
		"parent": {s.parent, parent}, "role": {s.role, m.Role}, "text": {l.text, m.Text}, "status": {l.status, m.Status},
		"swipes": {wantIDs, ids}, "texts of the swipes": {wantTexts, texts}, "swipeIndex": {s.index(), m.SwipeIndex}, "seq": {s.seq, m.Seq},
	} {
		if a, b := fmt.Sprintf("%q", pair[0]), fmt.Sprintf("%q", pair[1]); a != b {
			return fmt.Sprintf("message %s: %s: believed %s, is %s", s.id, what, a, b)
		}
	}
	return ""
}
