package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/store/sqldb"
)

// keyLife is how long the answer of an idempotent command is kept.
const keyLife = 48 * time.Hour

// keyRow is a row of call_keys, whose reply is NULL when it names what was purged.
type keyRow struct {
	UserID, CallKey, Hash string
	CreatedAt             time.Time
	IsShort               bool // the reply has only ids
	Reply                 sqldb.Zstd
}

func (r *keyRow) record() *op.KeyRecord {
	return &op.KeyRecord{Hash: r.Hash, Reply: op.Reply{JSON: json.RawMessage(r.Reply), OnlyIDs: r.IsShort}, At: r.CreatedAt}
}

// Key returns the record of an idempotency key, nil when there is none.
func (t *tx) Key(key string) (*op.KeyRecord, error) {
	row, err := sqldb.One[keyRow](t, "SELECT * FROM call_keys WHERE user_id = ? AND call_key = ? AND created_at > ?", t.userID, key, t.Now().Add(-keyLife))
	if row == nil {
		return nil, err
	}
	return row.record(), err
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
	if !t.Postgres {
		return t.Key(key)
	}
	sum := sha256.Sum256([]byte(t.userID + " " + key))
	lock := int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number will do: two keys with the same one wait for each other
	found, err := sqldb.Get[struct {
		keyRow
		Free bool
	}](t, "lock", "SELECT free, k.* FROM (SELECT pg_try_advisory_xact_lock(?) AS free) l"+
		" LEFT JOIN call_keys k ON k.user_id = ? AND k.call_key = ? AND k.created_at > ?", lock, t.userID, key, t.Now().Add(-keyLife))
	switch {
	case err != nil:
		return nil, err
	case found.CallKey != "":
		return found.record(), nil
	case found.Free: // KeepReply sees a row that was committed since this statement began
		return nil, nil
	}
	if _, err = t.ExecWithin(wait, errKeyBusy, "SELECT pg_advisory_xact_lock(?)", lock); err != nil {
		return nil, err
	}
	return t.Key(key)
}

// KeepReply stores the answer of the call that has claimed a key.
func (t *tx) KeepReply(key string, reply op.Reply) error {
	hash, claimed := t.claims[key]
	if !claimed {
		return fault.New(fault.NotFound, "no such idempotency key")
	}
	row := &keyRow{t.userID, key, hash, t.Now(), reply.OnlyIDs, sqldb.Zstd(reply.JSON)}
	n, err := t.InsertNew("call_keys", row, "ON CONFLICT (user_id, call_key) DO UPDATE SET hash = EXCLUDED.hash, created_at = EXCLUDED.created_at,"+
		" is_short = EXCLUDED.is_short, reply = EXCLUDED.reply WHERE call_keys.created_at <= EXCLUDED.created_at - "+strconv.FormatInt(keyLife.Milliseconds(), 10))
	if err == nil && n == 0 {
		err = t.Lose(errKeyBusy)
	}
	return err
}

// dropReplies empties the answers of a user's commands that name one of these ids, which are purged: they may
// hold its words. The keys stay, so that no command is carried out a second time. It reads the answers
// of 48 hours one by one; names that were stored with each would cost every turn what a purge costs now.
func (s *session) dropReplies(userID string, ids ...string) error {
	purged := setOf(ids)
	if len(purged) == 0 {
		return nil
	}
	var named []string
	err := sqldb.Each(s, func(r *keyRow) error {
		if namesOne(r.Reply, purged) {
			named = append(named, r.CallKey)
		}
		return nil
	}, "SELECT call_key, reply FROM call_keys WHERE user_id = ? AND reply IS NOT NULL", userID)
	if err != nil || len(named) == 0 {
		return err
	}
	return s.Run("UPDATE call_keys SET reply = NULL WHERE user_id = ? AND call_key IN (?)", userID, named)
}

// namesOne reports whether one of the strings of a JSON text is one of some ids.
func namesOne(text []byte, ids map[string]bool) bool {
	const length = 36
	for {
		_, behind, found := bytes.Cut(text, []byte{'"'})
		if !found {
			return false
		}
		if len(behind) > length && behind[length] == '"' && ids[string(behind[:length])] {
			return true
		}
		text = behind
	}
}
