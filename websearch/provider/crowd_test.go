package provider

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
)

// slow answers after a second and counts whose searches run at the same time.
type slow struct {
	mu          sync.Mutex
	running     map[string]int
	most, total map[string]int
}

func (*slow) Name() string { return SearXNG }

func (s *slow) Search(_ context.Context, q Query) (Results, error) {
	s.count(q.For, 1)
	time.Sleep(time.Second) // virtual
	s.count(q.For, -1)
	return Results{Results: []Result{{Title: q.Text, URL: "https://a.test/"}}}, nil
}

func (s *slow) count(user string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range []string{user, "all"} {
		s.running[of] += by
		s.most[of] = max(s.most[of], s.running[of])
	}
	s.total[user] += max(by, 0)
}

func newSlow() *slow {
	return &slow{running: map[string]int{}, most: map[string]int{}, total: map[string]int{}}
}

// Searches of all users together are bounded, and so are those of one; who searches nothing else does
// not wait for the others.
func TestSearchesAtOnceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newSlow()
		c := newChain(time.Now, engine)
		var all sync.WaitGroup
		search := func(user string, i int) (time.Duration, error) {
			begun := time.Now()
			_, err := c.Search(t.Context(), Query{Text: strconv.Itoa(i), For: user})
			return time.Since(begun), err
		}
		for _, user := range []string{"ann", "bo"} {
			for i := range 20 {
				all.Go(func() {
					if _, err := search(user, i); err != nil {
						t.Error(user, err)
					}
				})
			}
		}
		synctest.Wait()
		if took, err := search("dee", 0); err != nil || took != time.Second {
			t.Errorf("the only search of a user took %s: %v", took, err)
		}
		if took, err := search("dee", 0); err != nil || took != 0 {
			t.Errorf("the same search took %s: %v", took, err) // it is kept, and takes no place
		}
		all.Wait()
		if engine.most["ann"] > userAsked || engine.most["all"] != maxAsked+1 || engine.total["ann"] != 20 {
			t.Errorf("at the same time ran %v", engine.most)
		}
	})
}

// A search that waits too long is refused with a code that says when to try again; it is no failure of
// the provider.
func TestASearchThatWaitsTooLongIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(time.Now, newSlow())
		var all sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for i := range 20 * userAsked {
			all.Go(func() {
				_, err := c.Search(t.Context(), Query{Text: strconv.Itoa(i), For: "ann"})
				if err == nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				refused++
				if e := fault.Public(err); e.Code != fault.RateLimited || e.RetryAfter != time.Second {
					t.Errorf("%+v", e)
				}
			})
		}
		all.Wait()
		if refused == 0 || refused > 11*userAsked {
			t.Errorf("%d searches were refused", refused)
		}
		if err := c.links[0].paused(time.Now()); err != nil {
			t.Error(err)
		}
	})
}
