package index

import (
	"math/bits"

	"nodest/internal/index/dict"
)

// few are the rows that a question in a large index looks at, once its rarest terms have
// found them; the other terms only add to their scores. That is most of such a question. The
// cells of the rows lie close together, and those of each group and of rows that are far from each
// other have at least aroundReach empty ones between them: so a window needs no look at what ends
// where, and rows without a term are added 0.
type few struct {
	among  []uint64 // a bit for each row: a term counts in it, it was found or stands alone
	places []int32  // in cells, of rows in groups that were found
	cells  []cell
	counts []uint16 // how often the present term is in each cell; all 0 between terms
	ready  bool     // for the present question
}

// cell is the Score of a row while terms add to it, and the part of the length in its falloffs.
type cell struct {
	row, near, around, covered, spanned, evidence float32
	ofRow, ofNear, ofAround                       float32
}

// gather fills f with the rows that were found so far.
func (s *scorer) gather() {
	f := &s.m.few
	f.among = append(f.among[:0], s.m.found...)
	slots := len(s.m.Scores)
	if cap(f.places) < slots {
		f.places = make([]int32, slots)
	}
	edge := make([]cell, aroundReach) // for the windows of empty cells
	f.places, f.cells, f.ready = f.places[:slots], append(f.cells[:0], edge...), true
	for _, in := range s.x.sections {
		s.gatherOf(in)
	}
	f.cells = append(append(f.cells, edge...), edge...)
	if cap(f.counts) < len(f.cells) {
		f.counts = make([]uint16, cap(f.cells))
	}
	f.counts = f.counts[:len(f.cells)]
}

func (s *scorer) gatherOf(in *section) {
	f := &s.m.few
	among := f.among[in.from/64:][:(in.Rows+63)/64]
	g, next := 0, -aroundReach // the row that could follow in the group
	for at, word := range among {
		for ; word != 0; word &= word - 1 {
			n := 64*at + bits.TrailingZeros64(word)
			if n < in.Lone {
				continue
			}
			if after := in.GroupAfter(g, n); after > 0 {
				g, next = g+after, n-aroundReach
			}
			f.cells = append(f.cells, make([]cell, min(n-next, aroundReach))...)
			f.places[in.from+n] = int32(len(f.cells))
			f.cells, next = append(f.cells, s.cellOf(in, &in.Groups[g], n)), n+1
		}
	}
	for n := range in.Lone {
		among[n/64] |= 1 << (n % 64)
	}
	for at, stale := range in.stale.bits {
		among[at] &^= stale
	}
}

func (s *scorer) cellOf(in *section, g *Group, n int) cell {
	of := &s.m.Scores[in.from+n]
	window := func(f falloff, reach int) float32 {
		return f.each * float32(in.Terms(max(g.First, n-reach), min(g.End, n+reach+1)))
	}
	return cell{
		row: of.Row, near: of.Near, around: of.Around, covered: of.Covered, spanned: of.Spanned, evidence: of.Evidence,
		ofRow: window(s.row, 0), ofNear: window(s.near, nearReach), ofAround: window(s.around, aroundReach),
	}
}

// score moves what was added to row n to its Score.
func (f *few) score(n int, to *Score) {
	c := &f.cells[f.places[n]]
	to.Row, to.Near, to.Around, to.Covered, to.Spanned, to.Evidence = c.row, c.near, c.around, c.covered, c.spanned, c.evidence
}

// apart is how far from each other the windows of two rows are for which the cells between them
// are left out: to add 0 to a few is faster.
const apart = 4

// addTo adds the present term, with its postings in a group, to the cells that have it in their
// windows.
func (s *scorer) addTo(places []int32, all []dict.Posting) {
	f := &s.m.few
	for _, p := range all {
		f.counts[places[p.Row]] = uint16(p.Count)
	}
	from := int(places[all[0].Row]) - aroundReach
	to := from
	for _, p := range all {
		at := int(places[p.Row])
		if at-aroundReach > to+apart {
			s.addCells(f.cells[from:to], f.counts[from-aroundReach:to+aroundReach])
			from = at - aroundReach
		}
		to = at + aroundReach + 1
	}
	s.addCells(f.cells[from:to], f.counts[from-aroundReach:to+aroundReach])
	for _, p := range all {
		f.counts[places[p.Row]] = 0
	}
}

// addCells adds the present term to cells; counts begins aroundReach before them. It works on copies
// in registers, and without branches, which would be predicted wrongly.
func (s *scorer) addCells(cells []cell, counts []uint16) {
	const own = aroundReach
	row, near, around, weight := s.row.same, s.near.same, s.around.same, s.weight
	covers, proof := [2]float32{1: s.covers}, [2]float32{1: s.proof}
	sum := 0
	for _, n := range counts[:2*aroundReach] {
		sum += int(n)
	}
	for i := range cells {
		c, window := &cells[i], counts[i:i+2*aroundReach+1]
		sum += int(window[2*aroundReach])
		a, b, d := float32(sum), int(window[own-1])+int(window[own])+int(window[own+1]), int(window[own])
		sum -= int(window[0])
		c.around += weight * (a / (a + around + c.ofAround))
		c.near += weight * (float32(b) / (float32(b) + near + c.ofNear))
		c.row += weight * (float32(d) / (float32(d) + row + c.ofRow))
		c.spanned += covers[min(b, 1)&1]
		c.covered += covers[min(d, 1)&1]
		c.evidence += proof[min(d, 1)&1]
	}
}
