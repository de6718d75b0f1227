package worldinfo

import "slices"

// group is an inclusion group of the candidates of a pass.
type group struct {
	name    string
	members []int32
	done    bool
}

// chooseGroups keeps one member of each inclusion group (spec 3.6, 2). An entry that has lost in one
// group can still win in another, but stays out; losing twice changes nothing.
func (s *scan) chooseGroups(found []int32) []int32 {
	groups := s.groupsOf(found)
	if len(groups) == 0 {
		return found
	}
	for _, g := range groups {
		s.sticky(g)
	}
	for _, g := range groups {
		s.score(g)
	}
	for _, g := range groups {
		s.contest(g)
	}
	return slices.DeleteFunc(found, func(n int32) bool { return s.state[n].lost == s.passes })
}

// groupsOf returns the groups in the order in which they first appear.
func (s *scan) groupsOf(found []int32) []*group {
	var list []*group
	at := map[string]*group{}
	for _, n := range found {
		for _, name := range s.b.entries[n].groups {
			g := at[name]
			if g == nil {
				g = &group{name: name}
				at[name] = g
				list = append(list, g)
			}
			g.members = append(g.members, n)
		}
	}
	return list
}

// lose takes an entry out of this pass. won is the entry that is used instead; -1 = several.
func (s *scan) lose(n int32, g *group, how string, won int32, drew float64) {
	st := &s.state[n]
	if st.lost == s.passes {
		return
	}
	st.lost, st.reason = s.passes, ReasonGroup
	st.group = &Group{Name: g.name, How: how, Drew: drew}
	if won >= 0 {
		st.group.Won = s.b.entries[won].id
	}
}

func (s *scan) loseAllBut(g *group, how string, won int32, drew float64) {
	for _, n := range g.members {
		if n != won {
			s.lose(n, g, how, won, drew)
		}
	}
}

func (s *scan) sticky(g *group) {
	if !slices.ContainsFunc(g.members, func(n int32) bool { return s.state[n].stuck }) {
		return
	}
	g.done = true
	for _, n := range g.members {
		if !s.state[n].stuck {
			s.lose(n, g, "sticky", -1, 0)
		}
	}
}

// score removes the members that are scored and have fewer keys in the texts than the best.
func (s *scan) score(g *group) {
	scored := func(n int32) bool { return orElse(s.b.entries[n].UseGroupScoring, s.in.Settings.UseGroupScoring) }
	if g.done || !s.in.Settings.UseGroupScoring && !slices.ContainsFunc(g.members, scored) {
		return
	}
	scores := make(map[int32]int, len(g.members))
	best := g.members[0]
	for _, n := range g.members {
		if scores[n] = s.scoreOf(n); scores[n] > scores[best] {
			best = n
		}
	}
	top := scores[best]
	g.members = slices.DeleteFunc(g.members, func(n int32) bool {
		if !scored(n) || scores[n] == top {
			return false
		}
		s.lose(n, g, "score", best, 0)
		return true
	})
}

func (s *scan) scoreOf(n int32) int {
	e := &s.b.entries[n]
	if len(e.keys) == 0 {
		return 0
	}
	v := s.view(e)
	score := s.count(e, e.keys, v)
	if len(e.secondary) == 0 {
		return score
	}
	switch more := s.count(e, e.secondary, v); {
	case e.SelectiveLogic == 0, e.SelectiveLogic == 3 && more == len(e.secondary):
		score += more
	}
	return score
}

// contest leaves one member.
func (s *scan) contest(g *group) {
	active, taken := s.groups[g.name]
	switch {
	case g.done:
	case taken:
		s.loseAllBut(g, "active", active, 0)
	case len(g.members) < 2:
	default:
		if won := s.override(g); won >= 0 {
			s.loseAllBut(g, "override", won, 0)
			return
		}
		if won, drew := s.weigh(g); won >= 0 {
			s.loseAllBut(g, "weight", won, drew)
		}
	}
}

// override returns the member of highest order that has priority, -1 if none has.
func (s *scan) override(g *group) int32 {
	best := int32(-1)
	for _, n := range g.members {
		if e := &s.b.entries[n]; e.GroupOverride && (best < 0 || e.Order > s.b.entries[best].Order) {
			best = n
		}
	}
	return best
}

// weigh draws a member by the weights.
func (s *scan) weigh(g *group) (won int32, drew float64) {
	sum := 0.0
	for _, n := range g.members {
		sum += s.b.entries[n].GroupWeight
	}
	drew, sum = s.in.Rand()*sum, 0
	for _, n := range g.members {
		if sum += s.b.entries[n].GroupWeight; drew <= sum {
			return n, drew
		}
	}
	return -1, drew
}
