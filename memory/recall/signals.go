package recall

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"nodest/internal/index"
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

// SignalNames are what Hit.Signals calls them.
var SignalNames = [signals]string{"words", "near", "around", "session", "answer", "speaker", "day", "kind", "length", "vector", "spelling"}

// weights of the signals. All but length are 0 for most units and 1 for the best one. They were
// fitted to recall and rank on two public sets of questions and cross-validated by conversation
// (docs/decisions/0012-retrieval.md). Those of the vectors are estimates: a model's counts as
// much as the best three lexical signals together.
var weights = [signals]float32{
	sigRow: 1, sigNear: 0.4, sigAround: 0.9, sigGroup: 0.9, sigAnswer: 1.2, sigSpeaker: 0.8,
	sigDay: 2.4, sigKind: 2.4, sigLength: 0.8, sigVector: 2, sigSpelling: 0.2,
}

const (
	enoughTerms  = 20 // terms of a unit that is long enough
	vectorHits   = 200
	spellingHits = 16 // hits by spelling, whose vectors are read
)

// columns are what one question has measured of all rows.
type columns struct {
	match  index.Match
	top    [sigGroup + 1]float32 // highest values of the columns of match; the signals are shares of them
	vector column
	spell  column
	day    column // how well rows fit the days of the question
	proven column // 1 of rows that pass the gate

	rows   []related
	others []int    // rows that words did not find, by what relateFew looks at
	some   []int    // rows in their order, likewise
	fits   []ranked // rows that may be returned, before they are adjusted
	whole  bool     // all vectors were compared

	standsOutFrom float32 // from which on a value of the model's column stands out; 0 = none does
}

// column has a number for some rows, and 0 for the others.
type column struct {
	of  []float32 // by row
	set []int
}

// reset makes all numbers 0, for an index with so many rows.
func (c *column) reset(rows int) {
	for _, n := range c.set {
		c.of[n] = 0
	}
	if c.set = c.set[:0]; len(c.of) < rows {
		c.of = make([]float32, rows+rows/8)
	}
}

func (c *column) put(row int, x float32) {
	if c.of[row] != 0 {
		c.of[row] = x
		return
	}
	c.of[row], c.set = x, append(c.set, row)
}

func (c *column) has(row int) bool { return c.of[row] > 0 }

// related is a row that has something to do with the question.
type related struct {
	row    int32
	before int32 // the row before it; -1 = none
	length int32 // terms
	line   line
}

// spareColumns are used again. A sync.Pool would lose them with every other collection of garbage,
// and those of 200,000 rows, 12 MB, would cause the next one.
var spareColumns = make(chan *columns, 2)

func newColumns() *columns {
	select {
	case c := <-spareColumns:
		return c
	default:
		return new(columns)
	}
}

// release makes the columns a spare one. They must not be used afterwards.
func (c *columns) release() {
	select {
	case spareColumns <- c:
	default:
	}
}

// measure fills the columns. That of a vector stays empty if the index has none to compare.
func (r *ranking) measure() error {
	c, v := r.columns, r.v
	c.rows, c.fits, c.whole = c.rows[:0], c.fits[:0], true
	var byModel, bySpelling neighbours
	var both sync.WaitGroup
	both.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				byModel.err = fmt.Errorf("search vectors: %v\n%s", p, debug.Stack())
			}
		}()
		byModel, bySpelling = r.nearest(r.near.Model, vectorHits, sampled), r.nearest(r.near.Spelling, spellingHits, 0)
	})
	err := v.Match(r.ctx, r.read.Terms, &c.match)
	if both.Wait(); err == nil {
		err = cmp.Or(byModel.err, bySpelling.err)
	}
	if err != nil {
		return err
	}
	c.top = [sigGroup + 1]float32{}
	c.match.Each(func(_ int, s *index.Score) {
		c.top[sigRow], c.top[sigNear] = max(c.top[sigRow], s.Row), max(c.top[sigNear], s.Near)
		c.top[sigAround], c.top[sigGroup] = max(c.top[sigAround], s.Around), max(c.top[sigGroup], s.Group)
	})
	for i, top := range c.top {
		c.top[i] = cmp.Or(top, 1)
	}
	r.measureSpelling(bySpelling)
	r.measureVectors(byModel)
	c.day.reset(v.Slots())
	c.proven.reset(v.Slots())
	if r.columns.match.Few != nil {
		r.relateFew()
	} else {
		r.v.Each(r.relateRow)
	}
	return nil
}

// relateRow adds row n to the rows if it has something to do with the question.
func (r *ranking) relateRow(n, before, length int, attr uint64) {
	fits := r.dayOf(line(attr))
	if r.naming[n] {
		fits = 1
	}
	if fits > 0 {
		r.columns.day.put(n, fits)
	}
	if r.columns.match.Scores[n].Group > 0 || fits > 0 || r.told[n] || r.columns.vector.of[n] > 0 || r.columns.spell.of[n] > 0 {
		r.columns.rows = append(r.columns.rows, related{int32(n), int32(before), int32(length), line(attr)})
	}
}

