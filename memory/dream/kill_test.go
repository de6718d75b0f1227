package dream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/cognition"
	"nodest/internal/bench/figure"
	"nodest/internal/civil"
	"nodest/internal/jobs"
	"nodest/memory/dream"
	"nodest/store"
	"nodest/store/storetest"
)

// mortal is the store of a process that dies before one of its writes or commits, or behind a commit.
type mortal struct {
	dream.Store
	storetest.Mortal[dream.Tx]
}

func mortalOf(db *store.DB, l *storetest.Life) dream.Store {
	of := db.Dreams()
	return &mortal{of, storetest.Mortal[dream.Tx]{Store: of, Life: l, Writes: func(tx dream.Tx, l *storetest.Life) dream.Tx {
		tx.DocumentTx, tx.RunTx = documentWrites{tx.DocumentTx, l}, runWrites{tx.RunTx, l}
		tx.Log, tx.Memory.Jobs = logWrites{tx.Log, l}, jobWrites{tx.Memory.Jobs, l}
		return tx
	}}}
}

// View and Update are those of the process.
func (m *mortal) View(ctx context.Context, userID string, fn func(dream.Tx) error) error {
	return m.Mortal.View(ctx, userID, fn)
}

func (m *mortal) Update(ctx context.Context, userID string, fn func(dream.Tx) error) error {
	return m.Mortal.Update(ctx, userID, fn)
}

type (
	documentWrites struct {
		dream.DocumentTx
		life *storetest.Life
	}
	runWrites struct {
		dream.RunTx
		life *storetest.Life
	}
	logWrites struct {
		cognition.LogTx
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

func (w documentWrites) PutMemoryDocument(characterID string, d *dream.Document) error {
	return then(w.life, func() error { return w.DocumentTx.PutMemoryDocument(characterID, d) })
}

func (w runWrites) AddDreamRun(run *dream.Run) error {
	return then(w.life, func() error { return w.RunTx.AddDreamRun(run) })
}

func (w runWrites) PutDreamRun(run *dream.Run) error {
	return then(w.life, func() error { return w.RunTx.PutDreamRun(run) })
}

func (w runWrites) SetReflected(conversationID string, from, to int64) error {
	return then(w.life, func() error { return w.RunTx.SetReflected(conversationID, from, to) })
}

func (w runWrites) ConsumeReflections(events ...*cognition.Event) error {
	return then(w.life, func() error { return w.RunTx.ConsumeReflections(events...) })
}

func (w logWrites) AppendEvents(conversationID string, events ...*cognition.Event) error {
	return then(w.life, func() error { return w.LogTx.AppendEvents(conversationID, events...) })
}

func (w jobWrites) Enqueue(specs ...jobs.Spec) error {
	return then(w.life, func() error { return w.Tx.Enqueue(specs...) })
}

func (w jobWrites) NoteJob(j *jobs.Job, progress any) error {
	return then(w.life, func() error { return w.Tx.NoteJob(j, progress) })
}

func (w jobWrites) FinishJob(j *jobs.Job) error {
	return then(w.life, func() error { return w.Tx.FinishJob(j) })
}

// killed are ways in which a memory dreams. Each is killed before each of its writes and commits, and behind each commit.
var killed = map[string]func(w *world){
	"a run of several windows": func(w *world) {
		w.say(long(bought(0, 6))...)
		w.order(dream.Order{Force: true})
	},
	"answers that must be asked for again": func(w *world) {
		asked := map[string]bool{}
		w.model = func(prompt string) string {
			if first := len(asked)%2 == 0 && !asked[prompt]; first {
				asked[prompt] = true
				return "Let me think."
			}
			asked[prompt] = true
			return obedient(prompt)
		}
		w.say(long(bought(0, 4))...)
		w.order(dream.Order{Force: true})
	},
	"a night over two chats": func(w *world) {
		first := w.chat
		w.say(bought(0, 3)...)
		w.newChat()
		w.say(bought(3, 3)...)
		w.chat = first
	},
	"lines that are changed and filed away": func(w *world) {
		w.say("I bought a red bicycle.", "I keep bees and goats and a very old donkey behind the house.", "I like tea.")
		w.order(dream.Order{Force: true})
		w.must(w.work(w.db.Dreams()))
		w.say("I bought a blue bicycle.")
		w.model = func(prompt string) string {
			if strings.Contains(prompt, `{"updates":`) {
				return `{"updates":[{"path":"user.md","do":"change","line":"L1","text":"Ada bought a blue bicycle.","notes":[1]},
					{"path":"user.md","do":"remove","line":"L3"},{"path":"self.md","do":"add","text":"Ada bought a blue bicycle once more.","notes":[1]}]}`
			}
			return obedient(prompt)
		}
		w.order(dream.Order{Force: true})
	},
	"a run without a model": func(w *world) {
		w.model = nil
		w.say(long([]string{"I live in Marseille.", "I work as a baker.", "My sister is called Mia.", "I have a cat.", "I am 41 years old."})...)
		w.order(dream.Order{Force: true})
	},
	"a run that waits for the user": func(w *world) {
		talked := false
		w.model = func(prompt string) string {
			if !talked {
				talked = true
				w.say("I am still here.")
			}
			return obedient(prompt)
		}
		w.say(long(bought(0, 5))...)
		w.clock.Add(time.Hour)
		w.order(dream.Order{})
	},
	"a dry run": func(w *world) {
		w.say(long(bought(0, 5))...)
		w.scene.Least = 100 // no night reads what it leaves
		w.order(dream.Order{Force: true, DryRun: true})
	},
}

// long makes texts so long that four of them fill a window.
func long(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, text+" "+strings.Repeat("It rains a lot here. ", 145))
	}
	return all
}

