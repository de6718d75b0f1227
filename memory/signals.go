package memory

import (
	"context"
	"sync"
	"time"

	"nodest/index"
	"nodest/memory/lang"
)

// A signal is one reason why a unit may fit a question.
type signal int

const (
	sigRow      signal = iota // its words
	sigNear                   // its words and those of its neighbours
	sigAround                 // its words and those of three on each side
	sigGroup                  // the words of its session
	sigAnswer                 // it follows a question that is like this one
	sigSpeaker                // it is said by the one who is meant
	sigDay                    // it is of the day that is named
	sigKind                   // it holds a time, a place, a number or a name, as is asked for
	sigLength                 // it is long enough to say something
	sigVector                 // it is near in meaning, by a model
	sigSpelling               // it is near in spelling, by parts of words
	signals
)

// signalNames are what Hit.Signals calls them.
var signalNames = [signals]string{"words", "near", "around", "session", "answer", "speaker", "day", "kind", "length", "vector", "spelling"}

// weights of the signals. All but length are 0 for most units and 1 for the best one. They were
// fitted to recall and rank on two public sets of questions and cross-validated by conversation
// (docs/decisions/0012-retrieval.md). Those of the vectors are estimates: a model's counts as
// much as the best three lexical signals together.
var weights = [signals]float32{
	sigRow: 1, sigNear: 0.4, sigAround: 0.9, sigGroup: 0.9, sigAnswer: 1.2, sigSpeaker: 0.8,
	sigDay: 2.4, sigKind: 2.4, sigLength: 0.8, sigVector: 2, sigSpelling: 0.2,
}

const (
	enoughTerms = 20 // of a unit that is long enough
	vectorHits  = 200
)

// columns are the signals of all rows for one question, pooled because they are long.
type columns struct {
	of      [signals][]float32
	match   index.Match
	memory  []float32 // of the columns that match has not
	entries []*entry  // of rows, else nil
	rows    []int     // that have something to do with the question
	fits    []float32 // of rows, before they are adjusted; 0 = not relevant
	spread  float32   // of the model's cosines, from the nearest to the last that is looked at

	standsOutFrom float32 // from which on a value of the model's column stands out; 0 = none does
}

var columnsPool = sync.Pool{New: func() any { return new(columns) }}

// release returns the columns to the pool. They must not be used afterwards.
func (c *columns) release() {
	clear(c.entries) // an index that is dropped must go
	columnsPool.Put(c)
}

func sized(n int) *columns {
	c := columnsPool.Get().(*columns)
	own := int(signals-sigAnswer) * n
	if cap(c.memory) < own || cap(c.entries) < n {
		c.memory, c.entries = make([]float32, own+own/8), make([]*entry, n+n/8)
	}
	memory := c.memory[:own]
	clear(memory)
	for s := sigAnswer; s < signals; s++ {
		at := int(s-sigAnswer) * n
		c.of[s] = memory[at : at+n : at+n]
	}
	c.entries, c.rows, c.spread = c.entries[:n], c.rows[:0], 0
	return c
}

// measure fills the columns. A vector without comparable vectors in the index leaves its column
// empty.
func measure(ctx context.Context, v index.View, q *Ask, read lang.Question) (*columns, error) {
	n := v.Slots()
	c := sized(n)
	v.Match(read.Terms, &c.match)
	c.of[sigRow], c.of[sigNear], c.of[sigAround], c.of[sigGroup] = c.match.Row, c.match.Near, c.match.Around, c.match.Group
	for s := sigRow; s <= sigGroup; s++ {
		scale(c.of[s])
	}
	var err error
	if c.spread, c.standsOutFrom, err = nearest(ctx, v, q.Vector, c.of[sigVector]); err != nil {
		return nil, err
	}
	if _, _, err = nearest(ctx, v, q.Spelling, c.of[sigSpelling]); err != nil {
		return nil, err
	}
	for i := range n {
		if len(read.Days) == 0 && c.of[sigGroup][i] == 0 && c.of[sigVector][i] == 0 && c.of[sigSpelling][i] == 0 {
			continue
		}
		e := entryAt(v, i)
		if e == nil {
			continue
		}
		day := dayFit(read.Days, e.At, q.Now.Location())
		if day == 0 && c.of[sigGroup][i] == 0 && c.of[sigVector][i] == 0 && c.of[sigSpelling][i] == 0 {
			continue
		}
		c.entries[i] = e
		c.rows = append(c.rows, i)
		c.of[sigDay][i] = day
	}
	return c, nil
}

// judge fills in what depends on the unit itself and on the one before it.
func (c *columns) judge(v index.View, i int, read lang.Question) {
	e := c.entries[i]
	before := v.Neighbour(i, -1)
	if b := entryAt(v, before); b != nil && b.traits.Asks {
		c.of[sigAnswer][i] = c.of[sigRow][before]
	}
	if len(read.Speakers) == 1 && e.Speaker == read.Speakers[0] {
		c.of[sigSpeaker][i] = 1
	}
	if e.traits.Fits(read.Sought) {
		c.of[sigKind][i] = c.of[sigNear][i]
	}
	c.of[sigLength][i] = min(1, float32(v.Length(i))/enoughTerms)
}

func dayFit(days []lang.Days, at time.Time, zone *time.Location) float32 {
	fit := float32(0)
	for _, d := range days {
		fit = max(fit, d.Fit(lang.LocalTime(at, zone)))
	}
	return fit
}

// nearest scores the neighbours of a vector from 0 (the last one considered) to 1, because
// cosines of different models have no common scale. It also returns the difference of these two
// cosines, and the value from which on a row stands out from the others; 0 = none does.
func nearest(ctx context.Context, v index.View, q index.Vector, column []float32) (spread, standsOutFrom float32, err error) {
	if len(q.Values) == 0 {
		return 0, 0, nil
	}
	found, err := v.Near(ctx, q, vectorHits)
	if err != nil || len(found) == 0 {
		return 0, 0, err
	}
	last := max(0, found[len(found)-1].Cosine)
	if len(found) < vectorHits { // all of them: the last one is not a mark
		last = min(last, found[0].Cosine/2)
	}
	spread = found[0].Cosine - last
	for _, f := range found {
		if spread > 0 {
			column[f.Row] = max(0, f.Cosine-last) / spread
		}
	}
	if n := len(found); n >= leastVectors {
		middle := found[n/2].Cosine
		if from := middle + max(leastStand, leastSpread*(middle-found[n*84/100].Cosine)); from <= found[0].Cosine {
			standsOutFrom = (from - last) / spread
		}
	}
	return spread, standsOutFrom, nil
}

func scale(column []float32) {
	top := float32(0)
	for _, x := range column {
		if x > top {
			top = x
		}
	}
	if top == 0 {
		return
	}
	for i, x := range column {
		if x != 0 {
			column[i] = x / top
		}
	}
}
