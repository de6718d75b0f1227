package jobs_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

var discardLog = slog.New(slog.DiscardHandler)

// testEnv is a SQLite database with one user, in virtual time.
type testEnv struct {
	*testing.T
	dir    string // the directory of db
	db     *store.DB
	user   string
	runner *jobs.Runner // is notified of changes at once; nil = none yet
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, test func(y *testEnv)) {
	dir := storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		y := &testEnv{T: t, dir: dir}
		y.db = storetest.OpenWith(t, store.Options{Dir: dir, Jobs: func(cancelled []string) {
			if y.runner != nil {
				y.runner.Changed(cancelled)
			}
		}})
		y.user = storetest.User(t, y.db)
		test(y)
	})
}

// run starts a runner that is closed when the test ends. The first one is notified of
// changes at once; others find them as other processes do.
func (y *testEnv) run(o jobs.Options, kinds ...jobs.Kind) *jobs.Runner {
	o.Log = discardLog
	r := jobs.New(y.db, o)
	r.Handle(kinds...)
	if y.runner == nil {
		y.runner = r
	}
	r.Start()
	y.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			y.Error(err)
		}
	})
	return r
}

func (y *testEnv) update(fn func(tx nodest.Tx) error) {
	y.Helper()
	if err := y.db.Update(context.Background(), y.user, fn); err != nil {
		y.Fatal(err)
	}
}

func (y *testEnv) enqueue(specs ...jobs.Spec) {
	y.Helper()
	y.update(func(tx nodest.Tx) error { return tx.Jobs.Enqueue(specs...) })
}

// states lists the user's jobs, oldest first: subject, state, attempt, code.
func (y *testEnv) states() (lines []string) {
	y.Helper()
	err := y.db.View(context.Background(), y.user, func(tx nodest.Tx) error {
		items, _, err := tx.Jobs.Jobs(jobs.Filter{}, "", 500)
		for _, j := range items {
			line := fmt.Sprintf("%s %s %d", j.Subject, j.State, j.Attempt)
			if j.Error != nil {
				line += " " + string(j.Error.Code)
			}
			lines = append(lines, line)
		}
		return err
	})
	if err != nil {
		y.Fatal(err)
	}
	slices.Reverse(lines)
	return lines
}

func (y *testEnv) equal(what string, got, want any) {
	y.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		y.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// callLog records what handlers did and when.
type callLog struct {
	mu    sync.Mutex
	begin time.Time
	lines []string
}

func newCallLog() *callLog { return &callLog{begin: time.Now()} }

func (d *callLog) record(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%v ", time.Since(d.begin))+fmt.Sprintf(format, args...))
}

func (d *callLog) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// recording returns a kind whose handler only records its calls.
func (d *callLog) recording(name string) jobs.Kind {
	return jobs.Kind{Name: name, Run: func(_ context.Context, j *jobs.Job) error {
		d.record("%s %s", name, j.Subject)
		return nil
	}}
}

// advance lets virtual time pass, and waits until all goroutines are blocked.
func advance(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func TestJobsRunAtTheirTime(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		y.run(jobs.Options{}, d.recording("a.b"), d.recording("a.c"))
		advance(100 * time.Millisecond)
		y.enqueue(jobs.Spec{Kind: "a.b", Subject: "now"}, jobs.Spec{Kind: "a.none", Subject: "no handler"})
		y.enqueue(jobs.Spec{Kind: "a.c", Subject: "later", NotBefore: time.Now().Add(90 * time.Second)})
		advance(3 * time.Minute)
		y.equal("ran", d.all(), []string{"100ms a.b now", "1m30.1s a.c later"})
		y.equal("states", y.states(), []string{"now done 1", "no handler queued 0", "later done 1"})
	})
}

func TestOtherProcessesFindJobsWithinASecond(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		y.run(jobs.Options{}) // the runner of this process handles no kind
		d := newCallLog()
		y.run(jobs.Options{}, d.recording("a.b"))
		advance(400 * time.Millisecond)
		y.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"})
		advance(time.Minute)
		y.equal("ran", d.all(), []string{"1s a.b s"})
	})
}

