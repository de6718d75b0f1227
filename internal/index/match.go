package index

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"nodest/internal/index/dict"
)

// Term is a term of a query. A single character of a script without spaces is also found inside
// the pairs of a row.
type Term struct {
	Text   string
	Weight float32

	Evidence float32 // how much a row that has it proves, from 0 to 1
	Extra    bool    // nothing is missing in a row without it: it counts for neither Weight nor Asked
}

// Match is how well each row fits a query.
type Match struct {
	Scores []Score // by row number
	Few    []int32 // in a large index: the rows whose scores are not 0, ascending; else nil
	Weight float32 // the weight of all terms of the query together
	Rarest float32 // weight of a term that is in one row only
	Asked  float32 // the Evidence of the whole query

	memory   []Score // zero beyond the length of Scores
	groups   []float32
	postings []dict.Posting
	list     []int32  // Few
	found    []uint64 // a bit for each row; all 0 between questions
	among    []uint64 // likewise, of those in which common terms count; nil = the present question looks at all
}

// Score is how well a row fits a query.
type Score struct {
	Row     float32 // BM25 of the row alone
	Near    float32 // BM25 of the row with one neighbour on each side
	Around  float32 // BM25 of the row with three on each side
	Group   float32 // BM25 of the row's whole group; of a row that stands alone, its own
	Covered float32 // share of the query's weight whose terms are in the row, 0 to 1
	Spanned float32 // likewise in the row and its next neighbours

	// Evidence is the sum, over the terms in the row, of Term.Evidence times their rarity,
	// which is 1 for a term that is in one row.
	Evidence float32

	group int32 // in a large index: one more than the number of the row's group; 0 = it stands alone
}

const (
	nearReach   = 1
	aroundReach = 3
)

// In an index with more rows than manyRows, a question has something to do with few of them. Its
// rarest terms find about so many: the rows that have one, and three around each. The other terms
// add to the scores of these only; rows that stand alone are found by all terms.
const manyRows = 8192

// Match scores all rows into m, reusing its memory. A repeated term of the query counts once.
func (v View) Match(ctx context.Context, query []Term, m *Match) error {
	s := newScorer(v.x, m)
	if v.x.rows() == 0 {
		return nil
	}
	keys := make([]string, len(query))
	for i, q := range query {
		keys[i] = Key(q.Text)
	}
	lists, err := v.x.lists(ctx, keys)
	if err != nil {
		return err
	}
	m.Rarest = worth(1, 1, v.x.rows())
	for _, t := range v.x.spread(query, keys, lists) {
		s.weigh(t.Term, t.rows)
		if s.limited = s.many && s.found > 0 && s.found+t.rows > manyRows; s.limited && m.among == nil {
			m.among = s.gathered()
		}
		for _, l := range t.lists {
			s.add(l)
		}
	}
	s.spreadGroups()
	return nil
}

// queryTerm is a term of a query with where it is in the index.
type queryTerm struct {
	Term
	lists []list
	rows  int
}

// spread returns the terms of a query, each once; in a large index the rarest first.
func (x *Index) spread(query []Term, keys []string, lists map[string][]list) []queryTerm {
	terms := make([]queryTerm, 0, len(query))
	for i, q := range query {
		if slices.ContainsFunc(terms, func(t queryTerm) bool { return t.Text == q.Text }) {
			continue
		}
		t := queryTerm{q, lists[keys[i]], 0}
		for _, l := range t.lists {
			t.rows += l.Rows
		}
		terms = append(terms, t)
	}
	if x.rows() > manyRows {
		slices.SortStableFunc(terms, func(a, b queryTerm) int { return cmp.Compare(a.rows, b.rows) })
	}
	return terms
}

// Each calls f for the rows that may have a score.
func (m *Match) Each(f func(row int, s *Score)) {
	if m.Few == nil {
		for n := range m.Scores {
			f(n, &m.Scores[n])
		}
	}
	for _, n := range m.Few {
		f(int(n), &m.Scores[n])
	}
}

// scorer adds up the terms of one query.
type scorer struct {
	x       *Index
	m       *Match
	many    bool // rows are noted in m.found
	found   int  // how many
	limited bool // the present term finds no rows

	row, near, around, group falloff

	weight, covers, proof float32 // belong to the present term
}

