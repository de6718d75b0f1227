package recall

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"nodest/internal/feedback"
	"nodest/internal/index"
	"nodest/memory/lang"
)

// Hit is a unit that was found.
type Hit struct {
	Unit
	Score   float64            // 0 to 1; the order of a prompt's hits may differ, for variety
	Parts   Parts              // parts of Score, by kind
	Signals map[string]float64 // the signals that made the score, by name; recency and importance make the rest of it
	Sources []Unit             // the exchanges that a fact was taken from and that were found as well
	Cut     string             // the part of Text that fits, when it is too long for the budget
}

// Parts are the shares of a score, which they add up to.
type Parts struct {
	Vector     float64 `json:"vector"`
	Lexical    float64 `json:"lexical"`
	Recency    float64 `json:"recency"`
	Importance float64 `json:"importance"`
	Feedback   float64 `json:"feedback"` // share of evaluations, and of exploration; may be negative
}

// Add adds the share of a signal, by its name.
func (p *Parts) Add(signal string, x float64) {
	switch signal {
	case "recency":
		p.Recency += x
	case "importance":
		p.Importance += x
	case SignalFeedback, SignalExploration:
		p.Feedback += x
	case SignalNames[sigVector], SignalNames[sigSpelling]:
		p.Vector += x
	default:
		p.Lexical += x
	}
}

// Answer is a unit that answers the question by its kind, however it ranks.
func Answer(u Unit) Hit {
	return Hit{Unit: u, Score: 1, Parts: Parts{Lexical: 1}, Signals: map[string]float64{SignalNames[sigKind]: 1}}
}

const (
	halfLife         = 30 * 24 * time.Hour
	recencyWeight    = 0.10
	currentWeight    = 0.30
	importanceWeight = 0.10
	variety          = 0.7 // weight of relevance in MMR: 1 would look at relevance alone
	varied           = 32  // the best of these are made varied
	alikeTerms       = 0.9
	alikeVectors     = 0.95
	floorOwn         = 0.1 // share of the question's words in a unit that makes it relevant
	floorSpanned     = 0.2 // likewise with its neighbours
	floorRare        = 1.6 // or so many words that stand nowhere else
)

// Find returns what fits q, best first. near are the vectors of its text. branch says which units
// count; nil = all do. It fails if the index cannot be searched, and with the error of branch.
//
// Rows are ranked by what the index tells of them; only the best are read. A row removed in
// between is not returned. whole is false if there was no time to compare all vectors.
func Find(ctx context.Context, x *index.Index, q *Query, near Vectors, branch Branch) (hits []Hit, whole bool, err error) {
	asked := *q
	q = &asked
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	q.Characters = cmp.Or(q.Characters, DefaultCharacters)
	if q.Silent() && len(near.Model.Values) == 0 {
		return nil, true, nil // no row can pass
	}
	r := &ranking{
		ctx: ctx, q: q, near: near, branch: branch, read: *q.reading(),
		got: map[int]*unit{}, numbers: map[string]int32{}, columns: newColumns(),
	}
	defer r.columns.release()
	err = x.View(func(v index.View) error {
		r.v = v
		if err := r.rank(); err != nil {
			return err
		}
		if err := r.count(); err != nil {
			return err
		}
		if err := r.replaceStale(); err != nil {
			return err
		}
		if err := r.withoutEchoes(); err != nil {
			return err
		}
		hits, err = r.choose()
		whole = r.columns.whole
		return err
	})
	return hits, whole, err
}

// answering are rows that may answer a question whatever words they share with it.
type answering struct {
	told   map[int]bool // they give a property that is asked for
	stated map[int]bool // they make the statement that is asked for
	hopped map[int]bool // they answer together with another one
	heads  map[int]bool // they have the thing that is asked about; nil = the question names none

	raised map[int]float32 // how much better they fit than their words do
}

type ranking struct {
	answering

	ctx     context.Context
	q       *Query
	near    Vectors
	branch  Branch
	v       index.View
	read    lang.Question
	mine    bool     // the message is about the one who writes it
	own     []string // things of the user that a question is about
	tells   float32  // evidence of all words of a scene; 0 = the message is none
	columns *columns
	gate    gate
	naming  map[int]bool // rows that name one of the question's days
	follow  following

	cosineBase float32 // up to here a cosine of the model is chance

	got     map[int]*unit    // rows that were read; nil = gone
	facts   []*unit          // that may stand in for a line
	numbers map[string]int32 // numbers of words of candidates
	records map[string]feedback.Record
	found   []candidate // the best first
}

// unit is a row that was read.
type unit struct {
	*entry
	index.Found
	terms    []string // once they are needed
	distinct []int32  // the numbers of them, likewise
}

