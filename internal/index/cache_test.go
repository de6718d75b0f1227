package index_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/index"
)

// unsegmented is the part of a database that has no segments.
type unsegmented struct{ index.Source }

// table is a database of rows by owner.
type table struct {
	unsegmented
	mu      sync.Mutex
	owners  map[string]*owner
	loads   atomic.Int64
	loading atomic.Int64 // loads of the key "busy" that run at once
	most    atomic.Int64
	gate    chan struct{} // when set, loading waits for it
	err     error
}

type owner struct {
	version int64
	log     []change
}

type change struct {
	version int64
	row     index.Row
	removed string
}

func (t *table) put(key string, rows ...index.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[key]
	if o == nil {
		o = &owner{}
		if t.owners == nil {
			t.owners = map[string]*owner{}
		}
		t.owners[key] = o
	}
	o.version++
	for _, r := range rows {
		r.Version = o.version
		o.log = append(o.log, change{version: o.version, row: r})
	}
}

func (t *table) remove(key, id string) {
	t.put(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[key]
	o.log = append(o.log, change{version: o.version, removed: id})
}

// version returns an owner's version without loading anything.
func (t *table) version(key string) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owners[key]; o != nil {
		return o.version, t.err
	}
	return 0, t.err
}

func (t *table) Load(ctx context.Context, key string, since, _ int64) (index.Delta, error) {
	if version, err := t.version(key); err != nil || version == since {
		return index.Delta{Version: version}, err
	}
	t.loads.Add(1)
	if n := t.loading.Add(1); n > t.most.Load() {
		t.most.Store(n)
	}
	defer t.loading.Add(-1)
	if t.gate != nil {
		select {
		case <-t.gate:
		case <-ctx.Done():
			return index.Delta{}, context.Cause(ctx)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[key]
	if o == nil {
		return index.Delta{}, t.err
	}
	d := index.Delta{Version: o.version}
	for _, c := range o.log {
		if c.version <= since {
			continue
		}
		if c.removed != "" {
			d.Removed = append(d.Removed, c.removed)
			d.Rows = slices.DeleteFunc(d.Rows, func(r index.Row) bool { return r.ID == c.removed })
		} else {
			d.Rows = append(d.Rows, c.row)
		}
	}
	return d, t.err
}

func search(t *testing.T, c *index.Cache, key, query string) (ids []string) {
	t.Helper()
	err := c.Use(t.Context(), key, func(x *index.Index, _ bool) error {
		ids = ranked(x, query, own)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestACacheFollowsTheRows(t *testing.T) {
	db := &table{}
	c := index.NewCache(db, 0)
	if got := search(t, c, "ann", "tea"); len(got) != 0 {
		t.Errorf("an owner without rows has %v", got)
	}
	db.put("ann", row("1", "s", 1, "tea"), row("2", "s", 2, "bread"))
	if got := search(t, c, "ann", "tea bread"); len(got) != 2 {
		t.Errorf("after the first rows: %v", got)
	}
	loads := db.loads.Load()
	search(t, c, "ann", "tea")
	if db.loads.Load() != loads {
		t.Error("loaded again though nothing changed")
	}
	db.put("ann", row("2", "s", 2, "more tea"), row("3", "s", 3, "cake"))
	db.remove("ann", "1")
	if got := search(t, c, "ann", "tea bread cake"); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"2", "3"}) {
		t.Errorf("after changes: %v", got)
	}
}

func TestAnotherOwnersRowsAreNotReturned(t *testing.T) {
	db := &table{}
	c := index.NewCache(db, 20_000) // some go and come again
	for i := range 60 {
		key := fmt.Sprint("owner", i)
		r := row(key+"/a", "s", 1, "the same words for all")
		r.Vectors = []index.Kept{{"m", index.Pack([]float32{1, float32(i), 0})}}
		db.put(key, r)
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 120 {
				key := fmt.Sprint("owner", (i*7+worker*13)%60)
				if i%10 == 0 {
					db.put(key, row(key+"/"+fmt.Sprint(i), "s", i, "more words for all"))
				}
				err := c.Use(context.Background(), key, func(x *index.Index, _ bool) error {
					ids := append(ranked(x, "words", own), nearest(t, x)...)
					if len(ids) < 2 {
						return fmt.Errorf("%s finds %v", key, ids)
					}
					for _, id := range ids {
						if !strings.HasPrefix(id, key+"/") {
							return fmt.Errorf("%s finds %s", key, id)
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestMemoryIsBounded(t *testing.T) {
	db := &table{}
	const budget = 200_000
	c := index.NewCache(db, budget)
	for i := range 1000 {
		key := fmt.Sprint("owner", i)
		for j := range 10 {
			r := row(fmt.Sprint(key, "/", j), "s", j, "some words about tea and bread")
			v := make([]float32, 64)
			v[j] = 1
			r.Vectors = []index.Kept{{"m", index.Pack(v)}}
			db.put(key, r)
		}
		search(t, c, key, "tea")
		if n, bytes := c.Stats(); bytes > budget || n == 0 {
			t.Fatalf("after %d owners: %d indexes of %d bytes", i+1, n, bytes)
		}
	}
	loads := db.loads.Load()
	search(t, c, "owner999", "tea")
	if db.loads.Load() != loads {
		t.Error("the index that was used last is gone")
	}
	search(t, c, "owner0", "tea")
	if db.loads.Load() == loads {
		t.Error("the index that was used longest ago is still there")
	}
}

func TestAnIndexInUseIsNotEvicted(t *testing.T) {
	db := &table{}
	db.put("a", row("1", "s", 1, "tea"))
	db.put("b", row("2", "s", 1, "tea"))
	c := index.NewCache(db, 1)
	err := c.Use(t.Context(), "a", func(x *index.Index, _ bool) error {
		search(t, c, "b", "tea")
		before := db.loads.Load()
		search(t, c, "a", "tea")
		if db.loads.Load() != before {
			t.Error("loaded beside itself")
		}
		return nil
	})
	if n, bytes := c.Stats(); err != nil || n != 1 || bytes > 1 {
		t.Errorf("%v, %d indexes of %d bytes left over a budget of 1", err, n, bytes)
	}
}

// parts is a database that gives its rows in parts.
type parts struct {
	unsegmented
	rows   []index.Row
	size   int
	loaded int         // rows, in all
	after  func(n int) // called when so many rows have been loaded
}

func (p *parts) Load(ctx context.Context, _ string, since, _ int64) (index.Delta, error) {
	if ctx.Err() != nil {
		return index.Delta{}, context.Cause(ctx)
	}
	upTo := min(int(since)+p.size, len(p.rows))
	p.loaded += upTo - int(since)
	p.after(p.loaded)
	return index.Delta{Version: int64(upTo), Whole: since == 0, More: upTo < len(p.rows), Rows: p.rows[since:upTo]}, nil
}

// An index that takes longer than a turn has is searched as far as it is there. What was
// loaded is not loaded again, also when the index is larger than the cache.
func TestALoadGoesOnWhereTheTimeWasOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &parts{size: 10, after: func(int) { <-time.After(100 * time.Millisecond) }}
		for i := range 200 {
			db.rows = append(db.rows, row(fmt.Sprint(i), "s", i, "tea"))
		}
		c := index.NewCache(db, 1)
		turn := func() (found int, whole bool) {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			err := c.Use(ctx, "ann", func(x *index.Index, all bool) error {
				found, whole = len(ranked(x, "tea", own)), all
				return ctx.Err()
			})
			if err != nil {
				t.Fatal(err)
			}
			return found, whole
		}
		for _, want := range []int{80, 160, 200, 200} {
			found, whole := turn()
			if found != want || whole != (want == 200) {
				t.Errorf("%d rows found, whole: %v; want %d", found, whole, want)
			}
		}
		if db.loaded != 200 {
			t.Errorf("%d rows were loaded for an index of 200", db.loaded)
		}
	})
}

// After one turn that ran out of time, an index is complete without another turn. Loading it
// takes a third of the time at most, and its parts are loaded once.
func TestRunLoadsTheRestOfAnIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &parts{size: 10, after: func(int) { <-time.After(100 * time.Millisecond) }}
		for i := range 200 {
			db.rows = append(db.rows, row(fmt.Sprint(i), "s", i, "tea"))
		}
		c := index.NewCache(db, 1)
		running, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { c.Run(running); close(ended) }()
		use := func(want int) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			err := c.Use(ctx, "ann", func(x *index.Index, whole bool) error {
				if found := len(ranked(x, "tea", own)); found != want || whole != (want == 200) {
					t.Errorf("%d rows found, whole: %v; want %d", found, whole, want)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		use(80)
		time.Sleep(3500 * time.Millisecond) // virtual: 12 parts of 0.1 s, 11 pauses of 0.2 s, and a little
		synctest.Wait()
		if db.loaded != 200 {
			t.Errorf("%d of 200 rows were loaded", db.loaded)
		}
		use(200)
		if db.loaded != 200 {
			t.Errorf("%d rows were loaded for an index of 200", db.loaded)
		}
		stop()
		<-ended
	})
}

// busyOnce is a database that fails once, when so many rows have been loaded.
type busyOnce struct {
	*parts
	at int
}

func (b *busyOnce) Load(ctx context.Context, key string, since, base int64) (index.Delta, error) {
	if b.loaded == b.at {
		b.at = -1
		return index.Delta{}, context.DeadlineExceeded
	}
	return b.parts.Load(ctx, key, since, base)
}

// A load is continued also if its turn failed in the middle of it.
func TestRunContinuesAfterATurnThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &parts{size: 10, after: func(int) {}}
		for i := range 50 {
			db.rows = append(db.rows, row(fmt.Sprint(i), "s", i, "tea"))
		}
		c := index.NewCache(&busyOnce{db, 20}, 1)
		running, stop := context.WithCancel(t.Context())
		defer stop()
		if err := c.Use(t.Context(), "ann", func(*index.Index, bool) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
		go c.Run(running)
		time.Sleep(time.Minute) // virtual
		synctest.Wait()
		if db.loaded != 50 {
			t.Errorf("%d of 50 rows were loaded", db.loaded)
		}
	})
}

// Changes to an index that is in memory are there before the next question. Other indexes are not
// loaded.
func TestRunLoadsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &parts{size: 10, after: func(int) {}, rows: []index.Row{row("1", "s", 1, "tea")}}
		c := index.NewCache(db, 0)
		running, stop := context.WithCancel(t.Context())
		defer stop()
		go c.Run(running)
		c.Changed("ann")
		synctest.Wait()
		if db.loaded != 0 {
			t.Error("an index was loaded that nobody has used")
		}
		if err := c.Use(t.Context(), "ann", func(*index.Index, bool) error { return nil }); err != nil {
			t.Error(err)
		}
		db.rows = append(db.rows, row("2", "s", 2, "tea"))
		c.Changed("ann")
		time.Sleep(time.Second) // virtual
		synctest.Wait()
		if db.loaded != 2 {
			t.Errorf("%d of 2 rows were loaded", db.loaded)
		}
	})
}

// An index that is evicted is not loaded further, and one index at a time is loaded.
func TestRunStopsWhereAnIndexWasEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &parts{size: 10, after: func(int) { <-time.After(100 * time.Millisecond) }}
		for i := range 200 {
			db.rows = append(db.rows, row(fmt.Sprint(i), "s", i, "tea"))
		}
		c := index.NewCache(db, 1) // room for one
		for _, key := range []string{"ann", "bob"} {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if err := c.Use(ctx, key, func(*index.Index, bool) error { return nil }); err != nil {
				t.Error(err)
			}
			cancel()
		}
		before := db.loaded
		running, stop := context.WithCancel(t.Context())
		defer stop()
		go c.Run(running)
		time.Sleep(time.Minute) // virtual
		synctest.Wait()
		if got := db.loaded - before; got != 200-before/2 {
			t.Errorf("%d rows were loaded; want the %d that bob's index lacked", got, 200-before/2)
		}
	})
}

