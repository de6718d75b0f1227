package store

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"nodest/character"
	"nodest/fault"
	"nodest/nodest"
)

type settingsRow struct {
	bun.BaseModel `bun:"table:settings"`
	UserID        string `bun:"user_id,pk"`
	Document      document
	CustomSetting document
	Version       int64
	UpdatedAt     int64
	TimeZone      text `bun:",scanonly"` // of the user's row
}

// Settings returns the user's defaults.
func (t *tx) Settings() (*character.UserSettings, error) {
	var row settingsRow
	s := &character.UserSettings{}
	found, err := t.scan(t.raw(`SELECT s.*, u.time_zone FROM users u LEFT JOIN settings s ON s.user_id = u.id WHERE u.id = ?`,
		text(t.userID)), &row)
	if err != nil || !found {
		return s, err
	}
	s.DeviceTimeZone = string(row.TimeZone)
	if row.Version == 0 {
		return s, nil
	}
	if err := decode(row.Document, s); err != nil {
		return nil, err
	}
	s.CustomSetting = json.RawMessage(row.CustomSetting)
	s.Version, s.UpdatedAt = row.Version, moment(row.UpdatedAt)
	return s, nil
}

// PutSettings stores s as the next version.
func (t *tx) PutSettings(s *character.UserSettings) error {
	if err := t.writable(); err != nil {
		return err
	}
	s.UpdatedAt = t.Now()
	// The user's own document is kept apart, byte for byte.
	rest := *s
	rest.CustomSetting, rest.DeviceTimeZone = nil, "" // kept with the user
	doc, err := encode(rest)
	if err != nil {
		return err
	}
	row := &settingsRow{
		UserID: t.userID, Document: doc, CustomSetting: document(s.CustomSetting), Version: s.Version, UpdatedAt: t.now,
	}
	var n int64
	if s.Version == 1 {
		n, err = t.exec(t.db.NewInsert().Model(row).On("CONFLICT (user_id) DO NOTHING"))
	} else {
		n, err = t.exec(t.db.NewUpdate().Model(row).ExcludeColumn("user_id").
			Where("user_id = ?", text(t.userID)).Where("version = ?", s.Version-1))
	}
	if err == nil && n == 0 {
		return fault.New(fault.PreconditionFailed, "the settings were changed by another request")
	}
	return err
}

// PutDeviceZone stores the time zone that a device has reported.
func (t *tx) PutDeviceZone(name string) error {
	if err := t.writable(); err != nil {
		return err
	}
	_, err := t.exec(t.raw("UPDATE users SET time_zone = ? WHERE id = ?", text(name), text(t.userID)))
	return err
}

type usageKey struct{ day, provider, model string }

type usageRow struct {
	bun.BaseModel    `bun:"table:usage_days,alias:u"`
	UserID           string
	Day              text
	Provider         text
	Model            text
	Requests         int64
	PromptTokens     int64
	CompletionTokens int64
	CostUSD          float64 `bun:"cost_usd"`
}

// AddUsage adds to the meter of today; it is written at the end (see finish).
func (t *tx) AddUsage(u nodest.UsageRow) error {
	if err := t.writable(); err != nil {
		return err
	}
	if t.usage == nil {
		t.usage = map[usageKey]*nodest.UsageRow{}
	}
	k := usageKey{t.Now().Format("2006-01-02"), u.Provider, u.Model}
	sum := t.usage[k]
	if sum == nil {
		sum = &nodest.UsageRow{Day: k.day, Provider: k.provider, Model: k.model}
		t.usage[k] = sum
	}
	sum.Requests += u.Requests
	sum.PromptTokens += u.PromptTokens
	sum.CompletionTokens += u.CompletionTokens
	sum.CostUSD += u.CostUSD
	return nil
}