// words are the terms of its text, with repetitions.
func (u *unit) words() []string {
	if u.terms == nil {
		u.terms = index.Terms(u.Text)
	}
	return u.terms
}

// candidate is a unit that may become a hit.
type candidate struct {
	*unit
	row        int // when it was ranked
	score      float32
	why        int      // row whose signals make the score
	supporters []*unit  // neighbours without which it is not relevant
	voted      float32  // share of score, by evaluations
	lifted     float32  // exploration adds this to score
	sources    []*entry // exchanges that the fact stands for
	tells      *telling // once it is needed
	left       string   // the part of the text that counts; "" = all
}

// readRows reads rows that were not read before.
func (r *ranking) readRows(rows []int) error {
	missing := slices.DeleteFunc(slices.Clone(rows), func(row int) bool {
		_, known := r.got[row]
		return known
	})
	found, err := r.v.Rows(r.ctx, missing, r.near.Model)
	if err != nil {
		return fmt.Errorf("read what was found: %w", err)
	}
	for _, row := range missing {
		r.got[row] = nil
	}
	for _, f := range found {
		if e := entryOf(f); e != nil {
			r.got[f.N] = &unit{entry: e, Found: f}
		}
	}
	return nil
}

// rank scores the rows of the index.
func (r *ranking) rank() error {
	r.mine = lang.AboutSpeaker(r.q.Text)
	r.own = r.read.OwnThings(r.q.Text)
	if r.q.gated() {
		if err := r.recognise(); err != nil {
			return err
		}
	}
	if err := r.readNaming(); err != nil {
		return err
	}
	if err := r.readTold(); err != nil {
		return err
	}
	if err := r.measure(); err != nil {
		return err
	}
	if open, err := r.opens(); err != nil || !open {
		return err
	}
	admits := r.admits()
	for _, at := range r.columns.rows {
		if row := int(at.row); admits && r.relevant(row) || r.columns.proven.has(row) {
			r.columns.fits = append(r.columns.fits, ranked{row, r.fit(at)})
		}
	}
	r.liftTold()
	return r.followUp()
}

// liftTold gives rows that state what is asked for the best fit.
func (r *ranking) liftTold() {
	r.raised = map[int]float32{}
	best := float32(0)
	for _, f := range r.columns.fits {
		best = max(best, f.score)
	}
	for i, f := range r.columns.fits {
		if r.told[f.row] || r.stated[f.row] || r.hopped[f.row] {
			r.columns.fits[i].score, r.raised[f.row] = best, best-f.score
		}
	}
}

// relevant reports whether a row passes the floor.
func (r *ranking) relevant(i int) bool {
	if r.read.OfDays && r.q.gated() && len(r.columns.day.set) > 0 {
		return r.columns.day.of[i] > 0
	}
	return r.q.Mode == Ranked || r.relevantAlone(i) || r.q.Mode == Search && r.columns.match.Scores[i].Spanned >= floorSpanned
}

func (r *ranking) fit(at related) (sum float32) {
	of := r.signals(at)
	for s := range of {
		sum += weights[s] * of[s]
	}
	return sum
}

func (r *ranking) adjusted(fit float32, row int) float32 {
	fresh, important := r.adjust(r.line(row))
	return fit * (1 + fresh + important)
}

// count takes the best of the units that count, as many as a choice needs.
func (r *ranking) count() error {
	known := map[string]bool{}
	for n := enough(r.q.Limit); ; n *= 4 {
		best, err := r.best(n)
		if err != nil {
			return err
		}
		if err := r.ask(known, &best); err != nil {
			return err
		}
		r.found = best
		if len(best) >= n/2 || n >= len(r.columns.fits) {
			return nil
		}
	}
}

// ask removes candidates that do not count. known has the answers so far.
func (r *ranking) ask(known map[string]bool, found *[]candidate) error {
	if r.branch == nil || len(*found) == 0 {
		return nil
	}
	var units []*Unit
	add := func(e *unit) {
		if _, ok := known[e.ID]; !ok {
			known[e.ID] = false
			units = append(units, &e.Unit)
		}
	}
	for _, c := range *found {
		add(c.unit)
		for _, e := range c.supporters {
			add(e)
		}
	}
	if len(units) > 0 {
		counts, err := r.branch.Counts(r.ctx, units)
		if err != nil {
			return err
		}
		for i, u := range units {
			known[u.ID] = counts[i]
		}
	}
	*found = slices.DeleteFunc(*found, func(c candidate) bool {
		return !known[c.ID] || len(c.supporters) > 0 && !slices.ContainsFunc(c.supporters, func(e *unit) bool { return known[e.entry.ID] })
	})
	return nil
}

