package search

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// inParallel calls do for 0 to n-1 on all cores, and stops early when ctx ends.
func inParallel(ctx context.Context, n int, do func(i int)) error {
	return onCores(ctx, n, func() func(int) { return do })
}

// onCores is inParallel with a function for each core, so that it may have memory of its own.
func onCores(ctx context.Context, n int, worker func() func(i int)) error {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		do := worker()
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