func TestFailedJobsAreRetried(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		down := fault.New(fault.UpstreamDown, "down")
		failures := map[string]error{
			"down":    down,
			"ours":    errors.New("secret"),
			"wrong":   fault.New(fault.Invalid, "wrong"),
			"limited": fault.New(fault.UpstreamRate, "slowly").After(time.Minute),
		}
		y.run(jobs.Options{}, jobs.Kind{Name: "a.b", Attempts: 3, AtOnce: 9, PerUser: 9, Run: func(_ context.Context, j *jobs.Job) error {
			d.record("%s %d", j.Subject, j.Attempt)
			if j.Subject == "panic" {
				panic("at the disco")
			}
			if j.Subject == "twice" && j.Attempt == 3 {
				return nil
			}
			return cmp.Or[error](failures[j.Subject], down)
		}})
		for _, subject := range []string{"down", "limited", "ours", "panic", "twice", "wrong"} {
			y.enqueue(jobs.Spec{Kind: "a.b", Subject: subject})
		}
		advance(time.Hour)
		y.equal("states", y.states(), []string{
			"down failed 3 upstream_unavailable", "limited failed 3 upstream_rate_limited", "ours failed 3 internal",
			"panic failed 3 internal", "twice done 3", "wrong failed 1 invalid_field",
		})
		all := d.all()
		slices.Sort(all)
		y.equal("attempts", strings.Join(all, ", "), "0s down 1, 0s limited 1, 0s ours 1, 0s panic 1, 0s twice 1, 0s wrong 1, "+
			"1m0s limited 2, 1s down 2, 1s ours 2, 1s panic 2, 1s twice 2, 2m0s limited 3, 5s down 3, 5s ours 3, 5s panic 3, 5s twice 3")
	})
}

func TestAJobTimesOut(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		y.run(jobs.Options{}, jobs.Kind{Name: "a.b", Attempts: 2, Timeout: time.Minute, Run: func(ctx context.Context, _ *jobs.Job) error {
			<-ctx.Done()
			d.record("%v", context.Cause(ctx))
			return ctx.Err()
		}})
		y.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"})
		advance(time.Hour)
		y.equal("attempts", len(d.all()), 2)
		y.equal("state", y.states(), []string{"s failed 2 upstream_timeout"})
	})
}

func TestConcurrencyLimits(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		other := storetest.User(y.T, y.db)
		d := newCallLog()
		y.run(jobs.Options{}, jobs.Kind{Name: "a.b", AtOnce: 3, PerUser: 2, Run: func(ctx context.Context, j *jobs.Job) error {
			d.record("%v", j.UserID == y.user)
			time.Sleep(time.Minute) // virtual
			return nil
		}})
		for i := range 5 {
			y.enqueue(jobs.Spec{Kind: "a.b", Subject: fmt.Sprint(i)})
		}
		advance(time.Second)
		err := y.db.Enqueue(context.Background(), jobs.Spec{Kind: "a.b", UserID: other, Subject: "x"})
		if err != nil {
			y.Fatal(err)
		}
		advance(10 * time.Minute)
		y.equal("ran", d.all(), []string{"0s true", "0s true", "1s false", "1m0s true", "1m1s true", "2m0s true"})
	})
}

