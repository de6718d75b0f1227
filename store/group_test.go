package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// heldWriter holds the writing connection, so that updates made meanwhile form one
// group, on a busy machine too.
type heldWriter struct {
	t       *testing.T
	db      *store.DB
	user    string
	leave   chan struct{}
	group   sync.WaitGroup
	waiting int
}

func holdWriter(t *testing.T, db *store.DB) *heldWriter {
	store.GroupPatiently(db)
	h := &heldWriter{t: t, db: db, user: storetest.User(t, db), leave: make(chan struct{})}
	inside := make(chan struct{})
	h.group.Go(func() {
		var once sync.Once // it runs again when its group fails
		err := db.Update(context.Background(), h.user, func(nodest.Tx) error {
			once.Do(func() { close(inside) })
			<-h.leave
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	return h
}

// wait starts an update that waits behind the holder, and passes its error to done.
func (h *heldWriter) wait(ctx context.Context, fn func(nodest.Tx) error, done func(error)) {
	h.t.Helper()
	h.group.Go(func() {
		err := errors.New("the goroutine ended") // when it calls Goexit
		defer func() { done(err) }()
		err = h.db.Update(ctx, h.user, fn)
	})
	h.waiting++
	waitUntil(h.t, func() bool { return store.Waiting(h.db) == h.waiting })
}

// release lets all updates run and waits for them.
func (h *heldWriter) release() {
	close(h.leave)
	h.group.Wait()
}

// waitUntil polls until a state of the database is reached.
func waitUntil(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("the expected state was not reached")
		}
		runtime.Gosched()
	}
}

func emit(name string) func(nodest.Tx) error {
	return func(tx nodest.Tx) error { return tx.Emit(&stream.Event{Type: name}) }
}

func eventTypes(t *testing.T, db *store.DB, user string) string {
	t.Helper()
	events, err := db.Events(context.Background(), user, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i+1, e.Seq)
		}
		names = append(names, e.Type)
	}
	return strings.Join(names, " ")
}