func (w *world) order(o dream.Order) {
	w.Helper()
	_, err := w.start(o)
	w.must(err)
}

// live sweeps and works now and in the next night; storetest.ErrKilled = the process was killed.
func (w *world) live(of dream.Store) error {
	w.Helper()
	night := civil.Start(w.clock.Now(), w.clock.Now().Location()).Add(27 * time.Hour)
	for _, next := range []time.Time{night, night.Add(90 * time.Minute), night.Add(2 * time.Hour), {}} {
		if err := w.service(of).Sweep(w.Context()); err != nil {
			return err
		}
		if err := w.work(of); err != nil {
			return err
		}
		w.clock.To(next)
	}
	return nil
}

// Wherever a run is killed, the next process goes on: no message is reflected on twice, none is left out,
// each reflection is worked in once, and the documents are those of a run that nobody has killed. A run
// after that asks the model nothing.
func TestARunThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		var kills atomic.Int64
		t.Cleanup(func() {
			n := kills.Load()
			if t.Logf("%d kills", n); n > 0 && n < 200 {
				t.Errorf("only %d kills", n)
			}
		})
		for name, prepare := range killed {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				clock := figure.NewClock(noon)
				kills.Add(killEverywhere(t, open(t, store.Options{Now: clock.Now}), clock, prepare))
			})
		}
	})
}

func killEverywhere(t *testing.T, db *store.DB, clock *figure.Clock, prepare func(w *world)) (kills int64) {
	t.Helper()
	whole := newWorld(t, db, clock)
	prepare(whole)
	whole.must(whole.live(db.Dreams()))
	want, calls := whole.outcome("unkilled"), whole.calls.Load()
	for at := 1; ; at++ {
		w := newWorld(t, db, clock)
		prepare(w)
		err := w.live(mortalOf(db, &storetest.Life{Ends: at}))
		if err == nil { // it had fewer steps
			return kills
		}
		if !errors.Is(err, storetest.ErrKilled) {
			t.Fatal(err)
		}
		kills++
		what := fmt.Sprintf("killed at step %d", at)
		w.takeOver()
		w.must(w.live(db.Dreams()))
		if got := w.outcome(what); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
		again := int64(2) // an answer that was lost, perhaps with the question before it
		if w.runs()[0].DryRun {
			again = calls // nothing was stored
		}
		if n := w.calls.Load(); n > calls+again {
			t.Errorf("%s: %d calls, want %d", what, n, calls)
		}
		w.dreamsOfNothing(what)
	}
}

// takeOver is what another process does when the lease of the one that died has ended.
func (w *world) takeOver() {
	w.Helper()
	w.clock.Add(2 * time.Minute)
	w.must(w.db.RecoverJobs(w.Context(), map[string]int{dream.JobDream: w.dreams.Kinds()[0].Attempts}, ""))
}

// outcome describes what a world has become, without ids and times.
func (w *world) outcome(what string) string {
	w.Helper()
	var out strings.Builder
	w.must(w.db.Dreams().View(w.Context(), w.user, func(tx dream.Tx) error {
		open, _, err := tx.Memory.Jobs.Jobs(jobs.Filter{Kind: dream.JobDream, Open: true}, "", 5)
		if err != nil || len(open) > 0 {
			w.Errorf("%s: %d jobs are open, %v", what, len(open), err)
		}
		behind, err := tx.TracesBehind(w.character, 5)
		fmt.Fprintf(&out, "%d traces are behind\n", len(behind))
		if err != nil {
			return err
		}
		for _, chat := range w.chats {
			events, err := tx.Log.Events(chat, 0, 100, cognition.TypeReflection)
			if err != nil {
				return err
			}
			for _, e := range events {
				var r cognition.Reflection
				if err := cognition.Read(e, &r); err != nil {
					return err
				}
				fmt.Fprintf(&out, "%v %q consumed %v\n", r.SequenceRange, r.Summary, r.ConsumedAt != "")
			}
		}
		documents, err := tx.MemoryDocuments(w.character)
		for _, d := range documents {
			fmt.Fprintf(&out, "%s in version %d: %q\n", d.Path, d.Version, d.Text())
		}
		return err
	}))
	for _, r := range w.runs() {
		var changes []dream.Do
		for _, c := range r.Changes {
			changes = append(changes, c.Do)
		}
		doc, err := json.Marshal(changes)
		w.must(err)
		fmt.Fprintf(&out, "%s %s: %d reflections, %d consumed, changes %s\n", r.Cause, r.State, r.Reflections, r.Consumed, doc)
	}
	return day.ReplaceAllString(out.String(), "DAY")
}

var day = regexp.MustCompile(`\d{4}-\d\d-\d\d`)

// dreamsOfNothing checks that another run asks the model nothing, and makes no version.
func (w *world) dreamsOfNothing(what string) {
	w.Helper()
	if w.runs()[0].DryRun {
		return
	}
	calls, old := w.calls.Load(), w.outcome(what)
	w.order(dream.Order{Force: true})
	w.must(w.work(w.db.Dreams()))
	last := w.last()
	if w.calls.Load() != calls || len(last.Changes) > 0 || last.State != dream.Done || !strings.HasPrefix(w.outcome(what), old) {
		w.Errorf("%s: the run after it: %+v", what, last)
	}
}
