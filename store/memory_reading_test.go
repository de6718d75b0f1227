package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"nodest/internal/fault"
	"nodest/memory"
	"nodest/nodest"
)

// reading returns how far memory has read a conversation.
func (e *env) reading(conversation string) (r memory.Reading) {
	e.Helper()
	e.view(func(tx nodest.Tx) (err error) {
		r, err = tx.Memory.Reading(conversation)
		return err
	})
	return r
}

// countCall counts a model call.
func countCall(tx nodest.Tx, conversation string) error {
	r, err := tx.Memory.LockReading(conversation)
	if err != nil {
		return err
	}
	r.Calls++
	return tx.Memory.PutReading(conversation, r)
}

func TestReadingProgressIsStoredPerConversation(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		one, other := e.conversation(), e.conversation()
		e.equal("before", e.reading(one), memory.Reading{})
		want := memory.Reading{Exchanges: 1, Calls: 2, Ordered: 3}
		e.update(func(tx nodest.Tx) error {
			return errors.Join(errOf(tx.Memory.LockReading(one)), tx.Memory.PutReading(one, want))
		})
		e.equal("after", e.reading(one), want)
		e.equal("of another", e.reading(other), memory.Reading{})
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(one) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return errOf(tx.Memory.Reading(one)) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return countCall(tx, one) })
	})
}

// Concurrent calls are all counted, including the first ones.
func TestConcurrentCallsAreAllCounted(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		chat := e.conversation()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error { return countCall(tx, chat) })
				if err != nil {
					e.Error(err)
				}
			})
		}
		all.Wait()
		e.equal("calls", e.reading(chat).Calls, 8)
	})
}
