package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// While one user's transaction is open, other users and other conversations of the
// same user can commit without waiting, because events are numbered at the end. All
// transactions take locks in the same order, so there is no deadlock.
func TestUsersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	db := storetest.OpenPostgres(t, store.Options{})
	ada, bo := storetest.User(t, db), storetest.User(t, db)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // only if they wait
	defer cancel()
	first, second := &chat.Conversation{ID: id()}, &chat.Conversation{ID: id()}
	for _, c := range []*chat.Conversation{first, second} {
		if err := db.Update(ctx, ada, func(tx nodest.Tx) error { return tx.Chats.InsertConversation(c) }); err != nil {
			t.Fatal(err)
		}
	}
	work := func(tx nodest.Tx, conversation string) error {
		if err := tx.AddUsage(nodest.UsageRow{Provider: "p", Requests: 1}); err != nil {
			return err
		}
		_, err := say(tx, conversation, "", "hello")
		return err
	}
	err := db.Update(ctx, ada, func(tx nodest.Tx) error {
		if err := work(tx, first.ID); err != nil {
			return err
		}
		other := db.Update(ctx, bo, func(tx nodest.Tx) error {
			own := &chat.Conversation{ID: id()}
			if err := tx.Chats.InsertConversation(own); err != nil {
				return err
			}
			return work(tx, own.ID)
		})
		same := db.Update(ctx, ada, func(tx nodest.Tx) error { return work(tx, second.ID) })
		return errors.Join(other, same)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := eventTypes(t, db, ada); got != "message.created message.created" {
		t.Errorf("the log is %q", got)
	}
	if n := store.Deadlocks(db); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// Many users with several concurrent writers each lose no message, event or usage
// count.
func TestManyUsersAtOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		const users, writers = 8, 3
		turns := atLeast(6, 200)
		ctx := context.Background()
		var group sync.WaitGroup
		var all []string
		conversations := map[string][]string{}
		for range users {
			user := newUser(e)
			all = append(all, user)
			for range 2 {
				c := &chat.Conversation{ID: id()}
				e.updateAs(user, func(tx nodest.Tx) error { return tx.Chats.InsertConversation(c) })
				conversations[user] = append(conversations[user], c.ID)
			}
		}
		for _, user := range all {
			for w := range writers {
				group.Go(func() {
					for i := range turns {
						c := conversations[user][(w+i)%2]
						key := fmt.Sprintf("%d-%d", w, i)
						err := e.db.Update(ctx, user, func(tx nodest.Tx) error {
							if err := tx.AddUsage(nodest.UsageRow{Provider: "p", Model: key[:1], Requests: 1}); err != nil {
								return err
							}
							if err := tx.AddUsage(nodest.UsageRow{Provider: "p", Model: "all", Requests: 1}); err != nil {
								return err
							}
							m, err := say(tx, c, "", key)
							if err != nil {
								return err
							}
							if err := tx.Ack("phone", m.Seq, map[string]string{c: m.ID}); err != nil {
								return err
							}
							return answered(tx, key, `1`)
						})
						if err != nil {
							e.Error(err)
						}
					}
				})
			}
		}
		group.Wait()
		for _, user := range all {
			events, err := e.db.Events(ctx, user, 0, 10*writers*turns)
			if err != nil {
				e.Fatal(err)
			}
			e.equal("events", len(events), writers*turns)
			for i, event := range events {
				if event.Seq != int64(i+1) {
					e.Fatalf("event %d has seq %d", i+1, event.Seq)
				}
			}
			messages := 0
			err = e.db.View(ctx, user, func(tx nodest.Tx) error {
				for _, c := range conversations[user] {
					items, err := tx.Chats.Children(c, "")
					if err != nil {
						return err
					}
					for i, m := range items {
						if m.Seq != int64(i+1) {
							e.Errorf("message %d has seq %d", i+1, m.Seq)
						}
					}
					messages += len(items)
					stored, err := tx.Chats.Conversation(c)
					if err != nil {
						return err
					}
					e.equal("version", stored.Version, int64(1+len(items)))
				}
				usage, err := tx.Usage("2026-03-14", "2026-03-14")
				if err != nil {
					return err
				}
				e.equal("requests", usage[len(usage)-1].Requests, writers*turns)
				return nil
			})
			if err != nil {
				e.Fatal(err)
			}
			e.equal("messages", messages, writers*turns)
		}
		if store.OnPostgres(e.db) {
			e.equal("deadlocks", store.Deadlocks(e.db), 0)
		}
	})
}

