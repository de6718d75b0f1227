package instance

import (
	"context"
	"runtime/debug"
	"testing"
	"time"
)

// A heap grows by heapRoom, or by a quarter of itself.
func TestHeapsGrowByTheSame(t *testing.T) {
	for live, want := range map[uint64]int{0: 1000, 8 << 20: 300, heapRoom: 100, 2 * heapRoom: 50, 3 * heapRoom: 33, 1 << 30: 25} {
		if got := collectAt(live); got != want {
			t.Errorf("%d bytes: %d %%, want %d", live, got, want)
		}
	}
}

func TestTheOperatorsGOGCIsLeftAlone(t *testing.T) { //nolint:paralleltest // it is a setting of the process
	before := debug.SetGCPercent(70)
	defer debug.SetGCPercent(before)
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	tendHeap(ctx) // returns
	if ctx.Err() != nil {
		t.Error("the percentage of GOGC is replaced")
	}
}
