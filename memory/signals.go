package memory

import (
	"context"
	"math"
	"slices"
	"strconv"

	"nodest/index"
)

func itoa(n int) string { return strconv.Itoa(n) }

// signal numbers a column of the ranking.
type signal int

const (
	sigRow signal = iota
	sigNear
	sigAround
	sigGroup
	sigCovered
	sigSpanned
	sigAnswer
	sigPrev
	sigNext
	sigSpeaker
	sigSpeakerMul
	sigSpeakerNear
	sigDay
	sigDayMul
	sigKind
	sigKindMul
	sigShort
	sigAsks
	sigSelf
	sigVector
	sigVectorNear
	sigVectorGroup
	sigLong
	sigPrevVec
	sigVecSpeaker
	sigPairs
	sigPrev2
	sigAnsSpeaker
	sigRare
	sigDayVec
	sigKindVec
	sigPairsNear
	sigRootRow
	sigSpeakerAround
	sigVectorAsk
	signals
)

var signalNames = [signals]string{"row", "near", "around", "group", "covered", "spanned", "answer", "prev", "next", "speaker", "speakerMul", "speakerNear", "day", "dayMul", "kind", "kindMul", "short", "asks", "self", "vector", "vectorNear", "vectorGroup", "long", "prevVec", "vecSpeaker", "pairs", "prev2", "ansSpeaker", "rare", "dayVec", "kindVec", "pairsNear", "rootRow", "speakerAround", "vectorAsk"}

// columns are the signals of all rows for one query, each between 0 and 1.
type columns struct {
	rows []int // that may be returned
	of   [signals][]float32
	data []*entry
}

func measure(ctx context.Context, v index.View, q Question, vector index.Vector) (*columns, error) {
	n := v.Slots()
	c := &columns{data: make([]*entry, n)}
	for s := range c.of {
		c.of[s] = make([]float32, n)
	}
	for i := range n {
		if d, ok := v.Data(i); ok {
			c.data[i] = d.(*entry)
			c.rows = append(c.rows, i)
		}
	}
	m := v.Match(q.Terms)
	c.of[sigRow], c.of[sigNear], c.of[sigAround], c.of[sigGroup], c.of[sigCovered], c.of[sigSpanned] = m.Row, m.Near, m.Around, m.Group, m.Covered, m.Spanned
	for _, s := range []signal{sigRow, sigNear, sigAround, sigGroup} {
		scale(c.of[s])
	}
	if len(vector.Values) > 0 {
		near, err := v.Near(ctx, vector, n)
		if err != nil {
			return nil, err
		}
		last := float32(0)
		if k := min(300, len(near)); k > 0 {
			last = max(0, near[k-1].Cosine)
		}
		for _, h := range near {
			c.of[sigVector][h.Row] = max(0, h.Cosine-last)
		}
		scale(c.of[sigVector])
		// session max
		for _, i := range c.rows {
			x := c.of[sigVector][i]
			for _, st := range []int{-1, 1} {
				if p := v.Neighbour(i, st); p >= 0 {
					c.of[sigVectorNear][p] = max(c.of[sigVectorNear][p], x)
				}
			}
			if p := v.Neighbour(i, -1); p >= 0 && c.data[p].traits.asks {
				c.of[sigPrevVec][i] = c.of[sigVector][p]
			}
		}
	}
	c.of[sigPairs] = v.Together(q.Terms)
	scale(c.of[sigPairs])
	var rare []index.Term
	for _, t := range q.Terms {
		t.Weight *= v.IDF(t.Text)
		rare = append(rare, t)
	}
	c.of[sigRare] = v.Match(rare).Row
	scale(c.of[sigRare])
	for _, i := range c.rows {
		e := c.data[i]
		c.of[sigRootRow][i] = float32(math.Sqrt(float64(m.Row[i])))
		if p := v.Neighbour(i, -2); p >= 0 {
			c.of[sigPrev2][i] = m.Row[p]
		}
		if p := v.Neighbour(i, -1); p >= 0 {
			c.of[sigPairsNear][i] = c.of[sigPairs][p]
		}
		if p := v.Neighbour(i, -1); p >= 0 {
			c.of[sigPrev][i] = m.Row[p]
			if c.data[p].traits.asks {
				c.of[sigAnswer][i] = m.Row[p]
			}
		}
		if p := v.Neighbour(i, 1); p >= 0 {
			c.of[sigNext][i] = m.Row[p]
		}
		if len(q.Speakers) == 1 && e.Speaker != "" && slices.Contains(q.Speakers, e.Speaker) {
			c.of[sigSpeaker][i] = 1
			c.of[sigSpeakerMul][i] = m.Row[i]
			c.of[sigSpeakerNear][i] = m.Near[i]
			c.of[sigSpeakerAround][i] = m.Around[i]
			if p := v.Neighbour(i, -1); p >= 0 && c.data[p].traits.asks {
				c.of[sigAnsSpeaker][i] = m.Row[p]
			}
			c.of[sigVecSpeaker][i] = c.of[sigVector][i]
		}
		for _, d := range q.Days {
			c.of[sigDay][i] = max(c.of[sigDay][i], d.Fit(e.At))
		}
		c.of[sigDayVec][i] = c.of[sigDay][i] * c.of[sigVector][i]
		c.of[sigDayMul][i] = c.of[sigDay][i] * m.Near[i]
		if e.traits.fits(q.Kind) {
			c.of[sigKind][i] = 1
			c.of[sigKindVec][i] = c.of[sigVector][i]
			c.of[sigKindMul][i] = m.Near[i]
		}
		if e.traits.length < 60 {
			c.of[sigShort][i] = 1 - float32(e.traits.length)/60
		}
		c.of[sigLong][i] = min(1, float32(v.Length(i))/20)
		if e.traits.asks {
			c.of[sigAsks][i] = 1
			c.of[sigVectorAsk][i] = c.of[sigVector][i]
		}
		if e.traits.self {
			c.of[sigSelf][i] = 1
		}
	}
	return c, nil
}

// scale divides by the greatest.
func scale(column []float32) {
	top := float32(0)
	for _, x := range column {
		top = max(top, x)
	}
	if top > 0 {
		for i := range column {
			column[i] /= top
		}
	}
}
