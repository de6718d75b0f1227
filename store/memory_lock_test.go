package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store/storetest"
)

// Concurrent changes of one memory are serialized: its versions stay in order, only
// the newest can be active, and none is added after a purge.
func TestConcurrentChangesOfAMemoryAreSerialized(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		var first *memory.Memory
		e.update(func(tx nodest.Tx) (err error) {
			first, err = storetest.Memory(tx.Memory).Create(context.Background(), &op.Call{}, character, memory.Draft{Text: "the first"})
			return err
		})
		atOnce := func(ops ...func(tx nodest.Tx) error) {
			var wait sync.WaitGroup
			for _, op := range ops {
				wait.Go(func() {
					err := e.db.Update(context.Background(), e.user, op)
					if err != nil && !fault.Is(err, fault.NotFound) {
						e.Error(err)
					}
				})
			}
			wait.Wait()
		}
		edit := func(text string) func(tx nodest.Tx) error {
			return func(tx nodest.Tx) error {
				if _, err := storetest.Memory(tx.Memory).Restore(context.Background(), &op.Call{}, character, first.ID); err != nil {
					return err
				}
				_, err := storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{}, character, first.ID, memory.Patch{Text: &text})
				return err
			}
		}
		retire := func(tx nodest.Tx) error {
			err := storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{}, character, first.ID, false)
			return err
		}
		purge := func(tx nodest.Tx) error {
			return storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{}, character, first.ID, true)
		}

		var ops []func(tx nodest.Tx) error
		for i := range 6 {
			ops = append(ops, edit(fmt.Sprint("edit ", i)), retire)
		}
		atOnce(ops...)
		var versions []memory.Memory
		e.view(func(tx nodest.Tx) (err error) {
			versions, err = storetest.Memory(tx.Memory).History(context.Background(), "", character, first.ID)
			return err
		})
		e.equal("versions", len(versions), 2*6) // the first version, one edit of it, and five edits that restore it first
		for i, v := range versions {
			last := i == len(versions)-1
			if v.Version != i+1 || v.Status == memory.Active && !last || v.Status == memory.Superseded == last {
				e.Errorf("version %d of %d: number %d, %s", i+1, len(versions), v.Version, v.Status)
			}
		}

		atOnce(edit("too late 1"), purge, edit("too late 2"), edit("too late 3"))
		e.view(func(tx nodest.Tx) error {
			left, _, err := tx.Memory.Facts(character, memory.Filter{Status: memory.AnyStatus}, "", 100)
			e.equal("versions after a purge", len(left), 0)
			return err
		})
	})
}
