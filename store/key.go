package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"nodest/fault"
	"nodest/op"
	"nodest/store/sqldb"
)

// keyLife is how long the answer of an idempotent command is kept.
const keyLife = 48 * time.Hour

// keyNumber is what stands for a key of the user: 64 bits of its hash. That two of a million keys have
// the same one has a chance of 3 in 100 million; the later call would be taken for one that uses the
// key of the other again.
func (t *tx) keyNumber(key string) int64 {
	sum := sha256.Sum256([]byte(t.userID + " " + key))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number will do
}

// Key returns the record of an idempotency key, nil when there is none.
func (t *tx) Key(key string) (*op.KeyRecord, error) { return t.keyRecord(t.keyNumber(key)) }

func (t *tx) keyRecord(number int64) (*op.KeyRecord, error) {
	return sqldb.One[op.KeyRecord](t, "SELECT hash, reply, created_at AS at FROM call_keys WHERE user_id = ? AND call_key = ? AND created_at > ?",
		t.userID, number, t.Now().Add(-keyLife))
}

// claimWait is how long a call waits for the transaction of another one with the same key.
const claimWait = 10 * time.Second

// errKeyBusy says that the first call with a key has not ended.
var errKeyBusy = fault.New(fault.InProgress, "a request with this idempotency key is still running")

// ClaimKey takes a key for this transaction, or returns the record of an earlier call.
func (t *tx) ClaimKey(key, hash string) (*op.KeyRecord, error) {
	return t.claimKey(key, hash, claimWait)
}

func (t *tx) claimKey(key, hash string, wait time.Duration) (*op.KeyRecord, error) {
	known, err := t.lockKey(key, wait)
	if err == nil && known == nil {
		if t.claims == nil {
			t.claims = map[string]string{}
		}
		t.claims[key] = hash
	}
	return known, err
}

// lockKey is Key for a key that no other transaction has claimed; it waits for one that has. The
// row is stored once, with the answer. Until then PostgreSQL has a lock of the key; SQLite has one
// writer.
func (t *tx) lockKey(key string, wait time.Duration) (*op.KeyRecord, error) {
	number := t.keyNumber(key)
	if !t.Postgres {
		return t.keyRecord(number)
	}
	found, err := sqldb.Get[struct {
		op.KeyRecord
		Known, Free bool
	}](t, "lock", "SELECT free, call_key IS NOT NULL AS known, COALESCE(hash, '') AS hash, reply, COALESCE(created_at, 0) AS at"+
		" FROM (SELECT pg_try_advisory_xact_lock(?) AS free) l LEFT JOIN call_keys ON user_id = ? AND call_key = ? AND created_at > ?",
		number, t.userID, number, t.Now().Add(-keyLife))
	switch {
	case err != nil:
		return nil, err
	case found.Known:
		return &found.KeyRecord, nil
	case found.Free: // KeepReply sees a row that was committed since this statement began
		return nil, nil
	}
	if _, err = t.ExecWithin(wait, errKeyBusy, "SELECT pg_advisory_xact_lock(?)", number); err != nil {
		return nil, err
	}
	return t.keyRecord(number)
}

// KeepReply stores the answer of the call that has claimed a key.
func (t *tx) KeepReply(key string, reply json.RawMessage) error {
	hash, claimed := t.claims[key]
	if !claimed {
		return fault.New(fault.NotFound, "no such idempotency key")
	}
	n, err := t.Exec(`INSERT INTO call_keys (user_id, call_key, hash, reply, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (user_id, call_key) DO UPDATE SET hash = EXCLUDED.hash, reply = EXCLUDED.reply, created_at = EXCLUDED.created_at
		WHERE call_keys.created_at <= ?`, sqldb.ID(t.userID), t.keyNumber(key), hash, reply, t.Now(), t.Now().Add(-keyLife))
	if err == nil && n == 0 {
		err = t.Lose(errKeyBusy)
	}
	return err
}
