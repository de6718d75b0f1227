package worldinfo

import (
	"cmp"
	"slices"
	"strconv"

	"nodest/card"
)

func formatHash(n uint64) string { return strconv.FormatUint(n, 36) }

// output puts the entries that came in where they belong (spec 3.8).
func (s *scan) output() *Output {
	o := &Output{
		Activated: make([]string, len(s.active)), Timed: s.timed, Budget: s.budget.limit, Overflow: s.budget.overflow,
		Slow: s.patterns.slow, Searched: len(s.in.Messages),
	}
	for i, n := range s.active {
		o.Activated[i] = s.b.entries[n].id
	}
	falling := slices.Clone(s.active)
	slices.SortStableFunc(falling, func(x, y int32) int { return cmp.Compare(s.b.entries[y].Order, s.b.entries[x].Order) })
	for _, n := range falling {
		s.place(o, n)
	}
	for _, block := range [][]Placed{o.Before, o.After, o.NoteTop, o.NoteBottom, o.ExamplesBottom} {
		slices.Reverse(block)
	}
	for _, g := range o.Depth {
		slices.Reverse(g.Texts)
	}
	slices.SortStableFunc(o.Depth, func(x, y DepthGroup) int {
		return cmp.Or(cmp.Compare(y.Depth, x.Depth), cmp.Compare(x.Role, y.Role))
	})
	s.explain(o)
	return o
}

// place adds an entry to the end of its block. The blocks are turned round later, but for those whose
// highest order comes first: the examples on top, each of which goes before the others, and outlets.
func (s *scan) place(o *Output, n int32) {
	e, st := &s.b.entries[n], &s.state[n]
	at := e.position()
	text := st.text
	if s.in.Rewrite != nil {
		var depth *int
		if at == card.AtDepth {
			d := e.depth()
			depth = &d
		}
		text = s.in.Rewrite(text, depth)
	}
	switch {
	case text == "":
		st.reason = ReasonEmpty
		return
	case at == card.Outlet && e.OutletName == "":
		st.reason = ReasonOutlet
		return
	case at < card.BeforeChar || at > card.Outlet:
		st.reason = ReasonPosition
		return
	}
	p := Placed{ID: e.id, Name: e.name(), Text: text, Why: st.why, Order: e.Order}
	if st.why == WhyKey {
		p.Key = e.Key[st.key]
	}
	blocks := map[card.Position]*[]Placed{
		card.BeforeChar: &o.Before, card.AfterChar: &o.After, card.BeforeNote: &o.NoteTop, card.AfterNote: &o.NoteBottom,
		card.ExamplesTop: &o.ExamplesTop, card.ExamplesBottom: &o.ExamplesBottom,
	}
	switch block := blocks[at]; {
	case block != nil:
		*block = append(*block, p)
	case at == card.AtDepth:
		s.placeAt(o, e, p)
	default:
		if o.Outlets == nil {
			o.Outlets = map[string][]Placed{}
		}
		o.Outlets[e.OutletName] = append(o.Outlets[e.OutletName], p)
	}
}

// depthPlace is a place in the chat.
type depthPlace struct{ depth, role int }

func (s *scan) placeAt(o *Output, e *entry, p Placed) {
	at := depthPlace{e.depth(), e.role()}
	i, there := s.depths[at]
	if !there {
		i = len(o.Depth)
		s.depths[at] = i
		o.Depth = append(o.Depth, DepthGroup{Depth: at.depth, Role: at.role})
	}
	o.Depth[i].Texts = append(o.Depth[i].Texts, p)
}

// explain fills in the verdicts.
func (s *scan) explain(o *Output) {
	for _, n := range s.order {
		if !s.in.Explain && !lost(s.state[n].reason) {
			continue
		}
		v := s.verdict(n)
		o.AllTokens += v.Tokens
		if v.Fires {
			o.Tokens += v.Tokens
		}
		o.Verdicts = append(o.Verdicts, v)
	}
}

// lost reports a reason of an entry that would be in the prompt but for chance, other entries, its own
// rest, or its place.
func lost(reason string) bool {
	switch reason {
	case ReasonProbability, ReasonGroup, ReasonCooldown, ReasonBudget, ReasonEmpty, ReasonOutlet, ReasonPosition:
		return true
	}
	return false
}

func (s *scan) verdict(n int32) Verdict {
	e, st := &s.b.entries[n], &s.state[n]
	v := Verdict{
		ID: e.id, Name: e.name(), Fires: st.active && st.reason == "", Why: st.why, Reason: st.reason,
		Draw: st.draw, Group: st.group, Until: st.until, Pass: st.pass, Level: st.level,
	}
	if s.in.Explain {
		v.Tokens = s.in.Count(s.text(n))
	}
	if v.Reason != "" && v.Why == "" && v.Reason != ReasonSecondary {
		return v
	}
	if st.view.depth > 0 && st.key >= 0 && len(e.keys) > 0 && (v.Why == WhyKey || v.Reason == ReasonSecondary) {
		v.Key = e.Key[st.key]
		v.In, v.Message = s.where(e, e.keys[st.key], st.view)
		if e.Selective {
			for i, k := range e.secondary {
				if s.found(e, k, st.view) {
					v.Found = append(v.Found, e.KeySecondary[i])
				} else {
					v.Missing = append(v.Missing, e.KeySecondary[i])
				}
			}
		}
	}
	return v
}

// where says in which text a key was found.
func (s *scan) where(e *entry, k int32, v view) (in string, message *int) {
	p := s.texts.places(k, orElse(e.CaseSensitive, s.in.Settings.CaseSensitive))
	if p == nil {
		return InAll, nil
	}
	at, other := p.any, p.anyIn
	if orElse(e.MatchWholeWords, s.in.Settings.MatchWholeWords) && p.whole+int32(p.wholeIn) > 0 {
		at, other = p.whole, p.wholeIn
	}
	switch other &= v.in; {
	case at > 0 && len(s.in.Messages) == 0:
		return InAll, nil
	case at > 0 && int(at) <= v.depth:
		i := len(s.in.Messages) - int(at)
		return InMessage, &i
	case other&inPersona != 0:
		return InPersona, nil
	case other&(inPersona|inInjection|inRecursion) == other:
		if other&inInjection != 0 {
			return InInjection, nil
		}
		return InRecursion, nil
	}
	return InCard, nil
}
