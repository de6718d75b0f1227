package index

import (
	"slices"

	"nodest/internal/index/dict"
)

// Document is a stored segment with the pieces of a text in its first rows, and titles in the others. It
// is scored by units, which are ranges of pieces and may overlap: chunks. It is immutable and safe for
// concurrent use.
type Document struct {
	*Whole
	Units []Unit

	pieces     int // rows before it are pieces
	pieceTerms int
	terms      int // terms of all units together; what two share counts twice
}

// Unit has how many terms its pieces have, which go from First to before Last.
type Unit struct{ terms, First, Last uint32 }

// InUnits is the Attr of a row of a document that belongs to the units from first to before last.
func InUnits(first, last int) uint64 { return uint64(first)<<32 | uint64(last-first) }

// inUnits returns the units that a row belongs to, from first to before last.
func (d *Document) inUnits(row int) (first, last uint32) {
	a := d.Attrs[row]
	return uint32(a >> 32), uint32(a>>32) + uint32(a)
}

// DecodeDocument reads what EncodeWhole wrote of the rows of a document, of which the pieces are the group
// of that name and the last one belongs to all units. It keeps data: it must not be changed. The error
// is dict.ErrDamaged: the segment must be built again.
func DecodeDocument(data []byte, pieces string) (*Document, error) {
	whole, err := DecodeWhole(data)
	if err != nil {
		return nil, err
	}
	d := &Document{Whole: whole}
	if d.Rows == 0 {
		return nil, dict.ErrDamaged
	}
	if g := d.Group(pieces); g != nil {
		d.pieces = g.End
	}
	_, units := d.inUnits(d.Rows - 1)
	if int(units) > len(data) {
		return nil, dict.ErrDamaged
	}
	d.Units = make([]Unit, units)
	for row := range d.Rows {
		first, last := d.inUnits(row)
		if first > last || last > units {
			return nil, dict.ErrDamaged
		}
		if row < d.pieces {
			d.count(row, d.Units[first:last])
		}
	}
	return d, nil
}

// count adds a piece to its units.
func (d *Document) count(row int, units []Unit) {
	terms := d.Terms(row, row+1)
	d.pieceTerms += terms
	d.terms += terms * len(units)
	for i := range units {
		u := &units[i]
		if u.Last == 0 {
			u.First = uint32(row)
		}
		u.Last, u.terms = uint32(row+1), u.terms+uint32(terms)
	}
}

// Bytes estimates the memory that a document takes.
func (d *Document) Bytes() int { return d.Whole.Bytes() + 12*len(d.Units) }

// Places are where a document has each term of a question; nil = it has none.
type Places [][]Postings

// Having counts the units whose pieces have each term.
func (d *Document) Having(places Places) []int {
	having, rows := make([]int, len(places)), []dict.Posting(nil)
	for t, all := range places {
		n := 0
		for _, p := range all {
			rows = d.Append(rows[:0], p, nil)
			counted := uint32(0) // units before it
			for _, r := range rows {
				if int(r.Row) >= d.pieces {
					break
				}
				first, last := d.inUnits(int(r.Row))
				if first = max(first, counted); first < last {
					n += int(last - first)
					counted = last
				}
			}
		}
		having[t] = min(n, len(d.Units))
	}
	return having
}

// Question is what many documents are asked together: how rare a term is is counted in all of them, and
// then each is scored.
type Question struct {
	Terms []Term // each once

	// Lone says that the terms are single characters of scripts without spaces. They are looked for inside of
	// others, in all of the dictionary.
	Lone bool

	// The weights of the best piece of a unit, beside all of it, and of the share of the question that
	// the unit has, squared.
	Best, Cover float32

	having                           []int // units that have each term
	units, terms, pieces, pieceTerms int   // sums over all documents
	unit, piece                      falloff
	weights                          []float32 // weights of the terms
}

// Find looks the terms up in a document.
func (q *Question) Find(d *Document) (p Places) {
	if q.Lone {
		characters := make([]string, len(q.Terms))
		for i, t := range q.Terms {
			characters[i] = t.Text
		}
		p = d.Around(characters)
	} else {
		p = make(Places, len(q.Terms))
		for i, t := range q.Terms {
			if found := d.Find(t.Text); found.Rows > 0 {
				p[i] = []Postings{found}
			}
		}
	}
	if !slices.ContainsFunc(p, func(all []Postings) bool { return len(all) > 0 }) {
		return nil
	}
	return p
}

