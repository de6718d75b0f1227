package worldinfo_test

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"nodest/card"
	"nodest/framework/jsregex"
	"nodest/framework/keyscan"
	"nodest/framework/worldinfo"
)

// model is the rules of activation once more, one after the other as the specification (3.1 to 3.8)
// tells them, over plain strings: no index, no cache, nothing kept between two keys. It knows no decorator
// but the two of SillyTavern.
type model struct {
	in     *worldinfo.Input
	list   []*modelEntry
	defect bool // as SillyTavern: an entry that loses in a second group takes the last candidate with it

	depth    int
	minimum  bool // a pass of min activations
	recursed []string
	sticky   map[string]worldinfo.Effect
	cooldown map[string]worldinfo.Effect
	stuck    map[*modelEntry]bool
	cooling  map[*modelEntry]bool
}

type modelEntry struct {
	card.Entry
	id             string
	activate, dont bool
	content        string
}

// modelScan is a scan by the model.
func modelScan(in *worldinfo.Input, sources []worldinfo.Source, defect bool) *worldinfo.Output {
	m := &model{in: in, defect: defect, depth: in.Settings.Depth}
	m.collect(sources)
	m.timedEffects()
	activated := m.run()
	o := m.output(activated)
	l := len(in.Messages)
	for _, e := range activated {
		if _, there := m.sticky[e.id]; !there && e.Sticky != nil && *e.Sticky > 0 {
			m.sticky[e.id] = worldinfo.Effect{Start: l, End: l + *e.Sticky}
		}
		if _, there := m.cooldown[e.id]; !there && e.Cooldown != nil && *e.Cooldown > 0 {
			m.cooldown[e.id] = worldinfo.Effect{Start: l, End: l + *e.Cooldown}
		}
	}
	o.Timed = worldinfo.Timed{Sticky: m.sticky, Cooldown: m.cooldown}
	return o
}

// collect is 3.1.
func (m *model) collect(sources []worldinfo.Source) {
	of := func(origin worldinfo.Origin, except ...worldinfo.Origin) (names []string, entries []*modelEntry) {
		for _, s := range sources {
			taken := slices.Contains(names, s.Name)
			for _, other := range sources {
				taken = taken || other.Name == s.Name && slices.Contains(except, other.Origin)
			}
			if s.Origin != origin || taken {
				continue
			}
			names = append(names, s.Name)
			for _, e := range s.Entries {
				entries = append(entries, modelEntryOf(s.Name, e))
			}
		}
		return names, entries
	}
	_, chat := of(worldinfo.OfChat, worldinfo.Global)
	_, persona := of(worldinfo.OfPersona, worldinfo.OfChat, worldinfo.Global)
	_, char := of(worldinfo.OfCharacter, worldinfo.Global, worldinfo.OfChat, worldinfo.OfPersona)
	_, global := of(worldinfo.Global)
	byOrder := func(list []*modelEntry) []*modelEntry {
		sort.SliceStable(list, func(i, j int) bool { return list[i].Order > list[j].Order })
		return list
	}
	m.list = append(byOrder(chat), byOrder(persona)...)
	switch m.in.Settings.Strategy {
	case worldinfo.Evenly:
		m.list = append(m.list, byOrder(append(global, char...))...)
	case worldinfo.GlobalFirst:
		m.list = append(append(m.list, byOrder(global)...), byOrder(char)...)
	default:
		m.list = append(append(m.list, byOrder(char)...), byOrder(global)...)
	}
}

func modelEntryOf(book string, e card.Entry) *modelEntry {
	me := &modelEntry{Entry: e, id: book + "." + e.ID, content: e.Content}
	lines := strings.Split(e.Content, "\n")
	failed := false
	for len(lines) > 0 && strings.HasPrefix(lines[0], "@@") {
		name := strings.TrimPrefix(lines[0], "@@")
		if fallback := strings.HasPrefix(name, "@"); !fallback || failed {
			name = strings.TrimPrefix(name, "@")
			failed = false
			switch {
			case strings.HasPrefix(name, "activate"):
				me.activate = true
			case strings.HasPrefix(name, "dont_activate"):
				me.dont = true
			default:
				failed = true
			}
		}
		lines = lines[1:]
		me.content = strings.Join(lines, "\n")
	}
	return me
}

