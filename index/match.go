package index

// The constants of BM25.
const (
	saturation = 1.2
	lengthNorm = 0.75
)

// Term is a term of a query. A single character of a script without spaces is also found inside
// the pairs of a row.
type Term struct {
	Text   string
	Weight float32

	Evidence float32 // how much a row that has it proves, from 0 to 1
	Extra    bool    // nothing is missing in a row without it: it counts for neither Weight nor Asked
}

// Match is how well each row fits a query, by row number.
type Match struct {
	Row     []float32 // BM25 of the row alone
	Near    []float32 // BM25 of the row with one neighbour on each side
	Around  []float32 // BM25 of the row with three on each side
	Group   []float32 // BM25 of the row's whole group; of a row that stands alone, its own
	Covered []float32 // share of the query's weight whose terms are in the row, 0 to 1
	Spanned []float32 // likewise in the row and its next neighbours
	Weight  float32   // of all terms of the query together
	Rarest  float32   // weight of a term that is in one row only

	// Evidence is the sum, over the terms in the row, of Term.Evidence times their rarity,
	// which is 1 for a term that is in one row. Asked is that of the whole query.
	Evidence []float32
	Asked    float32

	memory  []float32 // of the columns
	touched []int32
}

const (
	nearReach   = 1
	aroundReach = 3
)

// Match scores all rows into m, reusing its memory. A repeated term of the query counts once.
func (v View) Match(query []Term, m *Match) {
	s := newScorer(v.x, m)
	if len(v.x.byID) == 0 {
		return
	}
	seen := make(map[string]bool, len(query))
	m.Rarest = v.x.idf(1)
	for _, q := range query {
		if seen[q.Text] {
			continue
		}
		seen[q.Text] = true
		t := v.x.term(q.Text)
		idf, proof := v.x.idf(t.rows)*q.Weight, v.x.rarity(t.rows)*q.Evidence
		if !q.Extra {
			m.Weight += idf
			m.Asked += proof
		}
		if t.rows > 0 {
			s.term(t, idf, proof, q.Extra)
		}
	}
	s.spreadGroups()
	if m.Weight > 0 {
		for i := range m.Covered {
			m.Covered[i] /= m.Weight
			m.Spanned[i] /= m.Weight
		}
	}
}

// scorer adds up the terms of one query.
type scorer struct {
	x *Index
	m *Match

	row, near, around, group falloff
	groups                   []float32 // scores, by number

	// Of the present term: how often it is in the windows around rows, and in groups.
	inNear, inAround, inGroup []float32
	touched                   []int32  // rows with it in their wider window
	hit                       []*group // with it
}

// newScorer clears m and makes it as long as the index.
func newScorer(x *Index, m *Match) *scorer {
	n, groups := len(x.docs), int(x.numbers)
	if need := 9*n + 2*groups; cap(m.memory) < need {
		m.memory = make([]float32, need+need/8)
	}
	rest := m.memory[:9*n+2*groups]
	clear(rest)
	part := func(n int) []float32 {
		out := rest[:n:n]
		rest = rest[n:]
		return out
	}
	*m = Match{
		Row: part(n), Near: part(n), Around: part(n), Group: part(n), Covered: part(n), Spanned: part(n), Evidence: part(n),
		memory: m.memory, touched: m.touched,
	}
	average := max(1, float32(x.length)/float32(max(1, len(x.byID))))
	return &scorer{
		x: x, m: m,
		row: falloffOf(average), near: falloffOf(average * (2*nearReach + 1)), around: falloffOf(average * (2*aroundReach + 1)),
		group:  falloffOf(max(1, float32(x.grouped)/float32(max(1, len(x.groups))))),
		inNear: part(n), inAround: part(n), inGroup: part(groups), groups: part(groups), touched: m.touched[:0],
	}
}

func (s *scorer) term(t *term, idf, proof float32, extra bool) {
	m, weight := s.m, idf*(saturation+1)
	if extra {
		idf = 0 // of what is covered
	}
	for _, p := range t.postings {
		at := &s.x.places[p.doc]
		g := at.group
		if g == nil {
			continue
		}
		count := float32(p.count)
		m.Row[p.doc] += weight * s.row.of(count, at.own)
		m.Covered[p.doc] += idf
		m.Evidence[p.doc] += proof
		for _, n := range at.window(aroundReach) {
			if s.inAround[n] == 0 {
				s.touched = append(s.touched, n)
			}
			s.inAround[n] += count
		}
		for _, n := range at.window(nearReach) {
			s.inNear[n] += count
		}
		if g.number >= 0 {
			if s.inGroup[g.number] == 0 {
				s.hit = append(s.hit, g)
			}
			s.inGroup[g.number] += count
		}
	}
	for _, n := range s.touched {
		at := &s.x.places[n]
		m.Around[n] += weight * s.around.of(s.inAround[n], at.around)
		s.inAround[n] = 0
		if count := s.inNear[n]; count > 0 {
			m.Near[n] += weight * s.near.of(count, at.near)
			m.Spanned[n] += idf
			s.inNear[n] = 0
		}
	}
	for _, g := range s.hit {
		s.groups[g.number] += weight * s.group.of(s.inGroup[g.number], g.length)
		s.inGroup[g.number] = 0
	}
	m.touched, s.touched, s.hit = s.touched, s.touched[:0], s.hit[:0]
}

func (s *scorer) spreadGroups() {
	for n := range s.m.Group {
		switch g := s.x.places[n].group; {
		case g == nil:
		case g.number < 0:
			s.m.Group[n] = s.m.Row[n]
		default:
			s.m.Group[n] = s.groups[g.number]
		}
	}
}

// falloff is the part of BM25 that depends on the length of a text.
type falloff struct{ same, each float32 }

func falloffOf(average float32) falloff {
	return falloff{saturation * (1 - lengthNorm), saturation * lengthNorm / average}
}

// of is the value of a term with this count in a text of that length, without the factor
// saturation+1.
func (f falloff) of(count float32, length int32) float32 {
	return count / (count + f.same + f.each*float32(length))
}