func TestWaitingUpdatesShareOneCommit(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h := holdWriter(t, db)
	before := store.Commits(db)
	failure := errors.New("no")
	none := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	fails := func(want func(error) bool) func(error) {
		return func(err error) {
			if err == nil || !want(err) {
				t.Errorf("error is %v", err)
			}
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	h.wait(context.Background(), emit("a"), none)
	h.wait(context.Background(), func(tx nodest.Tx) error {
		_ = tx.Emit(&stream.Event{Type: "x"})
		return failure
	}, fails(func(err error) bool { return errors.Is(err, failure) }))
	h.wait(context.Background(), emit("b"), none)
	h.wait(context.Background(), func(tx nodest.Tx) error {
		if err := tx.Chats.InsertConversation(&chat.Conversation{ID: named("c")}); err != nil {
			return err
		}
		panic("no")
	}, fails(func(err error) bool { return fault.Is(err, fault.Internal) }))
	h.wait(context.Background(), func(tx nodest.Tx) error {
		if err := tx.Chats.InsertConversation(&chat.Conversation{ID: named("c")}); err != nil {
			return err
		}
		return tx.Chats.InsertConversation(&chat.Conversation{ID: named("c")}) // a statement that fails
	}, fails(func(err error) bool { return fault.Is(err, fault.Conflict) }))
	h.wait(context.Background(), func(nodest.Tx) error { runtime.Goexit(); return nil }, func(error) {})
	h.wait(gone, emit("x"), fails(func(err error) bool { return errors.Is(err, context.Canceled) }))
	h.wait(context.Background(), emit("c"), none)
	cancel()
	h.release()
	if got := eventTypes(t, db, h.user); got != "a b c" {
		t.Errorf("the log is %q", got)
	}
	if err := db.View(context.Background(), h.user, func(tx nodest.Tx) error { _, err := tx.Chats.Conversation("c"); return err }); !fault.Is(err, fault.NotFound) {
		t.Errorf("a conversation of a failed update: %v", err)
	}
	t.Logf("9 closures in %d commits", store.Commits(db)-before)
}

func TestUpdatesRunAgainWhenTheirTransactionIsLost(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h := holdWriter(t, db)
	runs := 0
	good := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	h.wait(context.Background(), func(tx nodest.Tx) error {
		runs++
		return tx.Emit(&stream.Event{Type: "a"})
	}, good)
	h.wait(context.Background(), func(tx nodest.Tx) error {
		_ = store.Exec(tx, "ROLLBACK") // as SQLite does itself after some errors
		return store.Exec(tx, "no statement")
	}, func(err error) {
		if err == nil {
			t.Error("a closure without a transaction was acknowledged")
		}
	})
	h.wait(context.Background(), emit("b"), good)
	h.release()
	if runs != 2 {
		t.Errorf("the first closure ran %d times, want 2", runs)
	}
	if got := eventTypes(t, db, h.user); got != "a b" {
		t.Errorf("the log is %q", got)
	}
}

func TestAFullDiskIsReportedAsStorageFull(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	user := storetest.User(t, db)
	if err := db.Update(context.Background(), user, emit("a")); err != nil {
		t.Fatal(err)
	}
	pages, err := store.Query[int64](db, "PRAGMA page_count")
	if err != nil {
		t.Fatal(err)
	}
	limit := func(n int64) {
		err := db.Update(context.Background(), user, func(tx nodest.Tx) error { // max_page_count is a setting of the connection
			return store.Exec(tx, fmt.Sprint("PRAGMA max_page_count = ", n))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(pages[0] + 2)
	large := func(tx nodest.Tx) error {
		if err := tx.Emit(&stream.Event{Type: "large"}); err != nil {
			return err
		}
		_ = tx.Chats.InsertConversation(&chat.Conversation{ID: id(), Title: strings.Repeat("x", 1<<20)})
		_ = tx.Ack("phone", 1, nil) // must not be stored alone after the ignored error
		return nil
	}
	// In one group with others, some of which fit.
	h := holdWriter(t, db)
	var mu sync.Mutex
	fitted := 0
	for i := range 6 {
		if i%2 == 1 {
			h.wait(context.Background(), large, func(err error) {
				if !fault.Is(err, fault.StorageFull) {
					t.Errorf("error is %v, want storage_full", err)
				}
			})
			continue
		}
		h.wait(context.Background(), emit("small"), func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				fitted++
			} else {
				t.Error(err)
			}
		})
	}
	h.release()
	if got := eventTypes(t, db, h.user); got != strings.TrimSpace(strings.Repeat("small ", fitted)) {
		t.Errorf("the log is %q, acknowledged were %d", got, fitted)
	}
	devices, err := store.Query[int64](db, "SELECT COUNT(*) FROM devices")
	if err != nil || devices[0] != 0 {
		t.Errorf("%d devices are stored, %v", devices[0], err)
	}
	limit(1 << 30)
	if err := db.Update(context.Background(), user, large); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// A stall that everybody gave up waiting for leaves nothing that later updates wait for.
func TestUpdatesGoOnAfterAllThatWaitedHaveLeft(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h, begun := holdWriter(t, db), time.Now()
	ctx, leave := context.WithCancel(t.Context())
	var left sync.WaitGroup
	for range 256 { // as many as can wait
		left.Add(1)
		h.wait(ctx, emit("late"), func(err error) {
			wantError(t, context.Canceled)(err)
			left.Done()
		})
	}
	leave()
	left.Wait()
	waitUntil(t, func() bool { return time.Since(begun) > time.Second }) // longer than a group may take
	h.release()
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := db.Update(soon, h.user, emit("next")); err != nil {
		t.Error(err)
	}
	if got := eventTypes(t, db, h.user); got != "next" {
		t.Errorf("events: %s", got)
	}
}

func wantError(t *testing.T, want error) func(error) {
	return func(err error) {
		if !errors.Is(err, want) {
			t.Errorf("error is %v, want %v", err, want)
		}
	}
}

// A savepoint costs two statements, and a copy of each page that is changed under it.
func TestUpdatesNeedNoSavepoints(t *testing.T) {
	db := storetest.Open(t)
	h := holdWriter(t, db)
	before := db.Statements()
	no := errors.New("no")
	h.wait(context.Background(), emit("a"), wantError(t, nil))
	h.wait(context.Background(), func(tx nodest.Tx) error { // it fails before it writes
		_, err := tx.Chats.Conversation("none")
		if !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
		return no
	}, wantError(t, no))
	h.wait(context.Background(), emit("b"), wantError(t, nil))
	h.release()
	if n := db.Statements() - before; n != 3+1+3+1 {
		t.Errorf("three updates ran %d statements, with the commit", n)
	}
	if got := eventTypes(t, db, h.user); got != "a b" {
		t.Errorf("the log is %q", got)
	}
}

func TestAnUpdateThatFailsUndoesOthersOnce(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	no := errors.New("no")
	fails := func(tx nodest.Tx) error {
		if err := tx.Chats.InsertConversation(&chat.Conversation{ID: named("c")}); err != nil {
			t.Error(err)
		}
		return no
	}
	runs := map[string]int{}
	counted := func(name string) func(nodest.Tx) error {
		return func(tx nodest.Tx) error {
			runs[name]++
			return emit(name)(tx)
		}
	}
	for i, want := range []int{2, 1} { // then each has a savepoint
		h := holdWriter(t, db)
		h.wait(context.Background(), counted("a"), wantError(t, nil))
		h.wait(context.Background(), fails, wantError(t, no))
		h.wait(context.Background(), counted("b"), wantError(t, nil))
		h.release()
		if runs["a"] != want || runs["b"] != 1 {
			t.Errorf("time %d: ran %v", i+1, runs)
		}
		if got := eventTypes(t, db, h.user); got != "a b" {
			t.Errorf("time %d: the log is %q", i+1, got)
		}
		clear(runs)
	}
	if left, err := store.Query[int64](db, "SELECT COUNT(*) FROM conversations WHERE id = 'c'"); err != nil || left[0] != 0 {
		t.Errorf("%v conversations of failed updates, %v", left, err)
	}
}

func TestAGroupGoesOnAfterItsFirstUpdateFails(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	user := storetest.User(t, db)
	failure := errors.New("no")
	inside, leave := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		err := db.Update(context.Background(), user, func(tx nodest.Tx) error {
			if err := tx.Chats.InsertConversation(&chat.Conversation{ID: id()}); err != nil {
				return err
			}
			close(inside)
			<-leave
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("error is %v", err)
		}
	})
	<-inside
	for i := range 3 {
		group.Go(func() {
			if err := db.Update(context.Background(), user, emit("a")); err != nil {
				t.Error(err)
			}
		})
		waitUntil(t, func() bool { return store.Waiting(db) == i+1 })
	}
	close(leave)
	group.Wait()
	if got := eventTypes(t, db, user); got != "a a a" {
		t.Errorf("the log is %q", got)
	}
	left, err := store.Query[int64](db, "SELECT COUNT(*) FROM conversations")
	if err != nil || left[0] != 0 {
		t.Errorf("%d conversations of the update that failed, %v", left[0], err)
	}
}

// It runs alone: it sees the open files of all tests in the program.
func TestSavepointsNeedNoTemporaryFile(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("open files are listed on Linux")
	}
	db := storetest.Open(t)
	fails := func(tx nodest.Tx) error { return errors.Join(store.Exec(tx, "DELETE FROM jobs"), errors.New("no")) }
	if db.Update(context.Background(), storetest.User(t, db), fails) == nil { // savepoints are used now
		t.Fatal("no error")
	}
	h := holdWriter(t, db)
	good := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	h.wait(context.Background(), func(tx nodest.Tx) error {
		for range 60 { // more pages than SQLite keeps in memory by itself
			if err := tx.Chats.InsertConversation(&chat.Conversation{ID: id(), Title: strings.Repeat("x", 3000)}); err != nil {
				return err
			}
		}
		return nil
	}, good)
	for range 8 {
		h.wait(context.Background(), func(tx nodest.Tx) error {
			if err := store.Exec(tx, "UPDATE conversations SET title = title || 'y'"); err != nil {
				return err
			}
			files, err := os.ReadDir("/proc/self/fd")
			for _, f := range files {
				if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.Contains(to, "/etilqs_") {
					t.Errorf("SQLite has opened %s", to)
				}
			}
			return err
		}, good)
	}
	h.release()
}
