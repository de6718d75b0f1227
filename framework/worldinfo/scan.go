package worldinfo

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"nodest/card"
	"nodest/framework/jsregex"
)

// maxDepth bounds how many of the newest messages are searched.
const maxDepth = 1000

// pass is the kind of a pass over the entries.
type pass uint8

const (
	noPass      pass = iota
	initialPass      // over the chat
	recursePass      // over the texts of entries too
	minimumPass      // one message further back, because too few entries are in
)

// state is what a scan knows of an entry.
type state struct {
	why, reason    string
	key            int32 // index of the key that fired, in entry.keys
	pass, level    int
	view           view
	active         bool // it is used
	failed         bool // the number drawn was too high: it is out for the rest of the scan
	out            bool // out for the rest of the scan, whatever the texts say
	stuck, cooling bool // sticky, in cooldown
	lost           int  // the pass in which its group removed it
	text           string
	draw           *Draw
	group          *Group
	until          *int
	expanded       bool
}

// scan is one scan.
type scan struct {
	b     *Book
	in    *Input
	state []state
	order []int32
	alive []int32 // those in order that can still come in
	texts texts

	progress
	active    []int32
	groups    map[string]int32 // active entries, by their whole group texts
	budget    budget
	timed     Timed
	tags      map[string]bool    // tags of the character
	depths    map[depthPlace]int // indices of the groups of the output
	patterns  *patterns
	assistant int // messages that are not the user's
}

// progress is where a scan is.
type progress struct {
	pass   pass
	same   bool   // the pass differs from the one before by the texts of entries, and the level, alone
	again  []bool // by entries: a candidate of the pass before
	passes int
	level  int
	below  int   // the level of the pass before
	levels []int // later ones
	extra  int   // depth beyond that of the settings
}

func (b *Book) scan(ctx context.Context, in *Input) (*Output, error) {
	s := newScan(ctx, b, in)
	s.effects()
	for s.pass = initialPass; s.pass != noPass; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if most := in.Settings.MaxRecursionSteps; most > 0 && s.passes >= most {
			break
		}
		s.passes++
		s.look()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	s.start()
	return s.output(), nil
}

func newScan(ctx context.Context, b *Book, given *Input) *scan {
	in := new(Input)
	*in = *given
	in.Tools = in.Tools.complete()
	set := in.Settings
	s := &scan{
		b: b, in: in, state: make([]state, len(b.entries)), progress: progress{again: make([]bool, len(b.entries))}, groups: map[string]int32{},
		tags: make(map[string]bool, len(in.Character.Tags)), depths: map[depthPlace]int{},
		patterns: &patterns{ctx: ctx, allowance: jsregex.NewAllowance(patternsLimit), told: map[string]bool{}},
	}
	s.order = b.orders[min(max(set.Strategy, Evenly), GlobalFirst)]
	if len(b.levels) > 0 {
		s.level, s.levels = b.levels[0], b.levels[1:]
	}
	s.assistant = in.Before.Messages - in.Before.Users
	for _, t := range in.Character.Tags {
		s.tags[t] = true
	}
	for _, m := range in.Messages {
		if !m.User {
			s.assistant++
		}
	}
	s.budget = budget{limit: budgetOf(set, in.Context), count: in.Count}
	t := in.Texts
	s.texts = texts{
		source: in.Messages, names: set.IncludeNames, injected: in.Injections,
		others:  [6]string{t.Persona, t.Description, t.Personality, t.DepthPrompt, t.Scenario, t.CreatorNotes},
		touched: make([]bool, len(b.entries)), joined: map[view][]rune{}, memo: map[patternAt]bool{},
	}
	s.texts.hays[0] = newHay(newFinder(b.set(set.CaseSensitive), in.Cache, s.patterns))
	if dynamic := b.dynamicSet(set.CaseSensitive, in.Expand); dynamic != nil {
		s.texts.hays[1] = newHay(newFinder(dynamic, in.Cache, s.patterns))
	}
	s.texts.scanOthers(maskOf(b.wanted))
	s.filter()
	return s
}

// complete returns t with defaults for what is missing.
func (t Tools) complete() Tools {
	if t.Rand == nil {
		t.Rand = func() float64 { return 0.5 }
	}
	if t.Expand == nil {
		t.Expand = func(text string) string { return text }
	}
	if t.Count == nil {
		t.Count = estimate
	}
	return t
}

