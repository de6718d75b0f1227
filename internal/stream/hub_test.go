package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"nodest/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryLog is an event log in memory, in place of the database.
type memoryLog struct {
	mu     sync.Mutex
	epoch  string
	events map[string][]*stream.Event
	oldest int64
	fails  bool
}

func newMemoryLog() *memoryLog {
	return &memoryLog{epoch: "e1", events: map[string][]*stream.Event{}, oldest: 1}
}

func (l *memoryLog) commit(user, kind string) *stream.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &stream.Event{UserID: user, Seq: int64(len(l.events[user]) + 1), Type: kind}
	l.events[user] = append(l.events[user], e)
	return e
}

func (l *memoryLog) Position(_ context.Context, user string) (stream.Position, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails {
		return stream.Position{}, 0, errors.New("no database")
	}
	return stream.Position{Epoch: l.epoch, Seq: int64(len(l.events[user]))}, l.oldest, nil
}

func (l *memoryLog) Events(_ context.Context, user string, after int64, limit int) ([]*stream.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails {
		return nil, errors.New("no database")
	}
	list := l.events[user]
	list = list[min(int(after), len(list)):]
	return slices.Clone(list[:min(limit, len(list))]), nil
}

func (l *memoryLog) Newest(_ context.Context, users []string) (map[string]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := map[string]int64{}
	for _, u := range users {
		newest[u] = int64(len(l.events[u]))
	}
	return newest, nil
}

func (l *memoryLog) setFailing(v bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = v
}

// recordingSink records the seqs of durable events and the types of others.
type recordingSink struct {
	mu  sync.Mutex
	got []string
}

func (l *recordingSink) Deliver(e *stream.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	word := e.Type
	if e.Durable() {
		word = strconv.FormatInt(e.Seq, 10)
	}
	l.got = append(l.got, word)
}

func (l *recordingSink) delivered() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.got)
}

// withHub runs f with a hub in virtual time; synctest.Wait returns when the hub is
// idle.
func withHub(t *testing.T, opts stream.HubOptions, f func(t *testing.T, l *memoryLog, h *stream.Hub)) {
	synctest.Test(t, func(t *testing.T) {
		l := newMemoryLog()
		h := stream.NewHub(l, opts)
		defer h.Close()
		f(t, l, h)
	})
}

func join(t *testing.T, h *stream.Hub, user string) (*recordingSink, stream.Position, func()) {
	t.Helper()
	s := &recordingSink{}
	at, _, leave, err := h.Join(t.Context(), user, s)
	if err != nil {
		t.Fatal(err)
	}
	return s, at, leave
}

func TestEventsAreDeliveredInLogOrder(t *testing.T) {
	withHub(t, stream.HubOptions{}, func(t *testing.T, l *memoryLog, h *stream.Hub) {
		l.commit("ann", "before")
		s, at, leave := join(t, h, "ann")
		if at != (stream.Position{Epoch: "e1", Seq: 1}) {
			t.Errorf("joined at %v", at)
		}
		two, three := l.commit("ann", "x"), l.commit("ann", "x")
		h.Committed("ann", []*stream.Event{two})
		h.Committed("bob", []*stream.Event{l.commit("bob", "x")})
		h.Committed("ann", []*stream.Event{three})
		h.Transient(&stream.Event{UserID: "ann", Type: "delta"})
		h.Transient(&stream.Event{UserID: "bob", Type: "delta"})
		if got := s.delivered(); got != "[2 3 delta]" {
			t.Errorf("got %s", got)
		}
		h.Committed("ann", []*stream.Event{three}) // a duplicate
		leave()
		leave()
		h.Committed("ann", []*stream.Event{l.commit("ann", "x")})
		if got := s.delivered(); got != "[2 3 delta]" {
			t.Errorf("after leaving: %s", got)
		}
	})
}

func TestAnEarlyEventWaitsAndAGapIsReadFromTheLog(t *testing.T) {
	withHub(t, stream.HubOptions{}, func(t *testing.T, l *memoryLog, h *stream.Hub) {
		s, _, leave := join(t, h, "ann")
		defer leave()
		l.setFailing(true) // the log cannot be read for now
		one, two, three := l.commit("ann", "x"), l.commit("ann", "x"), l.commit("ann", "x")
		h.Committed("ann", []*stream.Event{two})
		h.Transient(&stream.Event{UserID: "ann", Type: "delta"})
		if got := s.delivered(); got != "[]" {
			t.Errorf("before its predecessor: %s", got)
		}
		h.Committed("ann", []*stream.Event{one})
		if got := s.delivered(); got != "[1 2 delta]" {
			t.Errorf("after its predecessor: %s", got)
		}
		l.commit("ann", "x") // 4: this hub gets no notice
		five := l.commit("ann", "x")
		h.Committed("ann", []*stream.Event{three, five})
		h.Transient(&stream.Event{UserID: "ann", Type: "late"})
		synctest.Wait()
		if got := s.delivered(); got != "[1 2 delta 3]" {
			t.Errorf("without a database: %s", got)
		}
		l.setFailing(false)
		time.Sleep(time.Second) // virtual: the hub retries
		synctest.Wait()
		if got := s.delivered(); got != "[1 2 delta 3 4 5 late]" {
			t.Errorf("from the log: %s", got)
		}
	})
}