// Who waits for another one's load searches what is there when the time is over.
func TestWhoWaitsForALoadSearchesWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &parts{size: 1, rows: []index.Row{row("1", "s", 1, "tea"), row("2", "s", 2, "tea")}}
		gate := make(chan struct{})
		defer close(gate)
		db.after = func(n int) {
			if n == 2 {
				<-gate
			}
		}
		c := index.NewCache(db, 0)
		go func() { _ = c.Use(t.Context(), "ann", func(*index.Index, bool) error { return nil }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Use(ctx, "ann", func(x *index.Index, whole bool) error {
			if found := ranked(x, "tea", own); len(found) != 1 || whole {
				t.Errorf("found %v, whole: %v", found, whole)
			}
			return nil
		})
		if err != nil || db.loaded != 2 {
			t.Errorf("%v, %d rows loaded", err, db.loaded)
		}
	})
}

func TestConcurrentCallersLoadOnce(t *testing.T) {
	db := &table{gate: make(chan struct{})}
	db.put("busy", row("1", "s", 1, "tea"))
	c := index.NewCache(db, 0)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := c.Use(context.Background(), "busy", func(x *index.Index, _ bool) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	close(db.gate)
	all.Wait()
	if db.loads.Load() != 1 || db.most.Load() != 1 {
		t.Errorf("%d loads, %d at once", db.loads.Load(), db.most.Load())
	}
}

func TestAFailedLoadIsRetried(t *testing.T) {
	db := &table{err: errors.New("disk")}
	c := index.NewCache(db, 0)
	use := func(ctx context.Context) error {
		return c.Use(ctx, "ann", func(x *index.Index, _ bool) error { return nil })
	}
	if err := use(t.Context()); !errors.Is(err, db.err) {
		t.Errorf("error = %v", err)
	}
	db.err, db.gate = nil, make(chan struct{})
	db.put("ann", row("1", "s", 1, "tea"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := use(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	close(db.gate)
	if got := search(t, c, "ann", "tea"); len(got) != 1 {
		t.Errorf("found %v after that", got)
	}
}