// flushUsage adds to the meters in the order of their keys, so that two
// transactions of a user cannot wait for each other.
func (t *tx) flushUsage() error {
	keys := slices.SortedFunc(maps.Keys(t.usage), func(a, b usageKey) int {
		return strings.Compare(a.day+"\x00"+a.provider+"\x00"+a.model, b.day+"\x00"+b.provider+"\x00"+b.model)
	})
	for _, k := range keys {
		u := t.usage[k]
		err := t.insert(&usageRow{
			UserID: t.userID, Day: text(u.Day), Provider: text(u.Provider), Model: text(u.Model), Requests: u.Requests,
			PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, CostUSD: u.CostUSD,
		}, `ON CONFLICT (user_id, day, provider, model) DO UPDATE SET
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

// Usage returns the meter from day to day, with what this transaction added.
func (t *tx) Usage(from, to string) ([]nodest.UsageRow, error) {
	if err := t.flushUsage(); err != nil {
		return nil, err
	}
	var rows []*usageRow
	if _, err := t.scan(t.raw("SELECT * FROM usage_days WHERE user_id = ? AND day >= ? AND day <= ?",
		text(t.userID), text(from), text(to)), &rows); err != nil {
		return nil, err
	}
	items := make([]nodest.UsageRow, len(rows))
	for i, r := range rows {
		items[i] = nodest.UsageRow{
			Day: string(r.Day), Provider: string(r.Provider), Model: string(r.Model), Requests: r.Requests,
			PromptTokens: r.PromptTokens, CompletionTokens: r.CompletionTokens, CostUSD: r.CostUSD,
		}
	}
	// Here and not in SQL: the two databases sort texts differently.
	slices.SortFunc(items, func(a, b nodest.UsageRow) int {
		return strings.Compare(a.Day+"\x00"+a.Provider+"\x00"+a.Model, b.Day+"\x00"+b.Provider+"\x00"+b.Model)
	})
	return items, nil
}

// Limits returns the user's own limits.
func (t *tx) Limits() (nodest.UserLimits, error) { return t.limits("") }

// LockLimits returns them and keeps their row locked. The lock is the weak one:
// it does not keep foreign keys from being checked, so transactions that insert
// rows of the user go on.
func (t *tx) LockLimits() (nodest.UserLimits, error) {
	if err := t.writable(); err != nil {
		return nodest.UserLimits{}, err
	}
	if t.postgres {
		return t.limits(" FOR NO KEY UPDATE")
	}
	return t.limits("")
}

func (t *tx) limits(lock string) (nodest.UserLimits, error) {
	var l nodest.UserLimits
	found, err := t.scan(t.raw("SELECT tokens_per_day, generations FROM users WHERE id = ?"+lock, text(t.userID)),
		&l.TokensPerDay, &l.Generations)
	if err == nil && !found {
		return l, fault.New(fault.NotFound, "no such user")
	}
	return l, err
}

// Ack stores how far a device has read. A seq that is behind the stored one does
// not move it back; marks of conversations that read does not name stay.
func (t *tx) Ack(deviceID string, seq int64, read map[string]string) error {
	if err := t.writable(); err != nil {
		return err
	}
	if read == nil {
		read = map[string]string{}
	}
	known, err := t.ackAgain(deviceID, seq, read)
	if known || err != nil {
		return err
	}
	doc, err := encode(read)
	if err != nil {
		return err
	}
	n, err := t.exec(t.raw("INSERT INTO devices (user_id, device_id, seq, read_marks, updated_at) VALUES (?, ?, ?, ?, ?)"+
		" ON CONFLICT (user_id, device_id) DO NOTHING", text(t.userID), text(deviceID), seq, doc, t.now))
	if err == nil && n == 0 { // another transaction stored it meanwhile
		_, err = t.ackAgain(deviceID, seq, read)
	}
	return err
}

// ackAgain is Ack of a device that is stored already; known is false when it is not.
func (t *tx) ackAgain(deviceID string, seq int64, read map[string]string) (known bool, err error) {
	var stored struct {
		Seq       int64
		ReadMarks document
	}
	known, err = t.scan(t.raw("SELECT seq, read_marks FROM devices WHERE user_id = ? AND device_id = ?"+t.forUpdate(),
		text(t.userID), text(deviceID)), &stored)
	if err != nil || !known {
		return false, err
	}
	marks := map[string]string{}
	if err := decode(stored.ReadMarks, &marks); err != nil {
		return false, err
	}
	maps.Copy(marks, read)
	doc, err := encode(marks)
	if err != nil {
		return false, err
	}
	_, err = t.exec(t.raw("UPDATE devices SET seq = ?, read_marks = ?, updated_at = ? WHERE user_id = ? AND device_id = ?",
		max(seq, stored.Seq), doc, t.now, text(t.userID), text(deviceID)))
	return true, err
}
