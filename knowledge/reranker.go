package knowledge

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge/rerank"
	"nodest/knowledge/search"
)

// Reranker orders the best passages of a search. It returns indexes of texts, best first; those
// that it leaves out follow in the order that they had.
type Reranker func(ctx context.Context, userID, query string, texts []string) (order []int, err error)

// Limits of what a Reranker sees.
const (
	mostReranked    = 30   // passages
	longestReranked = 2000 // code points of each
)

// reorder lets the reranker order the best chunks of a result, and keeps as many as were asked
// for; the files follow the order of their best chunks. If the reranker fails or is too slow,
// everything stays in the order that it had.
func (f *finder) reorder(ctx context.Context, found *search.Result) error {
	if f.s.opts.Rerank == nil || len(found.Hits) == 0 {
		return nil
	}
	n := min(mostReranked, len(found.Hits))
	order, err := f.askReranker(ctx, found.Hits[:n])
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		f.s.opts.Log.WarnContext(ctx, "a search was not reranked", "code", fault.Public(err).Code, "err", err)
		f.out.Degraded = append(f.out.Degraded, "rerank")
	default:
		head := slices.Clone(found.Hits[:n])
		for i, from := range order {
			found.Hits[i] = head[from]
		}
		weigh(found.Hits[:n])
	}
	found.Hits = found.Hits[:min(len(found.Hits), f.topK())]
	best := map[int]int{} // place of a file's best chunk, from 1
	for i, h := range found.Hits {
		if best[h.File] == 0 {
			best[h.File] = i + 1
		}
	}
	found.Files = slices.DeleteFunc(found.Files, func(file search.FileHit) bool { return best[file.File] == 0 })
	if err == nil {
		slices.SortStableFunc(found.Files, func(a, b search.FileHit) int { return cmp.Compare(best[a.File], best[b.File]) })
	}
	return nil
}

// weigh lets evaluations move hits in the order of a reranker, whose scores are unknown.
func weigh(hits []search.Hit) {
	worth := make(map[search.Ref]float64, len(hits))
	for i, h := range hits {
		worth[h.Ref] = h.Factor / float64(60+i)
	}
	slices.SortStableFunc(hits, func(a, b search.Hit) int { return cmp.Compare(worth[b.Ref], worth[a.Ref]) })
}

// topK is how many chunks the search gives.
func (f *finder) topK() int {
	return min(max(cmp.Or(f.in.TopK, search.DefaultTopK), 1), search.MostTopK)
}

// askReranker returns an order of all hits.
func (f *finder) askReranker(ctx context.Context, hits []search.Hit) ([]int, error) {
	refs := make([]search.Ref, len(hits))
	for i, h := range hits {
		refs[i] = h.Ref
	}
	passages, err := f.passages(ctx, refs)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(passages))
	for i, p := range passages {
		texts[i] = op.Truncate(embedded(p.Name, p.Heading, p.Context, p.Text), longestReranked)
	}
	ctx, cancel := context.WithTimeout(ctx, f.s.opts.RerankTime)
	defer cancel()
	order, err := f.s.opts.Rerank(ctx, f.userID, f.text(), texts)
	if err != nil {
		return nil, err
	}
	return wholeOrder(order, len(texts))
}

// wholeOrder adds to an order what it leaves out.
func wholeOrder(order []int, n int) ([]int, error) {
	known := make([]bool, n)
	whole := make([]int, 0, n)
	for _, i := range order {
		if i < 0 || i >= n || known[i] {
			return nil, errors.New("the reranker names a passage that was not sent, or one twice")
		}
		known[i] = true
		whole = append(whole, i)
	}
	for i, is := range known {
		if !is {
			whole = append(whole, i)
		}
	}
	return whole, nil
}

// ModelReranker is a Reranker that asks a user's model.
func ModelReranker(model func(ctx context.Context, userID string) (*Model, error)) Reranker {
	return func(ctx context.Context, userID, query string, texts []string) ([]int, error) {
		m, err := model(ctx, userID)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return nil, fault.New(fault.NotConfigured, "no model provider is set up")
		}
		return rerank.ByModel(ctx, m, m.Provider, query, texts)
	}
}
