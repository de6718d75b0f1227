package memory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"nodest/index"
)

// Query is what is looked for. Only Text is needed.
type Query struct {
	Text  string
	Names Names
	Now   time.Time // of the question; its zone is that of the days that are named

	Vector   index.Vector // of the text by the model, if there is one
	Spelling index.Vector // of the text by parts of words, if there is one

	// Skip leaves a unit out: of another conversation or layer, or in sight already.
	// It is called for every unit and must be quick.
	Skip func(*Unit) bool

	// Everything turns off what makes a small set for a prompt: the floor of
	// relevance, variety and the budget of characters (mode=recall).
	Everything bool

	Limit      int      // hits; default 10
	Characters int      // code points of all texts together; default 1500
	Weights    *Weights // default DefaultWeights
}

// The defaults of a Query.
const (
	DefaultLimit      = 10
	DefaultCharacters = 1500
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

// Parts are the shares of a score; they add up to it.
type Parts struct {
	Vector     float64 `json:"vector"`
	Lexical    float64 `json:"lexical"`
	Recency    float64 `json:"recency"`
	Importance float64 `json:"importance"`
}

// Numbers of the specification 2.5.
const (
	halfLife         = 30 * 24 * time.Hour
	recencyWeight    = 0.10
	currentWeight    = 0.30
	importanceWeight = 0.10
	variety          = 0.7 // of MMR: 1 would look at relevance alone
	varied           = 50  // the best of these are made varied
	pinnedShare      = 0.3
	alikeTerms       = 0.9
	alikeVectors     = 0.95
	floorOwn         = 0.1  // share of the question's words in a unit that makes it relevant
	floorSpanned     = 0.2  // likewise with its neighbours
	floorRare        = 1.6  // or so many words that stand nowhere else
	floorVector      = 0.15 // by how much a cosine stands out from those of the other neighbours, when the words do not tell
)

// Recall returns what fits q best, the best first; pinned facts stand before
// everything else. Nothing relevant gives no hits. It waits for nothing and fails only
// when the vectors cannot be searched.
func Recall(ctx context.Context, x *index.Index, q Query) ([]Hit, error) {
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	q.Characters = cmp.Or(q.Characters, DefaultCharacters)
	if q.Weights == nil {
		q.Weights = &DefaultWeights
	}
	var hits []Hit
	err := x.View(func(v index.View) error {
		r := &ranking{ctx: ctx, v: v, q: &q, read: ReadQuery(q.Text, q.Names, q.Now)}
		var err error
		hits, err = r.run()
		return err
	})
	return hits, err
}

// ranking is one Recall.
type ranking struct {
	ctx  context.Context
	v    index.View
	q    *Query
	read Question
	*columns
}

// candidate is a row on its way to be a hit.
type candidate struct {
	row     int
	score   float32
	sources []int     // exchanges that the fact in row stands for
	terms   []int32   // once they are needed
	vector  []float32 // likewise
}

func (r *ranking) run() (hits []Hit, err error) {
	if r.columns, err = measure(r.ctx, r.v, r.q, r.read); err != nil {
		return nil, err
	}
	found := r.best()
	if r.q.Everything {
		found = r.once(found, r.q.Limit, r.sameText)
		return r.hits(found[:min(len(found), r.q.Limit)], math.MaxInt), nil
	}
	found = r.once(found, varied, r.alike)
	found = r.vary(found[:min(len(found), varied)])
	return r.withPinned(found), nil
}

// enough is how many of the best rows are looked at for a number of hits: some of
// them say the same.
func enough(limit int) int {
	if limit > math.MaxInt/4 {
		return math.MaxInt
	}
	return max(8*varied, 4*limit)
}

// best returns the best rows that may be hits, the best first.
func (r *ranking) best() []candidate {
	top := &topmost{size: enough(r.q.Limit)}
	for _, i := range r.rows {
		if !r.q.Everything && !r.relevant(i) {
			continue
		}
		sum := float32(0)
		for s, w := range r.q.Weights {
			sum += w * r.of[s][i]
		}
		top.add(ranked{i, sum * r.adjust(i)})
	}
	slices.SortFunc(top.rows, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.row, b.row))
	})
	found := make([]candidate, len(top.rows))
	for i, t := range top.rows {
		found[i] = candidate{row: t.row, score: t.score}
	}
	return found
}

// ranked is a row and its score.
type ranked struct {
	row   int
	score float32
}

func (a ranked) before(b ranked) bool {
	return a.score > b.score || a.score == b.score && a.row < b.row
}

// topmost keeps the best of many rows: a heap with the worst of them on top.
type topmost struct {
	size int
	rows []ranked
}

func (t *topmost) add(r ranked) {
	if len(t.rows) < t.size {
		t.rows = append(t.rows, r)
		for i := len(t.rows) - 1; i > 0 && t.rows[(i-1)/2].before(t.rows[i]); i = (i - 1) / 2 {
			t.rows[i], t.rows[(i-1)/2] = t.rows[(i-1)/2], t.rows[i]
		}
		return
	}
	if !r.before(t.rows[0]) {
		return
	}
	t.rows[0] = r
	for i := 0; ; {
		worst := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(t.rows) && t.rows[worst].before(t.rows[child]) {
				worst = child
			}
		}
		if worst == i {
			return
		}
		t.rows[i], t.rows[worst] = t.rows[worst], t.rows[i]
		i = worst
	}
}

// adjust is a tie-breaker: a little for what is new, a little for what is important.
func (r *ranking) adjust(i int) float32 {
	e := r.entries[i]
	factor := 1 + importanceWeight*e.Importance
	if age := r.q.Now.Sub(e.At); !r.q.Now.IsZero() && !e.At.IsZero() {
		factor += r.recencyWeight() * math.Exp2(-max(0, age.Hours())/halfLife.Hours())
	}
	return float32(factor)
}

func (r *ranking) recencyWeight() float64 {
	if r.read.Current {
		return currentWeight
	}
	return recencyWeight
}

// relevant is the floor: enough of the question's words, some rare ones of a long
// message, its day, or a model that finds it near.
func (r *ranking) relevant(i int) bool {
	m := r.match
	return m.Covered[i] >= floorOwn || m.Spanned[i] >= floorSpanned || m.Covered[i]*m.Weight >= floorRare*m.Rarest ||
		r.of[sigDay][i] > 0 || r.of[sigVector][i]*r.spread >= floorVector
}