// Members with many jobs leave a place to one who comes later.
func TestThoseWithManyJobsLeaveAPlace(t *testing.T) {
	virtual(t, func(y *testEnv) {
		names := map[string]string{y.user: "a", storetest.User(y.T, y.db): "b", storetest.User(y.T, y.db): "c"}
		d := newCallLog()
		y.run(jobs.Options{}, jobs.Kind{Name: "a.b", AtOnce: 4, PerUser: 2, Run: func(_ context.Context, j *jobs.Job) error {
			d.record("%s", names[j.UserID])
			time.Sleep(time.Hour) // virtual
			return nil
		}})
		enqueue := func(name string, n int) {
			for user := range names {
				for i := range n {
					if names[user] == name {
						y.equal("enqueue", y.db.Enqueue(context.Background(), jobs.Spec{Kind: "a.b", UserID: user, Subject: fmt.Sprint(i)}), nil)
					}
				}
			}
			advance(time.Second)
		}
		enqueue("a", 9)
		enqueue("b", 9)
		enqueue("c", 1)
		y.equal("ran", d.all(), []string{"0s a", "0s a", "1s b", "2s c"})
		advance(12 * time.Hour)
	})
}

// A long job that can go on later lets those of others come in between.
func TestAJobGoesOnLater(t *testing.T) {
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		turns := 0
		y.run(jobs.Options{}, jobs.Kind{Name: "a.b", AtOnce: 1, Attempts: 1, Run: func(_ context.Context, j *jobs.Job) error {
			d.record("%s %d", j.Subject, j.Attempt)
			time.Sleep(time.Minute) // virtual
			if turns++; j.Subject == "long" && turns < 5 {
				return fmt.Errorf("not done: %w", jobs.ErrLater)
			}
			return nil
		}})
		y.enqueue(jobs.Spec{Kind: "a.b", Subject: "long"})
		advance(time.Second)
		other := storetest.User(y.T, y.db)
		for _, subject := range []string{"x", "y"} {
			y.equal("enqueue", y.db.Enqueue(context.Background(), jobs.Spec{Kind: "a.b", UserID: other, Subject: subject}), nil)
		}
		advance(10 * time.Minute)
		y.equal("ran", d.all(), []string{"0s long 1", "1m0s x 1", "2m0s long 1", "3m0s y 1", "4m0s long 1"})
		y.equal("state", y.states(), []string{"long done 1"})
	})
}

// A job that goes on later may name a pause.
func TestAJobGoesOnBehindAPause(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		turns := 0
		y.run(jobs.Options{}, jobs.Kind{Name: "a.b", Attempts: 1, Run: func(_ context.Context, j *jobs.Job) error {
			d.record("%s %d", j.Subject, j.Attempt)
			if turns++; turns < 3 {
				return errors.Join(fault.New(fault.StorageBusy, "not yet").After(2*time.Minute), jobs.ErrLater)
			}
			return nil
		}})
		y.enqueue(jobs.Spec{Kind: "a.b", Subject: "x"})
		advance(10 * time.Minute)
		y.equal("ran", d.all(), []string{"0s x 1", "2m0s x 1", "4m0s x 1"})
	})
}

func TestALongJobKeepsItsLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		slow := jobs.Kind{Name: "a.b", Timeout: time.Hour, Run: func(ctx context.Context, j *jobs.Job) error {
			d.record("begin %d", j.Attempt)
			time.Sleep(4 * time.Minute) // virtual
			if err := y.db.Update(ctx, j.UserID, func(tx nodest.Tx) error { return tx.Jobs.NoteJob(j, 99) }); err != nil {
				return err
			}
			time.Sleep(4 * time.Minute) // virtual
			d.record("end")
			return y.db.Update(ctx, j.UserID, func(tx nodest.Tx) error { return tx.Jobs.FinishJob(j) })
		}}
		y.run(jobs.Options{}, slow)
		y.run(jobs.Options{}, slow)
		y.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"})
		advance(10 * time.Minute)
		y.equal("ran", d.all(), []string{"0s begin 1", "8m0s end"})
		y.equal("state", y.states(), []string{"s done 1"})
	})
}

// claimAsDeadProcess claims a job for a process that never ends it.
func (y *testEnv) claimAsDeadProcess(kind string) *jobs.Job {
	y.Helper()
	claimed, err := y.db.ClaimJobs(context.Background(), "dead", 30*time.Second, []jobs.Want{{Kind: kind, Free: 1, PerUser: 1}})
	if err != nil || len(claimed) != 1 {
		y.Fatal(len(claimed), err)
	}
	return claimed[0]
}

