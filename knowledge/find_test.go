package knowledge_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/knowledge"
	"nodest/knowledge/search"
)

func TestASearchFindsTheSameWithLittleMemory(t *testing.T) {
	t.Parallel()
	var pipeline knowledge.Pipeline
	onPipes(t, func(o *knowledge.Options) { pipeline = o.Pipeline }, func(p *pipe) {
		base := p.Base("harbour").ID
		for i, place := range places {
			p.UploadTo(base, place+".md", harbour(append(slices.Clone(places[i:]), "crane")...))
		}
		p.drain()
		for _, bytes := range []int{1, 5_000, 20_000} { // a file at a time, some, and all words but not all vectors
			pipeline.CacheBytes = bytes
			little := knowledge.New(p.DB.Knowledge(), knowledge.Options{Pipeline: pipeline})
			for _, mode := range []string{search.Hybrid, search.Lexical, search.Vector} {
				for _, question := range []string{"Where does the chapel stand?", "ships at the archive and the brewery", "crane"} {
					in := knowledge.SearchRequest{Query: question, Mode: mode, BaseIDs: []string{base}}
					want := p.search(in)
					if len(want.Chunks) == 0 {
						t.Fatalf("want.Chunks is %+v, want more", want.Chunks)
					}
					for range 2 { // without and with what is in the cache
						got, err := little.Search(context.Background(), p.User, in)
						if err != nil {
							t.Fatal(err)
						}
						if !reflect.DeepEqual(got, want) {
							t.Fatalf("%d bytes: %s %s: got is %+v, want %+v", bytes, mode, question, got, want)
						}
					}
				}
			}
		}
	})
}

func TestASearchWaitsForMemoryUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		p.Upload("places.md", harbour(places...))
		p.drain()
		release := knowledge.HoldMemory(p.Svc)
		late := errors.New("nobody waits for it any more")
		ctx, cancel := context.WithTimeoutCause(context.Background(), 500*time.Millisecond, late)
		defer cancel()
		_, err := p.Svc.Search(ctx, p.User, knowledge.SearchRequest{Query: "chapel", FileOnly: true})
		if !errors.Is(err, late) {
			t.Fatalf("got error %v, want %v", err, late)
		}
		release()
		if got := p.search(knowledge.SearchRequest{Query: "chapel"}).Chunks; len(got) == 0 {
			t.Fatalf("got %+v, want more", got)
		}
	})
}

// A search by vectors alone reads segments last: those of the edition whose vectors it has.
func TestASearchStaysWithTheEditionThatItHasBegunWith(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		f, err := p.Svc.File(context.Background(), p.User, f.ID)
		p.Must(err)
		lib := knowledge.LibraryOf(p.Svc, p.User, []knowledge.FileRef{{OwnerID: p.User, ID: f.ID, Edition: f.Edition}}, p.embeds.ModelID(), 4)
		p.Must(lib.Vectors(context.Background(), []int{0}, func(_ []int, vectors []*search.Vectors) error {
			if vectors[0] == nil {
				t.Fatal("vectors[0] is nil, want a value")
			}
			return nil
		}))
		text := harbour("tannery")
		_, err = p.Svc.Replace(context.Background(), p.Call(), f.ID, 0, knowledge.NewFile{Name: "places.md", Body: strings.NewReader(text), Size: int64(len(text))})
		p.Must(err)
		p.drain()
		p.Must(lib.Segments(context.Background(), []int{0}, func(_ []int, segments []*search.Segment) error {
			if segments[0] != nil {
				t.Fatalf("the segment of a later edition: segments[0] is %+v, want nil", segments[0])
			}
			return nil
		}))
	})
}
