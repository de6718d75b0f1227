package jobs_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"nodest/internal/jobs"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func eachDatabase(b *testing.B, fn func(b *testing.B, where string)) {
	b.Run("sqlite", func(b *testing.B) { fn(b, storetest.Dir(b)) })
	b.Run("postgres", func(b *testing.B) { fn(b, storetest.PostgresURL(b)) })
}

// BenchmarkJobs enqueues jobs of 20 users from 8 goroutines, claims and ends them.
// behind is how many jobs of another kind are queued; they must not matter.
func BenchmarkJobs(b *testing.B) {
	eachDatabase(b, func(b *testing.B, where string) {
		var r *jobs.Runner
		o := options(where)
		o.Jobs = func(cancelled []string) { r.Changed(cancelled) }
		db := storetest.OpenWith(b, o)
		var users []string
		for range 20 {
			users = append(users, storetest.User(b, db))
		}
		r = jobs.New(db, jobs.Options{Log: discardLog})
		var left sync.WaitGroup
		r.Handle(jobs.Kind{Name: "a.b", AtOnce: 16, PerUser: 4, Run: func(ctx context.Context, j *jobs.Job) error {
			defer left.Done()
			return db.Update(ctx, j.UserID, func(tx nodest.Tx) error { return tx.Jobs.FinishJob(j) })
		}})
		r.Start()
		b.Cleanup(func() { _ = r.Close(context.Background()) })
		for _, behind := range []int{0, 100_000} {
			fillQueue(b, db, users[0], behind)
			b.Run(fmt.Sprint("behind=", behind), func(b *testing.B) {
				left.Add(b.N)
				next := make(chan int)
				var callers sync.WaitGroup
				for range 8 {
					callers.Go(func() {
						for i := range next {
							spec := jobs.Spec{Kind: "a.b", UserID: users[i%len(users)], Subject: uuid.NewString()}
							if err := db.Enqueue(context.Background(), spec); err != nil {
								b.Error(err)
							}
						}
					})
				}
				for i := range b.N {
					next <- i
				}
				close(next)
				callers.Wait()
				left.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			})
		}
	})
}

// fillQueue enqueues jobs of a kind without a handler.
func fillQueue(b *testing.B, db *store.DB, user string, n int) {
	b.Helper()
	for n > 0 {
		specs := make([]jobs.Spec, min(n, 5000))
		for i := range specs {
			specs[i] = jobs.Spec{Kind: "a.none", UserID: user, Subject: uuid.NewString()}
		}
		if err := db.Enqueue(context.Background(), specs...); err != nil {
			b.Fatal(err)
		}
		n -= len(specs)
	}
}

// BenchmarkClaim claims a job from a short and from a long queue.
func BenchmarkClaim(b *testing.B) {
	eachDatabase(b, func(b *testing.B, where string) {
		db := storetest.OpenWith(b, options(where))
		user := storetest.User(b, db)
		for _, n := range []int{10, 100_000} {
			fillQueue(b, db, user, n)
			b.Run(fmt.Sprint("queue=", n), func(b *testing.B) {
				for b.Loop() {
					claimed, err := db.ClaimJobs(context.Background(), "p", 1e9, []jobs.Want{{Kind: "a.none", Free: 1, PerUser: 1}})
					if err != nil || len(claimed) != 1 {
						b.Fatal(len(claimed), err)
					}
					if err := db.EndJob(context.Background(), claimed[0], jobs.Outcome{State: jobs.Queued, Uncounted: true}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}