// timedEffects is the beginning of 3.7.
func (m *model) timedEffects() {
	m.sticky, m.cooldown = map[string]worldinfo.Effect{}, map[string]worldinfo.Effect{}
	m.stuck, m.cooling = map[*modelEntry]bool{}, map[*modelEntry]bool{}
	maps.Copy(m.sticky, m.in.Timed.Sticky)
	maps.Copy(m.cooldown, m.in.Timed.Cooldown)
	l := len(m.in.Messages)
	for _, kind := range []string{"sticky", "cooldown"} {
		effects, active := m.sticky, m.stuck
		if kind == "cooldown" {
			effects, active = m.cooldown, m.cooling
		}
		for _, id := range slices.Collect(maps.Keys(effects)) {
			effect := effects[id]
			var entry *modelEntry
			if i := slices.IndexFunc(m.list, func(e *modelEntry) bool { return e.id == id }); i >= 0 {
				entry = m.list[i]
			}
			if l <= effect.Start && !effect.Protected {
				delete(effects, id)
				continue
			}
			if entry == nil {
				if l >= effect.End {
					delete(effects, id)
				}
				continue
			}
			setting := entry.Sticky
			if kind == "cooldown" {
				setting = entry.Cooldown
			}
			if setting == nil || *setting <= 0 {
				delete(effects, id)
				continue
			}
			if l >= effect.End {
				delete(effects, id)
				if kind == "sticky" && entry.Cooldown != nil && *entry.Cooldown > 0 {
					m.cooldown[id] = worldinfo.Effect{Start: l, End: l + *entry.Cooldown, Protected: true}
				}
				continue
			}
			active[entry] = true
		}
	}
}

// haystack is 3.3.
func (m *model) haystack(e *modelEntry) string {
	d := m.depth
	if e.ScanDepth != nil {
		d = *e.ScanDepth
	}
	if d <= 0 {
		return ""
	}
	d = min(d, 1000)
	var messages []string
	for i := len(m.in.Messages) - 1; i >= 0 && len(messages) < d; i-- {
		text := m.in.Messages[i].Text
		if m.in.Settings.IncludeNames {
			text = m.in.Messages[i].Name + ": " + text
		}
		messages = append(messages, "\x01"+strings.TrimSpace(text))
	}
	text := strings.Join(messages, "\n")
	if text == "" {
		text = "\x01"
	}
	add := func(on bool, more string) {
		if on && more != "" {
			text += "\n\x01" + more
		}
	}
	t := m.in.Texts
	add(e.ScanTexts.Persona, t.Persona)
	add(e.ScanTexts.Description, t.Description)
	add(e.ScanTexts.Personality, t.Personality)
	add(e.ScanTexts.DepthPrompt, t.DepthPrompt)
	add(e.ScanTexts.Scenario, t.Scenario)
	add(e.ScanTexts.CreatorNotes, t.CreatorNotes)
	for _, more := range m.in.Injections {
		text += "\n\x01" + more
	}
	if !m.minimum {
		for _, more := range m.recursed {
			text += "\n\x01" + more
		}
	}
	return text
}

func modelLower(text string) string { return strings.ToLower(keyscan.Fold(text)) }

