package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapRoom is how much a heap may grow between two collections if that is less than it has.
const heapRoom = 24 << 20

// collectAt is by how many percent a heap with so many live bytes may grow until it is collected. Go's
// default is 100, which doubles the memory of a server whose caches are full.
func collectAt(live uint64) int {
	if live <= heapRoom {
		return 100
	}
	return max(25, int(100*heapRoom/live))
}

// tendHeap keeps a large heap from growing by as much as it has, until ctx ends. It leaves a percentage
// that GOGC sets.
func tendHeap(ctx context.Context) {
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
