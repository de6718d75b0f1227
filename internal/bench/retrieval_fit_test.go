package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/internal/index"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/recall"
)

// TestFitWeights fits the ranking weights of package memory to files of questions and
// prints what they are worth, when NODEST_FIT has the arguments:
//
//	NODEST_FIT="-locomo FILE -memorybank FILE,FILE" go test ./internal/bench -run FitWeights -v -timeout 0
//
// With -lexical it does so by words alone, without vectors. Without NODEST_FIT, a few
// turns show that it runs.
func TestFitWeights(t *testing.T) {
	t.Parallel()
	var o RetrievalOptions
	flags := flag.NewFlagSet("NODEST_FIT", flag.ContinueOnError)
	flags.StringVar(&o.LoCoMo, "locomo", "", "LoCoMo file")
	flags.StringVar(&o.MemoryBank, "memorybank", "", "MemoryBank files, separated by commas")
	flags.BoolVar(&o.Lexical, "lexical", false, "by words alone")
	if err := flags.Parse(strings.Fields(os.Getenv("NODEST_FIT"))); err != nil {
		t.Fatal(err)
	}
	if flags.NFlag() == 0 {
		o.LoCoMo = filepath.Join(t.TempDir(), "turns")
		if err := os.WriteFile(o.LoCoMo, []byte(someTurns), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sets, err := o.read()
	if err != nil {
		t.Fatal(err)
	}
	if err := fit(t.Context(), t.Output(), sets, o.Lexical); err != nil {
		t.Fatal(err)
	}
}

// shipped are the signals of package memory and their weights. Keep them the same as
// in memory/signals.go: hits tell weighted signals, and fitting needs them unweighted.
var shipped = [...]struct {
	signal string
	weight float32
}{
	{"words", 1}, {"near", 0.4}, {"around", 0.9}, {"session", 0.9}, {"answer", 1.2}, {"speaker", 0.8},
	{"day", 2.4}, {"kind", 2.4}, {"length", 0.8}, {"vector", 2}, {"spelling", 0.2},
}

// weights are by signal, as in shipped.
type weights [len(shipped)]float32

func shippedWeights() (w weights) {
	for s := range w {
		w[s] = shipped[s].weight
	}
	return w
}

// fitted is one question with all that may answer it: by signal, the share of it in
// each hit, before it is weighed.
type fitted struct {
	talk     *talk
	category string
	bank     bool        // a question of a chat, not of LoCoMo
	signals  [][]float32 // by signal, then by hit
	factor   []float32   // recency and importance of a hit
	item     []int       // that a hit belongs to
	right    []int       // items
}

// fit looks for weights by coordinate ascent from equal ones, over all sets together,
// and does it again with each conversation left out, to see what weights are worth for
// a conversation that they have not seen.
func fit(ctx context.Context, out io.Writer, sets []*questions, lexical bool) error {
	var all []*fitted
	for _, set := range sets {
		some, err := set.fitted(ctx, lexical)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	fmt.Fprintf(out, "equal     %s\n", describe(all, equalWeights()))
	fmt.Fprintf(out, "shipped   %s\n", describe(all, shippedWeights()))
	best := climb(all, equalWeights(), nil)
	fmt.Fprintf(out, "fitted    %s\n", describe(all, best))
	for s := range shipped {
		without := best
		without[s] = 0
		fmt.Fprintf(out, "  %-9s %.2f, without it %+.4f\n", shipped[s].signal, best[s], aim(all, without, nil)-aim(all, best, nil))
	}
	leaveOut(out, all)
	return nil
}

// leaveOut fits without each conversation, and without what has its name in other
// sets (the same one in another language), and says how well that finds its items.
func leaveOut(out io.Writer, all []*fitted) {
	var names []string
	for _, f := range all {
		if !slices.Contains(names, f.talk.name) {
			names = append(names, f.talk.name)
		}
	}
	var turns, bank retrievalScores
	for _, name := range names {
		weights := climb(all, equalWeights(), func(f *fitted) bool { return f.talk.name != name })
		for kind, sum := range map[bool]*retrievalScores{false: &turns, true: &bank} {
			here := total(all, weights, func(f *fitted) bool {
				return f.talk.name == name && f.bank == kind && (kind || f.category != adversarial)
			})
			if sum.join(here); here.Questions > 0 {
				fmt.Fprintf(out, "left out  %-10s recall@5 %.3f, recall@10 %.3f, MRR %.3f\n", name, here.Recall5, here.Recall10, here.MRR)
			}
		}
	}
	turns.mean()
	bank.mean()
	fmt.Fprintf(out, "left out  all        LoCoMo recall@10 %.3f, MRR %.3f; MemoryBank recall@5 %.3f, MRR %.3f\n", turns.Recall10, turns.MRR, bank.Recall5, bank.MRR)
}

// join adds means to sums.
func (s *retrievalScores) join(mean retrievalScores) {
	n := float64(mean.Questions)
	s.Questions += mean.Questions
	s.Recall5 += n * mean.Recall5
	s.Recall10 += n * mean.Recall10
	s.MRR += n * mean.MRR
}

func equalWeights() (w weights) {
	for i := range w {
		w[i] = 1
	}
	return w
}

// fitted asks every question once, of the units as the store gives them to an index.
func (q *questions) fitted(ctx context.Context, lexical bool) (all []*fitted, err error) {
	l, err := openLibrary(ctx, libraryOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	rows := rowsLoader{rows: map[string][]index.Row{}}
	for _, t := range q.talks {
		if err := l.take(ctx, t); err != nil {
			return nil, err
		}
	}
	if !lexical {
		if err := l.embed(ctx); err != nil {
			return nil, err
		}
	}
	for _, t := range q.talks {
		units, err := l.units(ctx, t)
		if err != nil {
			return nil, err
		}
		for i := range units {
			rows.rows[t.character] = append(rows.rows[t.character], units[i].Row())
		}
	}
	cache := index.NewCache(rows, 0)
	for i := range q.asked {
		if len(q.asked[i].right) == 0 {
			continue
		}
		f, err := q.asked[i].fitted(ctx, cache, lexical)
		if err != nil {
			return nil, err
		}
		f.bank = q.kind != "locomo"
		all = append(all, f)
	}
	return all, nil
}

func (one *question) fitted(ctx context.Context, cache *index.Cache, lexical bool) (*fitted, error) {
	query, near := recall.Query{Text: one.text, Names: one.talk.people, Now: one.talk.now, Mode: recall.Ranked, Limit: math.MaxInt}, recall.Vectors{}
	if !lexical {
		e, err := offline.Embedder{}.Embed(ctx, llm.Query, []string{one.text})
		if err != nil {
			return nil, err
		}
		near.Spelling = index.Vector{Model: e.Model, Values: e.Vectors[0]}
	}
	var hits []recall.Hit
	err := cache.Use(ctx, one.talk.character, func(x *index.Index, _ bool) (err error) {
		hits, _, err = recall.Find(ctx, x, &query, near, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	f := &fitted{
		talk: one.talk, category: one.category, right: one.right,
		signals: make([][]float32, len(shipped)), factor: make([]float32, len(hits)), item: make([]int, len(hits)),
	}
	for s := range shipped {
		f.signals[s] = make([]float32, len(hits))
		for i := range hits {
			share := float32(hits[i].Signals[shipped[s].signal])
			f.signals[s][i] = share / shipped[s].weight
			f.factor[i] += share
		}
	}
	for i := range hits {
		if f.factor[i] > 0 {
			f.factor[i] = float32(hits[i].Score) / f.factor[i]
		}
		f.item[i] = one.talk.itemOf[hits[i].ID]
	}
	return f, nil
}

// rowsLoader is a database that never changes.
type rowsLoader struct {
	index.Source // nil: there are no segments
	rows         map[string][]index.Row
}

func (l rowsLoader) Load(_ context.Context, key string, _, _ int64) (index.Delta, error) {
	return index.Delta{Version: 1, Rows: l.rows[key], Whole: true}, nil
}

func climb(all []*fitted, w weights, keep func(*fitted) bool) weights {
	best := aim(all, w, keep)
	for range 4 {
		before := best
		for s := 1; s < len(w); s++ { // the first one is the measure of the others
			for _, step := range []float32{0.3, -0.3, 0.1, -0.1, 0.03, -0.03} {
				for try := w; ; {
					try[s] += step
					a := aim(all, try, keep)
					if try[s] < 0 || a <= best+1e-5 {
						break
					}
					w, best = try, a
				}
			}
		}
		if best-before < 5e-4 {
			break
		}
	}
	return w
}

// aim is what weights are good for: recall and rank on LoCoMo, with a share for the
// chats and for the adversarial questions, so that neither pays for it.
func aim(all []*fitted, w weights, keep func(*fitted) bool) float64 {
	in := func(want func(*fitted) bool) retrievalScores {
		return total(all, w, func(f *fitted) bool { return want(f) && (keep == nil || keep(f)) })
	}
	main := in(func(f *fitted) bool { return !f.bank && f.category != adversarial })
	turned := in(func(f *fitted) bool { return !f.bank && f.category == adversarial })
	bank := in(func(f *fitted) bool { return f.bank })
	return main.Recall10 + main.MRR + 0.3*main.Recall5 + 0.3*bank.Recall5 + 0.2*bank.MRR + 0.1*turned.Recall10 + 0.1*turned.MRR
}

func total(all []*fitted, w weights, keep func(*fitted) bool) (sum retrievalScores) {
	var scores []float32
	for _, f := range all {
		if keep(f) {
			scores = f.score(scores[:0], w)
			sum.add(f.ranks(scores))
		}
	}
	sum.mean()
	return sum
}

func (f *fitted) score(scores []float32, w weights) []float32 {
	scores = append(scores, make([]float32, len(f.factor))...)
	for s, weight := range w {
		if weight == 0 {
			continue
		}
		for i, x := range f.signals[s] {
			scores[i] += weight * x
		}
	}
	for i := range scores {
		scores[i] *= f.factor[i]
	}
	return scores
}

// ranks are those of the right items; an item is as good as its best message.
func (f *fitted) ranks(scores []float32) []int {
	ranks, best := make([]int, len(f.right)), make([]float32, len(f.talk.items))
	for i, x := range scores {
		best[f.item[i]] = max(best[f.item[i]], x)
	}
	for k, at := range f.right {
		if best[at] == 0 {
			continue
		}
		ranks[k] = 1
		for _, x := range best {
			if x > best[at] {
				ranks[k]++
			}
		}
	}
	return ranks
}

func describe(all []*fitted, w weights) string {
	bank := total(all, w, func(f *fitted) bool { return f.bank })
	main := total(all, w, func(f *fitted) bool { return !f.bank && f.category != adversarial })
	return fmt.Sprintf("aim %.4f: LoCoMo recall@10 %.3f, MRR %.3f; MemoryBank recall@5 %.3f, MRR %.3f", aim(all, w, nil), main.Recall10, main.MRR, bank.Recall5, bank.MRR)
}

// units are those of a conversation as the store gives them to an index.
func (l *library) units(ctx context.Context, t *talk) (units []recall.Unit, err error) {
	err = l.db.Memory().View(ctx, l.user, func(tx memory.Tx) error {
		c, err := tx.MemoryChanges(t.character, 0, 0, 0)
		if err == nil {
			units = c.Units
		}
		return err
	})
	return units, err
}
