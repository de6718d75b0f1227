package search_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"nodest/knowledge/search"
)

// Evaluations move a chunk by their factor, and nothing by a digit where there are none.
func TestEvaluationsMoveChunks(t *testing.T) {
	t.Parallel()
	l := &library{}
	for i, spice := range []string{"cinnamon", "almonds", "vanilla", "honey", "ginger"} {
		l.add(t, fmt.Sprintf("%d.md", i), "A cake of plums with "+spice+" is baked for an hour in the old oven.")
	}
	lib := l.files
	ask := func(known map[int]search.Known) *search.Result {
		t.Helper()
		q := search.Query{Text: "plums with something", TopK: 3}
		if known != nil {
			q.Known = func(_ context.Context, refs []search.Ref) ([]search.Known, error) {
				all := make([]search.Known, len(refs))
				for i, r := range refs {
					if all[i] = known[r.File]; all[i].Factor == 0 {
						all[i].Factor = 1
					}
				}
				return all, nil
			}
		}
		r, err := search.Search(t.Context(), lib, q)
		if err != nil || len(r.Hits) != 3 {
			t.Fatalf("%v, %v", r, err)
		}
		return r
	}
	plain := ask(nil)
	if got := ask(map[int]search.Known{}); !reflect.DeepEqual(got, plain) {
		t.Errorf("without evaluations %v, want %v", got, plain)
	}
	second := plain.Hits[1].File
	got := ask(map[int]search.Known{second: {Factor: 1.15, Judged: true}, plain.Hits[0].File: {Factor: 0.85, Judged: true}})
	if got.Hits[0].File != second || got.Hits[0].Factor != 1.15 {
		t.Errorf("%v, before %v", got.Hits, plain.Hits)
	}
	judged := map[int]search.Known{} // all that were found are known: the last place is for another file
	for _, h := range plain.Hits {
		judged[h.File] = search.Known{Factor: 1, Judged: true}
	}
	got = ask(judged)
	if got.Hits[0] != plain.Hits[0] || got.Hits[1] != plain.Hits[1] || judged[got.Hits[2].File].Judged || len(got.Files) != 3 {
		t.Errorf("%v in %v, before %v", got.Hits, got.Files, plain.Hits)
	}
	broken := errors.New("no votes")
	_, err := search.Search(t.Context(), lib, search.Query{Text: "plums", Known: func(context.Context, []search.Ref) ([]search.Known, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