// estimate is the tokens of a text as SillyTavern guesses them.
func estimate(text string) int { return int(math.Ceil(float64(len(text)) / 3.35)) }

// budgetOf is the tokens that the entries may have together (spec 3.2).
func budgetOf(s Settings, context int) int {
	n := max(int(math.Floor(float64(s.BudgetPercent)*float64(context)/100+0.5)), 1)
	if s.BudgetCap > 0 {
		n = min(n, s.BudgetCap)
	}
	return n
}

// filter takes out the entries that nothing in the texts can bring in.
func (s *scan) filter() {
	s.alive = make([]int32, 0, len(s.order))
	for _, n := range s.order {
		if reason := s.barred(&s.b.entries[n]); reason != "" {
			s.state[n].reason, s.state[n].out = reason, true
			continue
		}
		s.alive = append(s.alive, n)
	}
}

// barred returns why an entry is out whatever the texts say, "" if it is not.
func (s *scan) barred(e *entry) string {
	who := &s.in.Character
	names := slices.Contains(e.CharacterNames, who.File)
	tags := slices.ContainsFunc(e.CharacterTags, func(t string) bool { return s.tags[t] })
	switch {
	case e.Disable:
		return ReasonDisabled
	case len(e.Triggers) > 0 && !slices.Contains(e.Triggers, cmp.Or(s.in.Trigger, "normal")):
		return ReasonTrigger
	case len(e.CharacterNames) > 0 && names == e.Exclude:
		return ReasonCharacter
	case len(e.CharacterTags) > 0 && who.Tags != nil && tags == e.Exclude:
		return ReasonTags
	}
	return ""
}

// look is one pass: which entries come in now, and whether another pass follows.
func (s *scan) look() {
	s.scanMessages()
	var found []int32
	s.alive = slices.DeleteFunc(s.alive, func(n int32) bool {
		if s.same && s.settled(n) {
			return false
		}
		st := &s.state[n]
		if st.active || st.failed {
			return true
		}
		if s.again[n] = s.candidate(n); s.again[n] {
			found = append(found, n)
		}
		return st.out
	})
	slices.SortStableFunc(found, func(x, y int32) int {
		return cmp.Compare(bit(s.state[y].stuck), bit(s.state[x].stuck))
	})
	found = s.chooseGroups(found)
	s.admit(found)
	s.next(found)
}

