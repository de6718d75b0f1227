package store_test

import (
	"context"
	"errors"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/nodest"
)

// countingMemory notes how many rows one transaction removes at most, and fails the one before
// which the countdown ends.
type countingMemory struct {
	memory.Store
	e           *env
	texts       int64
	parts       int64
	untilItDies int
}

var errDied = errors.New("the process has died")

func (c *countingMemory) Update(ctx context.Context, userID string, fn func(memory.Tx) error) error {
	if c.untilItDies--; c.untilItDies == 0 {
		return errDied
	}
	texts, parts := c.e.userRows("memory_texts"), c.e.userRows("memory_segment_parts")
	err := c.Store.Update(ctx, userID, fn)
	c.texts = max(c.texts, texts-c.e.userRows("memory_texts"))
	c.parts = max(c.parts, parts-c.e.userRows("memory_segment_parts"))
	return err
}

// Other writers wait for a transaction, so a long memory is forgotten in several ones. Nobody finds
// anything in the segments once the first one has ended.
func TestALongMemoryIsForgottenInParts(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		const parts = 150
		s := e.segmented()
		e.update(func(tx nodest.Tx) error {
			said := make([]*chat.Message, 2100)
			parent := s.last.ID
			for i := range said {
				said[i] = message(s.chat, parent, "one of many")
				parent = said[i].ID
			}
			return tx.Chats.InsertMessage(said...)
		})
		to := e.version(s.character)
		data := make([][]byte, parts)
		for i := range data {
			data[i] = []byte("words")
		}
		e.update(func(tx nodest.Tx) error {
			if err := tx.Memory.PutSegmentParts(s.character, named("long"), 0, data...); err != nil {
				return err
			}
			return putSegment(tx, s.character, memory.Segment{ID: named("long"), From: to - 1, To: to, Units: 2100})
		})
		db := &countingMemory{Store: e.db.Memory(), e: e, untilItDies: 2}
		service := memory.New(db, memory.Options{})
		forget := func() error {
			_, err := service.Forget(e.Context(), e.call(), s.character, memory.ForgetInput{All: true})
			return err
		}
		if err := forget(); !errors.Is(err, errDied) {
			e.Fatal(err)
		}
		e.equal("segments of a half forgotten memory", e.segmentNames(s.character), "")
		e.refused(fault.NotFound, func(tx nodest.Tx) error {
			_, err := tx.Memory.SegmentParts(s.character, named("long"), parts-1)
			return err
		})
		if left := e.userRows("memory_segment_parts"); left == 0 {
			e.Error("one transaction has removed all parts")
		}
		if err := forget(); err != nil {
			e.Fatal(err)
		}
		e.equal("what is left", []any{e.userRows("memory_texts"), e.userRows("memory_segment_parts")}, []any{int64(0), int64(0)})
		if db.texts > 2000 || db.parts > 64 {
			e.Errorf("one transaction removed %d texts and %d parts of segments", db.texts, db.parts)
		}
	})
}
