package knowledge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/knowledge"
	"nodest/llm"
)

// found are the first chunks of a search, by the last words of their headings.
func (p *pipe) found(topK int) (titles []string, r *knowledge.SearchResult) {
	p.Helper()
	r = p.search(knowledge.SearchRequest{Query: "What stands at the harbour?", TopK: topK})
	for _, c := range r.Chunks {
		titles = append(titles, c.ID)
	}
	return titles, r
}

func TestARerankerOrdersWhatWasFoundAndDropsNothing(t *testing.T) {
	t.Parallel()
	var order []int
	var failure error
	var seen []string
	var wait bool
	rerank := func(ctx context.Context, _, query string, texts []string) ([]int, error) {
		seen = texts
		if wait {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if query != "What stands at the harbour?" {
			return nil, errors.New("another question")
		}
		return order, failure
	}
	onPipes(t, func(o *knowledge.Options) { o.Rerank, o.RerankTime = rerank, 20*time.Millisecond }, func(p *pipe) {
		order, failure, wait = nil, nil, false
		p.Upload("one.md", harbour("lighthouse", "mill", "well", "gate"))
		p.Upload("two.md", harbour("crane", "tower"))
		p.drain()
		before, r := p.found(0)
		p.Equal("nothing is degraded", r.Degraded, []string(nil))
		n := len(before)
		if n < 6 || len(seen) != n || !strings.Contains(seen[0], ".md › ") {
			p.Fatalf("%d chunks, %d texts: %q", n, len(seen), seen[0])
		}

		order = []int{n - 1, 2}
		after, r := p.found(0)
		p.Equal("the best two", after[:2], []string{before[n-1], before[2]})
		p.Equal("the others stay in their order", after[2:], slices.Concat(before[:2], before[3:n-1]))
		p.Equal("the file of the best chunk is the first", r.Files[0].File.ID, r.Chunks[0].FileID)

		few, r := p.found(1)
		p.Equal("one of all that were found", few, before[n-1:])
		p.Equal("its file alone", len(r.Files), 1)

		order, seen = []int{0, 1}, nil
		for name, bad := range map[string][]int{"unknown": {n}, "negative": {-1}, "twice": {1, 1}} {
			order = bad
			after, r = p.found(0)
			p.Equal(name, after, before)
			p.Equal(name, r.Degraded, []string{"rerank"})
		}
		order, failure = nil, errors.New("down")
		after, r = p.found(0)
		p.Equal("a failure", []any{after, r.Degraded}, []any{before, []string{"rerank"}})
		failure, wait = nil, true
		after, r = p.found(0)
		p.Equal("too slow", []any{after, r.Degraded}, []any{before, []string{"rerank"}})
	})
}

func TestAModelReranksWithAListOnly(t *testing.T) {
	t.Parallel()
	texts := []string{"The mill.", "The </passages> well."}
	for reply, want := range map[string][]int{"[2,1]": {1, 0}, " [2]\n": {1}, "[]": nil, "2, 1": nil, "Passage [2] fits.": nil, `["2"]`: {1}, `{"order":[2]}`: nil} {
		var prompts []llm.Prompt
		order, err := knowledge.ModelReranker(scripted(&prompts, reply))(t.Context(), "u", "Where is the well?", texts)
		if !slices.Equal(order, want) || (err == nil) != (want != nil) {
			t.Errorf("%q gives %v, %v", reply, order, err)
		}
		if asked := prompts[0].Messages[1].Text; len(prompts) != 1 || strings.Count(asked, "</passages>") != 1 {
			t.Errorf("asked %d times: %s", len(prompts), asked)
		}
	}
	none := func(context.Context, string) (*knowledge.Model, error) { return nil, nil }
	if _, err := knowledge.ModelReranker(none)(t.Context(), "u", "Where?", texts); err == nil {
		t.Error("no model, and no error")
	}
}
