package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
)

// trySay stores a message, and returns the error of the store.
func (e *env) trySay(conversation, text string) error {
	return e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
		_, err := say(tx, conversation, "", text)
		return err
	})
}

func (e *env) quotas() map[string]account.Quota {
	e.Helper()
	q, err := e.db.Quotas(context.Background(), e.user)
	if err != nil {
		e.Fatal(err)
	}
	return q
}

func TestWhatAUserStoresIsBounded(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		c := e.conversation()
		e.db.SetQuotas(account.Quotas{Bytes: 1000, Messages: 5})
		for range 5 {
			if err := e.trySay(c, strings.Repeat("茶", 20)); err != nil {
				e.Fatal(err)
			}
		}
		e.equal("messages", e.quotas()["messages"], account.Quota{Used: 5, Limit: 5})
		e.equal("bytes", e.quotas()["bytes"].Used, 5*60)
		err := e.trySay(c, "one more")
		e.code(fault.QuotaExceeded, err)
		e.equal("details", fault.Public(err).Details["quota"], "messages")
		e.equal("messages after a refusal", e.quotas()["messages"].Used, 5)

		e.db.SetQuotas(account.Quotas{Bytes: 1000})
		err = e.trySay(c, strings.Repeat("x", 701))
		e.code(fault.QuotaExceeded, err)
		e.equal("details", fault.Public(err).Details["quota"], "bytes")
		if err := e.trySay(c, strings.Repeat("x", 700)); err != nil {
			e.Errorf("a text that fits was refused: %v", err)
		}
		// The owner gives more.
		_, err = e.db.UpdateUser(context.Background(), e.user, func(u *account.User, _ []*account.User) error {
			u.Limits.Bytes = 2000
			return nil
		})
		if err != nil {
			e.Fatal(err)
		}
		if err := e.trySay(c, "more"); err != nil {
			e.Errorf("refused below the user's own limit: %v", err)
		}
	})
}

func TestWhatIsGoneCountsNoMore(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.db.SetQuotas(account.Quotas{Items: 2})
		a, _ := e.conversation(), e.conversation()
		c := &chat.Conversation{ID: id(), CharacterID: id(), Settings: []byte(`{}`)}
		insert := func(tx nodest.Tx) error { return tx.Chats.InsertConversation(c) }
		e.refused(fault.QuotaExceeded, insert)
		e.clock.advance(2 * time.Minute) // the rows are counted at most once a minute
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(a) })
		e.update(insert)
		e.equal("conversations", e.quotas()["conversations"], account.Quota{Used: 2, Limit: 2})
	})
}

// Others can write while a character with many memories is removed, and a chat that is being filled
// does not go with it.
func TestADeletedCharacterIsRemovedInSmallTransactions(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		facts := make([]*memory.Memory, 501)
		for i := range facts {
			facts[i] = fact(fmt.Sprint("fact ", i))
		}
		e.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, facts...) })
		loading := &chat.Conversation{ID: id(), CharacterID: character, Settings: []byte(`{}`)}
		e.update(func(tx nodest.Tx) error { return tx.Chats.BeginLoad(loading) })
		e.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(character) })
		removed := func(wantCharacters, wantMemories int64) {
			e.Helper()
			if err := store.RemoveCharacter(e.db, e.user); err != nil {
				e.Fatal(err)
			}
			e.equal("characters and memories", []int64{e.userRows("characters"), e.userRows("memories")}, []int64{wantCharacters, wantMemories})
		}
		removed(1, 501)
		e.update(func(tx nodest.Tx) error {
			return store.Exec(tx, "DELETE FROM conversations WHERE user_id = ? AND id = ?", e.user, loading.ID)
		})
		removed(1, 1)
		removed(0, 0)
	})
}

