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
	Hash  string          // of the command's name and content
	Reply json.RawMessage // the first answer, or what a Referrer keeps of it; nil = what it named was purged
	At    time.Time
}

// Referrer is an answer whose texts are stored in rows that do not change: only a reference
// to them is kept under the idempotency key.
type Referrer[X Tx] interface {
	// Kept is the reference; it is stored as JSON.
	Kept() any
	// Reread makes the receiver, which is empty, the answer that a reference stands for.
	// fault.NotFound if a row was removed for good.
	Reread(tx X, kept json.RawMessage) error
}

// Once runs fn in a transaction of the acting user and returns its answer. With an
// idempotency key the answer, or the reference that a Referrer keeps, is stored with the
// effect: the same key and content gives the first answer again without running fn. The key is
// claimed before fn runs, so that a repeated call waits for the first one, in whatever process
// it runs, and fn never sees its effect.
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
			return replay(tx, c, known, &answer)
		}
		if answer, err = fn(tx); err != nil {
			return err
		}
		kept := any(answer)
		if r, ok := kept.(Referrer[X]); ok {
			kept = r.Kept()
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
		return replay(tx, c, r, &answer)
	})
	return answer, known, err
}

// replay reads the answer of an earlier call with the same key.
func replay[X Tx, T any](tx X, c *Call, known *KeyRecord, answer *T) error {
	if known.Hash != c.Hash {
		return fault.New(fault.KeyReused, "the idempotency key was used with a different request")
	}
	gone := fault.New(fault.NotFound, "the object created with the idempotency key %q was permanently deleted", c.Key)
	if len(known.Reply) == 0 {
		return gone
	}
	err := reread(tx, known.Reply, answer)
	if fault.Is(err, fault.NotFound) {
		return gone
	}
	if err != nil {
		return fmt.Errorf("read the kept answer of %s: %w", c.Key, err)
	}
	c.Replayed = true
	return nil
}

// reread makes answer what was kept of it under a key.
func reread[X Tx, T any](tx X, kept json.RawMessage, answer *T) error {
	if _, ok := any(*answer).(Referrer[X]); !ok {
		return json.Unmarshal(kept, answer)
	}
	if err := json.Unmarshal([]byte("{}"), answer); err != nil { // behind a pointer is an empty answer now
		return err
	}
	return any(*answer).(Referrer[X]).Reread(tx, kept)
}
