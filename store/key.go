package store

import (
	"time"

	"nodest/fault"
	"nodest/op"
)

// keyLife is how long the answer of an idempotent command is kept. Source:
// protocol page, section 6.
const keyLife = 48 * time.Hour

// Key returns the record of an idempotency key, nil when there is none.
func (t *tx) Key(key string) (*op.KeyRecord, error) {
	var row struct {
		CallKey   text
		Hash      text
		Reply     document
		CreatedAt int64
	}
	found, err := t.scan(t.raw("SELECT call_key, hash, reply, created_at FROM call_keys"+
		" WHERE user_id = ? AND call_key = ? AND created_at > ?",
		text(t.userID), text(key), t.now-keyLife.Milliseconds()), &row)
	if err != nil || !found {
		return nil, err
	}
	return &op.KeyRecord{
		Key: string(row.CallKey), Hash: string(row.Hash), Reply: []byte(row.Reply), At: moment(row.CreatedAt),
	}, nil
}

// PutKey stores a record. Where another transaction stored the key meanwhile
// (PostgreSQL), the closure runs again and finds it.
func (t *tx) PutKey(r *op.KeyRecord) error {
	if err := t.writable(); err != nil {
		return err
	}
	n, err := t.exec(t.raw(`INSERT INTO call_keys (user_id, call_key, hash, reply, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (user_id, call_key) DO UPDATE
		SET hash = EXCLUDED.hash, reply = EXCLUDED.reply, created_at = EXCLUDED.created_at
		WHERE call_keys.created_at <= ?`,
		text(t.userID), text(r.Key), text(r.Hash), document(r.Reply), t.now, t.now-keyLife.Milliseconds()))
	if err == nil && n == 0 {
		return t.lose(fault.New(fault.InProgress, "a request with this idempotency key is still running"))
	}
	return err
}

// lose ends the transaction because another one came first; on PostgreSQL it
// begins again, whatever the closure makes of the error.
func (s *session) lose(err error) error {
	if s.postgres {
		s.err = errRace{err}
		return s.err
	}
	return err
}