// Who has reached a limit gets the room of deleted chats at once, but single messages can still be
// restored, and what is being imported stays.
func TestDeletingAChatMakesRoom(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		a, b, importing := e.conversation(), e.conversation(), &chat.Conversation{ID: id(), CharacterID: id(), Settings: []byte(`{}`)}
		e.update(func(tx nodest.Tx) error {
			return errors.Join(tx.Chats.BeginLoad(importing), tx.Chats.OpenLoad(chat.Load{ConversationID: importing.ID}, 0))
		})
		for range 3 {
			for _, c := range []string{a, b} {
				if err := e.trySay(c, strings.Repeat("x", 100)); err != nil {
					e.Fatal(err)
				}
			}
		}
		deleted, err := store.Query[string](e.db, "SELECT id FROM messages WHERE conversation_id = ? ORDER BY seq LIMIT 1", b)
		if err != nil {
			e.Fatal(err)
		}
		e.update(func(tx nodest.Tx) error {
			return store.Exec(tx, "UPDATE messages SET deleted_at = 1 WHERE user_id = ? AND id = ?", e.user, deleted[0])
		})
		e.db.SetQuotas(account.Quotas{Messages: 6, Bytes: 600})

		e.code(fault.QuotaExceeded, e.trySay(b, "y"))
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(a) })
		e.clock.advance(20 * time.Second)
		refused := fault.Public(e.trySay(b, "y"))
		e.equal("code", refused.Code, fault.QuotaExceeded)
		e.equal("retry", refused.Retry(), "no")
		if refused.RetryAfter <= 0 || refused.RetryAfter > 40*time.Second {
			e.Errorf("the answer says to wait for %v, not for the rest of a minute", refused.RetryAfter)
		}
		e.clock.advance(refused.RetryAfter)
		if err := e.trySay(b, "y"); err != nil {
			e.Fatalf("refused after a chat was deleted: %v", err)
		}
		e.equal("messages", e.quotas()["messages"].Used, 4)
		e.equal("bytes", e.quotas()["bytes"].Used, 301)
		left, err := store.Query[string](e.db, "SELECT id FROM conversations WHERE user_id = ? AND id IN (?)", e.user, []string{a, importing.ID})
		if err != nil {
			e.Fatal(err)
		}
		e.equal("what is left of a and of the import", left, []string{importing.ID})
		kept, err := store.Query[string](e.db, "SELECT id FROM messages WHERE id = ?", deleted[0])
		if err != nil {
			e.Fatal(err)
		}
		e.equal("the deleted message", kept, deleted)
	})
}

func TestMaintenanceSetsCountersRight(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		c := e.conversation()
		for range 3 {
			if err := e.trySay(c, "tea"); err != nil {
				e.Fatal(err)
			}
		}
		before := e.quotas()
		e.clock.advance(25 * time.Hour)
		e.maintain()
		e.equal("counters that were right", e.quotas(), before)
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(c) })
		e.clock.advance(32 * 24 * time.Hour)
		e.maintain()
		var left []string
		for kind, q := range e.quotas() {
			if q.Used != 0 {
				left = append(left, kind)
			}
		}
		slices.Sort(left)
		e.equal("what still counts", left, []string(nil))
	})
}

func TestCountersCanBeChecked(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		c := e.conversation()
		if err := e.trySay(c, "tea"); err != nil {
			e.Fatal(err)
		}
		wrong, err := store.CheckCounters(e.Context(), e.db.Options())
		if err != nil {
			e.Fatal(err)
		}
		e.equal("counters that differ", wrong, []store.Counter(nil))
		e.update(func(tx nodest.Tx) error {
			return store.Exec(tx, "UPDATE quotas SET used = used + 1000 WHERE user_id = ? AND kind = 'bytes'", e.user)
		})
		e.update(func(tx nodest.Tx) error {
			return store.Exec(tx, "DELETE FROM quotas WHERE user_id = ? AND kind = 'messages'", e.user)
		})
		if wrong, err = store.CheckCounters(e.Context(), e.db.Options()); err != nil || len(wrong) != 2 {
			e.Fatal(wrong, err)
		}
		e.equal("bytes", []any{wrong[0].UserID, wrong[0].Kind, wrong[0].Used, wrong[0].Counted}, []any{e.user, "bytes", int64(1003), int64(3)})
		e.equal("messages", []any{wrong[1].Kind, wrong[1].Used, wrong[1].Counted}, []any{"messages", int64(0), int64(1)})
	})
}

// Counters are set right once, also if several processes find at the same moment that they are not.
func TestCountersAreSetRightOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		c := e.conversation()
		e.update(func(tx nodest.Tx) error {
			_, err := say(tx, c, "", "Hello")
			return err
		})
		e.update(func(tx nodest.Tx) error {
			return store.Exec(tx, "UPDATE quotas SET used = used + 1000 WHERE user_id = ?", e.user)
		})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := store.Recount(e.db, e.user); err != nil {
					e.Error(err)
				}
			})
		}
		all.Wait()
		e.equal("messages", e.quotas()["messages"].Used, int64(1))
	})
}
