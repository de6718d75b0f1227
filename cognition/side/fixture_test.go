package side_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/bench/figure"
	"nodest/internal/feedback"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func TestMain(m *testing.M) { storetest.Exit(m.Run()) }

// newClock is the time of a store, which moves only when a test says so.
func newClock() *figure.Clock { return figure.NewClock(time.Date(2026, 3, 20, 10, 0, 0, 0, time.UTC)) }

// desk is a conversation with a model that evaluates.
type desk struct {
	*testing.T
	db              *store.DB
	clock           *figure.Clock
	user, character string
	chat            string
	svc             *side.Service
	model           *judge // nil = there is none
}

// judge is a model that finds every source helpful that it was asked about, unless it has another answer.
type judge struct {
	mu      sync.Mutex
	prompts []llm.Prompt
	answer  func(ctx context.Context, p llm.Prompt) (string, error)
}

func (j *judge) Ask(ctx context.Context, p llm.Prompt) (string, error) {
	j.mu.Lock()
	j.prompts = append(j.prompts, p)
	answer := j.answer
	j.mu.Unlock()
	if answer != nil {
		return answer(ctx, p)
	}
	return allHelpful(p), nil
}

func (j *judge) calls() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.prompts)
}

func (j *judge) answers(f func(ctx context.Context, p llm.Prompt) (string, error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answer = f
}

// instruction is the newest one.
func (j *judge) instruction() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	messages := j.prompts[len(j.prompts)-1].Messages
	return messages[len(messages)-1].Text
}

// allHelpful judges each source that an instruction lists.
func allHelpful(p llm.Prompt) string {
	var all []string
	sequence := 0
	for line := range strings.Lines(p.Messages[len(p.Messages)-1].Text) {
		_, _ = fmt.Sscanf(line, "Query %d:", &sequence)
		if source := llm.ObjectOf(strings.TrimSpace(line), "content"); source != nil {
			all = append(all, fmt.Sprintf(`{"query_sequence":%d,"assessments":[{"source_id":%q,"status":"helpful","reason":"r"}]}`, sequence, source.Text("id")))
		}
	}
	return `{"evaluations":[` + strings.Join(all, ",") + `]}`
}

// newDesk starts a conversation on a database of its own.
func newDesk(t *testing.T, open storetest.Opener) *desk {
	t.Helper()
	clock := newClock()
	return newDeskOn(t, open(t, store.Options{Now: clock.Now}), clock)
}

func newDeskOn(t *testing.T, db *store.DB, clock *figure.Clock) *desk {
	t.Helper()
	d := &desk{T: t, db: db, clock: clock, user: storetest.User(t, db), model: &judge{}}
	d.svc = d.service(db.Side())
	characters := character.New(db.Characters(), character.Options{})
	ch, err := characters.Create(t.Context(), d.call(), character.Input{RoleCard: []byte(`{"name":"Alice"}`)})
	d.must(err)
	d.character = ch.ID
	conv, err := chat.New(db.Chats(), characters, chat.Options{}).CreateConversation(t.Context(), d.call(), chat.ConversationInput{CharacterID: ch.ID, Title: "The light"})
	d.must(err)
	d.chat = conv.ID
	return d
}

func (d *desk) service(of side.Store) *side.Service {
	return side.New(of, side.Options{Log: slog.New(slog.DiscardHandler), Model: func(context.Context, string) (llm.Asker, string, error) {
		if d.model == nil {
			return nil, "", nil
		}
		return d.model, "judge", nil
	}})
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) call() *op.Call { return &op.Call{UserID: d.user} }

func (d *desk) update(fn func(tx nodest.Tx) error) {
	d.Helper()
	d.must(d.db.Update(d.Context(), d.user, fn))
}

// say adds a message to the conversation, and returns its sequence.
func (d *desk) say(role, text string) (m *chat.Message) {
	d.Helper()
	d.update(func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(d.chat)
		if err != nil {
			return err
		}
		m = &chat.Message{
			ID: op.NewID(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: role, Status: chat.StatusComplete, Rev: 1, Dates: chat.Dates{CreatedAt: tx.Now()},
			Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: text, CreatedAt: tx.Now()}},
		}
		if err := tx.Chats.InsertMessage(m); err != nil {
			return err
		}
		conv.HeadID = m.ID
		conv.Version++
		return tx.Chats.UpdateConversation(conv)
	})
	return m
}