// Two transactions that deadlock both commit in the end.
func TestADeadlockIsResolved(t *testing.T) {
	t.Parallel()
	db := storetest.OpenPostgres(t, store.Options{})
	user := storetest.User(t, db)
	ctx := context.Background()
	var c [2]string
	for i := range c {
		c[i] = id()
		if err := db.Update(ctx, user, func(tx nodest.Tx) error { return tx.Chats.InsertConversation(&chat.Conversation{ID: c[i]}) }); err != nil {
			t.Fatal(err)
		}
	}
	// Both hold one lock before either requests the second, in their first run.
	var both sync.WaitGroup
	both.Add(2)
	var group sync.WaitGroup
	for i := range c {
		group.Go(func() {
			var once sync.Once
			err := db.Update(ctx, user, func(tx nodest.Tx) error {
				if _, err := tx.Chats.LockConversation(c[i]); err != nil {
					return err
				}
				once.Do(func() { both.Done(); both.Wait() })
				if _, err := tx.Chats.LockConversation(c[1-i]); err != nil {
					return fmt.Errorf("wrapped: %s", err) //nolint:errorlint // drops the cause on purpose
				}
				return tx.Emit(&stream.Event{Type: "a"})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := eventTypes(t, db, user); got != "a a" {
		t.Errorf("the log is %q", got)
	}
	if store.Deadlocks(db) == 0 {
		t.Error("there was no deadlock to resolve")
	}
}

// The limit on running generations holds when a user starts generations in several
// conversations at once.
func TestTheGenerationLimitHoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		const writers, places = 6, 2
		ctx := context.Background()
		var conversations [writers]string
		for i := range conversations {
			conversations[i] = e.conversation()
		}
		var open, group sync.WaitGroup
		open.Add(writers)
		for _, c := range conversations {
			group.Go(func() {
				var once sync.Once
				err := e.db.Update(ctx, e.user, func(tx nodest.Tx) error {
					if _, err := tx.Chats.LockConversation(c); err != nil {
						return err
					}
					if store.OnPostgres(e.db) { // all transactions are open before one counts
						once.Do(func() { open.Done(); open.Wait() })
					}
					if _, err := tx.LockLimits(); err != nil {
						return err
					}
					running, err := tx.Chats.Running("")
					if err != nil || len(running) >= places {
						return err
					}
					if err := tx.InsertGeneration(&chat.Generation{ID: id(), ConversationID: c, Status: chat.GenBuilding}); err != nil {
						return err
					}
					return tx.Emit(&stream.Event{Type: "a"})
				})
				if err != nil {
					e.Error(err)
				}
			})
		}
		group.Wait()
		e.view(func(tx nodest.Tx) error {
			running, err := tx.Chats.Running("")
			e.equal("running", len(running), places)
			return err
		})
		if store.OnPostgres(e.db) {
			e.equal("deadlocks", store.Deadlocks(e.db), 0)
		}
	})
}

// While a transaction holds LockLimits, another user can take it, and the same user
// can write elsewhere.
func TestLockLimitsDoesNotBlockOtherWork(t *testing.T) {
	t.Parallel()
	db := storetest.OpenPostgres(t, store.Options{})
	ada, bo := storetest.User(t, db), storetest.User(t, db)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // only if they wait
	defer cancel()
	other := &chat.Conversation{ID: id()}
	if err := db.Update(ctx, ada, func(tx nodest.Tx) error { return tx.Chats.InsertConversation(other) }); err != nil {
		t.Fatal(err)
	}
	err := db.Update(ctx, ada, func(tx nodest.Tx) error {
		if _, err := tx.LockLimits(); err != nil {
			return err
		}
		return errors.Join(
			db.Update(ctx, bo, func(tx nodest.Tx) error { return errOf(tx.LockLimits()) }),
			db.Update(ctx, ada, func(tx nodest.Tx) error { return errOf(say(tx, other.ID, "", "hello")) }),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func errOf[T any](_ T, err error) error { return err }

// Reads of a user that take long leave connections for the reads of others, and not more of them run
// at the same time than half of the connections.
func TestAUserWhoReadsMuchLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	ada, bo := storetest.User(t, db), storetest.User(t, db)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // only if they wait
	defer cancel()
	const half, reads = 4, 20
	begun, end, ended := make(chan struct{}, reads), make(chan struct{}), make(chan error, reads)
	for range reads {
		go func() {
			ended <- db.View(ctx, ada, func(tx nodest.Tx) error {
				_, err := tx.Limits() // takes a connection
				begun <- struct{}{}
				<-end
				return err
			})
		}()
	}
	for range half {
		<-begun
	}
	for range 3 {
		if err := db.View(ctx, bo, func(tx nodest.Tx) error { _, err := tx.Limits(); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if len(begun) > 0 {
		t.Errorf("%d more of the reads have begun", len(begun))
	}
	close(end)
	for range reads {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Who waits for others' reads goes away with the request.
func TestWaitingToReadEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	db := storetest.OpenWith(t, store.Options{Readers: 1})
	ada := storetest.User(t, db)
	ctx, cancel := context.WithCancel(context.Background())
	err := db.View(t.Context(), ada, func(nodest.Tx) error {
		cancel()
		return db.View(ctx, ada, func(nodest.Tx) error { return nil })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
