package knowledge_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/knowledge"
	"nodest/knowledge/knowledgetest"
)

// fixture is a real store with a Service, as one user has it.
type fixture struct {
	*knowledgetest.Member
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
		if len(e) > len(f.User) && e[:len(f.User)] == f.User {
			types = append(types, e[len(f.User)+1:])
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
	record := &events{}
	knowledgetest.Each(t, record.record, func(m *knowledgetest.Member) {
		m.Svc = knowledge.New(m.DB.Knowledge(), o)
		test(&fixture{m, record})
	})
}

// other is the fixture as another new user has it.
func (f *fixture) other() *fixture {
	o := *f
	o.Member = f.Other()
	return &o
}

// set changes a file as the pipeline does.
func (f *fixture) set(id string, change func(*knowledge.File)) {
	f.Helper()
	f.Must(f.DB.Knowledge().Update(context.Background(), f.User, func(tx knowledge.Tx) error {
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
	return op.Read(context.Background(), f.DB.Knowledge(), f.User, func(tx knowledge.Tx) ([]knowledge.FileRef, error) { return tx.Allowed(s) })
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
	f.Must(f.DB.Knowledge().View(context.Background(), f.User, func(tx knowledge.Tx) error {
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
	f.Must(knowledge.RunPurge(f.Svc, context.Background(), &jobs.Job{UserID: f.User}))
}
