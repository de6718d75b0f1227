package knowledge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/knowledge"
	"nodest/store"
	"nodest/store/storetest"
)

// fixture is a real store with a Service, as one user has it.
type fixture struct {
	*testing.T
	db    *store.DB
	svc   *knowledge.Service
	user  string
	clock *atomic.Int64 // of the store, in milliseconds

	events *events
}

type events struct {
	mu  sync.Mutex
	all []string // "user type", and the state of a reindexing
}

func (e *events) record(userID string, news []*stream.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range news {
		said := userID + " " + ev.Type
		if ev.Type == "knowledge.reindex" {
			var is struct{ State string }
			_ = json.Unmarshal(ev.Data, &is) // "" is not what tests want
			said += " " + is.State
		}
		e.all = append(e.all, said)
	}
}

// take returns the types of a user's events since the last call.
func (f *fixture) take() (types []string) {
	f.events.mu.Lock()
	defer f.events.mu.Unlock()
	var rest []string
	for _, e := range f.events.all {
		if len(e) > len(f.user) && e[:len(f.user)] == f.user {
			types = append(types, e[len(f.user)+1:])
		} else {
			rest = append(rest, e)
		}
	}
	f.events.all = rest
	return types
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, o knowledge.Options, test func(*fixture)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		f := &fixture{T: t, clock: new(atomic.Int64), events: &events{}}
		f.clock.Store(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC).UnixMilli())
		f.db = open(t, store.Options{Now: func() time.Time { return time.UnixMilli(f.clock.Load()) }, Committed: f.events.record})
		f.svc = knowledge.New(f.db.Knowledge(), o)
		f.user = storetest.User(t, f.db)
		test(f)
	})
}

// other is the fixture as another new user has it.
func (f *fixture) other() *fixture {
	o := *f
	o.user = storetest.User(f.T, f.db)
	return &o
}

func (f *fixture) call() *op.Call { return &op.Call{UserID: f.user, Device: "phone"} }

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// wants fails the test unless err has a code.
func (f *fixture) wants(err error, code fault.Code) {
	f.Helper()
	if !fault.Is(err, code) {
		f.Fatalf("got %v, want %s", err, code)
	}
}

func newFile(name, content string) knowledge.NewFile {
	return knowledge.NewFile{Name: name, Body: bytes.NewReader([]byte(content)), Size: int64(len(content))}
}

func (f *fixture) upload(name, content string) *knowledge.File {
	f.Helper()
	return f.uploadTo("", name, content)
}

func (f *fixture) uploadTo(base, name, content string) *knowledge.File {
	f.Helper()
	in := newFile(name, content)
	in.BaseID = base
	file, err := f.svc.Upload(context.Background(), f.call(), in)
	f.must(err)
	return file
}

func (f *fixture) base(name string) *knowledge.Base {
	f.Helper()
	b, err := f.svc.CreateBase(context.Background(), f.call(), knowledge.NewBase{Name: &name})
	f.must(err)
	return b
}

func (f *fixture) grant(base string, to *fixture, role string) {
	f.Helper()
	_, err := f.svc.PutGrant(context.Background(), f.call(), base, to.user, role)
	f.must(err)
}

func (f *fixture) character() string {
	f.Helper()
	c := &character.Character{ID: op.NewID(), Name: "Maren"}
	f.must(f.db.Knowledge().Update(context.Background(), f.user, func(tx knowledge.Tx) error { return tx.Characters.InsertCharacter(c) }))
	return c.ID
}

// set changes a file as the pipeline does.
func (f *fixture) set(id string, change func(*knowledge.File)) {
	f.Helper()
	f.must(f.db.Knowledge().Update(context.Background(), f.user, func(tx knowledge.Tx) error {
		file, err := tx.OwnFile(id)
		if err != nil {
			return err
		}
		change(file)
		return tx.UpdateFile(file)
	}))
}

// refs returns the files in a scope, or the error.
func (f *fixture) refs(s knowledge.Scope) ([]knowledge.FileRef, error) {
	return op.Read(context.Background(), f.db.Knowledge(), f.user, func(tx knowledge.Tx) ([]knowledge.FileRef, error) { return tx.Allowed(s) })
}

// allowed returns the names of files in a scope, or the error.
func (f *fixture) allowed(s knowledge.Scope) ([]string, error) {
	refs, err := f.refs(s)
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.Name
	}
	return names, err
}

// jobs returns the kinds and states of the jobs about a subject.
func (f *fixture) jobs(subject string) (found []string) {
	f.Helper()
	f.must(f.db.Knowledge().View(context.Background(), f.user, func(tx knowledge.Tx) error {
		items, _, err := tx.Jobs.Jobs(jobs.Filter{Subject: subject}, "", 50)
		found = nil
		for _, j := range items {
			found = append(found, j.Kind+" "+string(j.State))
		}
		return err
	}))
	return found
}

// purge does what the job does.
func (f *fixture) purge() {
	f.Helper()
	f.must(knowledge.RunPurge(f.svc, context.Background(), &jobs.Job{UserID: f.user}))
}

// equal compares what fmt prints.
func (f *fixture) equal(what string, got, want any) {
	f.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		f.Errorf("%s: got %s, want %s", what, g, w)
	}
}
