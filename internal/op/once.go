package op

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nodest/internal/fault"
)

// KeyRecord is the memory of one command that carried an idempotency key.
type KeyRecord struct {
	Hash string // made of the command's name and content
	Reply
	At time.Time
}

// Reply is an answer as it is stored.
type Reply struct {
	JSON    json.RawMessage // nil = something that it named was purged
	OnlyIDs bool            // it was longer than maxReply: JSON has only its ids
}

// maxReply is how many bytes of JSON an answer has at most that is stored whole.
const maxReply = 256 << 10

// Shortened is an answer that is stored without a part of it, which a repeat does not get.
type Shortened interface {
	// Stored is the answer without that part. It has the type of the answer.
	Stored() any
}

// Document is an answer that may be longer than maxReply.
type Document[X Tx] interface {
	// Read fills the receiver, which has only ids and kinds, with what these name now.
	Read(tx X) error
}

// Once runs fn in a transaction of the acting user and returns its answer. With an
// idempotency key the answer is stored with the effect: the same key and content gives the
// first answer again without running fn, until something that the answer names is purged. Of a long
// Document the ids are stored, and it is read as it is then. The key is claimed before fn runs, so
// that a repeated call waits for the first one, in whatever process it runs, and fn never sees its
// effect.
//
// fn may run more than once; what it hands out besides its answer it must set
// anew in each run.
//
// Errors: those of fn; KeyReused; InProgress when the first call takes too long.
func Once[X Tx, T any](ctx context.Context, store Store[X], c *Call, fn func(tx X) (T, error)) (T, error) {
	answer, _, err := Accept(ctx, store, c, func(tx X) (T, struct{}, error) {
		answer, err := fn(tx)
		return answer, struct{}{}, err
	})
	return answer, err
}

// Accept is Once for a request that is worked on behind its transaction: fn also returns the work, which
// is zero for a repeated call and with an error.
func Accept[X Tx, T, W any](ctx context.Context, store Store[X], c *Call, fn func(tx X) (T, W, error)) (answer T, work W, err error) {
	err = store.Update(ctx, c.UserID, func(tx X) (err error) {
		var none T
		var idle W
		answer, work, c.Replayed = none, idle, false
		if c.Key == "" {
			answer, work, err = fn(tx)
			return err
		}
		known, err := tx.ClaimKey(c.Key, c.Hash)
		if err != nil {
			return err
		}
		if known != nil {
			return replay(tx, c, known, &answer)
		}
		if answer, work, err = fn(tx); err != nil {
			return err
		}
		reply, err := replyOf[X](answer)
		if err != nil {
			return fmt.Errorf("keep the answer of %s: %w", c.Key, err)
		}
		return tx.KeepReply(c.Key, reply)
	})
	if err != nil {
		var none T
		var idle W
		return none, idle, err
	}
	return answer, work, nil
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

// InPieces runs do for each of parts, of which there is at least one, in a transaction of its
// own, so that other writers do not wait long; the key is stored with the last one. do gets the
// result of the earlier parts and returns it with its own added. What was done before a failure
// stays, and do must skip it when everything is requested again.
func InPieces[X Tx, P, T any](ctx context.Context, store Store[X], c *Call, so T, parts []P, do func(tx X, so T, part P) (T, error)) (T, error) {
	last := len(parts) - 1
	if last > 0 {
		answer, known, err := Earlier[T](ctx, store, c)
		if known || err != nil {
			return answer, err
		}
	}
	for _, part := range parts[:last] {
		next := so
		err := store.Update(ctx, c.UserID, func(tx X) (err error) {
			next, err = do(tx, so, part)
			return err
		})
		if err != nil {
			var zero T
			return zero, err
		}
		so = next
	}
	return Once(ctx, store, c, func(tx X) (T, error) { return do(tx, so, parts[last]) })
}

// replay reads the answer of an earlier call with the same key.
func replay[X Tx, T any](tx X, c *Call, known *KeyRecord, answer *T) error {
	if known.Hash != c.Hash {
		return fault.New(fault.KeyReused, "the idempotency key was used with a different request")
	}
	gone := fault.New(fault.NotFound, "the object created with the idempotency key %q was permanently deleted", c.Key)
	if len(known.JSON) == 0 {
		return gone
	}
	err := json.Unmarshal(known.JSON, answer)
	if d, ok := any(*answer).(Document[X]); ok && err == nil && known.OnlyIDs {
		err = d.Read(tx)
	}
	if fault.Is(err, fault.NotFound) {
		return gone
	}
	if err != nil {
		return fmt.Errorf("read the kept answer of %s: %w", c.Key, err)
	}
	c.Replayed = true
	return nil
}

// replyOf is an answer as it is stored. Its documents are as they were.
func replyOf[X Tx](answer any) (r Reply, err error) {
	if s, ok := answer.(Shortened); ok {
		answer = s.Stored()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		return r, err
	}
	r.JSON = bytes.TrimSpace(b.Bytes())
	if _, r.OnlyIDs = answer.(Document[X]); !r.OnlyIDs || len(r.JSON) <= maxReply {
		r.OnlyIDs = false
		return r, nil
	}
	r.JSON, err = OnlyIDs(r.JSON)
	return r, err
}

// OnlyIDs is a JSON object with nothing but its ids and kinds.
func OnlyIDs(object json.RawMessage) (json.RawMessage, error) {
	var members map[string]any
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	return json.Marshal(onlyIDs(members))
}

// onlyIDs removes all members but ids and kinds, also from objects in it.
func onlyIDs(members map[string]any) map[string]any {
	for name, m := range members {
		switch m := m.(type) {
		case map[string]any:
			if len(onlyIDs(m)) > 0 {
				continue
			}
		case string:
			if HasIDForm(m) || name == "kind" {
				continue
			}
		}
		delete(members, name)
	}
	return members
}