// hasKey is 3.4.
func (m *model) hasKey(e *modelEntry, text, key string) bool {
	key = m.in.Expand(key)
	if key == "" || text == "" {
		return false
	}
	key = strings.TrimSpace(key)
	if source, flags, ok := jsregex.Key(key); ok {
		if p, err := jsregex.Compile(source, flags, time.Minute); err == nil {
			found, _ := p.Matches([]rune(text))
			return found
		}
	}
	exact, whole := m.in.Settings.CaseSensitive, m.in.Settings.MatchWholeWords
	if e.CaseSensitive != nil {
		exact = *e.CaseSensitive
	}
	if e.MatchWholeWords != nil {
		whole = *e.MatchWholeWords
	}
	if !exact {
		key, text = modelLower(key), modelLower(text)
	}
	if !whole || len(strings.Fields(key)) > 1 {
		return strings.Contains(text, key)
	}
	return regexp.MustCompile(`(?:^|[^A-Za-z0-9_])` + regexp.QuoteMeta(key) + `(?:$|[^A-Za-z0-9_])`).MatchString(text)
}

func (m *model) countKeys(e *modelEntry, keys []string) (n int) {
	for _, key := range keys {
		if m.hasKey(e, m.haystack(e), key) {
			n++
		}
	}
	return n
}

// keysAgree is 3.4 for the list and 3.5.
func (m *model) keysAgree(e *modelEntry) bool {
	if m.countKeys(e, e.Key) == 0 {
		return false
	}
	if !e.Selective || len(e.KeySecondary) == 0 {
		return true
	}
	n, all := m.countKeys(e, e.KeySecondary), len(e.KeySecondary)
	return map[card.Logic]bool{card.AndAny: n > 0, card.NotAll: n < all, card.NotAny: n == 0, card.AndAll: n == all}[e.SelectiveLogic]
}

// comesIn is the list of 3.6.
func (m *model) comesIn(e *modelEntry, recursion bool, level int) bool {
	who, trigger := m.in.Character, m.in.Trigger
	if trigger == "" {
		trigger = "normal"
	}
	if e.Disable || len(e.Triggers) > 0 && !slices.Contains(e.Triggers, trigger) {
		return false
	}
	if len(e.CharacterNames) > 0 && slices.Contains(e.CharacterNames, who.File) == e.Exclude {
		return false
	}
	if len(e.CharacterTags) > 0 && who.Tags != nil {
		has := false
		for _, tag := range who.Tags {
			has = has || slices.Contains(e.CharacterTags, tag)
		}
		if has == e.Exclude {
			return false
		}
	}
	if e.Delay != nil && len(m.in.Messages) < *e.Delay {
		return false
	}
	if !m.stuck[e] {
		if m.cooling[e] || !recursion && e.DelayUntilRecursion > 0 || recursion && e.DelayUntilRecursion > level ||
			recursion && m.in.Settings.Recursive && e.ExcludeRecursion {
			return false
		}
	}
	if e.activate {
		return true
	}
	if e.dont {
		return false
	}
	return m.in.Forced[e.id] || e.Constant || m.stuck[e] || m.keysAgree(e)
}

// tokenBudget is 3.2.
func (m *model) tokenBudget() int {
	set := m.in.Settings
	budget := int(math.Round(float64(set.BudgetPercent) * float64(m.in.Context) / 100))
	if budget == 0 {
		budget = 1
	}
	if set.BudgetCap > 0 {
		budget = min(budget, set.BudgetCap)
	}
	return budget
}

// delayLevels are the levels of delayUntilRecursion.
func (m *model) delayLevels() (levels []int) {
	for _, e := range m.list {
		if e.DelayUntilRecursion > 0 && !slices.Contains(levels, e.DelayUntilRecursion) {
			levels = append(levels, e.DelayUntilRecursion)
		}
	}
	slices.Sort(levels)
	return levels
}

// progress is what a pass hands on to the next one.
type progress struct {
	activated     []*modelEntry
	failed        map[*modelEntry]bool
	overflow      bool
	recursionText string
}

