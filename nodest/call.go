package nodest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"nodest/fault"
)

// once runs fn in a transaction of the acting user and returns its answer. With
// an idempotency key the answer is stored with the effect: the same key and
// content gives the first answer again and leaves fn out.
//
// fn may run more than once; what it hands out besides its answer it must set
// anew in each run. once is the only place that writes keys.
func once[T any](ctx context.Context, e *Engine, c *Call, fn func(tx Tx) (T, error)) (T, error) {
	answer, err := attempt(ctx, e, c, fn)
	if c.Key != "" && fault.Is(err, fault.InProgress) {
		// Somebody stored the key after we had looked: now it can be read.
		answer, err = attempt(ctx, e, c, fn)
	}
	return answer, err
}

// answered says whether the key of a call has an answer already.
func (e *Engine) answered(ctx context.Context, c *Call) (yes bool, err error) {
	if c.Key == "" {
		return false, nil
	}
	err = e.store.View(ctx, c.UserID, func(tx Tx) error {
		known, err := tx.Key(c.Key)
		yes = known != nil
		return err
	})
	return yes, err
}

func attempt[T any](ctx context.Context, e *Engine, c *Call, fn func(tx Tx) (T, error)) (T, error) {
	var answer T
	err := e.store.Update(ctx, c.UserID, func(tx Tx) error {
		var zero T
		answer, c.Replayed = zero, false
		if c.Key == "" {
			var err error
			answer, err = fn(tx)
			return err
		}
		known, err := tx.Key(c.Key)
		if err != nil {
			return err
		}
		if known != nil {
			return replay(c, known, &answer)
		}
		if answer, err = fn(tx); err != nil {
			return err
		}
		kept := any(answer)
		if part, ok := kept.(interface{ Kept() any }); ok {
			kept = part.Kept() // what must not be kept is left out
		}
		reply, err := json.Marshal(kept)
		if err != nil {
			return fmt.Errorf("keep the answer of %s: %w", c.Key, err)
		}
		return tx.PutKey(&KeyRecord{Key: c.Key, Hash: c.Hash, Reply: reply, At: tx.Now()})
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return answer, nil
}

// earlier returns the answer of a call that was carried out before under its key.
func earlier[T any](ctx context.Context, e *Engine, c *Call) (answer T, known bool, err error) {
	if c.Key == "" {
		return answer, false, nil
	}
	err = e.store.View(ctx, c.UserID, func(tx Tx) error {
		r, err := tx.Key(c.Key)
		if known = r != nil; err != nil || !known {
			return err
		}
		return replay(c, r, &answer)
	})
	return answer, known, err
}

// replay reads the answer of an earlier call with the same key.
func replay(c *Call, known *KeyRecord, answer any) error {
	if known.Hash != c.Hash {
		return fault.New(fault.KeyReused, "the idempotency key %q was used with a different request", c.Key)
	}
	if len(known.Reply) == 0 {
		return fault.New(fault.NotFound, "the object created with the idempotency key %q was permanently deleted", c.Key)
	}
	if err := json.Unmarshal(known.Reply, answer); err != nil {
		return fmt.Errorf("read the kept answer of %s: %w", c.Key, err)
	}
	c.Replayed = true
	return nil
}

// by is the device that events name as their cause.
func (c *Call) by() string {
	if c.Device == "" {
		return "server"
	}
	return c.Device
}

// newID makes an id: a UUIDv7, so that ids sort by the time they were made.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// preview is m.Preview, nil for no message.
func preview(m *Message) *Preview {
	if m == nil {
		return nil
	}
	return m.Preview()
}
