package loretool

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodest/card"
	"nodest/internal/fault"
)

func ask(texts ...string) *question { return &question{texts: texts, names: people, now: time.Now()} }

// Two users with the same book have an index and calls of their own.
func TestUsersShareNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ann, bob := &meaning{t: t, model: "fake:m"}, &meaning{t: t, model: "fake:m", err: fault.New(fault.UpstreamAuth, "a wrong key")}
		s := New(Options{Embedder: only(map[string]*meaning{"ann": ann, "bob": bob})})
		defer s.Close()
		list := lines(english)
		find := func(user string) (ids []string, err error) {
			_, _ = s.search(t.Context(), user, list, ask("Hello"))
			synctest.Wait()
			return s.search(t.Context(), user, list, ask("A wyrm!"))
		}
		if ids, err := find("ann"); err != nil || !slices.Equal(ids, []string{"lore.dragon"}) {
			t.Errorf("Ann finds %v: %v", ids, err)
		}
		if ids, err := find("bob"); !fault.Is(err, fault.UpstreamAuth) || len(ids) > 0 {
			t.Errorf("Bob finds %v with the vectors of Ann: %v", ids, err)
		}
		if ids, err := find("eve"); err != nil || len(ids) > 0 {
			t.Errorf("without a provider Eve finds %v: %v", ids, err)
		}
		for _, m := range []*meaning{ann, bob} {
			if passages, _ := m.seen(); passages != len(list.Entries) {
				t.Errorf("a provider got %d passages", passages)
			}
		}
		if n, _ := s.books.Size(); n != 3 {
			t.Errorf("%d indexes", n)
		}
	})
}

// However many turns ask, the vectors of a book are made once, a batch at a time; entries beyond the bound are found by
// words.
func TestVectorsAreMadeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meaning{t: t, model: "fake:m", gate: make(chan struct{})}
		s := New(Options{Embedder: only(map[string]*meaning{"ann": m})})
		defer s.Close()
		entries := make([]card.Entry, mostEmbedded+100)
		for i := range entries {
			entries[i] = card.Entry{ID: fmt.Sprint(i), Content: fmt.Sprintf("Number %d of the kestrels", i)}
		}
		entries[7].Content, entries[mostEmbedded+1].Content = "The dragon", "The observatory of Brindlemark"
		list := listOf(entries...)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { _, _ = s.search(t.Context(), "ann", list, ask("Hello")) })
		}
		all.Wait()
		close(m.gate)
		synctest.Wait()
		if passages, _ := m.seen(); passages != mostEmbedded || m.most != 1 || len(m.calls) != (mostEmbedded+embedBatch-1)/embedBatch {
			t.Errorf("%d passages in %d calls, %d at once", passages, len(m.calls), m.most)
		}
		for question, want := range map[string]string{"A wyrm!": "lore.7", "Where is the observatory of Brindlemark?": fmt.Sprint("lore.", mostEmbedded+1)} {
			if ids, err := s.search(t.Context(), "ann", list, ask(question)); err != nil || !slices.Contains(ids, want) {
				t.Errorf("%q finds %v: %v", question, ids, err)
			}
		}
		if passages, _ := m.seen(); passages != mostEmbedded {
			t.Errorf("%d passages", passages)
		}
	})
}

// An entry that the provider refuses is found by its words; the others have vectors.
func TestARefusedEntryIsFoundByWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meaning{t: t, model: "fake:m", refuses: "Thieves"}
		s := New(Options{Embedder: only(map[string]*meaning{"ann": m})})
		defer s.Close()
		list := lines(english)
		_, _ = s.search(t.Context(), "ann", list, ask("Hello"))
		synctest.Wait()
		before, _ := m.seen()
		for question, want := range map[string]string{"A wyrm!": "lore.dragon", "Who leads the thieves' guild?": "lore.guild"} {
			if ids, err := s.search(t.Context(), "ann", list, ask(question)); err != nil || !slices.Equal(ids, []string{want}) {
				t.Errorf("%q finds %v: %v", question, ids, err)
			}
		}
		synctest.Wait()
		if after, _ := m.seen(); after != before {
			t.Errorf("what was refused is asked for again")
		}
	})
}

