package store

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store/sqldb"
)

// userTx stores what belongs to a user as a whole.
type userTx struct {
	*tx
	usage []nodest.UsageRow // finish adds them to the meter
}

type settingsRow struct {
	UserID        string
	Document      character.UserSettings
	CustomSetting json.RawMessage
	Version       int64
	UpdatedAt     time.Time
}

func (t characterTx) Settings() (*character.UserSettings, error) {
	row, err := sqldb.Value[struct {
		settingsRow
		TimeZone string
	}](t, "SELECT s.*, u.time_zone FROM users u LEFT JOIN settings s ON s.user_id = u.id WHERE u.id = ?", t.userID)
	s := &row.Document
	s.CustomSetting, s.DeviceTimeZone, s.Version, s.UpdatedAt = row.CustomSetting, row.TimeZone, row.Version, row.UpdatedAt
	return s, err
}

func (t characterTx) PutSettings(s *character.UserSettings) (err error) {
	s.UpdatedAt = t.Now()
	row := &settingsRow{t.userID, *s, s.CustomSetting, s.Version, s.UpdatedAt}
	row.Document.CustomSetting, row.Document.DeviceTimeZone = nil, "" // kept byte for byte, and with the user
	var n int64
	if s.Version == 1 {
		n, err = t.InsertNew("settings", row, "ON CONFLICT (user_id) DO NOTHING")
	} else {
		n, err = t.Update("settings", row, []string{"user_id"}, "WHERE user_id = ? AND version = ?", t.userID, s.Version-1)
	}
	if err == nil && n == 0 {
		return fault.New(fault.PreconditionFailed, "the settings were changed by another request")
	}
	return err
}

const selectVariables = "SELECT document FROM user_variables WHERE user_id = ?"

func (t characterTx) Variables() (json.RawMessage, error) { return t.variables(selectVariables) }

func (t characterTx) LockVariables() (json.RawMessage, error) {
	if err := t.Writable(); err != nil {
		return nil, err
	}
	if err := t.Run("INSERT INTO user_variables (user_id, document) VALUES (?, '{}') ON CONFLICT (user_id) DO NOTHING", sqldb.ID(t.userID)); err != nil {
		return nil, err
	}
	return t.variables(selectVariables + t.ForUpdate())
}

func (t characterTx) variables(query string) (json.RawMessage, error) {
	doc, err := sqldb.Value[json.RawMessage](t, query, t.userID)
	if err == nil && doc == nil {
		doc = json.RawMessage("{}")
	}
	return doc, err
}

func (t characterTx) PutVariables(variables json.RawMessage) error {
	t.room.stores = true
	return t.Run("UPDATE user_variables SET document = ? WHERE user_id = ?", variables, t.userID)
}

func (t characterTx) PutDeviceZone(name string) error {
	return t.Run("UPDATE users SET time_zone = ? WHERE id = ?", name, t.userID)
}

type usageRow struct {
	nodest.UsageRow
	UserID string
}

// AddUsage adds to the meter of today; it is written at the end (see finish).
func (t *userTx) AddUsage(u nodest.UsageRow) error {
	u.Day = t.Now().Format(time.DateOnly)
	t.usage = append(t.usage, u)
	return t.Writable()
}

// byMeter is the order of the keys of meters. It is not left to SQL: the two databases
// sort texts differently.
func byMeter(a, b nodest.UsageRow) int {
	return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
}

// flushUsage adds to the meters in the order of their keys, so that two
// transactions of a user cannot wait for each other.
func (t *userTx) flushUsage() error {
	slices.SortFunc(t.usage, byMeter)
	for _, u := range t.usage {
		err := t.Insert("usage_days AS u", &usageRow{u, t.userID}, `ON CONFLICT (user_id, day, provider, model) DO UPDATE SET
			requests = u.requests + EXCLUDED.requests,
			prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens,
			completion_tokens = u.completion_tokens + EXCLUDED.completion_tokens,
			cost_usd = u.cost_usd + EXCLUDED.cost_usd`)
		if err != nil {
			return err
		}
	}
	t.usage = nil
	return nil
}

// listedUsage bounds a list of usage, which has no pages: the rows of some years.
const listedUsage = 5000

// Usage returns the meter from day to day, with what this transaction added.
func (t *userTx) Usage(from, to string) ([]nodest.UsageRow, error) {
	if err := t.flushUsage(); err != nil {
		return nil, err
	}
	items, err := sqldb.All[nodest.UsageRow](t, "SELECT day, provider, model, requests, prompt_tokens, completion_tokens, cost_usd"+
		" FROM usage_days WHERE user_id = ? AND day >= ? AND day <= ? ORDER BY day DESC, provider, model LIMIT ?", t.userID, from, to, listedUsage)
	slices.SortFunc(items, byMeter)
	return items, err
}

