package research_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/cognition"
	"nodest/internal/jobs"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/websearch"
	"nodest/websearch/research"
	"nodest/websearch/research/agent"
)

// mortalOf is the store of a process that dies before one of its writes or commits, or behind a commit.
func mortalOf(db *store.DB, l *storetest.Life) research.Store {
	return storetest.Mortal[research.Tx]{Store: db.Research(), Life: l, Writes: func(tx research.Tx, l *storetest.Life) research.Tx {
		tx.RunTx, tx.Jobs = runWrites{tx.RunTx, l}, jobWrites{tx.Jobs, l}
		return tx
	}}
}

type (
	runWrites struct {
		research.RunTx
		life *storetest.Life
	}
	jobWrites struct {
		jobs.Tx
		life *storetest.Life
	}
)

// then writes, if the process lives.
func then(l *storetest.Life, write func() error) error {
	if err := l.Step(); err != nil {
		return err
	}
	return write()
}

func (w runWrites) PutResearch(r *research.Run) error {
	return then(w.life, func() error { return w.RunTx.PutResearch(r) })
}

func (w runWrites) PutResearchSteps(runID string, steps ...agent.Step) error {
	return then(w.life, func() error { return w.RunTx.PutResearchSteps(runID, steps...) })
}

func (w runWrites) PutResearchMessages(runID string, messageIDs ...string) error {
	return then(w.life, func() error { return w.RunTx.PutResearchMessages(runID, messageIDs...) })
}

func (w runWrites) PutResearchCall(runID string, c *research.Call) error {
	return then(w.life, func() error { return w.RunTx.PutResearchCall(runID, c) })
}

func (w runWrites) DropResearchCalls(runID string) error {
	return then(w.life, func() error { return w.RunTx.DropResearchCalls(runID) })
}

func (w jobWrites) NoteJob(j *jobs.Job, progress any) error {
	return then(w.life, func() error { return w.Tx.NoteJob(j, progress) })
}

func (w jobWrites) FinishJob(j *jobs.Job) error {
	return then(w.life, func() error { return w.Tx.FinishJob(j) })
}

// plenty is a budget of which answers that were lost, and count as paid, take no part that a run misses.
var plenty = 1_000_000

// killed are ways to research.
var killed = map[string]struct {
	order  research.Order
	change func(w *world)
}{
	"alone":           {order: research.Order{Tokens: &plenty}},
	"a team":          {order: research.Order{Tokens: &plenty, Team: new(2)}},
	"without a model": {change: func(w *world) { w.model = nil }},
}

// Wherever a run is killed, the next process goes on from there: with the same answer and the same steps, each
// of them once, and without a call whose answer was stored.
func TestARunThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		var kills atomic.Int64
		t.Cleanup(func() {
			if n := kills.Load(); n > 0 && n < 90 {
				t.Errorf("only %d kills", n)
			} else {
				t.Logf("%d kills", n)
			}
		})
		for name, k := range killed {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				db := open(t, store.Options{})
				of := newWeb(t, db)
				kills.Add(killEverywhere(t, db, of, k.order, k.change))
			})
		}
	})
}

// mostAtOnce is how many calls of the model can be in the making.
func mostAtOnce(o research.Order) int {
	if o.Team == nil {
		return 1
	}
	return *o.Team
}

// mostKills bounds the kills of one way to research: they are spread over all places.
const mostKills = 40

func killEverywhere(t *testing.T, db *store.DB, of *web, order research.Order, change func(w *world)) (kills int64) {
	t.Helper()
	begin := func() (*world, string) {
		w := newWorld(t, db, of)
		if change != nil {
			change(w)
		}
		return w, w.start(order)
	}
	whole, id := begin()
	life := &storetest.Life{}
	whole.must(whole.work(mortalOf(db, life)))
	want, calls, total := whole.outcome(id, "unkilled"), whole.calls, life.Steps()
	t.Logf("%d places, %d calls of the model", total, calls)
	for at := 1; at <= total; at += max(1, total/mostKills) {
		w, id := begin()
		err := w.work(mortalOf(db, &storetest.Life{Ends: at}))
		if err != nil && !errors.Is(err, storetest.ErrKilled) {
			t.Fatal(err)
		}
		kills++
		what := fmt.Sprintf("killed at %d of %d", at, total)
		if err != nil && w.run(id).FinishedAt == nil {
			w.takeOver()
			w.must(w.work(db.Research()))
		}
		if got := w.outcome(id, what); got != want {
			t.Errorf("%s: %s", what, differs(got, want))
		}
		if again := mostAtOnce(order); w.calls > calls+again { // those that were being made
			t.Errorf("%s: %d calls, want %d and %d at most whose answers were lost", what, w.calls, calls, again)
		}
	}
	return kills
}

