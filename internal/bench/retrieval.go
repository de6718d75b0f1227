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

	"nodest/internal/bench/figure"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/recall"
)

// RetrievalOptions name the questions of a retrieval measurement.
type RetrievalOptions struct {
	LoCoMo     string // file: one item is a turn
	MemoryBank string // file: one item is an exchange
	Probes     string // file of what was said and what is asked about it
	Noise      string // with Probes: file whose first turns are said in between; "" = one beside the probes
	Lexical    bool   // without vectors
	Prompt     bool   // hits as a prompt gets them: with the floor, variety and the budget
	JSON       bool
	Chat       bool // measure the turns of a chat instead of files
	Misses     bool // with Chat and Probes: print the turns that went wrong
	Random     bool // with an embedding model whose vectors mean nothing
	Items      int  // instead of files: measure this number of generated items
}

// Retrieval imports the conversations of a file into a database of the product, lets
// its job embed them, asks the memory service of a chat the questions, with its default
// weights, and prints how many of the right items are among the first ones.
func Retrieval(ctx context.Context, out io.Writer, o RetrievalOptions) error {
	if o.Items > 0 {
		return retrievalScale(ctx, out, o.Items, o.JSON)
	}
	if o.Chat {
		return retrievalChat(ctx, out, o)
	}
	if o.Probes != "" {
		return retrievalProbes(ctx, out, o)
	}
	sets, err := o.read()
	if err != nil {
		return err
	}
	for _, set := range sets {
		r, err := set.measure(ctx, o)
		if err != nil {
			return err
		}
		if err := r.print(out, o.JSON, set.kind); err != nil {
			return err
		}
	}
	return nil
}

// embedder is the embedding model of a measurement; nil = none is configured.
func (o RetrievalOptions) embedder() llm.Embedder {
	if o.Random {
		return randomVectors(randomDim)
	}
	return nil
}

// read reads the files.
func (o RetrievalOptions) read() (sets []*questions, err error) {
	for _, file := range []struct{ kind, name string }{{"locomo", o.LoCoMo}, {"memorybank", o.MemoryBank}} {
		for name := range strings.SplitSeq(file.name, ",") {
			if name == "" {
				continue
			}
			set, err := readQuestions(file.kind, name)
			if err != nil {
				return nil, err
			}
			sets = append(sets, set)
		}
	}
	if len(sets) == 0 {
		return nil, errors.New("required: --locomo FILE, --memorybank FILE, --probes FILE or --chat")
	}
	return sets, nil
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
	Unasked    int                        `json:"unasked"`   // questions whose items the file does not have
	Lines      float64                    `json:"lines"`     // mean number of results
	Precision  float64                    `json:"precision"` // share of the results that are right
	P50Ms      float64                    `json:"p50Ms"`
	P95Ms      float64                    `json:"p95Ms"`
	BuildMs    float64                    `json:"buildMs"`
	ByCategory map[string]retrievalScores `json:"byCategory"`
}

// add counts one question: ranks are those of its right items, at least one, from 1;
// 0 = not found.
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

// adversarial is the category of questions that name the wrong speaker; they are not
// counted with the others.
const adversarial = "5"

// measure asks all questions of a file.
func (q *questions) measure(ctx context.Context, o RetrievalOptions) (r *retrievalResult, err error) {
	l, err := openLibrary(ctx, libraryOptions{embedder: o.embedder()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	r = &retrievalResult{ByCategory: map[string]retrievalScores{}}
	if r.BuildMs, err = q.build(ctx, l, o); err != nil {
		return nil, err
	}
	var times []time.Duration
	lines, right := 0, 0
	for i := range q.asked {
		one := &q.asked[i]
		if len(one.right) == 0 {
			r.Unasked++
			continue
		}
		start := time.Now()
		hits, err := one.recall(ctx, l, o)
		if err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
		c, ranks := r.ByCategory[one.category], one.ranks(hits)
		c.add(ranks)
		r.ByCategory[one.category] = c
		if q.kind != "locomo" || one.category != adversarial {
			r.add(ranks)
			lines += len(hits)
			right += len(hits) - len(slices.DeleteFunc(hits, func(h recall.Hit) bool { return slices.Contains(one.right, one.item(h.ID)) }))
		}
	}
	r.Lines, r.Precision = float64(lines)/float64(max(1, r.Questions)), share(right, lines)
	r.P50Ms, r.P95Ms = figure.Millis(figure.At(times, 0.5)), figure.Millis(figure.At(times, 0.95))
	r.mean()
	for name, c := range r.ByCategory {
		c.mean()
		r.ByCategory[name] = c
	}
	return r, nil
}

// build imports, embeds and loads everything, and returns how many milliseconds that
// takes.
func (q *questions) build(ctx context.Context, l *library, o RetrievalOptions) (ms float64, err error) {
	start := time.Now()
	for _, t := range q.talks {
		if err := l.take(ctx, t); err != nil {
			return 0, err
		}
	}
	if !o.Lexical {
		if err := l.embed(ctx); err != nil {
			return 0, err
		}
	}
	for _, t := range q.talks {
		first := question{talk: t, text: t.people.Character}
		if _, err := first.recall(ctx, l, o); err != nil {
			return 0, err
		}
	}
	return figure.Millis(time.Since(start)), nil
}

// mostItems is how many items a question is answered with.
const mostItems = 20

// recall asks the question as a chat would ask it after the last item. An item may be
// found by either of its two messages.
func (one *question) recall(ctx context.Context, l *library, o RetrievalOptions) ([]recall.Hit, error) {
	q := recall.Query{Text: one.text, Names: one.talk.people, Now: one.talk.now, Mode: recall.Ranked, Limit: 2 * mostItems}
	if o.Prompt {
		q.Mode, q.Limit = recall.Prompt, recall.DefaultLimit
	}
	return l.memory.Recall(ctx, l.user, memory.Ask{CharacterID: one.talk.character, Lexical: o.Lexical}, q)
}

// item returns the item of a text; -1 = none.
func (one *question) item(text string) int {
	if at, ok := one.talk.itemOf[text]; ok {
		return at
	}
	return -1
}

// ranks are those of the right items among the items that were found, each counted
// where it stands first.
func (one *question) ranks(hits []recall.Hit) []int {
	ranks, seen := make([]int, len(one.right)), map[int]bool{}
	for i := range hits {
		at := one.item(hits[i].ID)
		if at < 0 || seen[at] {
			continue
		}
		seen[at] = true
		if k := slices.Index(one.right, at); k >= 0 && len(seen) <= mostItems {
			ranks[k] = len(seen)
		}
	}
	return ranks
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
	fmt.Fprintf(out, "%.1f results to a question, %.1f %% of them right\n", r.Lines, 100*r.Precision)
	fmt.Fprintf(out, "query p50 %.2f ms, p95 %.2f ms, embedding of the question included; build %.0f ms\n", r.P50Ms, r.P95Ms, r.BuildMs)
	return nil
}