// newScorer clears m and makes it as long as the index.
func newScorer(x *Index, m *Match) *scorer {
	n, length, grouped, groups := x.slots(), 0, 0, 0
	for _, s := range x.sections {
		length += s.Terms(0, s.Rows)
		grouped += s.Terms(s.Lone, s.Rows)
		groups += len(s.Groups)
	}
	if m.Each(func(_ int, s *Score) { *s = Score{} }); cap(m.memory) < n {
		m.memory = make([]Score, n+n/8)
	}
	if cap(m.groups) < groups {
		m.groups = make([]float32, groups+groups/8)
	}
	*m = Match{Scores: m.memory[:n], memory: m.memory, groups: m.groups[:groups], postings: m.postings, list: m.list[:0], found: m.found}
	clear(m.groups)
	m.found = slices.Grow(m.found[:0], n/64)[:n/64]
	average := max(1, float32(length)/float32(max(1, x.rows())))
	return &scorer{
		x: x, m: m, many: x.rows() > manyRows,
		row: falloffOf(average), near: falloffOf(average * (2*nearReach + 1)), around: falloffOf(average * (2*aroundReach + 1)),
		group: falloffOf(max(1, float32(grouped)/float32(max(1, groups)))),
	}
}

// weigh begins a term of the query that is in so many rows.
func (s *scorer) weigh(q Term, rows int) {
	idf := worth(q.Weight, rows, s.x.rows())
	s.weight, s.covers, s.proof = idf*saturated, idf, s.x.rarity(rows)*q.Evidence
	if q.Extra {
		s.covers = 0
		return
	}
	s.m.Weight += idf
	s.m.Asked += s.proof
}

// addAround adds the present term to a row of a group (-1 = it stands alone) that has it in its wider
// window, in a text of that length and so often.
func (s *scorer) addAround(to *Score, n, group int, count float32, length int32) {
	if s.many && to.Around == 0 {
		s.m.found[n/64] |= 1 << (n % 64)
		s.found++
		to.group = int32(group + 1)
	}
	to.Around += s.weight * s.around.of(count, length)
}

// own adds the present term to a row that has it.
func (s *scorer) own(to *Score, count uint32, length int32) {
	to.Row += s.weight * s.row.of(float32(count), length)
	to.Covered += s.covers
	to.Evidence += s.proof
}

// add adds the present term to the rows of a section.
func (s *scorer) add(l list) {
	scores := s.m.Scores[l.in.from : l.in.from+l.in.Rows]
	all := s.postings(l)
	for ; len(all) > 0 && int(all[0].Row) < l.in.Lone; all = all[1:] {
		n, count := int(all[0].Row), float32(all[0].Count)
		to, length := &scores[n], int32(l.in.Terms(n, n+1))
		s.own(to, uint32(count), length)
		to.Near += s.weight * s.near.of(count, length)
		s.addAround(to, l.in.from+n, -1, count, length)
		to.Spanned += s.covers
	}
	first := s.groupsOf(l.in)
	for g := 0; len(all) > 0; g++ {
		if g += l.in.GroupAfter(g, int(all[0].Row)); g >= len(l.in.Groups) {
			return
		}
		in := &l.in.Groups[g]
		n, count := 0, float32(0)
		for n < len(all) && int(all[n].Row) < in.End {
			count += float32(all[n].Count)
			n++
		}
		s.m.groups[first+g] += s.weight * s.group.of(count, int32(l.in.Terms(in.First, in.End)))
		s.windows(l.in, in, first+g, all[:n], scores)
		all = all[n:]
	}
}

// gathered returns the rows in which the further terms of the question count, once its rarest ones have
// found theirs: these, and those that stand alone. That is most of such a question.
func (s *scorer) gathered() []uint64 {
	all := slices.Clone(s.m.found)
	for _, in := range s.x.sections {
		among := all[in.from/64:][:(in.Rows+63)/64]
		for n := range in.Lone {
			among[n/64] |= 1 << (n % 64)
		}
		for at, stale := range in.stale.bits {
			among[at] &^= stale
		}
	}
	return all
}