// run is 3.6.
func (m *model) run() []*modelEntry {
	set, levels, level, recursion := m.in.Settings, m.delayLevels(), 0, false
	if len(levels) > 0 {
		level, levels = levels[0], levels[1:]
	}
	p := &progress{failed: map[*modelEntry]bool{}}
	for pass := 1; set.MaxRecursionSteps == 0 || pass <= set.MaxRecursionSteps; pass++ {
		var candidates []*modelEntry
		for _, stickyOnes := range []bool{true, false} {
			for _, e := range m.list {
				if m.stuck[e] == stickyOnes && !slices.Contains(p.activated, e) && !p.failed[e] && m.comesIn(e, recursion, level) {
					candidates = append(candidates, e)
				}
			}
		}
		rec := m.admit(p, m.inclusionGroups(candidates, p.activated))
		wasMinimum := m.minimum
		m.minimum = false
		if set.Recursive && !p.overflow && (len(rec) > 0 || wasMinimum && len(m.recursed) > 0) {
			recursion = true
		} else if set.MinActivations > 0 && !p.overflow && len(p.activated) < set.MinActivations &&
			!(set.MinActivationsDepth > 0 && m.depth > set.MinActivationsDepth) && !(m.depth > len(m.in.Messages)) {
			m.depth++
			m.minimum, recursion = true, false
		} else if len(levels) > 0 {
			level, levels = levels[0], levels[1:]
			recursion = true
		} else {
			break
		}
		if len(rec) > 0 {
			m.recursed = append(m.recursed, strings.Join(rec, "\n"))
			p.recursionText = strings.Join(rec, "\n") + "\n" + p.recursionText
		}
	}
	return p.activated
}

// admit is 3.6, 3 and 4. It returns the contents that others may react to.
func (m *model) admit(p *progress, candidates []*modelEntry) (rec []string) {
	running := ""
	for _, e := range candidates {
		if p.overflow && !e.IgnoreBudget {
			continue
		}
		if e.UseProbability && e.Probability != 100 && !m.stuck[e] && m.in.Rand()*100 > e.Probability {
			p.failed[e] = true
			continue
		}
		e.content = m.in.Expand(e.content)
		running += e.content + "\n"
		if !e.IgnoreBudget && m.in.Count(p.recursionText)+m.in.Count(running) >= m.tokenBudget() {
			p.overflow = true
			continue
		}
		p.activated = append(p.activated, e)
	}
	for _, e := range candidates {
		if !p.failed[e] && !e.PreventRecursion {
			rec = append(rec, e.content)
		}
	}
	return rec
}

// contests are the inclusion groups of a pass.
type contests struct {
	names   []string
	members map[string][]*modelEntry
	done    map[string]bool
	remove  func(*modelEntry)
}

// inclusionGroups is 3.6, 2.
func (m *model) inclusionGroups(candidates, activated []*modelEntry) []*modelEntry {
	left := slices.Clone(candidates)
	c := &contests{members: map[string][]*modelEntry{}, done: map[string]bool{}}
	c.remove = func(e *modelEntry) {
		i := slices.Index(left, e)
		switch {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case m.defect && len(left) > 0:
			left = left[:len(left)-1]
		}
	}
	for _, e := range candidates {
		for _, name := range regexp.MustCompile(`,\s*`).Split(e.Group, -1) {
			name = strings.TrimLeft(name, " ")
			if name == "" || slices.Contains(c.members[name], e) {
				continue
			}
			if c.members[name] == nil {
				c.names = append(c.names, name)
			}
			c.members[name] = append(c.members[name], e)
		}
	}
	for _, name := range c.names { // a
		for _, e := range c.members[name] {
			c.done[name] = c.done[name] || m.stuck[e]
		}
		for _, e := range c.members[name] {
			if c.done[name] && !m.stuck[e] {
				c.remove(e)
			}
		}
	}
	for _, name := range c.names {
		m.scoring(c, name)
	}
	for _, name := range c.names {
		m.contest(c, name, activated)
	}
	return left
}