// looksUp answers a question with pages of hosts, as a turn with a search does.
func (d *desk) looksUp(question string, hosts ...string) *cognition.Event {
	d.Helper()
	d.say(chat.RoleUser, question)
	reply := d.say(chat.RoleAssistant, "The answer to "+question)
	q := &cognition.Query{Sequence: reply.Seq, Query: question, Response: reply.Text(), QueryID: op.NewID()}
	for _, h := range hosts {
		q.Sources = append(q.Sources, cognition.Source{ID: pageOf(h), Task: h, Content: "A page of " + h})
	}
	e := cognition.New(d.chat, q)
	e.MessageID = reply.ID
	d.update(func(tx nodest.Tx) error {
		if err := cognition.LogQueries(tx.Cognition, d.chat, e); err != nil {
			return err
		}
		return tx.Jobs.Enqueue(side.Look(d.chat, tx.Now().Add(side.Idle)))
	})
	return e
}

func pageOf(host string) string { return "http://" + host + "/page" }

// goal adds a goal, and returns its id.
func (d *desk) goal(description string) string {
	d.Helper()
	g, err := d.svc.CreateGoal(d.Context(), d.call(), cognition.Goal{ConversationID: d.chat, Description: description})
	d.must(err)
	return g.ID
}

func (d *desk) ends(goal, status string) {
	d.Helper()
	_, err := d.svc.ChangeGoal(d.Context(), d.call(), goal, side.GoalPatch{Status: &status})
	d.must(err)
}

// works runs the jobs of the conversation that are due, as often as there are some, and returns how many.
func (d *desk) works() (n int) {
	d.Helper()
	for j := d.claim(); j != nil; j = d.claim() {
		d.must(d.svc.Kinds()[0].Run(d.Context(), j))
		if err := d.db.EndJob(d.Context(), j, jobs.Outcome{State: jobs.Done}); err != nil && !errors.Is(err, jobs.ErrLost) { // lost: it has ended itself
			d.Fatal(err)
		}
		n++
	}
	return n
}

// claim takes the job of the conversation; nil = none is due.
func (d *desk) claim() *jobs.Job {
	d.Helper()
	claimed, err := d.db.ClaimJobs(d.Context(), "p", time.Hour, []jobs.Want{{Kind: side.JobSide, Free: 100, PerUser: 100}})
	d.must(err)
	if at := slices.IndexFunc(claimed, func(j *jobs.Job) bool { return j.Subject == d.chat }); at >= 0 {
		return claimed[at]
	}
	return nil
}

// state is that of the side branches.
func (d *desk) state() (s cognition.State) {
	d.Helper()
	d.must(d.db.Side().View(d.Context(), d.user, func(tx side.Tx) (err error) {
		s, err = tx.Log.SideState(d.chat)
		return err
	}))
	return s
}

// evaluations are those of the log: source, trigger and status, in order.
func (d *desk) evaluations() (all []string) {
	d.Helper()
	d.must(d.db.Cognition().View(d.Context(), d.user, func(tx cognition.Tx) error {
		events, err := tx.Events(d.chat, 0, 1000, cognition.TypeEvaluation)
		for _, e := range events {
			var v cognition.Evaluation
			if err := cognition.Read(e, &v); err != nil {
				return err
			}
			all = append(all, fmt.Sprintf("%d %s %s %s", v.QuerySequence, v.KnowledgeID, v.Trigger, v.Result.Status))
		}
		return err
	}))
	return all
}

func (d *desk) wantEvaluations(want ...string) {
	d.Helper()
	if got := d.evaluations(); !slices.Equal(got, want) {
		d.Errorf("evaluations:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// helpful is what evaluations says of a helpful page.
func helpful(query *cognition.Event, host, trigger string) string {
	return fmt.Sprintf("%d %s %s helpful", cognition.PlaceOf(query).Sequence, pageOf(host), trigger)
}

// votes counts those on hosts.
func (d *desk) votes(hosts ...string) (n int) {
	d.Helper()
	d.must(d.db.Knowledge().View(d.Context(), d.user, func(tx knowledge.Tx) error {
		of, err := tx.Feedback.Votes(d.character, feedback.Host, hosts...)
		for _, votes := range of {
			n += len(votes)
		}
		return err
	}))
	return n
}