// settled reports that an entry was looked at in the pass before, and that nothing has changed for it.
func (s *scan) settled(n int32) bool {
	level := s.b.entries[n].DelayUntilRecursion
	return !s.again[n] && !s.b.always[n] && !s.texts.touched[n] && (level <= s.below || level > s.level)
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

// scanMessages scans as many messages as some entry looks at.
func (s *scan) scanMessages() {
	if s.pass == recursePass {
		return // the pass before has scanned them
	}
	depth := s.in.Settings.Depth + s.extra
	for _, n := range s.alive {
		if d := s.b.entries[n].scanDepth(); d != nil {
			depth = max(depth, *d)
		}
	}
	s.texts.scanTo(min(depth, maxDepth))
}

// view returns the texts that an entry is looked for in.
func (s *scan) view(e *entry) view {
	depth := s.in.Settings.Depth + s.extra
	if d := e.scanDepth(); d != nil {
		depth = *d
	}
	v := view{depth: min(depth, maxDepth), in: maskOf(e.ScanTexts) | inInjection}
	if s.pass != minimumPass {
		v.in |= inRecursion
	}
	return v
}

// candidate decides about one entry, in the order of spec 3.6.
func (s *scan) candidate(n int32) bool {
	e, st := &s.b.entries[n], &s.state[n]
	st.pass, st.level, st.why, st.group = s.passes, 0, "", nil
	if s.pass == recursePass {
		st.level = s.level
	}
	if st.reason = s.held(e, st); st.reason != "" {
		return false
	}
	d := e.deco
	switch {
	case d != nil && d.activate:
		st.why = WhyDecorator
	case d != nil && d.dont:
		st.reason = ReasonDecorator
	case s.in.Forced[e.id]:
		st.why = WhyForced
	case e.Constant:
		st.why = WhyConstant
	case st.stuck:
		st.why = WhySticky
	default:
		s.match(e, st)
	}
	if d != nil && st.reason == "" && st.why != WhyDecorator && st.why != WhySticky {
		st.reason = s.decorated(e)
	}
	return st.reason == ""
}

// held returns what keeps an entry out of this pass, whatever its keys; "" = nothing.
func (s *scan) held(e *entry, st *state) string {
	if e.Delay != nil && s.in.length() < *e.Delay {
		st.until, st.out = e.Delay, true
		return ReasonDelay
	}
	switch recursion := s.pass == recursePass; {
	case st.stuck:
		return ""
	case st.cooling:
		st.out = true
		return ReasonCooldown
	case e.DelayUntilRecursion > 0 && (!recursion || e.DelayUntilRecursion > s.level):
		return ReasonLevel
	case recursion && s.in.Settings.Recursive && e.ExcludeRecursion:
		return ReasonRecursion
	case e.deco != nil && !e.deco.allows(s.in.Greeting, s.assistant):
		return ReasonDecorator
	}
	return ""
}

// match looks for the keys of an entry.
func (s *scan) match(e *entry, st *state) {
	if len(e.keys) == 0 {
		st.reason = ReasonNoKeys
		return
	}
	st.view = s.view(e)
	st.key = int32(slices.IndexFunc(e.keys, func(k int32) bool { return s.found(e, k, st.view) }))
	switch {
	case st.key < 0:
		st.reason = ReasonKey
	case e.Selective && !s.secondary(e, st.view):
		st.reason = ReasonSecondary
	default:
		st.why = WhyKey
	}
}

func (s *scan) found(e *entry, k int32, v view) bool {
	return s.texts.found(k, v, orElse(e.CaseSensitive, s.in.Settings.CaseSensitive), orElse(e.MatchWholeWords, s.in.Settings.MatchWholeWords))
}

func orElse(own *bool, other bool) bool {
	if own != nil {
		return *own
	}
	return other
}

// secondary reports whether the secondary keys of an entry agree (spec 3.5).
func (s *scan) secondary(e *entry, v view) bool {
	if len(e.secondary) == 0 {
		return true
	}
	n := s.count(e, e.secondary, v)
	switch e.SelectiveLogic {
	case card.NotAll:
		return n < len(e.secondary)
	case card.NotAny:
		return n == 0
	case card.AndAll:
		return n == len(e.secondary)
	}
	return n > 0
}

// count is how many keys are found.
func (s *scan) count(e *entry, keys []int32, v view) int {
	n := 0
	for _, k := range keys {
		if s.found(e, k, v) {
			n++
		}
	}
	return n
}

// decorated returns what the keys of decorators say against an entry.
func (s *scan) decorated(e *entry) string {
	v := s.view(e)
	switch {
	case s.count(e, e.except, v) > 0:
		return ReasonExclude
	case len(e.additional) > 0 && s.count(e, e.additional, v) == 0:
		return ReasonSecondary
	}
	return ""
}

// next decides whether another pass follows (spec 3.6, 5 and 6).
func (s *scan) next(found []int32) {
	var rec []string
	for _, n := range found {
		if !s.state[n].failed && !s.b.entries[n].PreventRecursion {
			rec = append(rec, s.text(n))
		}
	}
	before := s.pass
	s.below = s.level
	switch s.same = false; {
	case s.recurs(len(rec)):
		s.pass, s.same = recursePass, before == recursePass
	case s.tooFew():
		s.pass = minimumPass
		s.extra++
	case len(s.levels) > 0:
		s.pass, s.same = recursePass, before == recursePass
		s.level, s.levels = s.levels[0], s.levels[1:]
	default:
		s.pass = noPass
		return
	}
	s.texts.settle()
	s.budget.turn()
	if len(rec) > 0 {
		text := strings.Join(rec, "\n")
		s.budget.recurse(text)
		s.texts.recurse(text)
	}
}

// recurs reports whether the texts of entries are searched next, n of which are new.
func (s *scan) recurs(n int) bool {
	return s.in.Settings.Recursive && !s.budget.overflow && (n > 0 || s.pass == minimumPass && len(s.texts.recursed) > 0)
}

// tooFew reports whether an older message is searched next, because too few entries are in.
func (s *scan) tooFew() bool {
	set, depth := &s.in.Settings, s.in.Settings.Depth+s.extra
	if s.budget.overflow || len(s.active) >= set.MinActivations || depth > len(s.in.Messages) {
		return false
	}
	return set.MinActivationsDepth <= 0 || depth <= set.MinActivationsDepth
}

// text is the content of an entry as other entries see it: with macros replaced if it has been
// considered for the prompt.
func (s *scan) text(n int32) string {
	if st := &s.state[n]; st.expanded {
		return st.text
	}
	return s.b.entries[n].text
}
