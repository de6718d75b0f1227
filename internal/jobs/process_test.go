package jobs_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// childEnv makes the test binary run jobs until it is killed. Its value is the URL or
// folder of the database.
const childEnv = "NODEST_JOBS_TEST_CHILD"

func TestMain(m *testing.M) {
	if where := os.Getenv(childEnv); where != "" {
		child(where) // does not return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(storetest.Exit))
}

func options(where string) store.Options {
	if strings.HasPrefix(where, "postgres") {
		return store.Options{URL: where, Log: discardLog}
	}
	return store.Options{Dir: where, Log: discardLog}
}

// effectKind ends a job with an insert that fails if it is done twice.
func effectKind(db *store.DB, done func(j *jobs.Job)) jobs.Kind {
	return jobs.Kind{Name: "a.b", AtOnce: 4, PerUser: 4, Attempts: 1_000_000, Run: func(ctx context.Context, j *jobs.Job) error {
		// If the runner checks the queue right after the commit, it sees an ended attempt
		// and cancels ctx; Update would return an error and done would not be called.
		err := db.Update(context.WithoutCancel(ctx), j.UserID, func(tx nodest.Tx) error {
			if err := tx.Chats.InsertConversation(&chat.Conversation{ID: j.Subject}); err != nil {
				return err
			}
			return tx.Jobs.FinishJob(j)
		})
		if err == nil {
			done(j)
		}
		return err
	}}
}

func child(where string) {
	db, err := store.Open(context.Background(), options(where))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	ended := make(chan string)
	r := jobs.New(db, jobs.Options{Alone: !strings.HasPrefix(where, "postgres"), Lease: 300 * time.Millisecond, Poll: 20 * time.Millisecond, Log: discardLog})
	r.Handle(effectKind(db, func(j *jobs.Job) { ended <- j.Subject }))
	r.Start()
	for id := range ended {
		fmt.Println(id)
	}
}

// TestKilledProcessesDoEachJobOnce kills a worker process again and again. In the end
// every job has been done once.
func TestKilledProcessesDoEachJobOnce(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { testKills(t, storetest.Dir(t)) })
	t.Run("postgres", func(t *testing.T) { testKills(t, storetest.PostgresURL(t)) })
}

func testKills(t *testing.T, where string) {
	const n = 80
	rnd := rand.New(rand.NewPCG(1, 0))
	user, want := "", map[string]bool{}
	with := func(fn func(db *store.DB)) {
		db := storetest.OpenWith(t, options(where))
		fn(db)
		_ = db.Close()
	}
	with(func(db *store.DB) {
		user = storetest.User(t, db)
		for range n {
			id := uuid.NewString()
			want[id] = true
			if err := db.Enqueue(context.Background(), jobs.Spec{Kind: "a.b", UserID: user, Subject: id}); err != nil {
				t.Fatal(err)
			}
		}
	})
	acknowledged := 0
	for kills := 0; acknowledged < n; kills++ {
		acknowledged += workUntilKilled(t, where, min(1+rnd.IntN(30), n-acknowledged))
		if kills > 50 {
			t.Fatal("the jobs never end")
		}
		with(func(db *store.DB) { acknowledged = done(t, db, user) }) // committed jobs count even if the process was killed before it printed them
	}
	t.Logf("%d jobs were done", acknowledged)
}

// done counts the jobs that are done, and checks that exactly these had their effect.
func done(t *testing.T, db *store.DB, user string) int {
	t.Helper()
	ended, effects := 0, 0
	err := db.View(context.Background(), user, func(tx nodest.Tx) error {
		items, _, err := tx.Jobs.Jobs(jobs.Filter{}, "", 1000)
		if err != nil {
			return err
		}
		for _, j := range items {
			if j.State == jobs.Failed {
				t.Errorf("job %s failed: %v", j.Subject, j.Error)
			}
			if j.State == jobs.Done {
				ended++
			}
		}
		all, _, err := tx.Chats.Conversations(chat.ConversationFilter{}, "", 1000)
		effects = len(all)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if ended != effects {
		t.Fatalf("%d jobs are done, with %d effects", ended, effects)
	}
	return ended
}

func workUntilKilled(t *testing.T, where string, after int) (acknowledged int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+where)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if acknowledged++; acknowledged == after {
			_ = cmd.Process.Kill() // lines written before are still read
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 3 {
		t.Fatalf("the worker process ended by itself: %v", err)
	}
	return acknowledged
}

// TestProcessesShareTheQueue: several runners on one PostgreSQL database do every job
// once, whichever of them enqueued it.
func TestProcessesShareTheQueue(t *testing.T) {
	t.Parallel()
	const programs, n = 3, 120
	where := storetest.PostgresURL(t)
	ended := make(chan string, n)
	var first *store.DB
	for range programs {
		var r *jobs.Runner
		o := options(where)
		o.Jobs = func(cancelled []string) { r.Changed(cancelled) }
		db := storetest.OpenWith(t, o)
		if first == nil {
			first = db
		}
		r = jobs.New(db, jobs.Options{Log: discardLog})
		r.Handle(effectKind(db, func(j *jobs.Job) { ended <- j.Subject }))
		r.Start()
		t.Cleanup(func() {
			if err := r.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	user := storetest.User(t, first)
	for range n {
		if err := first.Enqueue(context.Background(), jobs.Spec{Kind: "a.b", UserID: user, Subject: uuid.NewString()}); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		<-ended
	}
	if got := done(t, first, user); got != n {
		t.Errorf("%d jobs are done, want %d", got, n)
	}
}
