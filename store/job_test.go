package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store"
)

const jobLease = time.Minute

// enqueue adds jobs of the test's user.
func (e *env) enqueue(specs ...jobs.Spec) {
	e.Helper()
	e.update(func(tx nodest.Tx) error { return tx.Jobs.Enqueue(specs...) })
}

// claim claims at most n jobs of a kind.
func (e *env) claim(owner, kind string, n int) []*jobs.Job {
	e.Helper()
	claimed, err := e.db.ClaimJobs(context.Background(), owner, jobLease, []jobs.Want{{Kind: kind, Free: n, PerUser: n}})
	if err != nil {
		e.Fatal(err)
	}
	return claimed
}

// claimOne claims the only claimable job of a kind.
func (e *env) claimOne(owner, kind string) *jobs.Job {
	e.Helper()
	claimed := e.claim(owner, kind, 5)
	if len(claimed) != 1 {
		e.Fatalf("%d jobs were claimed, want one", len(claimed))
	}
	return claimed[0]
}

func (e *env) end(j *jobs.Job, o jobs.Outcome) {
	e.Helper()
	if err := e.db.EndJob(context.Background(), j, o); err != nil {
		e.Fatal(err)
	}
}

// jobs lists the user's jobs, oldest first: subject, state, attempt, payload.
func (e *env) jobs(f jobs.Filter) (lines []string) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		lines = nil
		items, _, err := tx.Jobs.Jobs(f, "", 500)
		for _, j := range items {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", j.Subject, j.State, j.Attempt, j.Payload)))
		}
		slices.Reverse(lines)
		return err
	})
	return lines
}

func (e *env) job(id string) (j *jobs.Job) {
	e.Helper()
	e.view(func(tx nodest.Tx) (err error) {
		j, err = tx.Jobs.Job(id)
		return err
	})
	return j
}

// wantLost checks that every operation on a job returns ErrLost.
func (e *env) wantLost(j *jobs.Job) {
	e.Helper()
	for name, try := range map[string]func() error{
		"FinishJob": func() error {
			return e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error { return tx.Jobs.FinishJob(j) })
		},
		"Tx.NoteJob": func() error {
			return e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error { return tx.Jobs.NoteJob(j, 1) })
		},
		"EndJob": func() error { return e.db.EndJob(context.Background(), j, jobs.Outcome{State: jobs.Failed}) },
	} {
		if err := try(); !errors.Is(err, jobs.ErrLost) {
			e.Errorf("%s: error is %v, want ErrLost", name, err)
		}
	}
}

func TestOneJobOfAKindOwnerAndSubjectIsOpen(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		hour := start.Add(time.Hour)
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`1`), NotBefore: hour})
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`2`), Once: true})
		e.equal("once", e.jobs(jobs.Filter{}), []string{"s queued 0 1"})
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`3`), NotBefore: hour.Add(time.Hour)})
		e.equal("the newest payload", e.jobs(jobs.Filter{}), []string{"s queued 0 3"})
		e.clock.advance(time.Hour - time.Millisecond)
		e.equal("claimed before its time", len(e.claim("p", "a.b", 5)), 0)
		e.clock.advance(time.Millisecond)
		e.equal("claimed at the earlier time", len(e.claim("p", "a.b", 5)), 1)

		e.enqueue(jobs.Spec{Kind: "a.c", Subject: "s"}, jobs.Spec{Kind: "a.c", Subject: "t"}, jobs.Spec{Kind: "a.c", Subject: "s"})
		other := newUser(e)
		err := e.db.Enqueue(context.Background(), jobs.Spec{Kind: "a.c", UserID: other, Subject: "s"}, jobs.Spec{Kind: "a.c", Subject: "s"})
		if err != nil {
			e.Fatal(err)
		}
		e.equal("of two subjects and three owners", len(e.claim("p", "a.c", 9)), 4)
		e.code(fault.NotFound, e.db.Enqueue(context.Background(), jobs.Spec{Kind: "a.c", UserID: id(), Subject: "s"}))
		e.refused(fault.Invalid, func(tx nodest.Tx) error { return tx.Jobs.Enqueue(jobs.Spec{Subject: "s"}) })
		e.refused(fault.Invalid, func(tx nodest.Tx) error { return tx.Jobs.Enqueue(jobs.Spec{Kind: "a.b", Payload: []byte(`{`)}) })
	})
}

