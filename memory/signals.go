package memory

import (
	"cmp"
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

// columns are what one question has measured of all rows, pooled because they are long.
type columns struct {
	match  index.Match
	top    [sigGroup + 1]float32 // of the columns of match; the signals are shares of them
	vector map[int]float32       // by row
	spell  map[int]float32
	rows   []related
	fits   []ranked // of the rows that may be returned, before they are adjusted
	spread float32  // of the model's cosines, from the nearest to the last that is looked at
	whole  bool     // all vectors were compared

	standsOutFrom float32 // from which on a value of the model's column stands out; 0 = none does
}

// related is a row that has something to do with the question, and the row before it; -1 = none.
type related struct{ row, before int32 }

var columnsPool = sync.Pool{New: func() any { return new(columns) }}

// release returns the columns to the pool. They must not be used afterwards.
func (c *columns) release() { columnsPool.Put(c) }

// measure fills the columns. A vector without comparable vectors in the index leaves its column
// empty.
func (r *ranking) measure() error {
	c, v := r.columns, r.v
	c.rows, c.fits, c.whole = c.rows[:0], c.fits[:0], true
	if err := v.Match(r.ctx, r.read.Terms, &c.match); err != nil {
		return err
	}
	c.top = [sigGroup + 1]float32{}
	for i := range c.match.Scores {
		s := &c.match.Scores[i]
		c.top[sigRow], c.top[sigNear] = max(c.top[sigRow], s.Row), max(c.top[sigNear], s.Near)
		c.top[sigAround], c.top[sigGroup] = max(c.top[sigAround], s.Around), max(c.top[sigGroup], s.Group)
	}
	for i, top := range c.top {
		c.top[i] = cmp.Or(top, 1)
	}
	var err error
	if c.vector, err = r.nearest(r.q.Vector); err != nil {
		return err
	}
	spread, from := c.spread, c.standsOutFrom
	if c.spell, err = r.nearest(r.q.Spelling); err != nil {
		return err
	}
	c.spread, c.standsOutFrom = spread, from
	r.relate()
	return nil
}

// relate finds the rows that have something to do with the question.
func (r *ranking) relate() {
	days := len(r.read.Days) > 0
	r.v.Each(func(n, before int, attr uint64) {
		if r.match.Scores[n].Group > 0 || days && r.dayOf(line(attr)) > 0 || r.byVector(n) {
			r.rows = append(r.rows, related{int32(n), int32(before)})
		}
	})
}

func (r *ranking) byVector(row int) bool {
	return len(r.vector) > 0 && r.vector[row] > 0 || len(r.spell) > 0 && r.spell[row] > 0
}

// signals are those of a row, and of the row before it (-1 = none).
func (r *ranking) signals(row, before int) (of [signals]float32) {
	s, l := &r.match.Scores[row], r.line(row)
	of[sigRow], of[sigNear] = s.Row/r.top[sigRow], s.Near/r.top[sigNear]
	of[sigAround], of[sigGroup] = s.Around/r.top[sigAround], s.Group/r.top[sigGroup]
	if before >= 0 && r.line(before).is(lineAsks) {
		of[sigAnswer] = r.match.Scores[before].Row / r.top[sigRow]
	}
	if len(r.read.Speakers) == 1 && l.speaker() == r.read.Speakers[0] {
		of[sigSpeaker] = 1
	}
	if len(r.read.Days) > 0 {
		of[sigDay] = r.dayOf(l)
	}
	if l.fits(r.read.Sought) {
		of[sigKind] = of[sigNear]
	}
	of[sigLength] = min(1, float32(r.v.Length(row))/enoughTerms)
	of[sigVector], of[sigSpelling] = r.vector[row], r.spell[row]
	return of
}

func (r *ranking) line(row int) line {
	attr, _ := r.v.Attr(row)
	return line(attr)
}

// dayOf is how well a unit fits the days of the question.
func (r *ranking) dayOf(l line) float32 { return dayFit(r.read.Days, l.at(), r.q.Now.Location()) }

func dayFit(days []lang.Days, at time.Time, zone *time.Location) float32 {
	fit := float32(0)
	for _, d := range days {
		fit = max(fit, d.Fit(lang.LocalTime(at, zone)))
	}
	return fit
}

// nearest scores the neighbours of a vector from 0 (the last one considered) to 1, because
// cosines of different models have no common scale. It notes the difference of these two cosines,
// and the value from which on a row stands out from the others; 0 = none does.
func (r *ranking) nearest(q index.Vector) (map[int]float32, error) {
	r.spread, r.standsOutFrom = 0, 0
	if len(q.Values) == 0 {
		return nil, nil
	}
	found, whole, err := r.v.Near(r.ctx, q, vectorHits)
	r.whole = r.whole && whole
	if err != nil || len(found) == 0 {
		return nil, err
	}
	last := max(0, found[len(found)-1].Cosine)
	if len(found) < vectorHits { // all of them: the last one is not a mark
		last = min(last, found[0].Cosine/2)
	}
	scores := make(map[int]float32, len(found))
	r.spread = found[0].Cosine - last
	for _, f := range found {
		if r.spread > 0 {
			scores[f.Row] = max(0, f.Cosine-last) / r.spread
		}
	}
	if n := len(found); n >= leastVectors {
		middle := found[n/2].Cosine
		if from := middle + max(leastStand, leastSpread*(middle-found[n*84/100].Cosine)); from <= found[0].Cosine {
			r.standsOutFrom = (from - last) / r.spread
		}
	}
	return scores, nil
}
