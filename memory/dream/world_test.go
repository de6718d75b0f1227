package dream_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/bench/figure"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory/dream"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func TestMain(m *testing.M) { storetest.Exit(m.Run()) }

// world is a user with a character and a chat, whose time the test moves.
type world struct {
	*testing.T
	db              *store.DB
	clock           *figure.Clock
	user, character string
	chat            string   // in which the user talks
	chats           []string // all of them
	scene           dream.Scene
	model           func(prompt string) string // nil = there is none
	calls           atomic.Int64
	dreams          *dream.Service
}

// noon is when worlds begin: a day in winter.
var noon = time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)

// onBoth runs a test in a new world on each database.
func onBoth(t *testing.T, test func(w *world)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		clock := figure.NewClock(noon)
		test(newWorld(t, open(t, store.Options{Now: clock.Now}), clock))
	})
}

func newWorld(t *testing.T, db *store.DB, clock *figure.Clock) *world {
	t.Helper()
	w := &world{T: t, db: db, clock: clock, user: storetest.User(t, db), model: obedient}
	w.scene = dream.Scene{Names: lang.Names{User: "Ada", Character: "Wren"}, Mode: dream.Full, At: "04:00", Least: 3, Zone: time.UTC}
	w.dreams = w.service(db.Dreams())
	characters := character.New(db.Characters(), character.Options{})
	ch, err := characters.Create(t.Context(), &op.Call{UserID: w.user}, character.Input{RoleCard: []byte(`{"name":"Wren"}`)})
	w.must(err)
	w.character = ch.ID
	w.newChat()
	return w
}

// newChat begins a chat.
func (w *world) newChat() {
	w.Helper()
	chats := chat.New(w.db.Chats(), character.New(w.db.Characters(), character.Options{}), chat.Options{Memory: true})
	conv, err := chats.CreateConversation(w.Context(), &op.Call{UserID: w.user}, chat.ConversationInput{CharacterID: w.character})
	w.must(err)
	w.chat, w.chats = conv.ID, append(w.chats, conv.ID)
}

func (w *world) service(of dream.Store) *dream.Service {
	return dream.New(of, dream.Options{
		Scenes: func(context.Context, string, string) (dream.Scene, error) { return w.scene, nil },
		Model: func(context.Context, string, string) (llm.Asker, error) {
			if w.model == nil {
				return nil, nil
			}
			return llm.AskerFunc(func(_ context.Context, p llm.Prompt) (string, error) {
				w.calls.Add(1)
				return w.model(p.Text), nil
			}), nil
		},
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// say lets the user say some things, which become messages of the chat.
func (w *world) say(texts ...string) (messages []*chat.Message) {
	w.Helper()
	for _, text := range texts {
		messages = append(messages, w.write(chat.RoleUser, text))
	}
	return messages
}

func (w *world) write(role, text string) *chat.Message {
	w.Helper()
	var m *chat.Message
	w.must(w.db.Update(w.Context(), w.user, func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(w.chat)
		if err != nil {
			return err
		}
		conv.Version++
		m = &chat.Message{
			ID: op.NewID(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: role, Status: chat.StatusComplete, Rev: 1, Dates: chat.Dates{CreatedAt: tx.Now()},
			Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: text, CreatedAt: tx.Now()}},
		}
		if err := tx.Chats.InsertMessage(m); err != nil {
			return err
		}
		conv.HeadID = m.ID
		return tx.Chats.UpdateConversation(conv)
	}))
	return m
}

// bought are things of some number that the user says, each once.
func bought(from, n int) (texts []string) {
	things := []string{"bicycle", "kettle", "canoe", "lamp", "sofa", "kite", "piano", "tent", "mirror", "vase"}
	colours := []string{"red", "green", "blue", "white", "black", "yellow", "purple", "silver"}
	for i := from; i < from+n; i++ {
		texts = append(texts, "I bought a "+colours[i/len(things)%len(colours)]+" "+things[i%len(things)]+".")
	}
	return texts
}

// work runs the jobs that are due, as a runner does.
func (w *world) work(of dream.Store) error {
	w.Helper()
	for {
		j := w.claim()
		if j == nil {
			return nil
		}
		if err := w.service(of).Kinds()[0].Run(w.Context(), j); err != nil {
			return err
		}
		_ = w.db.EndJob(w.Context(), j, jobs.Outcome{State: jobs.Done}) // mostly it has ended
	}
}

// claim returns a job that is due; nil = none is. Others may share the database.
func (w *world) claim() *jobs.Job {
	w.Helper()
	claimed, err := w.db.ClaimJobs(w.Context(), "test", time.Minute, []jobs.Want{{Kind: dream.JobDream, Free: 1, PerUser: 1}})
	w.must(err)
	if len(claimed) == 0 {
		return nil
	}
	return claimed[0]
}

// pass lets time pass, with a sweep each hour and the jobs that are due each ten minutes.
func (w *world) pass(until time.Time) {
	w.Helper()
	const step = 10 * time.Minute
	for now := w.clock.Now(); now.Before(until); {
		now = now.Truncate(step).Add(step)
		w.clock.To(now)
		if now.Minute() == 0 {
			w.must(w.dreams.Sweep(w.Context()))
		}
		w.must(w.work(w.db.Dreams()))
	}
}

// runs returns all runs, oldest first.
func (w *world) runs() (runs []*dream.Run) {
	w.Helper()
	page, err := w.dreams.Runs(w.Context(), w.user, w.character, "", 100)
	w.must(err)
	for i := range page.Items {
		runs = append(runs, page.Items[len(page.Items)-1-i])
	}
	return runs
}

func (w *world) last() *dream.Run {
	w.Helper()
	runs := w.runs()
	if len(runs) == 0 {
		w.Fatal("there is no run")
	}
	return runs[len(runs)-1]
}

func (w *world) start(o dream.Order) (*dream.Run, error) {
	return w.dreams.Start(w.Context(), &op.Call{UserID: w.user}, w.character, o)
}

// lines returns the texts of a document.
func (w *world) lines(path string) (texts []string) {
	w.Helper()
	documents, err := w.dreams.Documents(w.Context(), w.user, w.character)
	w.must(err)
	for _, d := range documents {
		for _, l := range d.Lines {
			if d.Path == path {
				texts = append(texts, l.Text)
			}
		}
	}
	return texts
}

// obedient is a model that notes the first sentence of what the user says, and adds each note as a line.
func obedient(prompt string) string {
	var out []string
	integrate := strings.Contains(prompt, `{"updates":`)
	for line := range strings.Lines(prompt) {
		o := llm.ObjectOf(line, "text")
		seqs, notes := o.Integers("seq"), o.Integers("note")
		switch {
		case integrate && len(notes) > 0:
			out = append(out, fmt.Sprintf(`{"path":"user.md","do":"add","text":%q,"notes":[%d]}`, o.Text("text"), notes[0]))
		case !integrate && len(seqs) > 0 && o.Text("who") == "user":
			said, _, _ := strings.Cut(o.Text("text"), ".")
			out = append(out, fmt.Sprintf(`{"text":%q,"seqs":[%d]}`, strings.Replace(said, "I ", "Ada ", 1)+".", seqs[0]))
		}
	}
	if integrate {
		return `{"updates":[` + strings.Join(out, ",") + `]}`
	}
	return `{"notes":[` + strings.Join(out[:min(len(out), 20)], ",") + `]}`
}
