package store

import (
	"encoding/json"
	"time"

	"nodest/fault"
	"nodest/op"
	"nodest/store/sqldb"
)

// keyLife is how long the answer of an idempotent command is kept.
const keyLife = 48 * time.Hour

// Key returns the record of an idempotency key, nil when there is none.
func (t *tx) Key(key string) (*op.KeyRecord, error) {
	return sqldb.One[op.KeyRecord](t, "SELECT call_key AS key, hash, reply, created_at AS at FROM call_keys"+
		" WHERE user_id = ? AND call_key = ? AND created_at > ?", t.userID, key, t.Now().Add(-keyLife))
}

// claimWait is how long a call waits for the transaction of another one with the same key.
const claimWait = 10 * time.Second

// ClaimKey takes a key for this transaction, or returns the record of an earlier call.
func (t *tx) ClaimKey(key, hash string) (*op.KeyRecord, error) {
	return t.claimKey(key, hash, claimWait)
}

// claimKey inserts the row of a key, without an answer yet. On PostgreSQL that waits for
// another transaction that has inserted it.
func (t *tx) claimKey(key, hash string, wait time.Duration) (*op.KeyRecord, error) {
	running := fault.New(fault.InProgress, "a request with this idempotency key is still running")
	n, err := t.ExecWithin(wait, running, `INSERT INTO call_keys (user_id, call_key, hash, created_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (user_id, call_key) DO UPDATE SET hash = EXCLUDED.hash, reply = NULL, created_at = EXCLUDED.created_at
		WHERE call_keys.created_at <= ?`, t.userID, key, hash, t.Now(), t.Now().Add(-keyLife))
	if err != nil || n > 0 {
		return nil, err
	}
	known, err := t.Key(key)
	if err == nil && known == nil { // it has just expired
		err = t.Lose(running)
	}
	return known, err
}

// KeepReply stores the answer of the call that has claimed a key.
func (t *tx) KeepReply(key string, reply json.RawMessage) error {
	return t.ExecOne("idempotency key", "UPDATE call_keys SET reply = ? WHERE user_id = ? AND call_key = ?", reply, t.userID, key)
}