// A failed book is tried again after a while, with what it lacks.
func TestAFailureIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meaning{t: t, model: "fake:m", err: fault.New(fault.UpstreamDown, "down")}
		s := New(Options{Embedder: only(map[string]*meaning{"ann": m})})
		defer s.Close()
		list := lines(english)
		for range 3 {
			_, _ = s.search(t.Context(), "ann", list, ask("Hello"))
			synctest.Wait()
		}
		if len(m.calls) != 1 {
			t.Errorf("%d calls", len(m.calls))
		}
		m.set(func() { m.err = nil })
		<-time.After(retryAfter)
		_, _ = s.search(t.Context(), "ann", list, ask("Hello"))
		synctest.Wait()
		if ids, err := s.search(t.Context(), "ann", list, ask("A wyrm!")); err != nil || !slices.Equal(ids, []string{"lore.dragon"}) || len(m.calls) != 2 {
			t.Errorf("found %v in %d calls: %v", ids, len(m.calls), err)
		}
	})
}

// Closing the service stops a running call, and nothing begins after it.
func TestTheServiceEndsItsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meaning{t: t, model: "fake:m", gate: make(chan struct{})}
		s := New(Options{Embedder: only(map[string]*meaning{"ann": m})})
		list := lines(english)
		_, _ = s.search(t.Context(), "ann", list, ask("Hello"))
		synctest.Wait()
		s.Close()
		s.Close()
		if ids, err := s.search(t.Context(), "ann", list, ask("Why is the lighthouse dark?")); err != nil || !slices.Equal(ids, []string{"lore.lighthouse"}) {
			t.Errorf("found %v: %v", ids, err)
		}
		if _, err := s.search(t.Context(), "ann", lines(chinese), ask("Hello")); err == nil {
			t.Error("a book was indexed")
		}
		if passages, _ := m.seen(); passages != len(list.Entries) {
			t.Errorf("%d passages", passages)
		}
	})
}

// The memory of all books is bounded; a book alone is kept, however large.
func TestIndexesAreBounded(t *testing.T) {
	t.Parallel()
	s := New(Options{CacheBytes: 64 << 10})
	defer s.Close()
	for i := range 10 {
		list := lines(strings.ReplaceAll(english, "Velmar", fmt.Sprint("Velmar", i)))
		if _, err := s.search(t.Context(), "ann", list, ask("Hello")); err != nil {
			t.Fatal(err)
		}
	}
	if n, bytes := s.books.Size(); n < 1 || n == 10 || bytes > 64<<10 {
		t.Errorf("%d indexes of %d bytes", n, bytes)
	}
}

// BenchmarkSearch measures the search of one turn in 1,000 entries: 768 numbers per vector, without the call of the
// provider.
func BenchmarkSearch(b *testing.B) {
	entries := make([]card.Entry, 1000)
	for i := range entries {
		entries[i] = card.Entry{ID: fmt.Sprint(i), Content: fmt.Sprintf("The keep of Castle %d stands above the river; its lord %c%d trades wool and salt with the harbour. ", i, 'A'+i%26, i) + strings.Repeat("Old songs tell of its walls. 城堡里住着一位老国王。", 4)}
	}
	list := listOf(entries...)
	q := ask("Who is the lord of Castle 77, and does he still trade salt?", strings.Repeat("Alice looks over the river. The harbour is quiet, and the keep stands dark. ", 6))
	for _, vectors := range []bool{false, true} {
		b.Run(fmt.Sprintf("vectors=%v", vectors), func(b *testing.B) {
			var known []vector
			if vectors {
				known = made(len(entries), 768)
				q.near.Model, q.near.Values = "m", known[5].packed.Unit()
			}
			book, err := newBook(b.Context(), list.Entries, known)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := book.search(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(book.bytes())/1e6, "MB")
		})
	}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			if _, err := newBook(b.Context(), list.Entries, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
