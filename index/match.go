package index

// The constants of BM25: how soon a repeated term stops to count, and how much a
// long row is held against it.
const (
	saturation = 1.2
	lengthNorm = 0.75
)

// Term is a term of a query. Weight 1 is the usual one.
type Term struct {
	Text   string
	Weight float32
}

// Match tells how well each row fits a query, by row number.
type Match struct {
	Row     []float32 // BM25 of the row alone
	Near    []float32 // BM25 of the row with one neighbour on each side
	Around  []float32 // BM25 of the row with three on each side
	Group   []float32 // BM25 of the row's whole group; of a row that stands alone, its own
	Covered []float32 // share of the query's weight whose terms are in the row, 0 to 1
	Spanned []float32 // likewise in the row and its next neighbours
	Weight  float32   // of all terms of the query together
	Rarest  float32   // weight of a term that is in one row only
}

// The windows of Match.
const (
	nearReach   = 1
	aroundReach = 3
)

// Match scores all rows. A term that occurs twice in the query counts once; one that
// no row has counts for what is covered.
func (v View) Match(query []Term) *Match {
	n := len(v.x.docs)
	all := make([]float32, 8*n)
	part := func(i int) []float32 { return all[i*n : (i+1)*n : (i+1)*n] }
	m := &Match{Row: part(0), Near: part(1), Around: part(2), Group: part(3), Covered: part(4), Spanned: part(5)}
	if len(v.x.byID) == 0 {
		return m
	}
	s := newScorer(v.x, m, part(6), part(7))
	seen := make(map[string]bool, len(query))
	m.Rarest = v.x.idf(1)
	for _, q := range query {
		if seen[q.Text] {
			continue
		}
		seen[q.Text] = true
		t := &term{}
		if at, ok := v.x.vocab[q.Text]; ok {
			t = &v.x.terms[at]
		}
		idf := v.x.idf(t.rows) * q.Weight
		m.Weight += idf
		if t.rows > 0 {
			s.term(t, idf)
		}
	}
	s.spreadGroups()
	if m.Weight > 0 {
		for i := range m.Covered {
			m.Covered[i] /= m.Weight
			m.Spanned[i] /= m.Weight
		}
	}
	return m
}

// scorer adds the terms of one query up, term by term.
type scorer struct {
	x       *Index
	m       *Match
	average float32
	near    counter
	around  counter
	groups  map[*group]float32
	counts  map[*group]float32 // of the present term
}

// counter counts a term in the windows around rows.
type counter struct {
	counts  []float32
	touched []int32
}

func newScorer(x *Index, m *Match, near, around []float32) *scorer {
	return &scorer{
		x: x, m: m, average: max(1, float32(x.length)/float32(len(x.byID))),
		near: counter{counts: near}, around: counter{counts: around},
		groups: map[*group]float32{}, counts: map[*group]float32{},
	}
}

func (s *scorer) term(t *term, idf float32) {
	for _, p := range t.postings {
		d := &s.x.docs[p.doc]
		if d.group == nil {
			continue
		}
		count := float32(p.count)
		s.m.Row[p.doc] += idf * bm25(count, float32(len(d.terms)), s.average)
		s.m.Covered[p.doc] += idf
		s.near.add(d, nearReach, count)
		s.around.add(d, aroundReach, count)
		if d.group.name != "" {
			s.counts[d.group] += count
		}
	}
	for _, n := range s.near.touched {
		s.m.Near[n] += idf * bm25(s.near.counts[n], s.window(n, nearReach), s.average*(2*nearReach+1))
		s.m.Spanned[n] += idf
	}
	for _, n := range s.around.touched {
		s.m.Around[n] += idf * bm25(s.around.counts[n], s.window(n, aroundReach), s.average*(2*aroundReach+1))
	}
	s.near.reset()
	s.around.reset()
	s.group(idf)
}

// group adds the present term to the groups that have it.
func (s *scorer) group(idf float32) {
	average := float32(s.x.grouped) / float32(max(1, len(s.x.groups)))
	for g, count := range s.counts {
		s.groups[g] += idf * bm25(count, float32(g.before[len(g.docs)]), max(1, average))
	}
	clear(s.counts)
}

func (s *scorer) spreadGroups() {
	for g, score := range s.groups {
		for _, n := range g.docs {
			s.m.Group[n] = score
		}
	}
	for n := range s.m.Group {
		if g := s.x.docs[n].group; g != nil && g.name == "" {
			s.m.Group[n] = s.m.Row[n]
		}
	}
}

// window is the number of terms within reach of row n.
func (s *scorer) window(n int32, reach int) float32 {
	d := &s.x.docs[n]
	from, to := max(0, int(d.at)-reach), min(len(d.group.docs), int(d.at)+reach+1)
	return float32(d.group.before[to] - d.group.before[from])
}

// add counts a term of row d for all rows that have it in reach.
func (c *counter) add(d *doc, reach int, count float32) {
	from, to := max(0, int(d.at)-reach), min(len(d.group.docs), int(d.at)+reach+1)
	for _, n := range d.group.docs[from:to] {
		if c.counts[n] == 0 {
			c.touched = append(c.touched, n)
		}
		c.counts[n] += count
	}
}

func (c *counter) reset() {
	for _, n := range c.touched {
		c.counts[n] = 0
	}
	c.touched = c.touched[:0]
}

func bm25(count, length, average float32) float32 {
	return count * (saturation + 1) / (count + saturation*(1-lengthNorm+lengthNorm*length/average))
}