func TestJobsOfACrashedProcessAreTakenOver(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprint("alone=", alone), func(t *testing.T) {
			virtual(t, func(y *testEnv) {
				y.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"})
				y.claimAsDeadProcess("a.b")
				d := newCallLog()
				y.run(jobs.Options{Alone: alone}, d.recording("a.b"))
				advance(time.Minute)
				want := "31s a.b s" // the first poll after the lease
				if alone {
					want = "0s a.b s"
				}
				y.equal("ran", d.all(), []string{want})
				y.equal("state", y.states(), []string{"s done 2"})
			})
		})
	}
}

func TestALostJobIsCancelledAndCommitsNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		y.run(jobs.Options{}, jobs.Kind{Name: "a.b", Run: func(ctx context.Context, j *jobs.Job) error {
			<-ctx.Done()
			d.record("%v", errors.Is(context.Cause(ctx), jobs.ErrLost))
			return y.db.Update(context.Background(), j.UserID, func(tx nodest.Tx) error {
				if err := tx.Chats.InsertConversation(&chat.Conversation{ID: j.Subject}); err != nil {
					return err
				}
				return tx.Jobs.FinishJob(j)
			})
		}})
		y.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"})
		advance(500 * time.Millisecond)
		if err := y.db.RecoverJobs(context.Background(), map[string]int{"a.b": 9}, "thief"); err != nil {
			y.Fatal(err)
		}
		y.claimAsDeadProcess("a.b")
		advance(5 * time.Second)
		y.equal("cancelled", d.all(), []string{"1s true"})
		y.equal("state", y.states(), []string{"s running 2 internal"}) // the first attempt counts as a crash
		err := y.db.View(context.Background(), y.user, func(tx nodest.Tx) error { _, err := tx.Chats.Conversation("s"); return err })
		y.equal("nothing is left", fault.Is(err, fault.NotFound), true)
	})
}

func TestACancelledJobStops(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		waits := func(name string) jobs.Kind {
			return jobs.Kind{Name: name, Run: func(ctx context.Context, _ *jobs.Job) error {
				<-ctx.Done()
				d.record("%s %v", name, errors.Is(context.Cause(ctx), jobs.ErrLost))
				return ctx.Err()
			}}
		}
		y.run(jobs.Options{}, waits("a.here"))
		y.run(jobs.Options{}, waits("a.there"))
		y.enqueue(jobs.Spec{Kind: "a.here", Subject: "s"}, jobs.Spec{Kind: "a.there", Subject: "s"})
		advance(2500 * time.Millisecond)
		y.update(func(tx nodest.Tx) error { return tx.Jobs.CancelJobs("s") })
		advance(time.Minute)
		y.equal("stopped", d.all(), []string{"2.5s a.here true", "3s a.there true"})
		y.equal("states", y.states(), []string{"s cancelled 1", "s cancelled 1"})
	})
}

// However many kinds there are, only those with something to do are looked at in the transaction
// that claims, and a job that has ended itself needs no transaction after that.
func TestAJobNeedsFewStatements(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		kinds := []jobs.Kind{{Name: "a.own", Run: func(ctx context.Context, j *jobs.Job) error {
			return y.db.Update(ctx, j.UserID, func(tx nodest.Tx) error { return tx.Jobs.FinishJob(j) })
		}}}
		d := newCallLog()
		for i := range 20 {
			kinds = append(kinds, d.recording(fmt.Sprintf("a.other%d", i)))
		}
		y.run(jobs.Options{}, kinds...)
		advance(0)
		before := y.db.Statements()
		y.enqueue(jobs.Spec{Kind: "a.own", Subject: "s"})
		advance(0)
		n := y.db.Statements() - before
		t.Logf("%d statements", n)
		if n > 16 {
			t.Errorf("a job ran %d statements, at most 16 were expected", n)
		}
		y.equal("states", y.states(), []string{"s done 1"})
	})
}