// enough is how many of the best rows are considered first: some say the same, or do not count.
func enough(limit int) int { return max(varied+varied/4, min(limit, math.MaxInt/64)*4) }

// best returns the best of n rows that may be hits.
func (r *ranking) best(n int) ([]candidate, error) {
	top := &topmost{size: n}
	most := float32(1 + importanceWeight + r.recencyWeight())
	for _, f := range r.columns.fits {
		if f.score <= 0 || !top.takes(ranked{f.row, f.score * most}) {
			continue
		}
		if s := (ranked{f.row, r.adjusted(f.score, r.reason(f.row))}); top.takes(s) && !r.q.Only.bars(r.line(f.row), f.row, r.v) {
			top.add(s)
		}
	}
	best := top.sorted()
	rows := make([]int, 0, len(best))
	beside := map[int][]int{}
	for _, t := range best {
		beside[t.row] = r.supporters(t.row)
		rows = append(append(rows, t.row), beside[t.row]...)
	}
	if err := r.readRows(rows); err != nil {
		return nil, err
	}
	found := make([]candidate, 0, len(best))
	for _, t := range best {
		u := r.got[t.row]
		if u == nil || r.skips(u.entry) {
			continue
		}
		c := candidate{unit: u, score: t.score, row: t.row, why: r.reason(t.row)}
		for _, n := range beside[t.row] {
			if s := r.got[n]; s != nil {
				c.supporters = append(c.supporters, s)
			}
		}
		if len(beside[t.row]) == 0 || len(c.supporters) > 0 {
			found = append(found, c)
		}
	}
	return found, nil
}

// reason is the row whose signals make the score of row i.
func (r *ranking) reason(i int) int {
	if place, ok := r.follow.instead[i]; ok {
		return place
	}
	return i
}

// supporters returns the neighbours of which one must count, unless row i is relevant by itself.
func (r *ranking) supporters(i int) (on []int) {
	if r.branch == nil || r.columns.proven.has(i) && r.proves(i) || r.q.Mode == Ranked || r.relevantAlone(i) {
		return nil
	}
	for _, steps := range []int{-1, 1} {
		if n := r.v.Neighbour(i, steps); n >= 0 && r.columns.match.Scores[n].Covered > 0 {
			on = append(on, n)
		}
	}
	return on
}

// skips reports what must not be returned, as far as a fast check can tell.
func (r *ranking) skips(e *entry) bool {
	return r.q.Only.barsUnit(&e.Unit) || r.q.Visible.shows(&e.Unit) || e.Layer == Fact && e.Text == "" || r.q.gated() && r.idle(e)
}

type ranked struct {
	row   int
	score float32
}

func (a ranked) before(b ranked) bool {
	return a.score > b.score || a.score == b.score && a.row < b.row
}

// topmost keeps the best of many rows.
type topmost struct {
	size  int
	rows  []ranked
	least *ranked // the least of the best, once there are so many
}

// sorted returns the rows, the best first.
func (t *topmost) sorted() []ranked {
	slices.SortFunc(t.rows, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.row, b.row))
	})
	if len(t.rows) >= t.size {
		t.rows = t.rows[:t.size]
		least := t.rows[t.size-1]
		t.least = &least
	}
	return t.rows
}

// numbers returns the rows of a list, in its order.
func numbers(list []ranked) []int {
	rows := make([]int, len(list))
	for i, t := range list {
		rows[i] = t.row
	}
	return rows
}

// takes reports whether r may be among the best.
func (t *topmost) takes(r ranked) bool { return t.least == nil || r.before(*t.least) }

func (t *topmost) add(r ranked) {
	if t.rows = append(t.rows, r); len(t.rows) >= 2*t.size {
		t.sorted()
	}
}

// adjust returns the bonuses of new and of important units; pinned ones are the most important.
func (r *ranking) adjust(l line) (fresh, important float32) {
	if at := l.at(); !r.q.Now.IsZero() && !at.IsZero() {
		fresh = float32(r.recencyWeight() * math.Exp2(-max(0, r.q.Now.Sub(at).Hours())/halfLife.Hours()))
	}
	if l.is(linePinned) {
		return fresh, importanceWeight
	}
	return fresh, float32(importanceWeight * l.importance())
}

func (r *ranking) recencyWeight() float64 {
	if r.read.Current {
		return currentWeight
	}
	return recencyWeight
}

// relevantAlone is the floor of a row without its neighbours: enough of the question's words,
// some rare ones of a long message, its day, or a near vector.
func (r *ranking) relevantAlone(i int) bool {
	s := &r.columns.match.Scores[i]
	return s.Covered >= floorOwn || s.Covered*r.columns.match.Weight >= floorRare*r.columns.match.Rarest || r.columns.day.of[i] > 0 || r.standsOut(i)
}
