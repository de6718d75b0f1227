package memory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"nodest/index"
	"nodest/memory/lang"
)

func (q *Ask) reading() *lang.Question {
	if q.read == nil {
		read := lang.ReadQuery(q.Text, q.Names, q.Now)
		if q.gated() {
			read.Refer(q.Before, q.Names, q.Now)
			read.Relate(lang.Contracted(strings.ToLower(q.Text)))
			read.Terms = append(read.Terms, lang.PropertyTerms(read.Properties)...)
		}
		q.read = &read
	}
	return q.read
}

func (q *Ask) mayBeIrrelevant() bool { return q.Everything && !q.Relevant }

const (
	DefaultLimit      = 10
	defaultCharacters = 1500
)

// Hit is a unit that was found.
type Hit struct {
	Unit
	Score   float64            // 0 to 1; the order of a prompt's hits may differ, for variety
	Parts   Parts              // of Score, by kind
	Signals map[string]float64 // what made the score, by name; recency and importance make the rest of it
	Sources []Unit             // of a fact: the exchanges it was taken from that were found as well
	Cut     string             // the part of Text that fits, when it is too long for the budget
}

// Parts are the shares of a score, which they add up to.
type Parts struct {
	Vector     float64 `json:"vector"`
	Lexical    float64 `json:"lexical"`
	Recency    float64 `json:"recency"`
	Importance float64 `json:"importance"`
}

const (
	halfLife         = 30 * 24 * time.Hour
	recencyWeight    = 0.10
	currentWeight    = 0.30
	importanceWeight = 0.10
	variety          = 0.7 // of MMR: 1 would look at relevance alone
	varied           = 50  // the best of these are made varied
	alikeTerms       = 0.9
	alikeVectors     = 0.95
	floorOwn         = 0.1  // share of the question's words in a unit that makes it relevant
	floorSpanned     = 0.2  // likewise with its neighbours
	floorRare        = 1.6  // or so many words that stand nowhere else
	floorVector      = 0.15 // by how much a cosine stands out from those of the other neighbours, when the words do not tell
)

// Recall returns what fits q, best first. It fails if the vectors cannot be searched, and with
// the error of q.Counts.
//
// The index is locked twice and briefly: to rank its rows, and to choose among the best of
// those that count. A row removed in between is not returned.
func Recall(ctx context.Context, x *index.Index, q Ask) ([]Hit, error) {
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	q.Characters = cmp.Or(q.Characters, defaultCharacters)
	if q.gated() && q.reading().Silent() && len(q.Vector.Values) == 0 {
		return nil, nil // no row can pass
	}
	r := &ranking{ctx: ctx, q: &q, read: *q.reading()}
	if err := x.View(r.rank); err != nil {
		return nil, err
	}
	defer r.release()
	if err := r.count(); err != nil {
		return nil, err
	}
	if err := r.replaceStale(); err != nil {
		return nil, err
	}
	var hits []Hit
	err := x.View(func(v index.View) error {
		hits = r.choose(v)
		return nil
	})
	return hits, err
}

type ranking struct {
	ctx  context.Context
	q    *Ask
	read lang.Question
	*columns
	supported []supported
	facts     []*entry     // all that the index has, where one may stand in for a line
	mine      bool         // the message is about the one who writes it
	proven    map[int]bool // rows that pass the gate
	tied      map[int]int  // rows that follow up on another one (followUp)
	instead   map[int]int  // those of them that have the signals of the other one
	echo      echo
	found     []candidate // the best first

	v index.View // while hits are chosen
}

// candidate is a unit that may become a hit.
type candidate struct {
	*entry
	row        int // when it was ranked
	at         int // of its row in v
	score      float32
	why        int      // row of the columns that score is from
	supporters []*entry // neighbours without which it is not relevant
	sources    []*entry // exchanges that the fact stands for
	terms      []int32  // once they are needed
	tells      *telling // likewise
}

// rank scores the rows of an index. Its results stay valid after the index is unlocked.
func (r *ranking) rank(v index.View) (err error) {
	r.mine = lang.AboutSpeaker(r.q.Text)
	if r.q.gated() {
		recognise(&r.read, v, r.q.Text)
	}
	if r.columns, err = measure(r.ctx, v, r.q, r.read); err != nil {
		return err
	}
	r.fits = slices.Grow(r.fits[:0], len(r.rows))[:len(r.rows)]
	clear(r.fits)
	if !r.q.gated() || r.opens(v) {
		for at, i := range r.rows {
			r.score(v, at, i)
		}
	}
	r.followUp(v)
	if len(r.proven) > 0 && r.q.Over != nil && !r.read.Past {
		r.allFacts(v)
	}
	return nil
}

// score scores row i, at this place in rows, if it may be returned.
func (r *ranking) score(v index.View, at, i int) {
	alone := r.q.mayBeIrrelevant() || r.relevantAlone(i)
	spanned := !r.q.Relevant && !r.q.gated() && r.match.Spanned[i] >= floorSpanned
	if !r.proven[i] && !(r.admits() && (alone || spanned)) {
		return
	}
	r.judge(v, i, r.read)
	r.fits[at] = r.fit(i)
	if !alone && !r.proves(i) {
		r.supported = append(r.supported, supported{i, [2]int{v.Neighbour(i, -1), v.Neighbour(i, 1)}})
	}
}

