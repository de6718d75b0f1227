package instance

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapRoom is how much a heap may grow between two collections, or a quarter of what it has if that is
// more.
const heapRoom = 24 << 20

// collectAt is by how many percent a heap with so many live bytes may grow until it is collected. Go's
// default is 100, which doubles the memory of a server whose caches are full, and collects a small heap
// every second.
func collectAt(live uint64) int {
	return min(max(25, int(100*heapRoom/max(live, 1))), 1000)
}

// tendHeap gives back what starting has taken, and then lets the heap grow by collectAt, until ctx
// ends. It leaves a percentage that GOGC sets.
func tendHeap(ctx context.Context) {
	runtime.GC() // goose reads migrations into buffers of 4 MB, which its pool keeps until the second collection
	debug.FreeOSMemory()
	set, live := []metrics.Sample{{Name: "/gc/gogc:percent"}}, []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(set); set[0].Value.Uint64() != 100 {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for current := 100; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(live)
		if percent := collectAt(live[0].Value.Uint64()); max(percent-current, current-percent) > current/10 { // setting it stops the program for a moment
			current = percent
			debug.SetGCPercent(current)
		}
	}
}
