package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// answered stores an answer under a key.
func answered(tx nodest.Tx, key, reply string) error {
	_, err := tx.ClaimKey(key, "h")
	return errors.Join(err, tx.KeepReply(key, op.Reply{JSON: json.RawMessage(reply)}))
}

func TestAnIdempotencyKeyHasOneEffect(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		once := func(key string) error {
			return e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
				if r, err := tx.ClaimKey(key, "h"); err != nil || r != nil {
					return err
				}
				if _, err := say(tx, conversation, "", key); err != nil {
					return err
				}
				return tx.KeepReply(key, op.Reply{JSON: []byte(`{"z":1, "a":2}`)})
			})
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for _, key := range []string{"k1", "k2", "k3", "k\x00"} {
					if err := once(key); err != nil {
						e.Error(err)
					}
				}
			})
		}
		group.Wait()
		first := op.KeyRecord{Hash: "h", Reply: op.Reply{JSON: []byte(`{"z":1, "a":2}`)}, At: start}
		e.view(func(tx nodest.Tx) error {
			roots, err := tx.Chats.Children(conversation, "")
			e.equal("messages", len(roots), 4)
			if err != nil {
				return err
			}
			r, err := tx.Key("k1")
			e.equal("record", *r, first)
			return err
		})
		e.update(func(tx nodest.Tx) error {
			r, err := tx.ClaimKey("k1", "other")
			e.equal("record of a claimed key", *r, first)
			return err
		})
		e.clock.advance(48 * time.Hour)
		e.update(func(tx nodest.Tx) error {
			if r, err := tx.Key("k1"); r != nil || err != nil {
				e.Error("a key is known after 48 hours", err)
			}
			r, err := tx.ClaimKey("k1", "other")
			if r != nil {
				e.Error("an old key cannot be claimed")
			}
			return err
		})
	})
}

// A call whose key another transaction has claimed waits for its end, whatever that is. It
// has no effect that could meet that of the other: the key is the first thing that it takes.
func TestAClaimedKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		first error // the end of the first transaction
		reply string
	}{
		{"until it is stored", nil, `1`},
		{"until it has failed", errors.New("refused"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBothDatabases(t, func(e *env) {
				claimed, end, ended := make(chan struct{}), make(chan error), make(chan error, 1)
				go func() {
					ended <- e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
						err := answered(tx, "k", `1`)
						close(claimed)
						return errors.Join(err, <-end)
					})
				}()
				<-claimed
				var found *op.KeyRecord
				second := make(chan error, 1)
				go func() {
					second <- e.db.Update(context.Background(), e.user, func(tx nodest.Tx) (err error) {
						found, err = tx.ClaimKey("k", "h")
						return err
					})
				}()
				e.waitsForALock("SELECT pg_advisory_xact_lock")
				select {
				case err := <-second:
					e.Fatalf("the second call did not wait: %v", err)
				default:
				}
				end <- tt.first
				if err := <-ended; !errors.Is(err, tt.first) {
					e.Fatal(err)
				}
				if err := <-second; err != nil {
					e.Fatal(err)
				}
				reply := ""
				if found != nil {
					reply = string(found.JSON)
				}
				e.equal("what the second call finds", reply, tt.reply)
			})
		})
	}
}

// waitsForALock returns when a statement that begins so waits for another transaction.
func (e *env) waitsForALock(statement string) {
	e.Helper()
	if !store.OnPostgres(e.db) {
		return // the second transaction has not begun
	}
	for deadline := time.Now().Add(time.Minute); ; {
		n, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'advisory')"+
			" AND pid IN (SELECT pid FROM pg_stat_activity WHERE query LIKE ?)", statement+"%")
		switch {
		case err != nil:
			e.Fatal(err)
		case n[0] > 0:
			return
		case time.Now().After(deadline):
			e.Fatal("nothing waits")
		}
	}
}

// The waiting is bounded, so that a process that hangs does not take the connections of others.
func TestAClaimedKeyIsNotWaitedForForever(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		if !store.OnPostgres(e.db) {
			return // one writer: the first has ended when the second begins
		}
		e.update(func(tx nodest.Tx) error {
			if err := answered(tx, "k", `1`); err != nil {
				return err
			}
			err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
				return store.ClaimKey(tx, "k", 20*time.Millisecond)
			})
			if !fault.Is(err, fault.InProgress) {
				e.Errorf("error = %v", err)
			}
			return nil
		})
		e.update(func(tx nodest.Tx) error { return answered(tx, "other", `1`) }) // the connections work
	})
}

