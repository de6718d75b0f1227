package store

import (
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

// PutKey stores a record. Where another transaction stored the key meanwhile
// (PostgreSQL), the closure runs again and finds it.
func (t *tx) PutKey(r *op.KeyRecord) error {
	n, err := t.Exec(`INSERT INTO call_keys (user_id, call_key, hash, reply, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (user_id, call_key) DO UPDATE
		SET hash = EXCLUDED.hash, reply = EXCLUDED.reply, created_at = EXCLUDED.created_at
		WHERE call_keys.created_at <= ?`, t.userID, r.Key, r.Hash, r.Reply, t.Now(), t.Now().Add(-keyLife))
	if err == nil && n == 0 {
		return t.Lose(fault.New(fault.InProgress, "a request with this idempotency key is still running"))
	}
	return err
}
