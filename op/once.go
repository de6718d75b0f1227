package op

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nodest/fault"
)

// KeyRecord is the memory of one command that carried an idempotency key.
type KeyRecord struct {
	Key   string
	Hash  string          // of the command's name and content
	Reply json.RawMessage // the first answer; nil = what it named was purged
	At    time.Time
}

// Once runs fn in a transaction of the acting user and returns its answer. With an
// idempotency key the answer is stored with the effect: the same key and content gives the
// first answer again without running fn. The key is claimed before fn runs, so that a repeated
// call waits for the first one, in whatever process it runs, and fn never sees its effect.
//
// fn may run more than once; what it hands out besides its answer it must set
// anew in each run.
//
// Errors: those of fn; KeyReused; InProgress when the first call takes too long.
func Once[X Tx, T any](ctx context.Context, store Store[X], c *Call, fn func(tx X) (T, error)) (T, error) {
	var answer T
	err := store.Update(ctx, c.UserID, func(tx X) error {
		var zero T
		answer, c.Replayed = zero, false
		if c.Key == "" {
			var err error
			answer, err = fn(tx)
			return err
		}
		known, err := tx.ClaimKey(c.Key, c.Hash)
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
		return tx.KeepReply(c.Key, reply)
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return answer, nil
}

// Do is Once for an operation without an answer.
func Do[X Tx](ctx context.Context, store Store[X], c *Call, fn func(tx X) error) error {
	_, err := Once(ctx, store, c, func(tx X) (struct{}, error) { return struct{}{}, fn(tx) })
	return err
}

// Answered reports whether the key of a call has an answer already.
func Answered[X Tx](ctx context.Context, store Store[X], c *Call) (yes bool, err error) {
	if c.Key == "" {
		return false, nil
	}
	err = store.View(ctx, c.UserID, func(tx X) error {
		known, err := tx.Key(c.Key)
		yes = known != nil
		return err
	})
	return yes, err
}

// LastWins is Once for a change of documents: where the caller named no version,
// a change that lost a race against another process runs again on what is there
// now.
func LastWins[X Tx, T any](ctx context.Context, store Store[X], c *Call, ifVersion int64, fn func(tx X) (T, error)) (T, error) {
	const tries = 20
	for try := 1; ; try++ {
		answer, err := Once(ctx, store, c, fn)
		if ifVersion != 0 || try == tries || !fault.Is(err, fault.PreconditionFailed) {
			return answer, err
		}
	}
}

// Earlier returns the answer of a call that was carried out before under its key.
func Earlier[T any, X Tx](ctx context.Context, store Store[X], c *Call) (answer T, known bool, err error) {
	if c.Key == "" {
		return answer, false, nil
	}
	err = store.View(ctx, c.UserID, func(tx X) error {
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
		return fault.New(fault.KeyReused, "the idempotency key was used with a different request")
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