// Each message enqueues the jobs of its chat again, which are mostly there.
func TestAJobThatIsAlreadyQueuedIsNotWritten(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		spec := jobs.Spec{Kind: "a.b", Subject: "s", NotBefore: start.Add(time.Hour)}
		wakes := func(what string, want int64, specs ...jobs.Spec) {
			e.Helper()
			before := e.wakes.Load()
			e.enqueue(specs...)
			e.equal(what, e.wakes.Load()-before, want)
		}
		wakes("new", 1, spec, jobs.Spec{Kind: "a.c", Subject: "s"})
		since := e.openJobs()
		e.clock.advance(time.Minute)
		later := spec
		later.NotBefore = spec.NotBefore.Add(time.Minute)
		wakes("again, and later", 0, spec, later)
		e.equal("rows", e.openJobs(), since)
		sooner := spec
		sooner.NotBefore = start.Add(time.Minute)
		wakes("sooner", 1, sooner)
		e.claimOne("p", "a.b")
		wakes("what follows a running one", 1, spec)
		wakes("what follows it, again", 0, spec)
	})
}

// openJobs are the open jobs of the test's user as they are stored.
func (e *env) openJobs() (all []jobs.Job) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		items, _, err := tx.Jobs.Jobs(jobs.Filter{Open: true}, "", 500)
		all = nil
		for _, j := range items {
			all = append(all, *j)
		}
		return err
	})
	return all
}

func TestAJobEnqueuedWhileOneRunsFollowsIt(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`1`)})
		first := e.claimOne("p", "a.b")
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`"no"`), Once: true})
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`2`), NotBefore: start.Add(time.Hour)})
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`3`)})
		e.equal("claimed meanwhile", len(e.claim("q", "a.b", 5)), 0)
		e.update(func(tx nodest.Tx) error { return tx.Jobs.FinishJob(first) })
		e.equal("after it", e.jobs(jobs.Filter{Open: true}), []string{"s queued 0 3"})
		second := e.claimOne("p", "a.b")
		e.wantLost(first)
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`4`)})
		e.end(second, jobs.Outcome{State: jobs.Failed, Error: &jobs.Failure{Code: fault.Invalid, Message: "m"}})
		third := e.claimOne("p", "a.b")
		e.end(third, jobs.Outcome{State: jobs.Done})
		e.equal("open jobs", e.jobs(jobs.Filter{Open: true}), []string{})
		e.equal("why it failed", *e.job(second.ID).Error, jobs.Failure{Code: fault.Invalid, Message: "m"})
		e.equal("attempts begin anew", third.Attempt, 1)
	})
}

// A job keeps its payload when it is retried. A job enqueued meanwhile runs right
// after it and is not lost.
func TestARetriedJobKeepsItsPayloadAndTheNextJob(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`"usual"`)})
		j := e.claimOne("p", "a.b")
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`"later"`), NotBefore: e.clock.now().Add(time.Hour)})
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`"now"`)})
		e.end(j, jobs.Outcome{State: jobs.Queued})
		e.clock.advance(jobLease + time.Millisecond)
		for attempt := 2; attempt <= 3; attempt++ {
			j = e.claimOne("p", "a.b")
			e.equal("tried again", fmt.Sprint(j.Attempt, string(j.Payload)), fmt.Sprint(attempt, `"usual"`))
			e.clock.advance(jobLease + time.Millisecond)
			if attempt == 2 {
				if err := e.db.RecoverJobs(context.Background(), map[string]int{"a.b": 5}, ""); err != nil {
					e.Fatal(err)
				}
			}
		}
		e.update(func(tx nodest.Tx) error { return tx.Jobs.FinishJob(j) })
		next := e.claimOne("p", "a.b")
		e.equal("right after it", string(next.Payload), `"now"`)
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"})
		e.update(func(tx nodest.Tx) error { return tx.Jobs.CancelJobs("s") })
		e.equal("open jobs after the cancellation", e.jobs(jobs.Filter{Open: true}), []string{})
	})
}