func TestEventsOfOtherProcessesAreFound(t *testing.T) {
	withHub(t, stream.HubOptions{Poll: time.Second}, func(t *testing.T, l *memoryLog, h *stream.Hub) {
		s, _, leave := join(t, h, "ann")
		defer leave()
		for range 450 {
			l.commit("ann", "x")
		}
		time.Sleep(1500 * time.Millisecond) // virtual
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.got) != 450 || s.got[449] != "450" {
			t.Errorf("%d events came", len(s.got))
		}
	})
}

func TestAFailedJoinLeavesNothingBehind(t *testing.T) {
	withHub(t, stream.HubOptions{}, func(t *testing.T, l *memoryLog, h *stream.Hub) {
		l.setFailing(true)
		if _, _, _, err := h.Join(t.Context(), "ann", &recordingSink{}); err == nil {
			t.Fatal("joined without a database")
		}
		l.setFailing(false)
		h.Committed("ann", []*stream.Event{l.commit("ann", "x")})
		_, at, leave := join(t, h, "ann")
		defer leave()
		if at.Seq != 1 {
			t.Errorf("joined at %v", at)
		}
	})
}

func TestSinceStopsAtItsEnd(t *testing.T) {
	withHub(t, stream.HubOptions{}, func(t *testing.T, l *memoryLog, h *stream.Hub) {
		for range 9 {
			l.commit("ann", "x")
		}
		got, err := h.Since(t.Context(), "ann", 2, 5, 100)
		if err != nil || len(got) != 3 || got[0].Seq != 3 || got[2].Seq != 5 {
			t.Errorf("%v %v", got, err)
		}
	})
}

// TestManyJoinAndLeaveWhileEventsAreWritten commits from many goroutines and notifies
// the hub out of order or not at all, while sinks join and leave: each sink gets every
// event after its position, once and in order.
func TestManyJoinAndLeaveWhileEventsAreWritten(t *testing.T) {
	seed := uint64(1)
	if v, err := strconv.ParseUint(os.Getenv("NODEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Logf("NODEST_SEED=%d", seed)
	const writers, each, readers = 4, 200, 8
	l := newMemoryLog()
	h := stream.NewHub(l, stream.HubOptions{Poll: time.Millisecond})
	defer h.Close()
	var writing, reading sync.WaitGroup
	for w := range writers {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		writing.Go(func() {
			for range each {
				e := l.commit("ann", "x")
				if r.IntN(10) > 0 { // one in ten is from another process
					h.Committed("ann", []*stream.Event{e})
				}
			}
		})
	}
	for range readers {
		reading.Go(func() {
			for range 5 {
				c := &orderedSink{want: writers * each, all: make(chan struct{})}
				at, _, leave, err := h.Join(t.Context(), "ann", c)
				if err != nil {
					t.Error(err)
					return
				}
				if at.Seq < c.want {
					select {
					case <-c.all:
					case <-time.After(time.Minute):
						t.Error("the last event never came")
					}
				}
				leave()
				c.check(t, at.Seq)
			}
		})
	}
	writing.Wait()
	reading.Wait()
}

// orderedSink checks that seqs have no gaps.
type orderedSink struct {
	mu   sync.Mutex
	want int64 // the last seq
	seqs []int64
	all  chan struct{}
}

func (c *orderedSink) Deliver(e *stream.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seqs = append(c.seqs, e.Seq)
	if e.Seq == c.want {
		close(c.all)
	}
}

func (c *orderedSink) check(t *testing.T, from int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, seq := range c.seqs {
		if seq != from+int64(i)+1 {
			t.Errorf("event %d after %d", seq, from+int64(i))
			return
		}
	}
}

func TestAFrameIsEncodedOnce(t *testing.T) {
	e := &stream.Event{At: time.UnixMilli(5)}
	e.Say("é", "text")
	want := `{"ev":"gen.delta","off":0,"at":5,"data":{"text":"é","part":"text"}}`
	if got := string(e.Frame()); got != want {
		t.Errorf("got %s", got)
	}
	if first, second := e.Frame(), e.Frame(); &first[0] != &second[0] {
		t.Error("encoded twice")
	}
}