// mostOfDays is how many rows of the days that a question names are related to it in a large
// index, where more say nothing but that: of a year, say.
const mostOfDays = 10_000

// relateFew calls relateRow for the rows that words, a vector or a day have found.
func (r *ranking) relateFew() {
	others := append(append(r.columns.others[:0], r.columns.vector.set...), r.columns.spell.set...)
	for n := range r.told {
		others = append(others, n)
	}
	near := len(others)
	if others = r.addOfTheDays(others); len(others) > near+mostOfDays {
		others = others[:near]
	}
	r.columns.others = others
	slices.Sort(others)
	others = slices.Compact(others)
	all := r.columns.some[:0]
	for _, n := range r.columns.match.Few {
		for len(others) > 0 && others[0] <= int(n) {
			if others[0] < int(n) {
				all = append(all, others[0])
			}
			others = others[1:]
		}
		all = append(all, int(n))
	}
	all = append(all, others...)
	r.columns.some = all
	r.v.Some(all, r.relateRow)
}

// addOfTheDays adds the rows that fit the days of the question, at most one more than mostOfDays.
// Where the days are in certain years, few rows are looked at closely.
func (r *ranking) addOfTheDays(rows []int) []int {
	if len(r.read.Days) == 0 {
		return rows
	}
	for n := range r.naming {
		rows = append(rows, n)
	}
	all, most := spanOf(r.read.Days), len(rows)+mostOfDays
	r.v.Within(all.from, all.to, func(n int, attr uint64) bool {
		if r.dayOf(line(attr)) > 0 {
			rows = append(rows, n)
		}
		return len(rows) <= most
	})
	return rows
}

// signals are those of a row.
func (r *ranking) signals(at related) (of [signals]float32) {
	row, before, l := int(at.row), int(at.before), at.line
	s := &r.columns.match.Scores[row]
	of[sigRow], of[sigNear] = s.Row/r.columns.top[sigRow], s.Near/r.columns.top[sigNear]
	of[sigAround], of[sigGroup] = s.Around/r.columns.top[sigAround], s.Group/r.columns.top[sigGroup]
	if before >= 0 && r.columns.match.Scores[before].Row > 0 && r.line(before).is(lineAsks) {
		of[sigAnswer] = r.columns.match.Scores[before].Row / r.columns.top[sigRow]
	}
	if len(r.read.Speakers) == 1 && l.speaker() == r.read.Speakers[0] {
		of[sigSpeaker] = 1
	}
	of[sigDay] = r.columns.day.of[row]
	if l.fits(r.read.Sought) {
		of[sigKind] = of[sigNear]
	}
	of[sigLength] = min(1, float32(at.length)/enoughTerms)
	of[sigVector], of[sigSpelling] = r.columns.vector.of[row], r.columns.spell.of[row]
	return of
}

func (r *ranking) line(row int) line {
	attr, _ := r.v.Attr(row)
	return line(attr)
}

// dayOf is how well a unit fits the days of the question.
func (r *ranking) dayOf(l line) (fit float32) {
	if len(r.read.Days) == 0 {
		return 0
	}
	at := lang.LocalTime(l.at(), r.q.Now.Location())
	for _, d := range r.read.Days {
		fit = max(fit, d.Fit(at))
	}
	return fit
}

// mostNamedDays is how many days a question names at most for which rows that name them are looked for.
const mostNamedDays = 62

// readNaming finds the rows whose texts name one of the question's days: the third of December, tomorrow.
func (r *ranking) readNaming() error {
	var marks []string
	for _, d := range r.read.Days {
		for _, day := range d.Each(r.q.Now, mostNamedDays) {
			marks = append(marks, markDay+day.Format(time.DateOnly))
		}
	}
	if len(marks) == 0 {
		return nil
	}
	marked, err := r.v.Marked(r.ctx, marks)
	r.naming = map[int]bool{}
	for _, rows := range marked {
		for _, n := range rows {
			r.naming[n] = true
		}
	}
	return err
}

// neighbours are the rows that are nearest to a vector, the nearest first.
type neighbours struct {
	rows   []index.Near
	sample index.Sample
	whole  bool // all were compared
	err    error
}

// nearest finds the neighbours of a vector, compares the first ones of them in full, and takes a sample.
func (r *ranking) nearest(q index.Vector, compared, sampled int) (n neighbours) {
	n.whole = true
	if len(q.Values) > 0 {
		n.rows, n.sample, n.whole, n.err = r.v.NearAmong(r.ctx, q, vectorHits, compared, sampled)
	}
	return n
}