func TestEnqueueingDoesNotShortenARetryDelay(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`1`)})
		j := e.claimOne("p", "a.b")
		failure := &jobs.Failure{Code: fault.UpstreamDown, Message: "down"}
		e.end(j, jobs.Outcome{State: jobs.Queued, Error: failure, After: time.Minute})
		e.wantLost(j)
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`2`)})
		e.equal("claimed at once", len(e.claim("p", "a.b", 5)), 0)
		view, err := e.db.LookAtJobs(context.Background(), "p", []string{"a.b", "a.c"})
		if err != nil {
			e.Fatal(err)
		}
		e.equal("view of the queue", *view, jobs.View{Next: time.Minute})
		e.equal("the failure", *e.job(j.ID).Error, *failure)
		e.clock.advance(time.Minute)
		j = e.claimOne("p", "a.b")
		e.equal("attempt", j.Attempt, 2)
		e.end(j, jobs.Outcome{State: jobs.Queued, Uncounted: true})
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`3`), NotBefore: e.clock.now().Add(time.Hour)})
		j = e.claimOne("p", "a.b")
		e.equal("attempt after a stop", j.Attempt, 2)
		e.equal("payload", string(j.Payload), "1")
		e.equal("the next payload", string(e.job(j.ID).Next.Payload), "3")
		e.end(j, jobs.Outcome{State: jobs.Done})
		e.equal("no failure", e.job(j.ID).Error == nil, true)
		e.equal("no next job", e.job(j.ID).Next == nil, true)
		e.equal("payload of the next job", string(e.claimOne("p", "a.b").Payload), "3")
	})
}

func TestUsersTakeTurns(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		users := []string{"", e.user, newUser(e), newUser(e)}
		slices.Sort(users)
		name := func(user string) string { return string(rune('a' + slices.Index(users, user))) }
		for i, user := range users {
			for n := range []int{3, 20, 2, 1}[i] {
				err := e.db.Enqueue(context.Background(), jobs.Spec{Kind: "a.b", UserID: user, Subject: fmt.Sprint(n)})
				if err != nil {
					e.Fatal(err)
				}
			}
		}
		order := ""
		var last *string
		for range 13 {
			claimed, err := e.db.ClaimJobs(context.Background(), "p", jobLease, []jobs.Want{{Kind: "a.b", Free: 1, After: last, PerUser: 99}})
			if err != nil {
				e.Fatal(err)
			}
			order += name(claimed[0].UserID)
			last = &claimed[0].UserID
		}
		e.equal("one by one", order, "abcdabcabbbbb")
		claimed, err := e.db.ClaimJobs(context.Background(), "p", jobLease, []jobs.Want{
			{Kind: "a.b", Free: 9, After: last, PerUser: 5, Running: map[string]int{users[1]: 2}},
		})
		if err != nil {
			e.Fatal(err)
		}
		e.equal("at most the user's share", len(claimed), 3)
	})
}

func TestAJobIsClaimedOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		const n = 120
		for i := range n {
			e.enqueue(jobs.Spec{Kind: "a.b", Subject: fmt.Sprint(i)})
		}
		var mu sync.Mutex
		times := map[string]int{}
		var group sync.WaitGroup
		for p := range 6 {
			group.Go(func() {
				for {
					claimed, err := e.db.ClaimJobs(context.Background(), fmt.Sprint(p), jobLease, []jobs.Want{{Kind: "a.b", Free: 3, PerUser: 3}})
					if err != nil {
						e.Error(err)
						return
					}
					mu.Lock()
					for _, j := range claimed {
						times[j.Subject]++
					}
					left := n - len(times)
					mu.Unlock()
					if left == 0 {
						return
					}
				}
			})
		}
		group.Wait()
		for subject, n := range times {
			if n != 1 {
				e.Errorf("job %s was claimed %d times", subject, n)
			}
		}
	})
}

func TestAnExpiredLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		attempts := map[string]int{"a.b": 3}
		recover := func(alone string) {
			e.Helper()
			if err := e.db.RecoverJobs(ctx, attempts, alone); err != nil {
				e.Fatal(err)
			}
		}
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"})
		first := e.claimOne("p", "a.b")
		e.clock.advance(jobLease)
		recover("")
		e.equal("claimed within the lease", len(e.claim("q", "a.b", 5)), 0)
		if err := e.db.RenewJobs(ctx, "q", []string{first.ID}, jobLease); err != nil { // q does not hold it
			e.Fatal(err)
		}
		e.clock.advance(time.Millisecond)
		if err := e.db.RenewJobs(ctx, "p", []string{first.ID}, jobLease); err != nil { // expired, but nobody took it over
			e.Fatal(err)
		}
		e.clock.advance(jobLease)
		recover("")
		e.equal("claimed within the new lease", len(e.claim("q", "a.b", 5)), 0)

		e.clock.advance(time.Millisecond)
		view, err := e.db.LookAtJobs(ctx, "p", nil)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("what p sees", *view, jobs.View{Over: true, Held: []jobs.Ref{first.Ref()}})
		recover("")
		second := e.claimOne("q", "a.b")
		e.equal("attempt", second.Attempt, 2)
		e.wantLost(first)
		if err := e.db.RenewJobs(ctx, "p", []string{first.ID}, time.Hour); err != nil {
			e.Fatal(err)
		}
		e.equal("until", e.job(first.ID).LeaseUntil, e.clock.now().Add(jobLease).UTC())

		recover("q")
		e.equal("a running job of q itself", e.job(first.ID).State, jobs.Running)
		recover("r")
		third := e.claimOne("r", "a.b")
		e.equal("attempt", third.Attempt, 3)
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s", Payload: []byte(`"next"`)})
		attempts["other.kind"], attempts["a.b"] = 1, 3
		recover("s")
		e.equal("after the last attempt", e.jobs(jobs.Filter{}), []string{"s failed 3", `s queued 0 "next"`})
		e.equal("why", e.job(first.ID).Error.Code, fault.Internal)
	})
}

func TestAnEffectAndItsJobEndTogether(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: conversation})
		j := e.claimOne("p", "a.b")
		work := func(tx nodest.Tx) error {
			if _, err := say(tx, conversation, "", "effect"); err != nil {
				return err
			}
			if err := tx.Jobs.NoteJob(j, map[string]int{"steps": 1}); err != nil {
				return err
			}
			for _, child := range []string{"x", "y"} {
				if err := tx.Jobs.Enqueue(jobs.Spec{Kind: "a.child", Subject: child}); err != nil {
					return err
				}
			}
			return tx.Jobs.FinishJob(j)
		}
		failure := errors.New("no")
		err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error { return errors.Join(work(tx), failure) })
		e.equal("error", errors.Is(err, failure), true)
		e.equal("after a failure", e.jobs(jobs.Filter{}), []string{conversation + " running 1"})
		e.update(work)
		e.equal("after the end", e.jobs(jobs.Filter{}), []string{conversation + " done 1", "x queued 0", "y queued 0"})
		e.equal("progress", string(e.job(j.ID).Progress), `{"steps":1}`)
		// A runner that lost the job leaves no effect.
		err = e.db.Update(context.Background(), e.user, work)
		e.equal("lost", errors.Is(err, jobs.ErrLost), true)
		e.view(func(tx nodest.Tx) error {
			all, err := tx.Chats.Children(conversation, "")
			e.equal("effects", len(all), 1)
			return err
		})
	})
}