// postings returns the rows of a list that the present term adds to.
func (s *scorer) postings(l list) []dict.Posting {
	var among []uint64
	if s.limited {
		among = s.m.among[l.in.from/64:][:(l.in.Rows+63)/64]
	}
	all := l.appendTo(s.m.postings[:0], among)
	s.m.postings = all
	if among == nil && (l.in.stale.count > 0 || len(all) > 0 && int(all[len(all)-1].Row) >= l.in.Rows) {
		all = slices.DeleteFunc(all, func(p dict.Posting) bool { return int(p.Row) >= l.in.Rows || l.in.stale.has(int(p.Row)) })
	}
	return all
}

// groupsOf returns where the scores of the groups of a section begin.
func (s *scorer) groupsOf(in *section) (at int) {
	for _, one := range s.x.sections {
		if one == in {
			break
		}
		at += len(one.Groups)
	}
	return at
}

// windows adds the present term, with its postings in a group of that number, to the rows of the group
// that have it in their windows. It works on copies in registers, and adds 0 where a branch would be
// predicted wrongly.
func (s *scorer) windows(in *section, g *Group, number int, all []dict.Posting, scores []Score) {
	var a, b, c, d, e, f, last int32 // how often it is in the rows from n-3 to n+3
	before, inRow, inNear := in.Before(), s.row, s.near
	weight, covers, proof := s.weight, [2]float32{1: s.covers}, [2]float32{1: s.proof}
	for n, around := 0, int32(0); ; n++ {
		if around == 0 {
			if len(all) == 0 {
				return
			}
			n = int(all[0].Row) - aroundReach
		}
		around -= a
		a, b, c, d, e, f, last = b, c, d, e, f, last, 0
		if len(all) > 0 && int(all[0].Row) == n+aroundReach {
			last, all = all[0].Count, all[1:]
			around += last
		}
		if n >= g.End {
			return
		}
		if around == 0 || n < g.First || s.limited && scores[n].Around == 0 {
			continue
		}
		to, near := &scores[n], c+d+e
		s.addAround(to, in.from+n, number, float32(around), int32(before[min(g.End, n+aroundReach+1)]-before[max(g.First, n-aroundReach)]))
		to.Near += weight * inNear.of(float32(near), int32(before[min(g.End, n+nearReach+1)]-before[max(g.First, n-nearReach)]))
		to.Spanned += covers[min(near, 1)&1]
		to.Row += weight * inRow.of(float32(d), int32(before[n+1]-before[n]))
		to.Covered += covers[min(d, 1)&1]
		to.Evidence += proof[min(d, 1)&1]
	}
}

// spreadGroups gives rows the scores of their groups; in a large index, those that were found.
func (s *scorer) spreadGroups() {
	if s.many {
		s.spreadFew()
		return
	}
	for n := range s.m.Scores {
		s.share(&s.m.Scores[n])
	}
	for _, in := range s.x.sections {
		scores, first := s.m.Scores[in.from:in.from+in.Rows], s.groupsOf(in)
		for n := range scores[:in.Lone] {
			scores[n].Group = scores[n].Row
		}
		for i, g := range in.Groups {
			of := s.m.groups[first+i]
			if of == 0 {
				continue
			}
			for n := g.First; n < g.End; n++ {
				scores[n].Group = of
			}
		}
	}
}

// share makes shares of the query of the weights that were added to a row.
func (s *scorer) share(to *Score) {
	if s.m.Weight > 0 {
		to.Covered /= s.m.Weight
		to.Spanned /= s.m.Weight
	}
}

// spreadFew is spreadGroups for the rows that were found, which it lists.
func (s *scorer) spreadFew() {
	m := s.m
	for at, word := range m.found {
		for m.found[at] = 0; word != 0; word &= word - 1 {
			n := 64*at + bits.TrailingZeros64(word)
			to := &m.Scores[n]
			if to.Group = to.Row; to.group > 0 {
				to.Group = m.groups[to.group-1]
			}
			s.share(to)
			m.list = append(m.list, int32(n))
		}
	}
	m.Few = m.list
}
