// Package knowledgetest gives tests a user with documents in a real store. It promises nothing of its
// own, and no program imports it.
package knowledgetest

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/knowledge"
	"nodest/store"
	"nodest/store/storetest"
)

// Member is a user with a store and a service. It is the T of its test.
type Member struct {
	*testing.T
	DB    *store.DB
	Svc   *knowledge.Service
	User  string
	Clock *atomic.Int64 // the store's, in milliseconds
}

// Each runs a test on SQLite and on PostgreSQL with a member that has no Svc yet; committed learns
// the events, nil = nobody does.
func Each(t *testing.T, committed func(userID string, events []*stream.Event), test func(*Member)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		m := &Member{T: t, Clock: new(atomic.Int64)}
		m.Clock.Store(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC).UnixMilli())
		m.DB = open(t, store.Options{Now: func() time.Time { return time.UnixMilli(m.Clock.Load()) }, Committed: committed})
		m.User = storetest.User(t, m.DB)
		test(m)
	})
}

// Other is the member as another new user.
func (m *Member) Other() *Member {
	o := *m
	o.User = storetest.User(m.T, m.DB)
	return &o
}

// Call is a call of the member.
func (m *Member) Call() *op.Call { return &op.Call{UserID: m.User, Device: "phone"} }

// Must fails the test on an error.
func (m *Member) Must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// Wants fails the test unless err has a code.
func (m *Member) Wants(err error, code fault.Code) {
	m.Helper()
	if !fault.Is(err, code) {
		m.Fatalf("got %v, want %s", err, code)
	}
}

// Equal compares what fmt prints.
func (m *Member) Equal(what string, got, want any) {
	m.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		m.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// NewFile is an upload that has not happened yet.
func NewFile(name, content string) knowledge.NewFile {
	return knowledge.NewFile{Name: name, Body: bytes.NewReader([]byte(content)), Size: int64(len(content))}
}

// Upload stores a file of no knowledge base.
func (m *Member) Upload(name, content string) *knowledge.File {
	m.Helper()
	return m.UploadTo("", name, content)
}

// UploadTo stores a file in a knowledge base.
func (m *Member) UploadTo(base, name, content string) *knowledge.File {
	m.Helper()
	in := NewFile(name, content)
	in.BaseID = base
	file, err := m.Svc.Upload(context.Background(), m.Call(), in)
	m.Must(err)
	return file
}

// Base makes a knowledge base.
func (m *Member) Base(name string) *knowledge.Base {
	m.Helper()
	b, err := m.Svc.CreateBase(context.Background(), m.Call(), knowledge.NewBase{Name: &name})
	m.Must(err)
	return b
}

// Grant gives a user access to a knowledge base.
func (m *Member) Grant(base, user, role string) {
	m.Helper()
	_, err := m.Svc.PutGrant(context.Background(), m.Call(), base, user, role)
	m.Must(err)
}

// Character makes a character and returns its id.
func (m *Member) Character() string {
	m.Helper()
	c := &character.Character{ID: op.NewID(), Name: "Maren"}
	m.Must(m.DB.Knowledge().Update(context.Background(), m.User, func(tx knowledge.Tx) error { return tx.Characters.InsertCharacter(c) }))
	return c.ID
}