func TestTheServersOwnJobsFanOutToUsers(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		other := newUser(e)
		if err := e.db.Enqueue(context.Background(), jobs.Spec{Kind: "a.b"}); err != nil {
			e.Fatal(err)
		}
		j := e.claimOne("p", "a.b")
		e.wantHidden(j)
		e.end(j, jobs.Outcome{State: jobs.Done, Next: []jobs.Spec{
			{Kind: "a.child", UserID: e.user, Subject: "s"}, {Kind: "a.child", UserID: other, Subject: "s"},
		}})
		e.equal("the user's", e.jobs(jobs.Filter{}), []string{"s queued 0"})
		e.equal("all", len(e.claim("p", "a.child", 5)), 2)
	})
}

// wantHidden checks that a user cannot see or end a job of the server.
func (e *env) wantHidden(j *jobs.Job) {
	e.Helper()
	e.refused(fault.Conflict, func(tx nodest.Tx) error { return tx.Jobs.FinishJob(j) })
	e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Jobs.Job(j.ID); return err })
	e.update(func(tx nodest.Tx) error { return tx.Jobs.CancelJobs(j.Subject) })
}

func TestCancelledJobsEnd(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.enqueue(jobs.Spec{Kind: "a.run", Subject: "s"}, jobs.Spec{Kind: "a.b", Subject: "s"}, jobs.Spec{Kind: "a.c", Subject: "s"}, jobs.Spec{Kind: "a.b", Subject: "t"})
		j := e.claimOne("p", "a.run")
		e.enqueue(jobs.Spec{Kind: "a.run", Subject: "s"}) // would run next
		e.update(func(tx nodest.Tx) error { return tx.Jobs.CancelJobs("s", "a.run", "a.b") })
		e.equal("open", e.jobs(jobs.Filter{Open: true}), []string{"t queued 0", "s queued 0"})
		e.update(func(tx nodest.Tx) error { return tx.Jobs.CancelJobs("s") })
		e.equal("open", e.jobs(jobs.Filter{Open: true}), []string{"t queued 0"})
		e.equal("state", e.job(j.ID).State, jobs.Cancelled)
		e.wantLost(j)
		e.enqueue(jobs.Spec{Kind: "a.run", Subject: "s"})
		e.equal("a new one", e.claimOne("p", "a.run").Attempt, 1)
	})
}

func TestOfJobsThatAreDoneTheNewestIsKept(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.enqueue(jobs.Spec{Kind: "k", Subject: "other"})
		e.end(e.claimOne("p", "k"), jobs.Outcome{State: jobs.Done})
		for i, end := range []jobs.State{jobs.Done, jobs.Failed, jobs.Done, jobs.Done} {
			e.clock.advance(time.Second)
			e.enqueue(jobs.Spec{Kind: "k", Subject: "s", Payload: fmt.Append(nil, i)})
			e.end(e.claimOne("p", "k"), jobs.Outcome{State: end})
		}
		e.equal("jobs", e.jobs(jobs.Filter{}), []string{"other done 1", "s failed 1 1", "s done 1 3"})
	})
}

func TestJobsAreListed(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		for i := range 7 {
			e.enqueue(jobs.Spec{Kind: []string{"a.b", "a.c"}[i%2], Subject: fmt.Sprint("s", i%3)})
			e.clock.advance(time.Second)
		}
		done := e.claim("p", "a.b", 1)[0]
		e.end(done, jobs.Outcome{State: jobs.Done})
		e.equal("of a kind", e.jobs(jobs.Filter{Kind: "a.c"}), []string{"s1 queued 0", "s0 queued 0", "s2 queued 0"})
		e.equal("in a state", e.jobs(jobs.Filter{State: jobs.Done}), []string{"s0 done 1"})
		e.equal("of a subject", e.jobs(jobs.Filter{Subject: "s0"}), []string{"s0 done 1", "s0 queued 0"})
		var all []string
		e.view(func(tx nodest.Tx) error {
			all = nil
			for cursor := ""; ; {
				items, next, err := tx.Jobs.Jobs(jobs.Filter{}, cursor, 2)
				if err != nil {
					return err
				}
				for _, j := range items {
					all = append(all, j.Subject)
				}
				if cursor = next; next == "" {
					return nil
				}
			}
		})
		e.equal("newest first", all, []string{"s2", "s1", "s0", "s2", "s1", "s0"})
	})
}

