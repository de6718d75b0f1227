package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"nodest/memory"
)

// fitted is one question with all that may answer it: by signal, the share of it in
// each hit, before it is weighed.
type fitted struct {
	scope, category string
	bank            bool        // a question of a chat, not of LoCoMo
	signals         [][]float32 // by signal, then by hit
	factor          []float32   // recency and importance of a hit
	right           []int       // hits; -1 for what was not found
}

// fit looks for weights by coordinate ascent from equal ones, over all sets together,
// and does it again with each conversation of LoCoMo left out, to see what weights are
// worth for a conversation that they have not seen.
func fit(ctx context.Context, out io.Writer, sets []*questions) error {
	all, err := fittedOf(ctx, sets)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "equal     %s\n", describe(all, equalWeights()))
	fmt.Fprintf(out, "default   %s\n", describe(all, memory.DefaultWeights))
	best := climb(all, equalWeights(), nil)
	fmt.Fprintf(out, "fitted    %s\n", describe(all, best))
	for s, name := range memory.SignalNames {
		without := best
		without[s] = 0
		fmt.Fprintf(out, "  %-9s %.2f, without it %+.4f\n", name, best[s], aim(all, without, nil)-aim(all, best, nil))
	}
	var left []string
	for _, f := range all {
		if !f.bank && !slices.Contains(left, f.scope) {
			left = append(left, f.scope)
		}
	}
	var unseen retrievalScores
	for _, scope := range left {
		seen := func(f *fitted) bool { return f.scope != scope }
		weights := climb(all, equalWeights(), seen)
		here := total(all, weights, func(f *fitted) bool { return !f.bank && f.category != adversarial && !seen(f) })
		fmt.Fprintf(out, "left out  %-10s recall@10 %.3f, MRR %.3f\n", scope, here.Recall10, here.MRR)
		n := float64(here.Questions)
		unseen.Questions += here.Questions
		unseen.Recall10 += n * here.Recall10
		unseen.MRR += n * here.MRR
	}
	if n := float64(unseen.Questions); n > 0 {
		fmt.Fprintf(out, "left out  all        recall@10 %.3f, MRR %.3f\n", unseen.Recall10/n, unseen.MRR/n)
	}
	return nil
}

func equalWeights() (w memory.Weights) {
	for i := range w {
		w[i] = 1
	}
	return w
}

// fittedOf asks every question once with all weights at 1, which tells the signals.
func fittedOf(ctx context.Context, sets []*questions) ([]*fitted, error) {
	ones := equalWeights()
	var all []*fitted
	for _, set := range sets {
		for _, one := range set.asked {
			hits, err := set.recall(ctx, one, math.MaxInt, &ones)
			if err != nil {
				return nil, err
			}
			f := &fitted{scope: one.scope, category: one.category, bank: set.kind != "locomo", signals: make([][]float32, len(ones)), factor: make([]float32, len(hits))}
			for s, name := range memory.SignalNames {
				f.signals[s] = make([]float32, len(hits))
				for i, h := range hits {
					f.signals[s][i] = float32(h.Signals[name])
					f.factor[i] += f.signals[s][i]
				}
			}
			for i, h := range hits {
				f.factor[i] = float32(h.Score) / f.factor[i]
			}
			for _, id := range one.right {
				f.right = append(f.right, slices.IndexFunc(hits, func(h memory.Hit) bool { return h.ID == id }))
			}
			all = append(all, f)
		}
	}
	return all, nil
}

func climb(all []*fitted, w memory.Weights, keep func(*fitted) bool) memory.Weights {
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
func aim(all []*fitted, w memory.Weights, keep func(*fitted) bool) float64 {
	in := func(want func(*fitted) bool) retrievalScores {
		return total(all, w, func(f *fitted) bool { return want(f) && (keep == nil || keep(f)) })
	}
	main := in(func(f *fitted) bool { return !f.bank && f.category != adversarial })
	turned := in(func(f *fitted) bool { return !f.bank && f.category == adversarial })
	bank := in(func(f *fitted) bool { return f.bank })
	return main.Recall10 + main.MRR + 0.3*main.Recall5 + 0.3*bank.Recall5 + 0.2*bank.MRR + 0.1*turned.Recall10 + 0.1*turned.MRR
}

func total(all []*fitted, w memory.Weights, keep func(*fitted) bool) (sum retrievalScores) {
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

func (f *fitted) score(scores []float32, w memory.Weights) []float32 {
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

func (f *fitted) ranks(scores []float32) []int {
	ranks := make([]int, len(f.right))
	for k, at := range f.right {
		if at < 0 {
			continue
		}
		ranks[k] = 1
		for _, x := range scores {
			if x > scores[at] {
				ranks[k]++
			}
		}
	}
	return ranks
}

func describe(all []*fitted, w memory.Weights) string {
	bank := total(all, w, func(f *fitted) bool { return f.bank })
	main := total(all, w, func(f *fitted) bool { return !f.bank && f.category != adversarial })
	return fmt.Sprintf("aim %.4f: LoCoMo recall@10 %.3f, MRR %.3f; MemoryBank recall@5 %.3f, MRR %.3f", aim(all, w, nil), main.Recall10, main.MRR, bank.Recall5, bank.MRR)
}