func TestAJobCanEnqueueOthers(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		y.run(jobs.Options{}, d.recording("a.child"), jobs.Kind{Name: "a.parent", Run: func(ctx context.Context, j *jobs.Job) error {
			return y.db.Update(ctx, j.UserID, func(tx nodest.Tx) error {
				for i := range 10 {
					if err := tx.Jobs.Enqueue(jobs.Spec{Kind: "a.child", Subject: fmt.Sprint(i)}); err != nil {
						return err
					}
				}
				return tx.Jobs.FinishJob(j)
			})
		}})
		y.enqueue(jobs.Spec{Kind: "a.parent", Subject: "p"})
		advance(0)
		ran := d.all()
		slices.Sort(ran)
		y.equal("children", len(slices.Compact(ran)), 10)
		y.equal("each once", len(ran), 10)
	})
}

func TestAChangeDuringAJobIsNotMissed(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		d := newCallLog()
		y.run(jobs.Options{}, jobs.Kind{Name: "a.b", Run: func(ctx context.Context, j *jobs.Job) error {
			d.record("%s", j.Payload)
			time.Sleep(time.Minute) // virtual
			return nil
		}})
		for i := range 3 {
			y.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: fmt.Append(nil, i)})
			advance(time.Second)
		}
		advance(time.Hour)
		y.equal("ran", d.all(), []string{"0s 0", "1m0s 2"})
	})
}

func TestCloseWaitsForTheGracePeriod(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		y.equal("never started", jobs.New(y.db, jobs.Options{}).Close(context.Background()), nil)
		d := newCallLog()
		kind := jobs.Kind{Name: "a.b", AtOnce: 9, PerUser: 9, Run: func(ctx context.Context, j *jobs.Job) error {
			select {
			case <-time.After(map[string]time.Duration{"short": 5 * time.Second, "long": 9 * time.Minute}[j.Subject]):
				d.record("%s done", j.Subject)
				return nil
			case <-ctx.Done():
				d.record("%s stopped", j.Subject)
				return ctx.Err()
			}
		}}
		r := y.run(jobs.Options{}, kind)
		y.enqueue(jobs.Spec{Kind: "a.b", Subject: "long"}, jobs.Spec{Kind: "a.b", Subject: "short"})
		advance(time.Second)
		grace, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		late := time.AfterFunc(time.Second, func() { y.enqueue(jobs.Spec{Kind: "a.b", Subject: "late"}) })
		defer late.Stop()
		y.equal("error", r.Close(grace), context.DeadlineExceeded)
		y.equal("ended", d.all(), []string{"5s short done", "16s long stopped"})
		y.equal("states", y.states(), []string{"long queued 0", "short done 1", "late queued 0"})
		y.run(jobs.Options{}, kind)
		advance(10 * time.Minute)
		y.equal("states", y.states(), []string{"long done 1", "short done 1", "late done 1"})
	})
}

func TestAJobRemovesExpiredRecords(t *testing.T) {
	t.Parallel()
	virtual(t, func(y *testEnv) {
		y.update(func(tx nodest.Tx) error {
			_, err := tx.ClaimKey("k", "h")
			return errors.Join(err, tx.KeepReply("k", op.Reply{JSON: []byte(`1`)}))
		})
		time.Sleep(49 * time.Hour) // virtual, before the runner starts
		y.run(jobs.Options{}, y.db.Maintenance())
		for range 2 {
			if err := y.db.Enqueue(context.Background(), store.Upkeep); err != nil {
				y.Fatal(err)
			}
		}
		advance(0)
		y.equal("stop", y.runner.Close(context.Background()), nil) // or it would run the next one, too
		left, err := store.Backup(context.Background(), store.Options{Dir: y.dir}, io.Discard, store.BackupOptions{})
		if err != nil {
			y.Fatal(err)
		}
		y.equal("keys left", left.Rows("call_keys"), int64(0))
	})
}