func (r *ranking) fit(i int) (sum float32) {
	for s, w := range weights {
		sum += w * r.of[s][i]
	}
	return sum
}

func (r *ranking) adjusted(fit float32, e *entry) float32 {
	fresh, important := r.adjust(e)
	return fit * (1 + fresh + important)
}

// count takes the best of the units that count, as many as a choice needs.
func (r *ranking) count() error {
	known := map[string]bool{}
	for n := enough(r.q.Limit); ; n *= 4 {
		best := r.best(n)
		if err := r.ask(known, &best); err != nil {
			return err
		}
		r.found = best
		if len(best) >= n/2 || n >= len(r.rows) {
			return nil
		}
	}
}

// ask removes candidates that do not count. known has the answers so far.
func (r *ranking) ask(known map[string]bool, found *[]candidate) error {
	if r.q.Counts == nil || len(*found) == 0 {
		return nil
	}
	var units []*Unit
	add := func(e *entry) {
		if _, ok := known[e.ID]; !ok {
			known[e.ID] = false
			units = append(units, &e.Unit)
		}
	}
	for _, c := range *found {
		add(c.entry)
		for _, e := range c.supporters {
			add(e)
		}
	}
	if len(units) > 0 {
		counts, err := r.q.Counts(r.ctx, units)
		if err != nil {
			return err
		}
		for i, u := range units {
			known[u.ID] = counts[i]
		}
	}
	*found = slices.DeleteFunc(*found, func(c candidate) bool {
		return !known[c.ID] || len(c.supporters) > 0 && !slices.ContainsFunc(c.supporters, func(e *entry) bool { return known[e.ID] })
	})
	return nil
}

// enough is how many of the best rows are considered first for a number of hits: some of them
// say the same, and some do not count.
func enough(limit int) int { return max(varied+varied/4, min(limit, math.MaxInt/64)*4) }

// best returns the best n rows that may be hits.
func (r *ranking) best(n int) []candidate {
	top := &topmost{size: n}
	most := float32(1 + importanceWeight + r.recencyWeight())
	for at, i := range r.rows {
		fit := r.fits[at]
		if fit <= 0 || !top.takes(ranked{i, fit * most}) {
			continue
		}
		if s := (ranked{i, r.adjusted(fit, r.entries[r.reason(i)])}); top.takes(s) && !r.skips(r.entries[i]) {
			top.add(s)
		}
	}
	best := top.sorted()
	found := make([]candidate, len(best))
	for i, t := range best {
		found[i] = candidate{entry: r.entries[t.row], score: t.score, row: t.row, why: r.reason(t.row), supporters: r.supporters(t.row)}
	}
	return found
}

// reason is the row whose signals make the score of row i.
func (r *ranking) reason(i int) int {
	if place, ok := r.instead[i]; ok {
		return place
	}
	return i
}

// supported is a row that is relevant only because of its neighbours, of which one must count.
type supported struct {
	row    int
	beside [2]int // rows; -1 = none
}

// supporters returns the neighbours that make row i relevant; none if it is relevant by itself.
func (r *ranking) supporters(i int) (on []*entry) {
	at, ok := slices.BinarySearchFunc(r.supported, i, func(l supported, i int) int { return cmp.Compare(l.row, i) })
	if !ok || r.q.Counts == nil {
		return nil
	}
	for _, n := range r.supported[at].beside {
		if n >= 0 && r.match.Covered[n] > 0 && r.entries[n] != nil {
			on = append(on, r.entries[n])
		}
	}
	return on
}

// skips reports what must not be returned, as far as a fast check can tell.
func (r *ranking) skips(e *entry) bool {
	return r.q.Skip != nil && r.q.Skip(&e.Unit) || r.q.Visible.Shows(&e.Unit) || e.Layer == Fact && e.Text == "" || r.q.gated() && r.idle(e)
}

func (r *ranking) allFacts(v index.View) {
	for i := range v.Slots() {
		if e := entryAt(v, i); e != nil && e.Layer == Fact {
			r.facts = append(r.facts, e)
		}
	}
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
	least *ranked // of the best, once there are so many
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

// takes reports whether r may be among the best.
func (t *topmost) takes(r ranked) bool { return t.least == nil || r.before(*t.least) }

func (t *topmost) add(r ranked) {
	if t.rows = append(t.rows, r); len(t.rows) >= 2*t.size {
		t.sorted()
	}
}

// adjust returns the bonuses of new and of important units. Pinned ones have the greatest
// importance.
func (r *ranking) adjust(e *entry) (fresh, important float32) {
	if age := r.q.Now.Sub(e.At); !r.q.Now.IsZero() && !e.At.IsZero() {
		fresh = float32(r.recencyWeight() * math.Exp2(-max(0, age.Hours())/halfLife.Hours()))
	}
	if e.Pinned {
		return fresh, importanceWeight
	}
	return fresh, float32(importanceWeight * e.Importance)
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
	m := &r.match
	return m.Covered[i] >= floorOwn || m.Covered[i]*m.Weight >= floorRare*m.Rarest || r.of[sigDay][i] > 0 ||
		r.of[sigVector][i]*r.spread >= floorVector
}
