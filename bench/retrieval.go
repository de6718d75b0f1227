package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"nodest/index"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
)

// RetrievalOptions name the questions of a retrieval measurement.
type RetrievalOptions struct {
	LoCoMo     string // file: one item is a turn
	MemoryBank string // file: one item is an exchange
	Lexical    bool   // without vectors
	Prompt     bool   // what a prompt gets: with the floor, variety and the budget
	JSON       bool
	Fit        bool // find weights instead, and try them with each conversation left out
	Items      int  // measure a made-up scope of so many items instead of files
}

// Retrieval asks the questions of a file of the indexes of its conversations and
// prints how many of the right items are among the first ones. It goes through the
// same analyser, index cache and memory.Recall as a chat, with the same weights.
func Retrieval(ctx context.Context, out io.Writer, o RetrievalOptions) error {
	if o.Items > 0 {
		return retrievalScale(ctx, out, o.Items, o.JSON)
	}
	var sets []*questions
	for _, file := range []struct{ kind, name string }{{"locomo", o.LoCoMo}, {"memorybank", o.MemoryBank}} {
		for name := range strings.SplitSeq(file.name, ",") {
			if name == "" {
				continue
			}
			set, err := readQuestions(file.kind, name)
			if err != nil {
				return err
			}
			sets = append(sets, set)
		}
	}
	if len(sets) == 0 {
		return errors.New("name a file of questions: --locomo FILE or --memorybank FILE")
	}
	for _, set := range sets {
		set.prompt = o.Prompt
		if err := set.build(ctx, !o.Lexical); err != nil {
			return err
		}
	}
	if o.Fit {
		return fit(ctx, out, sets)
	}
	for _, set := range sets {
		r, err := set.measure(ctx)
		if err != nil {
			return err
		}
		if err := r.print(out, o.JSON, set.kind); err != nil {
			return err
		}
	}
	return nil
}

// retrievalScores are means over questions, from 0 to 1.
type retrievalScores struct {
	Questions int     `json:"questions"`
	Recall1   float64 `json:"recall1"`
	Recall3   float64 `json:"recall3"`
	Recall5   float64 `json:"recall5"`
	Recall10  float64 `json:"recall10"`
	Recall20  float64 `json:"recall20"`
	Hit10     float64 `json:"hit10"`
	MRR       float64 `json:"mrr"`
}

type retrievalResult struct {
	retrievalScores
	P50Ms      float64                    `json:"p50Ms"`
	P95Ms      float64                    `json:"p95Ms"`
	BuildMs    float64                    `json:"buildMs"`
	ByCategory map[string]retrievalScores `json:"byCategory"`
}

// add counts one question: ranks are those of its right items, from 1; 0 = not found.
func (s *retrievalScores) add(ranks []int) {
	s.Questions++
	best, share := 0, 1/float64(len(ranks))
	for _, rank := range ranks {
		if rank == 0 {
			continue
		}
		if best == 0 || rank < best {
			best = rank
		}
		for _, k := range []struct {
			k   int
			sum *float64
		}{{1, &s.Recall1}, {3, &s.Recall3}, {5, &s.Recall5}, {10, &s.Recall10}, {20, &s.Recall20}} {
			if rank <= k.k {
				*k.sum += share
			}
		}
	}
	if best > 0 {
		s.MRR += 1 / float64(best)
		if best <= 10 {
			s.Hit10++
		}
	}
}

func (s *retrievalScores) mean() {
	n := float64(max(1, s.Questions))
	for _, sum := range []*float64{&s.Recall1, &s.Recall3, &s.Recall5, &s.Recall10, &s.Recall20, &s.Hit10, &s.MRR} {
		*sum /= n
	}
}

// adversarial questions blame the wrong speaker; they are told apart from the others.
const adversarial = "5"

func (q *questions) measure(ctx context.Context) (*retrievalResult, error) {
	r := &retrievalResult{ByCategory: map[string]retrievalScores{}, BuildMs: q.buildMs}
	var times []float64
	for _, one := range q.asked {
		start := time.Now()
		ranks, err := q.ask(ctx, one)
		if err != nil {
			return nil, err
		}
		times = append(times, float64(time.Since(start).Microseconds())/1000)
		c := r.ByCategory[one.category]
		c.add(ranks)
		r.ByCategory[one.category] = c
		if q.kind != "locomo" || one.category != adversarial {
			r.add(ranks)
		}
	}
	slices.Sort(times)
	if n := len(times); n > 0 {
		r.P50Ms, r.P95Ms = times[n/2], times[n*95/100]
	}
	r.mean()
	for name, c := range r.ByCategory {
		c.mean()
		r.ByCategory[name] = c
	}
	return r, nil
}

func (r *retrievalResult) print(out io.Writer, asJSON bool, kind string) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	fmt.Fprintf(out, "%-12s %5s %6s %6s %6s %6s %6s %6s %6s\n", kind, "n", "R@1", "R@3", "R@5", "R@10", "R@20", "hit@10", "MRR")
	row := func(name string, s retrievalScores) {
		fmt.Fprintf(out, "%-12s %5d %6.3f %6.3f %6.3f %6.3f %6.3f %6.3f %6.3f\n",
			name, s.Questions, s.Recall1, s.Recall3, s.Recall5, s.Recall10, s.Recall20, s.Hit10, s.MRR)
	}
	row("all", r.retrievalScores)
	for _, name := range slices.Sorted(maps.Keys(r.ByCategory)) {
		row("  "+name, r.ByCategory[name])
	}
	fmt.Fprintf(out, "query p50 %.2f ms, p95 %.2f ms, embedding of the question included; build %.0f ms\n", r.P50Ms, r.P95Ms, r.BuildMs)
	return nil
}

// ask returns the ranks of the right items of one question.
func (q *questions) ask(ctx context.Context, one question) ([]int, error) {
	hits, err := q.recall(ctx, one, 20, nil)
	if err != nil {
		return nil, err
	}
	ranks := make([]int, len(one.right))
	for i, id := range one.right {
		ranks[i] = slices.IndexFunc(hits, func(h memory.Hit) bool { return h.ID == id }) + 1
	}
	return ranks, nil
}

func (q *questions) recall(ctx context.Context, one question, limit int, weights *memory.Weights) (hits []memory.Hit, err error) {
	query := memory.Query{Text: one.text, Names: q.people[one.scope], Now: q.now[one.scope], Everything: !q.prompt, Limit: limit, Weights: weights}
	if q.prompt {
		query.Limit = memory.DefaultLimit
	}
	if q.vectors {
		v, err := embedTexts(ctx, llm.Query, one.text)
		if err != nil {
			return nil, err
		}
		query.Spelling = v[0]
	}
	err = q.cache.Use(ctx, one.scope, func(x *index.Index) error {
		hits, err = memory.Recall(ctx, x, query)
		return err
	})
	return hits, err
}

func embedTexts(ctx context.Context, task llm.EmbedTask, texts ...string) ([]index.Vector, error) {
	e, err := offline.Embedder{}.Embed(ctx, task, texts)
	if err != nil {
		return nil, err
	}
	vectors := make([]index.Vector, len(texts))
	for i, v := range e.Vectors {
		vectors[i] = index.Vector{Model: e.Model, Values: v}
	}
	return vectors, nil
}