// Count adds a document, and how many of its units have each term.
func (q *Question) Count(d *Document, having []int) {
	q.units += len(d.Units)
	q.terms += d.terms
	q.pieces += d.pieces
	q.pieceTerms += d.pieceTerms
	q.having = append(q.having, make([]int, len(q.Terms)-len(q.having))...)
	for t, n := range having {
		q.having[t] += n
	}
}

// Weigh sets what the terms count, after all documents were counted.
func (q *Question) Weigh() {
	q.unit = falloffOf(float32(max(1, q.terms)) / float32(max(1, q.units)))
	q.piece = falloffOf(float32(max(1, q.pieceTerms)) / float32(max(1, q.pieces)))
	q.weights = make([]float32, len(q.Terms))
	for i, n := range q.having {
		q.weights[i] = worth(q.Terms[i].Weight, n, q.units)
	}
}

// Weight returns what a term counts.
func (q *Question) Weight(term int) float64 { return float64(q.weights[term]) }

// Scorer scores one document after another, in the same memory.
type Scorer struct {
	score    []float32      // scores of units, over all terms
	cover    []float32      // by unit: how much the terms in it count
	count    []float32      // by unit: how often one term is in it
	piece    []float32      // scores of pieces
	touched  []uint32       // units with a score
	counted  []uint32       // units with a count
	pieces   []uint32       // pieces with a score
	postings []dict.Posting // postings of one term
}

// Score calls add for every unit of a document that has a term of the question.
func (x *Scorer) Score(d *Document, q *Question, places Places, add func(unit int, score float32)) {
	if n := len(d.Units); n > len(x.score) {
		x.score, x.cover, x.count = make([]float32, n), make([]float32, n), make([]float32, n)
	}
	x.piece = append(x.piece, make([]float32, max(0, d.pieces-len(x.piece)))...)
	asked := float32(0)
	for t, all := range places {
		asked += q.weights[t]
		for _, p := range all {
			x.posted(d, q, q.weights[t]*saturated, p)
		}
		x.termDone(d, q, q.weights[t])
	}
	for _, u := range x.touched {
		best := float32(0)
		for _, score := range x.piece[d.Units[u].First:d.Units[u].Last] {
			best = max(best, score)
		}
		add(int(u), x.score[u]+q.Best*best+q.Cover*x.cover[u]*x.cover[u]/max(asked, 1e-6))
		x.score[u], x.cover[u] = 0, 0
	}
	for _, row := range x.pieces {
		x.piece[row] = 0
	}
	x.touched, x.pieces = x.touched[:0], x.pieces[:0]
}

// posted counts the postings of a term, which a title has once.
func (x *Scorer) posted(d *Document, q *Question, weight float32, p Postings) {
	x.postings = d.Append(x.postings[:0], p, nil)
	for _, p := range x.postings {
		row, count := int(p.Row), float32(1)
		if row < d.pieces {
			count = float32(p.Count)
			if x.piece[row] == 0 {
				x.pieces = append(x.pieces, uint32(row))
			}
			x.piece[row] += weight * q.piece.of(count, int32(d.Terms(row, row+1)))
		}
		first, last := d.inUnits(row)
		for u := first; u < last; u++ {
			if x.count[u] == 0 {
				x.counted = append(x.counted, u)
			}
			x.count[u] += count
		}
	}
}

// termDone turns the counts of a term into scores.
func (x *Scorer) termDone(d *Document, q *Question, weight float32) {
	for _, u := range x.counted {
		if x.cover[u] == 0 {
			x.touched = append(x.touched, u)
		}
		x.cover[u] += weight
		x.score[u] += weight * saturated * q.unit.of(x.count[u], int32(d.Units[u].terms))
		x.count[u] = 0
	}
	x.counted = x.counted[:0]
}

// Top keeps the best of what it gets.
type Top[T any] struct {
	Most  int
	Order func(a, b T) int // negative = a is better
	List  []T              // best first
}

// Add adds one.
func (t *Top[T]) Add(one T) {
	if n := len(t.List); n == t.Most {
		if t.Order(one, t.List[n-1]) > 0 {
			return
		}
		t.List = t.List[:n-1]
	}
	at, _ := slices.BinarySearchFunc(t.List, one, t.Order)
	t.List = slices.Insert(t.List, at, one)
}
