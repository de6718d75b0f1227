package worldinfo

import "strings"

// budget counts the tokens of entries as SillyTavern does: of the running text of a pass, which keeps an
// entry that did not fit, and of what earlier passes made searchable.
type budget struct {
	limit    int
	count    func(string) int
	overflow bool
	earlier  tally // texts of earlier passes, the newest last; each is followed by a line break
	running  tally
}

// tally is texts that follow each other. Tokens are counted only where it matters, since that is what
// takes time: a text has no more tokens than bytes, and texts together no more than each by itself.
type tally struct {
	texts   []string
	bytes   int
	counted int // number of texts whose tokens are in most
	most    int // tokens
	exact   int // tokens of the first known texts together
	known   int
}

func (t *tally) add(text string) {
	t.texts = append(t.texts, text)
	t.bytes += len(text)
}

// atMost is a bound for the tokens.
func (t *tally) atMost(count func(string) int) int {
	for ; t.counted < len(t.texts); t.counted++ {
		t.most += count(t.texts[t.counted])
	}
	return t.most
}

// tokens counts the texts as one.
func (t *tally) tokens(count func(string) int, reversed bool) int {
	if t.known == len(t.texts) {
		return t.exact
	}
	var b strings.Builder
	for i := range t.texts {
		if reversed {
			i = len(t.texts) - 1 - i
		}
		b.WriteString(t.texts[i])
	}
	t.exact, t.known = count(b.String()), len(t.texts)
	return t.exact
}

// turn ends a pass.
func (b *budget) turn() { b.running = tally{} }

// recurse counts a text of entries against later passes.
func (b *budget) recurse(text string) { b.earlier.add(text + "\n") }

// fits adds a text to those of the pass and reports whether they are below the limit: an exact fit is
// too much.
func (b *budget) fits(text string, counts bool) bool {
	b.running.add(text + "\n")
	switch {
	case !counts, b.earlier.bytes+b.running.bytes < b.limit,
		b.earlier.atMost(b.count)+b.running.atMost(b.count) < b.limit:
		return true
	}
	return b.earlier.tokens(b.count, true)+b.running.tokens(b.count, false) < b.limit
}

// admit draws numbers for candidates and brings them in while they fit (spec 3.6, 3).
func (s *scan) admit(found []int32) {
	for _, n := range found {
		e, st := &s.b.entries[n], &s.state[n]
		if s.budget.overflow && !e.IgnoreBudget {
			st.reason = ReasonBudget
			continue
		}
		if !s.lucky(e, st) {
			st.failed, st.reason = true, ReasonProbability
			continue
		}
		if !st.expanded {
			st.text, st.expanded = s.in.Expand(e.text), true
		}
		if !s.budget.fits(st.text, !e.IgnoreBudget) {
			s.budget.overflow = true
			st.reason = ReasonBudget
			continue
		}
		st.active, st.reason = true, ""
		s.active = append(s.active, n)
		if _, taken := s.groups[e.Group]; !taken && e.Group != "" {
			s.groups[e.Group] = n
		}
	}
}

// lucky draws the number of an entry that has a probability.
func (s *scan) lucky(e *entry, st *state) bool {
	if !e.UseProbability || e.Probability == 100 || st.stuck {
		return true
	}
	st.draw = &Draw{Drawn: s.in.Rand() * 100, Percent: e.Probability}
	return st.draw.Drawn <= e.Probability
}
