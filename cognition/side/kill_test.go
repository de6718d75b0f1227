package side_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/bench/figure"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/store"
	"nodest/store/storetest"
)

// mortal is the store of a process that dies before one of its writes or commits, or behind a commit.
func mortal(db *store.DB, l *storetest.Life) side.Store {
	return storetest.Mortal[side.Tx]{Store: db.Side(), Life: l, Writes: func(tx side.Tx, l *storetest.Life) side.Tx {
		tx.Log.LogTx, tx.Log.StateTx, tx.Log.GoalTx = logWrites{tx.Log.LogTx, l}, stateWrites{tx.Log.StateTx, l}, goalWrites{tx.Log.GoalTx, l}
		tx.Jobs, tx.Memory.FactTx = jobWrites{tx.Jobs, l}, factWrites{tx.Memory.FactTx, l}
		return tx
	}}
}

type (
	logWrites struct {
		cognition.LogTx
		life *storetest.Life
	}
	stateWrites struct {
		cognition.StateTx
		life *storetest.Life
	}
	goalWrites struct {
		cognition.GoalTx
		life *storetest.Life
	}
	jobWrites struct {
		jobs.Tx
		life *storetest.Life
	}
	factWrites struct {
		memory.FactTx
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

func (w logWrites) AppendEvents(conversationID string, events ...*cognition.Event) error {
	return then(w.life, func() error { return w.LogTx.AppendEvents(conversationID, events...) })
}

func (w stateWrites) PutSideState(conversationID string, s cognition.State) error {
	return then(w.life, func() error { return w.StateTx.PutSideState(conversationID, s) })
}

func (w goalWrites) UpdateGoal(g *cognition.Goal) error {
	return then(w.life, func() error { return w.GoalTx.UpdateGoal(g) })
}

func (w jobWrites) Enqueue(specs ...jobs.Spec) error {
	return then(w.life, func() error { return w.Tx.Enqueue(specs...) })
}

func (w jobWrites) FinishJob(j *jobs.Job) error {
	return then(w.life, func() error { return w.Tx.FinishJob(j) })
}

func (w factWrites) InsertFacts(characterID string, facts ...*memory.Memory) error {
	return then(w.life, func() error { return w.FactTx.InsertFacts(characterID, facts...) })
}

// killed runs a story as often as there are steps in it, each time in a conversation of its own and with the death of the
// process before another step, and returns how often it died. In the end all is as if it had lived.
func killed(t *testing.T, db *store.DB, clock *figure.Clock, story func(d *desk, l *storetest.Life) (check func(d *desk))) (kills int) {
	t.Helper()
	for at := 1; ; at++ {
		d, life := newDeskOn(t, db, clock), &storetest.Life{Ends: at}
		story(d, life)(d)
		if t.Failed() {
			t.Fatalf("killed before step %d", at)
		}
		if !life.Over() {
			return kills
		}
		kills++
	}
}

// lives is what a process does; it may be killed at it.
func (d *desk) lives(err error) {
	d.Helper()
	if err != nil && !errors.Is(err, storetest.ErrKilled) {
		d.Fatal(err)
	}
}

// Wherever the process is killed while an evaluation is set off, is on its way or is stored: each source is evaluated
// once, with one vote, and the model is not asked again.
func TestAnEvaluationThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	triggers := map[string]func(d *desk, of *side.Service, goal string){
		cognition.GoalCompletion: func(d *desk, of *side.Service, goal string) {
			status := cognition.GoalCompleted
			for range 2 { // who gets no answer asks again
				_, err := of.ChangeGoal(d.Context(), d.call(), goal, side.GoalPatch{Status: &status})
				d.lives(err)
			}
			d.runs(of)
		},
		cognition.TaskCompletion: func(d *desk, of *side.Service, _ string) {
			d.clock.Add(side.Idle)
			d.runs(of)
		},
		cognition.Compression: func(d *desk, of *side.Service, _ string) { of.BeforeSummary(d.Context(), d.user, d.chat) },
	}
	questions := [][][]string{
		{{"halden.test"}},
		{{"halden.test"}, {"inn.test"}},
		{{"halden.test", "other.test"}, {"inn.test"}, {"halden.test", "ferry.test"}},
	}
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		clock, kills := newClock(), 0
		db := open(t, store.Options{Now: clock.Now})
		for trigger, sets := range triggers {
			for _, hosts := range questions {
				kills += killed(t, db, clock, func(d *desk, l *storetest.Life) func(*desk) {
					goal := d.goal("Find out.")
					var want []string
					for i, h := range hosts {
						q := d.looksUp(fmt.Sprintf("Question %d?", i), h...)
						for _, one := range h {
							want = append(want, helpful(q, one, ""))
						}
					}
					sets(d, d.service(mortal(db, l)), goal)
					return func(d *desk) { d.wantEvaluatedOnce(goal, want) }
				})
				t.Logf("%s, %d queries: %d kills", trigger, len(hosts), kills)
			}
		}
		if kills < 60 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// runs is the work of a process that may die.
func (d *desk) runs(of *side.Service) {
	d.Helper()
	if j := d.claim(); j != nil {
		d.lives(of.Kinds()[0].Run(d.Context(), j))
	}
}

// restarts is a new process, which finds the jobs that another one has left behind.
func (d *desk) restarts() {
	d.Helper()
	d.must(d.db.RecoverJobs(d.Context(), map[string]int{side.JobSide: 100}, "the new one"))
	d.works()
}

func (d *desk) wantEvaluatedOnce(goal string, want []string) {
	d.Helper()
	d.restarts()
	d.ends(goal, cognition.GoalAbandoned) // for a process that died before it knew of the end
	d.clock.Add(side.Idle)
	d.works()
	got := d.evaluations()
	for i, line := range got {
		words := strings.Fields(line)
		if len(words) != 4 { // sequence, source, trigger, status
			d.Errorf("an evaluation is %q", line)
			continue
		}
		got[i] = strings.Join(slices.Delete(words, 2, 3), " ")
	}
	for i, line := range want {
		want[i] = strings.Join(strings.Fields(line), " ")
	}
	if !slices.Equal(got, want) {
		d.Errorf("evaluations: %q, want %q", got, want)
	}
	if n := d.votes("halden.test", "inn.test", "other.test", "ferry.test"); n != len(want) {
		d.Errorf("%d votes for %d evaluations", n, len(want))
	}
	calls := d.model.calls()
	d.ends(goal, cognition.GoalActive)
	d.ends(goal, cognition.GoalCompleted)
	d.svc.BeforeSummary(d.Context(), d.user, d.chat)
	d.clock.Add(side.Idle)
	d.works()
	if n := d.model.calls(); n != calls || len(d.evaluations()) != len(want) {
		d.Errorf("a second run asked the model %d times more, and the log has %q", n-calls, d.evaluations())
	}
}

// Wherever the process is killed at a review or a commit: each decision is in the log once, and each extraction that was
// approved is one memory, with one event.
func TestACommitThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	stories := [][]string{
		{cognition.Approve},
		{cognition.Edit, cognition.Approve},
		{cognition.Approve, cognition.Discard, cognition.Edit},
		{cognition.Discard, cognition.Approve, cognition.Approve, cognition.Edit},
		{cognition.Approve, cognition.Approve, cognition.Edit, cognition.Approve, cognition.Edit},
	}
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		clock, kills := newClock(), 0
		db := open(t, store.Options{Now: clock.Now})
		for _, decisions := range stories {
			kills += killed(t, db, clock, func(d *desk, l *storetest.Life) func(*desk) {
				var ids []string
				for i := range decisions {
					ids = append(ids, d.proposes(fmt.Sprintf("The ferry sails at %d.", i)))
				}
				of := d.service(mortal(db, l))
				for i, decision := range decisions {
					d.lives(d.reviews(of, ids[i], decision))
				}
				_, err := of.Commit(d.Context(), d.call(), d.chat)
				d.lives(err)
				return func(d *desk) { d.wantCommittedOnce(ids, decisions) }
			})
			t.Logf("%v: %d kills", decisions, kills)
		}
		if kills < 60 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// proposes adds an extraction to the log, and returns its id.
func (d *desk) proposes(content string) string {
	d.Helper()
	id := cognition.NewExtractionID()
	e := cognition.New(d.chat, &cognition.ExtractionPending{ExtractionID: id, Sequence: 1, BranchID: "reflection-1", Payload: op.MustJSON(map[string]string{"content": content})})
	d.must(d.db.Side().Update(d.Context(), d.user, func(tx side.Tx) error { return tx.Log.AppendEvents(d.chat, e) }))
	return id
}

// reviews decides as a client does that has a key for each decision.
func (d *desk) reviews(of *side.Service, id, decision string) error {
	r := side.Review{ConversationID: d.chat, ExtractionID: id, Decision: decision}
	if decision == cognition.Edit {
		r.EditedPayload = op.MustJSON(map[string]string{"content": "Edited: " + id})
	}
	call := d.call()
	call.Key, call.Hash = "review-"+id, decision
	_, err := of.ReviewOne(d.Context(), call, r)
	return err
}

func (d *desk) wantCommittedOnce(ids, decisions []string) {
	d.Helper()
	for i, id := range ids {
		d.must(d.reviews(d.svc, id, decisions[i]))
	}
	_, err := d.svc.Commit(d.Context(), d.call(), d.chat)
	d.must(err)
	memories := d.memories()
	all, err := d.svc.List(d.Context(), d.user, d.chat, "", 0, 0)
	d.must(err)
	if len(all.Items) != len(ids) {
		d.Fatalf("%d extractions", len(all.Items))
	}
	kept := map[string]bool{}
	for i, x := range all.Items {
		want := side.StateCommitted
		if decisions[i] == cognition.Discard {
			want = side.StateDiscarded
		}
		if x.ID != ids[i] || x.State != want || (want == side.StateCommitted) != (memories[x.KnowledgeID] != "") {
			d.Errorf("%s was decided on with %s: %+v, %q", ids[i], decisions[i], x, memories[x.KnowledgeID])
		}
		if x.KnowledgeID != "" && !strings.Contains(string(x.Payload), memories[x.KnowledgeID]) {
			d.Errorf("%s became %q", x.Payload, memories[x.KnowledgeID])
		}
		if x.KnowledgeID != "" {
			kept[x.KnowledgeID] = true
		}
	}
	if len(kept) != len(memories) {
		d.Errorf("%d extractions are %d memories", len(kept), len(memories))
	}
	counts := d.counts()
	if counts[cognition.TypePending] != len(ids) || counts[cognition.TypeReviewed] != len(ids) || counts[cognition.TypeCommitted] != len(kept) {
		d.Errorf("the log has %v", counts)
	}
	report, err := d.svc.Commit(d.Context(), d.call(), d.chat)
	d.must(err)
	if len(report.Committed)+len(report.Failed) > 0 || len(d.memories()) != len(memories) || d.counts()[cognition.TypeCommitted] != len(kept) {
		d.Errorf("committed again: %+v", report)
	}
}

// memories are the texts of the character's facts, by id.
func (d *desk) memories() map[string]string {
	d.Helper()
	all := map[string]string{}
	page, err := memory.New(d.db.Memory(), memory.Options{Log: slog.New(slog.DiscardHandler)}).List(d.Context(), d.user, d.character, memory.Filter{}, "", 0)
	d.must(err)
	for _, m := range page.Items {
		all[m.ID] = m.Text
	}
	return all
}

// counts are the numbers of events by type.
func (d *desk) counts() map[string]int {
	d.Helper()
	all := map[string]int{}
	d.must(d.db.Cognition().View(d.Context(), d.user, func(tx cognition.Tx) error {
		events, err := tx.Events(d.chat, 0, 1000)
		for _, e := range events {
			all[e.Type]++
		}
		return err
	}))
	return all
}