// Events that a handler emits are published like any others.
func TestEventsOfAHandlerArePublished(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"})
		j := e.claimOne("p", "a.b")
		e.update(func(tx nodest.Tx) error {
			if err := tx.Emit(&stream.Event{Type: "memory.updated"}); err != nil {
				return err
			}
			return tx.Jobs.FinishJob(j)
		})
		e.equal("events", len(e.published.of(e.user)), 1)
	})
}

// The cost of a claim does not depend on the length of the queue.
func TestQueueQueriesUseTheirIndexes(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		if store.OnPostgres(e.db) {
			e.Skip("PostgreSQL plans by statistics")
		}
		for query, index := range map[string]string{
			"SELECT id FROM jobs WHERE state = 'queued' AND kind = 'k' AND +not_before <= 1 AND COALESCE(user_id, x'') > x'aa'" +
				" ORDER BY COALESCE(user_id, x''), not_before, id LIMIT 1": "jobs_turn",
			"SELECT id FROM jobs WHERE state = 'queued' AND kind = 'k' AND +not_before <= 1" +
				" ORDER BY COALESCE(user_id, x''), not_before, id LIMIT 1": "(kind=?)",
			"SELECT MIN(not_before) FROM jobs WHERE state = 'queued' AND kind = 'k'":                                                         "jobs_next",
			"SELECT 1 FROM jobs WHERE state = 'running' AND lease_until < 1 LIMIT 1":                                                         "jobs_lease",
			"SELECT id FROM jobs WHERE user_id = 'u' ORDER BY created_at DESC, id DESC":                                                      "jobs_list",
			"SELECT id FROM jobs WHERE state IN ('done', 'failed', 'cancelled') AND updated_at <= 1":                                         "jobs_ended",
			"SELECT id FROM jobs WHERE subject = 's' AND kind = 'k' AND user_id IS NOT DISTINCT FROM x'aa' AND state = 'done' AND id <> 'j'": "jobs_subject",
		} {
			plan, err := store.Plan(e.db, query)
			if err != nil {
				e.Fatal(err)
			}
			if all := strings.Join(plan, "\n"); !strings.Contains(all, index) || strings.Contains(all, "SCAN") || strings.Contains(all, "TEMP B-TREE") {
				e.Errorf("%s\nis answered by\n%s", query, all)
			}
		}
	})
}

// The cost of finding an open job does not depend on how many jobs have ended.
func TestAnOpenJobIsFoundBySubject(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.enqueue(jobs.Spec{Kind: "a.b", Subject: "s"}, jobs.Spec{Kind: "a.b", Subject: "other"})
		if err := e.db.Enqueue(context.Background(), jobs.Spec{Kind: "a.b", Subject: "s"}); err != nil { // a job of the server
			e.Fatal(err)
		}
		e.view(func(tx nodest.Tx) error {
			for filter, want := range map[jobs.Filter]int{
				{Kind: "a.b", Subject: "s", Open: true}: 1, {Kind: "a.b", Open: true}: 2, {Subject: "s", Open: true}: 1, {Kind: "a.c", Open: true}: 0,
			} {
				found, _, err := tx.Jobs.Jobs(filter, "", 0)
				if err != nil {
					return err
				}
				e.equal(fmt.Sprint("open jobs of ", filter), len(found), want)
			}
			return nil
		})
		if store.OnPostgres(e.db) {
			return // PostgreSQL plans by statistics
		}
		plan, err := store.Plan(e.db, "SELECT * FROM jobs WHERE COALESCE(user_id, x'') = x'aa' AND state IN ('queued', 'running')"+
			" AND kind = 'k' AND subject = 's' ORDER BY created_at DESC, id DESC LIMIT 51")
		if err != nil || !strings.Contains(strings.Join(plan, " "), "jobs_one_open (<expr>=? AND kind=? AND subject=?)") {
			e.Errorf("the plan is %v, %v", plan, err)
		}
	})
}