// One run that is killed again and again, each time a little later, ends with the answer that it would have had.
func TestARunSurvivesThirtyKills(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		db := open(t, store.Options{})
		of := newWeb(t, db)
		whole := newWorld(t, db, of)
		order := research.Order{Tokens: &plenty, Team: new(2)}
		id := whole.start(order)
		whole.must(whole.work(db.Research()))
		want, first := whole.outcome(id, "unkilled"), whole.run(id).Cost

		w := newWorld(t, db, of)
		id = w.start(order)
		kills := 0
		for ; ; kills++ {
			err := w.work(mortalOf(db, &storetest.Life{Ends: 40 + 3*(kills%7)}))
			if err == nil {
				break
			}
			if !errors.Is(err, storetest.ErrKilled) {
				t.Fatal(err)
			}
			if w.run(id).FinishedAt != nil {
				break
			}
			w.takeOver()
		}
		if got := w.outcome(id, "killed again and again"); got != want {
			t.Errorf("after %d kills: %s", kills, differs(got, want))
		}
		if kills < 30 {
			t.Errorf("only %d kills", kills)
		}
		cost := w.run(id).Cost
		if lost := cost.Tokens() - first.Tokens(); lost <= 0 {
			t.Errorf("what may have been lost counts: %+v", cost)
		}
	})
}

// After a crash a run takes the pages that it has read from where they are stored, however long the server was down:
// from the net they might be others, or gone.
func TestPagesThatWereReadAreNotFetchedAgainAfterACrash(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		db := open(t, store.Options{})
		life := &storetest.Life{}
		whole := newWorld(t, db, newWeb(t, db))
		whole.start(research.Order{Tokens: &plenty})
		whole.must(whole.work(mortalOf(db, life)))

		w := newWorld(t, db, newWeb(t, db))
		id := w.start(research.Order{Tokens: &plenty})
		const behindTheSteps = 20 // writes before the last one, among them those of the references
		if err := w.work(mortalOf(db, &storetest.Life{Ends: life.Steps() - behindTheSteps})); !errors.Is(err, storetest.ErrKilled) {
			t.Fatal(err)
		}
		before := w.web.read()
		w.must(db.WebSearch().Update(t.Context(), w.user, func(tx websearch.Tx) error {
			for host := range before {
				page, err := tx.WebPage("http://" + host + "/bridge")
				if err != nil || page == nil {
					return fmt.Errorf("the page of %s is %v: %w", host, page, err)
				}
				page.FreshUntil = page.FetchedAt
				if err := tx.PutWebPage(page); err != nil {
					return err
				}
			}
			return nil
		}))
		w.takeOver()
		w.must(w.work(db.Research()))
		w.outcome(id, "after a crash")
		after := w.web.read()
		for host, n := range before {
			if after[host] != n {
				t.Errorf("the page of %s was fetched %d times, and again after the crash", host, n)
			}
		}
		if len(before) == 0 {
			t.Error("no page was read before the crash")
		}
	})
}

// A run of which the process dies again and again before it has learned anything fails, and says so.
func TestARunThatKillsItsProcessFails(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		db := open(t, store.Options{})
		w := newWorld(t, db, newWeb(t, db))
		id := w.start(research.Order{})
		for range 4 {
			if err := w.work(mortalOf(db, &storetest.Life{Ends: 5})); !errors.Is(err, storetest.ErrKilled) {
				t.Fatal(err)
			}
			w.takeOver()
		}
		w.must(w.work(db.Research()))
		run := w.run(id)
		if run.State != research.Failed || run.Failure == nil || !strings.Contains(run.Failure.Message, "several times") || w.calls != 0 {
			t.Errorf("%d calls, %+v", w.calls, run)
		}
	})
}

// differs is the first line in which two texts differ.
func differs(got, want string) string {
	lines := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			return fmt.Sprintf("line %d is %q in\n%s\nwant\n%s", i+1, line, got, want)
		}
	}
	return "it is shorter"
}

// outcome describes what a run has become, without ids, times and costs.
func (w *world) outcome(id, what string) string {
	w.Helper()
	run := w.run(id)
	if run.State != research.Done {
		w.Fatalf("%s: %+v", what, run)
	}
	result := *run.Result
	result.Cost, result.Steps = agent.Cost{}, nil
	for _, s := range run.Steps {
		s.Cost = agent.Cost{}
		result.Steps = append(result.Steps, s)
	}
	doc, err := json.MarshalIndent(result, "", " ")
	w.must(err)
	w.must(w.db.Research().View(w.Context(), w.user, func(tx research.Tx) error {
		open, _, err := tx.Jobs.Jobs(jobs.Filter{Kind: research.JobRun, Open: true}, "", 5)
		calls, failed := tx.ResearchCalls(id)
		logged, missing := tx.Log.Events(w.chat, 0, 100, cognition.TypeQuery)
		if len(open) > 0 || len(calls) > 0 || len(logged) != 1 {
			w.Errorf("%s: %d jobs are open, %d calls are left, and the log has %d queries", what, len(open), len(calls), len(logged))
		}
		return errors.Join(err, failed, missing)
	}))
	events, err := w.db.Events(w.Context(), w.user, 0, 100)
	w.must(err)
	ends := 0
	for _, e := range events {
		if e.Type == research.EventDone {
			ends++
		}
	}
	if ends != 1 {
		w.Errorf("%s: %d events of its end", what, ends)
	}
	return moments.ReplaceAllString(string(doc), "NOW")
}

// moments are times of knowledge that was learned in the run.
var moments = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