// UsageByUser adds up the meter of each user, by id.
func (db *DB) UsageByUser(ctx context.Context, from, to, cursor string, limit int) (items []nodest.UserUsage, next string, err error) {
	after, err := sqldb.ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	err = db.read(ctx, func(s *session) error {
		// The sum of BIGINT is NUMERIC on PostgreSQL.
		items, err = sqldb.All[nodest.UserUsage](s, `SELECT user_id, CAST(SUM(requests) AS BIGINT) AS requests,
			CAST(SUM(prompt_tokens) AS BIGINT) AS prompt_tokens, CAST(SUM(completion_tokens) AS BIGINT) AS completion_tokens,
			SUM(cost_usd) AS cost_usd FROM usage_days WHERE day >= ? AND day <= ? AND user_id > ? GROUP BY user_id ORDER BY user_id LIMIT ?`, from, to, after.ID, limit+1)
		return err
	})
	items, next = sqldb.Cut(items, limit, func(u nodest.UserUsage) sqldb.Place { return sqldb.Place{ID: u.UserID} })
	return items, next, err
}

// limitsRow has the user's own limits, and the counters that messages add to.
type limitsRow struct {
	nodest.UserLimits
	MaxBytes        int64
	Messages, Bytes int64
}

const selectLimits = "SELECT u.tokens_per_day, u.generations, u.monthly_usd, u.max_bytes," +
	" COALESCE((SELECT q.used FROM quotas q WHERE q.user_id = u.id AND q.kind = 'messages'), 0) AS messages," +
	" COALESCE((SELECT q.used FROM quotas q WHERE q.user_id = u.id AND q.kind = 'bytes'), 0) AS bytes FROM users u WHERE u.id = ?"

func (t *userTx) Limits() (nodest.UserLimits, error) { return t.limits("") }

// NoteWarned locks the row of the user, once in a month.
func (t *userTx) NoteWarned(limit string) (bool, error) {
	n, err := t.Exec("UPDATE users SET usd_warned = ? WHERE id = ? AND usd_warned <> ?", limit, t.userID, limit)
	return n > 0, err
}

// LockLimits returns them and keeps their row locked. The lock is the weak one:
// it does not keep foreign keys from being checked, so transactions that insert
// rows of the user go on.
func (t *userTx) LockLimits() (nodest.UserLimits, error) {
	if err := t.Writable(); err != nil {
		return nodest.UserLimits{}, err
	}
	return t.limits(t.ForNoKeyUpdate())
}

func (t *userTx) limits(lock string) (nodest.UserLimits, error) {
	l, err := sqldb.Get[limitsRow](t, "user", selectLimits+lock, t.userID)
	if err != nil {
		return nodest.UserLimits{}, err
	}
	t.room.found = l
	return l.UserLimits, nil
}

// maxDevices is how many devices of a user are remembered. An app makes a new id with each
// installation.
const maxDevices = 200

// Ack stores how far a device has read. The stored seq never decreases; marks of
// conversations that read does not name stay. Beyond maxDevices, a new device replaces the one that
// has not been seen for the longest time.
func (t *userTx) Ack(deviceID string, seq int64, read map[string]string) error {
	added, err := t.Exec("INSERT INTO devices (user_id, device, seq, read_marks, updated_at) VALUES (?, ?, 0, '{}', ?)"+
		" ON CONFLICT (user_id, device) DO NOTHING", sqldb.ID(t.userID), deviceID, t.Now())
	if err != nil {
		return err
	}
	if added > 0 {
		err := t.Run("DELETE FROM devices WHERE user_id = ? AND device IN (SELECT device FROM devices WHERE user_id = ? AND device <> ?"+
			" ORDER BY updated_at DESC, device LIMIT 100 OFFSET ?)", t.userID, t.userID, deviceID, maxDevices-1)
		if err != nil {
			return err
		}
	}
	stored, err := sqldb.Get[struct {
		Seq       int64
		ReadMarks map[string]string
	}](t, "device", "SELECT seq, read_marks FROM devices WHERE user_id = ? AND device = ?"+t.ForUpdate(), t.userID, deviceID)
	if err != nil {
		return err
	}
	maps.Copy(stored.ReadMarks, read)
	return t.Run("UPDATE devices SET seq = ?, read_marks = ?, updated_at = ? WHERE user_id = ? AND device = ?",
		max(seq, stored.Seq), stored.ReadMarks, t.Now(), t.userID, deviceID)
}
