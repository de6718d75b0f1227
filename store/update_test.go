package store_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func TestAFailedUpdateStoresNothing(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		failure := errors.New("no")
		for name, end := range map[string]func(){
			"error": func() {},
			"panic": func() { panic("at the disco") },
		} {
			err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
				if _, err := say(tx, conversation, "", name); err != nil {
					return err
				}
				end()
				return failure
			})
			if name == "error" && !errors.Is(err, failure) {
				e.Errorf("error is %v, want that of the closure", err)
			}
			if name == "panic" && (err == nil || !strings.Contains(err.Error(), "at the disco") || !fault.Is(err, fault.Internal)) {
				e.Errorf("error is %v, want the panic, without a code", err)
			}
		}
		m := e.say(conversation, "", "kept")
		e.equal("seq of the message", m.Seq, 1)
		events, err := e.db.Events(context.Background(), e.user, 0, 10)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("events", len(events), 1)
		e.equal("seq of the event", events[0].Seq, 1)
		e.equal("events published", len(e.published.of(e.user)), 1)
	})
}

func TestAnUpdateWhoseGoroutineEndsStoresNothing(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		var group sync.WaitGroup
		group.Go(func() {
			_ = e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
				if _, err := say(tx, conversation, "", "gone"); err != nil {
					return err
				}
				runtime.Goexit()
				return nil
			})
		})
		group.Wait()
		e.equal("seq of the message", e.say(conversation, "", "kept").Seq, 1)
	})
}

func TestEventsArePublishedAsStored(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.update(func(tx nodest.Tx) error {
			return tx.Emit(
				&stream.Event{Type: "message.deleted", ConversationID: "c", MessageID: "m", By: "phone", Data: []byte(`{"b":1,"a":2}`)},
				&stream.Event{Type: "gen.started", GenerationID: "g"},
			)
		})
		stored, err := e.db.Events(context.Background(), e.user, 0, 10)
		if err != nil {
			e.Fatal(err)
		}
		published := e.published.of(e.user)
		e.equal("events published", len(published), 2)
		for i, want := range stored {
			e.equal("frame", string(published[i].Frame()), string(want.Frame()))
		}
		e.equal("first", string(stored[0].Frame()),
			`{"ev":"message.deleted","seq":1,"conversationId":"c","messageId":"m","at":1773489600000,"by":"phone","data":{"b":1,"a":2}}`)
		e.equal("by of an event without a device", stored[1].By, "server")

		position, oldest, err := e.db.Position(context.Background(), e.user)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("position", position.Seq, 2)
		e.equal("oldest", oldest, 1)
		if len(position.Epoch) != 8 {
			e.Errorf("epoch is %q", position.Epoch)
		}
		newest, err := e.db.Newest(context.Background(), []string{e.user, id()})
		if err != nil {
			e.Fatal(err)
		}
		e.equal("newest", newest, map[string]int64{e.user: 2})
		_, _, err = e.db.Position(context.Background(), id())
		e.code(fault.NotFound, err)
		_, oldest, _ = e.db.Position(context.Background(), storetest.User(e.T, e.db))
		e.equal("oldest of an empty log", oldest, 1)
	})
}

func TestEventNumbersHaveNoGaps(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		failure := errors.New("no")
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for j := range 25 {
					err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
						if err := tx.Emit(&stream.Event{Type: "a"}, &stream.Event{Type: "b"}); err != nil {
							return err
						}
						if (i+j)%3 == 0 {
							return failure
						}
						return nil
					})
					if (err != nil) != ((i+j)%3 == 0) {
						e.Error(err)
					}
				}
			})
		}
		group.Wait()
		stored, err := e.db.Events(context.Background(), e.user, 0, 1000)
		if err != nil {
			e.Fatal(err)
		}
		published := map[int64]*stream.Event{}
		for _, event := range e.published.of(e.user) {
			published[event.Seq] = event
		}
		e.equal("events published", len(published), len(stored))
		for i, event := range stored {
			if event.Seq != int64(i+1) {
				e.Fatalf("event %d has seq %d", i+1, event.Seq)
			}
			if want := []string{"a", "b"}[i%2]; event.Type != want || published[event.Seq].Type != want {
				e.Fatalf("event %d is %s and was published as %s, want %s", event.Seq, event.Type, published[event.Seq].Type, want)
			}
		}
		page, err := e.db.Events(context.Background(), e.user, 3, 2)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("a page", []int64{page[0].Seq, page[1].Seq}, []int64{4, 5})
	})
}

func TestAViewIsASnapshot(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.view(func(tx nodest.Tx) error {
			before, err := tx.Chats.Conversation(conversation)
			if err != nil {
				return err
			}
			e.say(conversation, "", "meanwhile")
			after, err := tx.Chats.Conversation(conversation)
			e.equal("the conversation", after, before)
			return err
		})
		err := e.db.View(context.Background(), e.user, func(tx nodest.Tx) error {
			_, err := say(tx, conversation, "", "in a view")
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "cannot write") {
			e.Errorf("writing in a View: %v", err)
		}
	})
}

func TestATransactionCannotBeUsedAfterItsEnd(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		var kept nodest.Tx
		e.update(func(tx nodest.Tx) error { kept = tx; return nil })
		if _, err := kept.Characters.Settings(); err == nil {
			e.Error("a transaction that has ended can be read")
		}
		if err := kept.Emit(&stream.Event{}); err == nil {
			e.Error("a transaction that has ended can be written")
		}
	})
}

func TestACancelledUpdateStoresNothing(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		ctx, cancel := context.WithCancel(context.Background())
		err := e.db.Update(ctx, e.user, func(tx nodest.Tx) error {
			if _, err := say(tx, conversation, "", "first"); err != nil {
				return err
			}
			cancel()
			_, err := say(tx, conversation, "", "second")
			return err
		})
		if !errors.Is(err, context.Canceled) {
			e.Errorf("error is %v, want the end of the context", err)
		}
		if err := e.db.Update(ctx, e.user, func(nodest.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
			e.Errorf("error is %v, want the end of the context", err)
		}
		if err := e.db.View(ctx, e.user, func(nodest.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
			e.Errorf("error of a View is %v, want the end of the context", err)
		}
		e.equal("seq", e.say(conversation, "", "third").Seq, 1)
	})
}

func TestAnIgnoredStatementErrorFailsTheUpdate(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.refused(fault.Conflict, func(tx nodest.Tx) error {
			m, err := say(tx, conversation, "", "one")
			if err != nil {
				return err
			}
			_ = tx.Chats.InsertMessage(m) // the same id; the error is dropped
			return nil
		})
		e.equal("seq", e.say(conversation, "", "two").Seq, 1)
	})
}

func TestCloseWaitsForUpdatesAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	db, err := store.Open(context.Background(), store.Options{Dir: t.TempDir(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	user := storetest.User(t, db)
	var group sync.WaitGroup
	inside, leave := make(chan struct{}), make(chan struct{})
	group.Go(func() {
		err := db.Update(context.Background(), user, func(tx nodest.Tx) error {
			close(inside)
			<-leave
			return tx.Emit(&stream.Event{Type: "a"})
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	group.Go(func() { close(leave) })
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
	if err := db.Close(); err != nil {
		t.Error("closing it again:", err)
	}
	if err := db.Update(context.Background(), user, func(nodest.Tx) error { return nil }); !fault.Is(err, fault.ShuttingDown) {
		t.Errorf("error after Close is %v", err)
	}
}
