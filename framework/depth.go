package framework

import (
	"slices"

	"nodest/card"
)

// injections returns the prompts of a preset that are inserted into the chat: those
// with injection_position 1 that the order lists, whether they are enabled themselves
// or not. The depth prompt of the card follows them.
func injections(p card.Preset, by overrides) []*item {
	listed := map[string]bool{}
	for _, o := range p.Order {
		if o.Enabled {
			listed[o.Identifier] = true
		}
	}
	var items []*item
	for i := range p.Prompts {
		q := &p.Prompts[i]
		if !isInjection(q) || !listed[q.Identifier] || q.Identifier == "" {
			continue
		}
		it := by.promptItem(q)
		it.position, it.constant = atDepth, true
		if q.InjectionDepth != nil {
			it.depth = *q.InjectionDepth
		}
		items = append(items, it)
	}
	if by.deep != nil {
		items = append(items, by.deep)
	}
	return items
}

// layout holds what is inserted into the chat (D entries), in that order.
type layout struct {
	groups []depthGroup // position 4: by depth, ascending
	top    []*item      // position 2: before the author's note
	bottom []*item      // position 3: after it
}

// depthGroup is what is inserted at one depth.
type depthGroup struct {
	depth int
	items []*item
}

// arrange puts entries in order: at one depth preset injections in the order of
// the preset, then world-book entries by their order number. Settings of a
// request come behind them (with).
func arrange(injections, book []*item) layout {
	var l layout
	var deep []*item
	for _, it := range book {
		switch it.position {
		case beforeNote:
			l.top = append(l.top, it)
		case afterNote:
			l.bottom = append(l.bottom, it)
		case atDepth:
			deep = append(deep, it)
		}
	}
	sortByOrder(l.top)
	sortByOrder(l.bottom)
	sortByOrder(deep)
	for _, it := range slices.Concat(injections, deep) {
		l.add(it)
	}
	return l
}

// add puts an item behind all others of its depth. A negative depth is 0.
func (l *layout) add(it *item) {
	depth := max(it.depth, 0)
	at, found := slices.BinarySearchFunc(l.groups, depth, func(g depthGroup, d int) int { return g.depth - d })
	if !found {
		l.groups = slices.Insert(l.groups, at, depthGroup{depth: depth})
	}
	l.groups[at].items = append(l.groups[at].items, it)
}

// with returns a layout that also holds the settings of one request. Around an
// author's note that does not exist they are inserted at their depth.
func (l *layout) with(settings []*item, note bool) *layout {
	if len(settings) == 0 {
		return l
	}
	g := layout{groups: make([]depthGroup, len(l.groups)), top: slices.Clone(l.top), bottom: slices.Clone(l.bottom)}
	for i, d := range l.groups {
		g.groups[i] = depthGroup{d.depth, slices.Clone(d.items)}
	}
	for _, it := range settings {
		switch {
		case it.position == beforeNote && note:
			g.top = append(g.top, it)
		case it.position == afterNote && note:
			g.bottom = append(g.bottom, it)
		case it.position == beforeChar, it.position == afterChar:
		default:
			g.add(it)
		}
	}
	sortByOrder(g.top)
	sortByOrder(g.bottom)
	return &g
}

// insertion is a run of entries before the message at index at of the chat (at
// = its length: after the last).
type insertion struct {
	at    int
	depth int
	items []*item
	note  bool // the author's note and the entries around it
}

// insertions says where entries go in a chat whose base has the index base, in
// the order of the chat. note is the author's note; nil = none.
//
// Depth d ≥ 1 is directly before the message of that depth, depth 0 directly after
// the base. What is deeper than the chat goes before its oldest message, deepest
// first. The note goes to its depth after everything else, with the
// entries of position 2 and 3 around it.
func (l *layout) insertions(base int, note *item, place func(depth int) (index int, ok bool)) []insertion {
	runs := make([]insertion, 0, len(l.groups)+1) // deepest first; at one depth the note last
	for _, g := range slices.Backward(l.groups) {
		runs = append(runs, insertion{depth: g.depth, items: g.items})
	}
	if note != nil {
		depth := max(note.depth, 0)
		at := slices.IndexFunc(runs, func(r insertion) bool { return r.depth < depth })
		if at < 0 {
			at = len(runs)
		}
		runs = slices.Insert(runs, at, insertion{depth: depth, items: slices.Concat(l.top, []*item{note}, l.bottom), note: true})
	}
	var over, overNote, in []insertion
	for _, r := range runs {
		ok := true
		if r.at = base + 1; r.depth > 0 {
			r.at, ok = place(r.depth)
		}
		switch {
		case ok:
			in = append(in, r)
		case r.note:
			r.at = 0
			overNote = append(overNote, r)
		default:
			r.at = 0
			over = append(over, r)
		}
	}
	return slices.Concat(over, overNote, in)
}

// placeByMessages counts every message before the base (depthMessages).
func placeByMessages(base int) func(depth int) (int, bool) {
	return func(depth int) (int, bool) { return base - depth, depth <= base }
}

// placeByUsers counts user messages only (depthUserMessages). It looks no
// further back than the deepest entry asks for.
func placeByUsers(base int, isUser func(index int) bool) func(depth int) (int, bool) {
	var at []int // at[d-1] is the index of the d-th user message before the base
	next := base - 1
	return func(depth int) (int, bool) {
		for ; next >= 0 && len(at) < depth; next-- {
			if isUser(next) {
				at = append(at, next)
			}
		}
		if depth > len(at) {
			return 0, false
		}
		return at[depth-1], true
	}
}
