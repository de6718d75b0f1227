package circle_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nodest/character"
	"nodest/circle"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store"
	"nodest/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(storetest.Exit))
}

// noon is a Monday, outside of the quiet hours.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// fixture is a circle on a real store, in virtual time, with a scripted model.
type fixture struct {
	testing.TB
	db     *store.DB
	svc    *circle.Service
	memory *memory.Service
	user   string
	clock  *atomic.Int64 // clock of the store, in ms

	mu      sync.Mutex
	reply   func(p llm.Prompt) (string, error)
	noModel bool
	sees    bool
	prompts []llm.Prompt
	events  []*stream.Event
}

const nothing = `{"thoughts":"hm","action":{"like":false,"comment":""}}`

func newFixture(t testing.TB) *fixture { return newFixtureOn(t, store.Options{}) }

// newFixtureOn is newFixture on another database.
func newFixtureOn(t testing.TB, where store.Options) *fixture {
	f := &fixture{TB: t, clock: new(atomic.Int64)}
	f.clock.Store(noon.UnixMilli())
	f.reply = func(llm.Prompt) (string, error) { return nothing, nil }
	where.Now = func() time.Time { return time.UnixMilli(f.clock.Load()) }
	where.Committed = func(_ string, events []*stream.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.events = append(f.events, events...)
	}
	f.db = storetest.OpenWith(t, where)
	f.user = storetest.User(t, f.db)
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		storetest.CompareLog(t, f.db, f.user, f.events)
	})
	f.memory = memory.New(f.db.Memory(), memory.Options{
		Scenes: func(context.Context, string, string, string) (memory.Scene, error) {
			return memory.Scene{Names: lang.Names{User: "Ann"}, Recall: true, Limit: 10, Share: true}, nil
		},
	})
	f.svc = circle.New(f.db.Circle(), circle.Options{
		Characters: character.New(f.db.Characters(), character.Options{}), Memory: f.memory, Model: f.model, Log: slog.New(slog.DiscardHandler),
		Image: func(_ context.Context, _, id string, data bool) (string, llm.Image, error) {
			image := llm.Image{ContentType: "image/png"}
			if data && id == "damaged" {
				return "", image, fault.New(fault.UnsupportedMedia, "the image cannot be decoded")
			}
			if data {
				image.Data = []byte(id)
			}
			return id + ".png", image, nil
		},
	})
	return f
}

func (f *fixture) model(context.Context, string) (*circle.Model, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.noModel {
		return nil, nil
	}
	return &circle.Model{Provider: "test", Name: "test", Sees: f.sees, Asker: llm.AskerFunc(func(_ context.Context, p llm.Prompt) (string, error) {
		f.mu.Lock()
		f.prompts = append(f.prompts, p)
		reply := f.reply
		f.mu.Unlock()
		text, err := reply(p)
		used := llm.Usage{PromptTokens: llm.EstimatePrompt(p.Messages), CompletionTokens: llm.EstimateTokens(text)}
		if p.Used != nil {
			p.Used(used)
		}
		return text, err
	})}, nil
}

// says makes the model answer each prompt by its second message.
func (f *fixture) says(reply func(own string) string) {
	f.reply = func(p llm.Prompt) (string, error) { return reply(p.Messages[1].Text), nil }
}

// comments makes the model comment in the name of each character.
func comment(text string) string {
	doc, _ := json.Marshal(map[string]any{
		"thoughts": "so be it", "action": map[string]any{"like": true, "comment": text},
		"emotion": map[string]any{"type": "positive", "intensity": 0.8},
	})
	return string(doc)
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) update(fn func(tx circle.Tx) error) {
	f.Helper()
	f.must(f.db.Circle().Update(f.Context(), f.user, fn))
}

// member stores a character that takes part.
func (f *fixture) member(name string, more ...string) string {
	f.Helper()
	card := map[string]string{"name": name, "description": name + " is a baker who loves bread and the sea."}
	for i := 0; i+1 < len(more); i += 2 {
		card[more[i]] = more[i+1]
	}
	doc, err := json.Marshal(card)
	f.must(err)
	ch := &character.Character{
		ID: op.NewID(), Name: name, Dialect: "nodest", RoleCard: doc, WorldBook: []byte(`null`), Preset: []byte(`null`),
		AuthorNote: []byte(`null`), RegexScripts: []byte(`[]`), Settings: []byte(`{"circle":{"enabled":true,"interactionFrequency":"high"}}`),
	}
	f.update(func(tx circle.Tx) error { return tx.Characters.InsertCharacter(ch) })
	return ch.ID
}