// No stored answer names a thing that is removed for good: a repeat says that its answer is gone.
// Answers that do not name it, and those of others, stay.
func TestNothingThatIsGoneIsInAStoredAnswer(t *testing.T) {
	t.Parallel()
	later := func(e *env) func() { // maintenance removes what was deleted long ago
		e.clock.advance(40 * day)
		return func() { e.maintain(); e.maintain() }
	}
	tests := map[string]func(e *env) (id string, remove func()){
		"message": func(e *env) (string, func()) {
			m := e.say(e.conversation(), "", "words")
			e.change(m.ID, deleteMessage)
			return m.ID, later(e)
		},
		"chat": func(e *env) (string, func()) {
			c := e.conversation()
			e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(c) })
			return c, later(e)
		},
		"message of a chat": func(e *env) (string, func()) {
			c := e.conversation()
			m := e.say(c, "", "words")
			e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(c) })
			return m.ID, later(e)
		},
		"character": func(e *env) (string, func()) {
			c := e.character()
			e.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(c) })
			return c, later(e)
		},
		"fact": func(e *env) (string, func()) {
			c := e.character()
			m := e.learn(c, fact("words"))
			return m.ID, func() { e.update(func(tx nodest.Tx) error { return tx.Memory.PurgeFacts(c, m.ID) }) }
		},
		"summary": func(e *env) (string, func()) {
			s := e.summarise(1, 1, e.say(e.conversation(), "", "words"))
			return s.ID, func() { e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteSummary(s.ID, 1) }) }
		},
		"save point": func(e *env) (string, func()) {
			s := &chat.Save{ID: id(), ConversationID: e.conversation(), Version: 1}
			e.update(func(tx nodest.Tx) error { return tx.Chats.InsertSave(s) })
			return s.ID, func() { e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteSave(s.ID) }) }
		},
		"document": func(e *env) (string, func()) {
			f := &knowledge.File{ID: id(), Name: "a.md", Original: knowledge.Original{SHA256: "a", ContentID: id()}, State: knowledge.Failed}
			e.update(func(tx nodest.Tx) error {
				k := store.Knowledge(tx)
				return errors.Join(k.InsertFile(f), k.DeleteFile(f.ID))
			})
			return f.ID, func() { e.update(func(tx nodest.Tx) error { return store.Knowledge(tx).PurgeFiles(f.ID) }) }
		},
		"post": func(e *env) (string, func()) {
			p := e.post(e.character())
			return p.ID, func() {
				e.update(func(tx nodest.Tx) error {
					p.DeletedAt = new(tx.Now())
					return store.Circle(tx).UpdatePost(p)
				})
			}
		},
	}
	for name, begin := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothDatabases(t, func(e *env) {
				gone, remove := begin(e)
				long := strings.Repeat("words of it ", 1000) // compressed
				e.update(func(tx nodest.Tx) error {
					return errors.Join(answered(tx, "names it", `{"of":[{"id":"`+gone+`"}],"text":"`+long+`"}`), answered(tx, "names another", `{"id":"`+id()+`"}`))
				})
				other := storetest.User(e.T, e.db)
				e.updateAs(other, func(tx nodest.Tx) error { return answered(tx, "names it", `{"id":"`+gone+`"}`) })
				remove()
				var got []bool
				e.view(func(tx nodest.Tx) error {
					for _, key := range []string{"names it", "names another"} {
						r, err := tx.Key(key)
						if err != nil {
							return err
						}
						got = append(got, r.JSON != nil)
					}
					return nil
				})
				e.equal("answers that are there", got, []bool{false, true})
				e.equal("answers of others", e.queryInts("SELECT COUNT(reply) FROM call_keys WHERE user_id = ?", other), []int64{1})
			})
		})
	}
}

// The work that follows a transaction is handed out once: not to a repeated call, and not with an error.
func TestWorkIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		accept := func(key string, err error) (string, int, error) {
			return op.Accept(context.Background(), e.db, &op.Call{UserID: e.user, Key: key, Hash: "h"}, func(nodest.Tx) (string, int, error) {
				return "answer", 7, err
			})
		}
		for i, want := range []int{7, 0} {
			answer, work, err := accept("the-key", nil)
			if answer != "answer" || work != want || err != nil {
				e.Errorf("call %d: %q, work %d, %v; want work %d", i+1, answer, work, err, want)
			}
		}
		refused := fault.New(fault.Busy, "no")
		if answer, work, err := accept("another-key", refused); answer != "" || work != 0 || !fault.Is(err, fault.Busy) {
			e.Errorf("refused: %q, work %d, %v", answer, work, err)
		}
		if _, work, err := accept("another-key", nil); work != 7 || err != nil {
			e.Errorf("after a refusal: work %d, %v", work, err)
		}
	})
}