// scoring is b.
func (m *model) scoring(c *contests, name string) {
	asked := m.in.Settings.UseGroupScoring
	best := 0
	for _, e := range c.members[name] {
		asked = asked || e.UseGroupScoring != nil && *e.UseGroupScoring
		best = max(best, m.score(e))
	}
	if c.done[name] || !asked {
		return
	}
	var stay []*modelEntry
	for _, e := range c.members[name] {
		scored := m.in.Settings.UseGroupScoring
		if e.UseGroupScoring != nil {
			scored = *e.UseGroupScoring
		}
		if scored && m.score(e) < best {
			c.remove(e)
		} else {
			stay = append(stay, e)
		}
	}
	c.members[name] = stay
}

// contest is c and d.
func (m *model) contest(c *contests, name string, activated []*modelEntry) {
	if c.done[name] {
		return
	}
	all := false
	for _, e := range activated { // c
		all = all || e.Group == name
	}
	var winner *modelEntry
	if !all {
		if len(c.members[name]) <= 1 { // d
			return
		}
		if winner = m.winner(c.members[name]); winner == nil {
			return
		}
	}
	for _, e := range c.members[name] {
		if e != winner {
			c.remove(e)
		}
	}
}

// winner is e and f.
func (m *model) winner(members []*modelEntry) (winner *modelEntry) {
	sum := 0.0
	for _, e := range members {
		sum += e.GroupWeight
		if e.GroupOverride && (winner == nil || e.Order > winner.Order) {
			winner = e
		}
	}
	if winner != nil {
		return winner
	}
	drawn, sum := m.in.Rand()*sum, 0.0
	for _, e := range members {
		if sum += e.GroupWeight; sum >= drawn {
			return e
		}
	}
	return nil
}

func (m *model) score(e *modelEntry) int {
	if len(e.Key) == 0 {
		return 0
	}
	score, secondary := m.countKeys(e, e.Key), m.countKeys(e, e.KeySecondary)
	if e.SelectiveLogic == card.AndAny || e.SelectiveLogic == card.AndAll && secondary == len(e.KeySecondary) {
		score += secondary
	}
	return score
}

// output is 3.8.
func (m *model) output(activated []*modelEntry) *worldinfo.Output {
	o := &worldinfo.Output{Outlets: map[string][]worldinfo.Placed{}}
	for _, e := range activated {
		o.Activated = append(o.Activated, e.id)
	}
	falling := slices.Clone(activated)
	sort.SliceStable(falling, func(i, j int) bool { return falling[i].Order > falling[j].Order })
	front := func(block []worldinfo.Placed, text string) []worldinfo.Placed {
		return append([]worldinfo.Placed{{Text: text}}, block...)
	}
	for _, e := range falling {
		var depth *int
		if e.Position == card.AtDepth {
			depth = &e.Depth
		}
		text := e.content
		if m.in.Rewrite != nil {
			text = m.in.Rewrite(text, depth)
		}
		if text == "" {
			continue
		}
		switch e.Position {
		case card.BeforeChar:
			o.Before = front(o.Before, text)
		case card.AfterChar:
			o.After = front(o.After, text)
		case card.BeforeNote:
			o.NoteTop = front(o.NoteTop, text)
		case card.AfterNote:
			o.NoteBottom = front(o.NoteBottom, text)
		case card.ExamplesTop:
			o.ExamplesTop = append(o.ExamplesTop, worldinfo.Placed{Text: text})
		case card.ExamplesBottom:
			o.ExamplesBottom = front(o.ExamplesBottom, text)
		case card.Outlet:
			if e.OutletName != "" {
				o.Outlets[e.OutletName] = append(o.Outlets[e.OutletName], worldinfo.Placed{Text: text})
			}
		case card.AtDepth:
			at := slices.IndexFunc(o.Depth, func(g worldinfo.DepthGroup) bool { return g.Depth == e.Depth && g.Role == e.Role })
			if at < 0 {
				at = len(o.Depth)
				o.Depth = append(o.Depth, worldinfo.DepthGroup{Depth: e.Depth, Role: e.Role})
			}
			o.Depth[at].Texts = front(o.Depth[at].Texts, text)
		}
	}
	return o
}