// settings changes the settings of the circle.
func (f *fixture) settings(change func(s *circle.Settings)) {
	f.Helper()
	f.update(func(tx circle.Tx) error {
		s, err := tx.CircleState()
		if err != nil {
			return err
		}
		change(&s.Settings)
		s.UpdatedAt = tx.Now()
		return tx.PutCircleSettings(s)
	})
}

func (f *fixture) call() *op.Call { return &op.Call{UserID: f.user, Device: "phone"} }

// posts is a post of the user.
func (f *fixture) post(text string) *circle.Post {
	f.Helper()
	p, err := f.svc.Post(f.Context(), f.call(), circle.PostInput{Text: text})
	f.must(err)
	return p
}

// claim takes a job that is due; nil = none is.
func (f *fixture) claim(kinds ...string) *jobs.Job {
	f.Helper()
	for _, kind := range kinds {
		claimed, err := f.db.ClaimJobs(f.Context(), "test", time.Hour, []jobs.Want{{Kind: kind, Free: 1, PerUser: 1}})
		f.must(err)
		if len(claimed) > 0 {
			return claimed[0]
		}
	}
	return nil
}

var reactKinds = []string{circle.JobSpread, circle.JobReact, circle.JobReview}

// do runs a job as a Runner does, and returns its error.
func (f *fixture) do(j *jobs.Job) error {
	f.Helper()
	i := slices.IndexFunc(f.svc.Kinds(), func(k jobs.Kind) bool { return k.Name == j.Kind })
	if i < 0 {
		f.Fatalf("nobody handles %s", j.Kind)
	}
	k := f.svc.Kinds()[i]
	err := k.Run(f.Context(), j)
	o := jobs.Outcome{State: jobs.Done}
	if err != nil {
		public := fault.Public(err)
		o = jobs.Outcome{State: jobs.Failed, Error: &jobs.Failure{Code: public.Code, Message: public.Message}}
		if public.Retry() != "no" && j.Attempt < k.Attempts {
			o.State, o.After = jobs.Queued, time.Minute
		}
	}
	if ended := f.db.EndJob(f.Context(), j, o); ended != nil && !fault.Is(ended, fault.Conflict) {
		f.Fatal(ended)
	}
	return err
}

// pass lets time go by in steps of a minute, and runs the jobs that become due.
func (f *fixture) pass(d time.Duration) {
	f.Helper()
	for end := f.clock.Load() + d.Milliseconds(); ; f.clock.Add(time.Minute.Milliseconds()) {
		for j := f.claim(reactKinds...); j != nil; j = f.claim(reactKinds...) {
			_ = f.do(j) // failures show in the turns
		}
		if f.clock.Load() >= end {
			return
		}
	}
}

func (f *fixture) turns(filter circle.TurnFilter) (turns []*circle.Turn) {
	f.Helper()
	f.update(func(tx circle.Tx) (err error) {
		turns, _, err = tx.Turns(filter, "", 1000)
		return err
	})
	return turns
}

func (f *fixture) thread(postID string) (comments []*circle.Comment) {
	f.Helper()
	f.update(func(tx circle.Tx) (err error) {
		comments, err = tx.Comments(0, postID)
		return err
	})
	return comments
}

func (f *fixture) likes(postID string) (likes []circle.Like) {
	f.Helper()
	f.update(func(tx circle.Tx) error {
		p, err := tx.Post(postID)
		if err == nil {
			likes = p.Likes
		}
		return err
	})
	return likes
}

func (f *fixture) spend() (s circle.Spend) {
	f.Helper()
	f.update(func(tx circle.Tx) error {
		spent, err := tx.LockSpend(tx.Now().Format(time.DateOnly))
		if err == nil {
			s = *spent
		}
		return err
	})
	return s
}

func (f *fixture) eventsOf(kind string) (data []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.Type == kind {
			data = append(data, string(e.Data))
		}
	}
	return data
}

// nameIn is who a second message addresses.
func nameIn(own string) string {
	_, rest, _ := strings.Cut(own, "You are ")
	name, _, _ := strings.Cut(rest, ".\n")
	return name
}
