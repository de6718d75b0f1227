package nodest

import (
	"slices"
	"sync"
	"time"

	"nodest/chat"
)

// stopwatch notes when a generation takes its steps.
type stopwatch struct {
	zero  time.Time // when the generation was created
	mu    sync.Mutex
	times chat.Timing
	first *time.Time // when the first token came
}

// newStopwatch is that of a generation that is accepted now.
func newStopwatch(created time.Time) *stopwatch {
	w := &stopwatch{zero: created}
	w.times.Accepted = w.now()
	return w
}

// now is the time in milliseconds since the generation was created; never negative, whatever the clock does.
func (w *stopwatch) now() int64 { return max(time.Since(w.zero).Milliseconds(), 0) }

// tell sets what g has of it.
func (w *stopwatch) tell(g *chat.Generation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	times := w.times
	times.Sources = slices.Clone(times.Sources)
	g.Timing, g.FirstTokenAt = &times, w.first
}

// step begins a step. The function that it returns ends it, and notes both times.
func (w *stopwatch) step(note func(times *chat.Timing, took chat.Span)) (end func()) {
	from := w.now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		note(&w.times, chat.Span{from, w.now()})
	}
}

func (w *stopwatch) asked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times.Asked = new(w.now())
}

func (w *stopwatch) token() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times.LastToken = new(w.now())
	if w.first == nil {
		w.first = new(time.Now().UTC().Truncate(time.Millisecond))
	}
}
