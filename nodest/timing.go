package nodest

import (
	"slices"
	"time"

	"nodest/chat"
)

// stopwatch notes when a generation takes its steps. Its task guards it.
type stopwatch struct {
	zero  time.Time // when the generation was created
	times chat.Timing
}

// now is the time in milliseconds since the start; never negative, whatever the clock
// does.
func (w *stopwatch) now() int64 { return max(time.Since(w.zero).Milliseconds(), 0) }

// soFar returns the times, which the caller may keep.
func (w *stopwatch) soFar() *chat.Timing {
	times := w.times
	times.Sources = slices.Clone(times.Sources)
	return &times
}

// step begins a step. The function that it returns ends it, and notes both times.
func (t *task) step(note func(times *chat.Timing, took chat.Span)) (end func()) {
	begin := t.watch.now()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		note(&t.watch.times, chat.Span{begin, t.watch.now()})
	}
}
