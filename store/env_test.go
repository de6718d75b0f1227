package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/google/uuid"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild() // does not return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(storetest.Exit))
}

var quiet = slog.New(slog.DiscardHandler)

// start is the time at which every test's clock begins. It is noon, so that no test
// crosses midnight by accident.
var start = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// env is a test's database, with a clock that the test sets.
type env struct {
	*testing.T
	db        *store.DB
	user      string
	clock     *clock
	published *eventRecorder
	wakes     atomic.Int64 // calls that wake the runner of jobs
}

type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// eventRecorder collects the events that the store published after commits.
type eventRecorder struct {
	mu     sync.Mutex
	events map[string][]*stream.Event
}

func (h *eventRecorder) record(userID string, events []*stream.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events[userID] = append(h.events[userID], events...)
}

func (h *eventRecorder) of(userID string) []*stream.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*stream.Event(nil), h.events[userID]...)
}

// onBothDatabases runs a test on SQLite and on PostgreSQL.
func onBothDatabases(t *testing.T, test func(*env)) {
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		e := &env{T: t, clock: &clock{}, published: &eventRecorder{events: map[string][]*stream.Event{}}}
		e.clock.ms.Store(start.UnixMilli())
		e.db = open(t, store.Options{Now: e.clock.now, Committed: e.published.record, Jobs: func([]string) { e.wakes.Add(1) }})
		e.user = storetest.User(t, e.db)
		test(e)
	})
}

// update fails the test if the update fails; so do updateAs and view.
func (e *env) update(fn func(tx nodest.Tx) error) {
	e.Helper()
	e.updateAs(e.user, fn)
}

func (e *env) updateAs(user string, fn func(tx nodest.Tx) error) {
	e.Helper()
	if err := e.db.Update(context.Background(), user, fn); err != nil {
		e.Fatal(err)
	}
}

func (e *env) view(fn func(tx nodest.Tx) error) {
	e.Helper()
	if err := e.db.View(context.Background(), e.user, fn); err != nil {
		e.Fatal(err)
	}
}

// refused runs a closure that must fail with code.
func (e *env) refused(code fault.Code, fn func(tx nodest.Tx) error) {
	e.Helper()
	e.code(code, e.db.Update(context.Background(), e.user, fn))
}

func (e *env) code(code fault.Code, err error) {
	e.Helper()
	if !fault.Is(err, code) {
		e.Fatalf("error is %v, want %s", err, code)
	}
}

func (e *env) equal(what string, got, want any) {
	e.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		e.Fatalf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// conversation stores an empty conversation.
func (e *env) conversation() string {
	e.Helper()
	c := &chat.Conversation{ID: id(), CharacterID: id(), Title: "tea", Settings: []byte(`{}`)}
	e.update(func(tx nodest.Tx) error { return tx.Chats.InsertConversation(c) })
	return c.ID
}

// say stores a message below parent, as head of its conversation.
func (e *env) say(conversation, parent, text string, uses ...memory.Use) *chat.Message {
	e.Helper()
	var m *chat.Message
	e.update(func(tx nodest.Tx) (err error) {
		m, err = say(tx, conversation, parent, text, uses...)
		return err
	})
	return m
}

// say stores a message as the engine does: lock, insert, new version, event.
func say(tx nodest.Tx, conversation, parent, text string, uses ...memory.Use) (*chat.Message, error) {
	c, err := tx.Chats.LockConversation(conversation)
	if err != nil {
		return nil, err
	}
	m := message(conversation, parent, text)
	if len(uses) > 0 {
		m.Swipes[0].GenerationID = id()
		if err := tx.Memory.PutUses(conversation, m.Swipes[0].GenerationID, "", uses); err != nil {
			return nil, err
		}
	}
	if err := tx.Chats.InsertMessage(m); err != nil {
		return nil, err
	}
	c.Version++
	c.HeadID = m.ID
	if err := tx.Chats.UpdateConversation(c); err != nil {
		return nil, err
	}
	return m, tx.Emit(&stream.Event{Type: "message.created", ConversationID: conversation, MessageID: m.ID, By: "phone"})
}

func message(conversation, parent, text string) *chat.Message {
	return &chat.Message{
		ID: id(), ConversationID: conversation, ParentID: parent, Role: chat.RoleUser, Name: "Ada",
		Status: chat.StatusComplete, Swipes: []chat.Swipe{{ID: id(), RevisionID: id(), Rev: 1, Text: text}},
	}
}

func id() string { return op.NewID() }

// numbered is an id with a number, by which such ids are ordered.
func numbered(i int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", i) }

// named is an id that stands for a name.
func named(name string) string {
	id := uuid.NewSHA1(uuid.Nil, []byte(name)).String()
	nameOfID.Store(id, name)
	return id
}

// nameOfID are the names that ids stand for.
var nameOfID sync.Map

// nameOf is the name that an id stands for.
func nameOf(id string) string {
	name, _ := nameOfID.Load(id)
	return fmt.Sprint(name)
}

// idNow is an id that is made at the time of the test.
func (e *env) idNow() string {
	made := uuid.MustParse(op.NewID())
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(e.clock.now().UnixMilli())) //nolint:gosec // not before 1970
	copy(made[:6], ms[2:])
	return made.String()
}

func texts(messages []*chat.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Text())
	}
	return out
}

// long is the fraction of the long tests to run, from NODEST_LONG; the default is 0.
func long() float64 {
	f, _ := strconv.ParseFloat(os.Getenv("NODEST_LONG"), 64)
	return f
}

// atLeast returns few, or the fraction long of many if that is more.
func atLeast(few, many int) int { return max(few, int(long()*float64(many))) }

// random returns a generator seeded by NODEST_SEED (default 1), and logs the seed.
func random(t testing.TB) *rand.Rand {
	seed, err := strconv.ParseUint(os.Getenv("NODEST_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	t.Logf("NODEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
