package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// The table quotas counts what a user has, per kind. A transaction adds what it inserts;
// nothing subtracts. So a counter is exact or too high, and it is corrected by counting the rows:
// once a day, and when it has reached its limit (see makeRoom). Files of knowledge bases have limits
// of their own.

// countedTable says what counts of a table.
type countedTable struct {
	kind  string   // kind of its rows; "" = only their bytes count
	live  bool     // deleted rows do not count, but their bytes do until the rows are purged
	bytes []string // columns whose bytes count; what replaces them counts in addition
}

var countedTables = map[string]countedTable{
	"conversations":      {kind: "conversations", live: true, bytes: []string{"extra"}},
	"messages":           {kind: "messages"},
	"message_lines":      {bytes: []string{"line"}},
	"revisions":          {bytes: []string{"text", "reasoning", "blocks", "citations", "tools"}},
	"play_states":        {bytes: []string{"document"}},
	"saves":              {kind: "saves", bytes: []string{"preview_text", "thumbnail", "extra"}},
	"characters":         {kind: "characters", live: true},
	"avatars":            {bytes: []string{"data"}},
	"character_versions": {bytes: []string{"role_card", "world_book", "preset", "author_note", "regex_scripts", "source"}},
	"resources":          {kind: "resources", live: true},
	"resource_versions":  {bytes: []string{"document"}},
	"memories":           {kind: "memories", bytes: []string{"text"}},
	"attachments":        {kind: "attachments", bytes: []string{"data"}},
	"circle_posts":       {kind: "posts", live: true, bytes: []string{"text"}},
	"knowledge_bases":    {kind: "knowledgeBases", live: true},
	"tavern_contents":    {bytes: []string{"data"}},
	"research_runs":      {kind: "research", bytes: []string{"plan", "result"}},
}

// derivedTables have what jobs make of documents, memories, messages and web pages. It counts to no quota, but a
// full disk has no room for it.
var derivedTables = map[string]bool{
	"knowledge_texts": true, "knowledge_chunks": true, "knowledge_segments": true, "knowledge_contexts": true,
	"knowledge_vectors": true, "memory_segment_parts": true, "web_pages": true, "message_words": true, "research_steps": true, "research_calls": true,
}

// countedBytes is the kind of all bytes together.
const countedBytes = "bytes"

// How often counters are corrected: at most every recountPause, when one has reached its limit,
// and at least every recountEvery.
const (
	recountPause = time.Minute
	recountEvery = 24 * time.Hour
)

// room is what a transaction stores, for quotas and the disk.
type room struct {
	stores   bool             // rows that take room
	added    map[string]int64 // by kind, see charge
	coming   int64            // messages that other transactions will store, see charge
	admitted bool             // the quotas allowed this before
	found    *limitsRow       // by LockLimits; nil = it was not called
}

// noteInserted counts rows that the transaction has inserted.
func (t *tx) noteInserted(table string, columns []string, args []any) {
	c, ok := countedTables[table]
	t.room.stores = t.room.stores || ok || derivedTables[table]
	if !ok {
		return
	}
	if t.room.added == nil {
		t.room.added = map[string]int64{}
	}
	if c.kind != "" {
		t.room.added[c.kind] += int64(len(args) / len(columns))
	}
	for i, arg := range args {
		if !slices.Contains(c.bytes, columns[i%len(columns)]) {
			continue
		}
		switch v := arg.(type) {
		case string:
			t.room.added[countedBytes] += int64(len(v))
		case []byte:
			t.room.added[countedBytes] += int64(len(v))
		}
	}
}

// noteCopied counts the messages and texts that a fork has copied within the database, between two places.
func (t *tx) noteCopied(forkID string, after, to forkPlace) error {
	t.room.stores = true
	args := []any{t.userID, forkID, after.Depth, to.Depth}
	bytes, err := sqldb.Value[int64](t, "SELECT CAST(COALESCE(SUM("+sizeOf(countedTables["message_lines"].bytes, "x.")+"), 0) AS BIGINT)"+
		strings.Replace(copiedMessages, "WHERE", "JOIN message_lines x ON x.user_id = m.user_id AND x.message_id = m.id WHERE", 1), args...)
	if err != nil {
		return err
	}
	args[2] = after.Depth - 1
	texts, err := sqldb.Value[int64](t, "SELECT CAST(COALESCE(SUM("+sizeOf(countedTables["revisions"].bytes, "r.")+"), 0) AS BIGINT)"+
		strings.Replace(copiedMessages, "WHERE", "JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id WHERE", 1)+
		" AND (m.depth > ? OR r.position > ?)", append(args, after.Depth, after.Position)...)
	if t.room.added == nil {
		t.room.added = map[string]int64{}
	}
	t.room.added["messages"] += to.Depth - after.Depth
	t.room.added[countedBytes] += bytes + texts
	return err
}

const copiedMessages = " FROM messages m WHERE m.user_id = ? AND m.conversation_id = ? AND m.chain = 0 AND m.depth > ? AND m.depth <= ?"

// sizeOf is the sum of the bytes of columns as an expression.
func sizeOf(columns []string, table string) string {
	sum := "0"
	for _, column := range columns {
		sum += " + COALESCE(octet_length(" + table + column + "), 0)"
	}
	return sum
}

// usedRow is a counter, with the user's own limit of bytes.
type usedRow struct {
	Kind     string
	Used     int64
	MaxBytes int64
}

// charge adds what a transaction has inserted to the counters. It returns fault.QuotaExceeded if
// one then exceeds its limit, or would with the messages that are still to come, except for what a
// generation writes, which was admitted at its start. On a disk that is nearly full it returns
// fault.StorageFull.
func (db *DB) charge(t *tx) error {
	if t.room.stores && !t.room.admitted && db.diskFull() {
		return fault.New(fault.StorageFull, "the disk of the server is full; the last %s are reserved for deletions", fault.Size(keptFree))
	}
	if len(t.room.added) == 0 {
		return nil
	}
	used, err := t.addAdded()
	if err != nil {
		return err
	}
	for _, u := range used {
		limit := db.quotaLimit(u.Kind, u.MaxBytes)
		if u.Kind == "messages" {
			u.Used += t.room.coming
		}
		if limit == 0 || u.Used <= limit || t.room.added[u.Kind] == 0 {
			continue
		}
		what := fmt.Sprintf("%d %s", limit, u.Kind)
		switch u.Kind {
		case "knowledgeBases":
			what = fmt.Sprintf("%d knowledge bases", limit)
		case "research":
			what = fmt.Sprintf("%d research runs", limit)
		case countedBytes:
			what = fault.Size(int(limit)) + " for all stored data"
		}
		return fault.New(fault.QuotaExceeded, "the limit of %s is reached; delete some, or ask the owner of the server for more", what).
			With("quota", u.Kind).With("limit", limit)
	}
	return nil
}

// keptFree is how many bytes of the disk of SQLite are kept for deleting: what a transaction removes
// is written to the log of the database first.
const keptFree = 64 << 20

func (db *DB) diskFull() bool {
	if db.opts.URL != "" { // PostgreSQL has a disk of its own
		return false
	}
	free := db.free(db.opts.Dir)
	return free >= 0 && free < keptFree
}

// addAdded adds what t has inserted to the counters, and returns those that limits are to be compared with.
func (t *tx) addAdded() ([]usedRow, error) {
	used, err := t.addUsed(t.userID, t.room.added)
	switch {
	case err != nil || t.room.admitted:
		return nil, err
	case t.Postgres:
		return used, nil
	}
	return t.usedNow()
}

// usedNow returns the counters that t has added to, perhaps with others.
func (t *tx) usedNow() ([]usedRow, error) {
	known := t.room.found != nil // nobody else changes them on SQLite
	for kind := range t.room.added {
		known = known && (kind == "messages" || kind == countedBytes)
	}
	if known {
		return []usedRow{
			{"messages", t.room.found.Messages + t.room.added["messages"], t.room.found.MaxBytes},
			{countedBytes, t.room.found.Bytes + t.room.added[countedBytes], t.room.found.MaxBytes},
		}, nil
	}
	return sqldb.All[usedRow](t, "SELECT q.kind, q.used, u.max_bytes FROM quotas q JOIN users u ON u.id = q.user_id WHERE q.user_id = ? ORDER BY q.kind", t.userID)
}

// addUsed adds to the counters of a user, in the order of their kinds. On PostgreSQL, it returns them.
func (s *session) addUsed(userID string, added map[string]int64) ([]usedRow, error) {
	var args []any
	for _, kind := range slices.Sorted(maps.Keys(added)) {
		args = append(args, sqldb.ID(userID), kind, added[kind])
	}
	add := "INSERT INTO quotas AS q (user_id, kind, used, counted_at) VALUES " +
		strings.TrimSuffix(strings.Repeat("(?, ?, ?, 0), ", len(added)), ", ") +
		" ON CONFLICT (user_id, kind) DO UPDATE SET used = q.used + EXCLUDED.used"
	if s.Postgres { // one statement, because each one is a round trip
		return sqldb.All[usedRow](s, add+" RETURNING kind, used, (SELECT u.max_bytes FROM users u WHERE u.id = user_id) AS max_bytes", args...)
	}
	return nil, s.Run(add, args...)
}

// quotaLimit is the limit of a kind for a user whose own limit of bytes is own; 0 = none.
func (db *DB) quotaLimit(kind string, own int64) int64 {
	switch kind {
	case countedBytes:
		return cmp.Or(own, db.opts.Quotas.Bytes)
	case "messages":
		return db.opts.Quotas.Messages
	}
	return db.opts.Quotas.Items
}

// Quotas returns what a user has, by kind.
func (db *DB) Quotas(ctx context.Context, userID string) (quotas map[string]account.Quota, err error) {
	err = db.read(ctx, func(s *session) error {
		own, err := sqldb.Value[int64](s, "SELECT max_bytes FROM users WHERE id = ?", userID)
		if err != nil {
			return err
		}
		used, err := s.counts("SELECT kind AS name, used AS n FROM quotas WHERE user_id = ?", userID)
		quotas = map[string]account.Quota{}
		for kind := range countedKinds() {
			quotas[kind] = account.Quota{Used: used[kind], Limit: db.quotaLimit(kind, own)}
		}
		return err
	})
	return quotas, err
}

// countedKinds are the kinds that have a counter.
func countedKinds() map[string]bool {
	kinds := map[string]bool{countedBytes: true}
	for _, c := range countedTables {
		if c.kind != "" {
			kinds[c.kind] = true
		}
	}
	return kinds
}

// countedLast is when the counters of a user were corrected; the zero time = never.
func (s *session) countedLast(userID string) (time.Time, error) {
	return sqldb.Value[time.Time](s, "SELECT COALESCE(MAX(counted_at), 0) FROM quotas WHERE user_id = ?", userID)
}

// recount corrects the counters of a user, unless that was done within recountPause. It counts the
// rows on a snapshot and applies the difference, so that nobody waits meanwhile.
func (db *DB) recount(ctx context.Context, userID string) error {
	var wrong map[string]int64
	var last time.Time
	err := db.read(ctx, func(s *session) (err error) {
		if last, err = s.countedLast(userID); err != nil || s.Now().Sub(last) < recountPause {
			return err
		}
		all := counted(" WHERE user_id = ?") + " UNION ALL SELECT user_id, kind, -used FROM quotas WHERE user_id = ?"
		wrong, err = s.counts("SELECT kind AS name, CAST(n AS BIGINT) AS n FROM ("+all+") AS differences",
			slices.Repeat([]any{userID}, strings.Count(all, "?"))...)
		wrong[countedBytes] += 0 // one counter says when they were corrected
		return err
	})
	if err != nil || wrong == nil {
		return err
	}
	err = db.write(ctx, func(s *session) error {
		if _, err := s.addUsed(userID, wrong); err != nil {
			return err
		}
		// On PostgreSQL, addUsed has waited for another process that did the same.
		late, err := s.Has("SELECT 1 FROM quotas WHERE user_id = ? AND counted_at > ?", userID, last)
		if late {
			return errCounted
		}
		if err != nil {
			return err
		}
		return s.Run("UPDATE quotas SET counted_at = ? WHERE user_id = ?", s.Now(), userID)
	})
	if errors.Is(err, errCounted) {
		return nil
	}
	return err
}

// errCounted rolls a correction back that another call has made in the meantime.
var errCounted = errors.New("store: the counters are right already")

// counted is a query for what users have, in parts: user_id, kind and n. where is a condition on user_id,
// which each part has.
func counted(where string) string {
	var parts []string
	for _, table := range slices.Sorted(maps.Keys(countedTables)) {
		c := countedTables[table]
		add := func(kind, n string) {
			parts = append(parts, "SELECT user_id, '"+kind+"' AS kind, CAST(SUM("+n+") AS BIGINT) AS n FROM "+table+where+" GROUP BY user_id")
		}
		if len(c.bytes) > 0 {
			add(countedBytes, sizeOf(c.bytes, ""))
		}
		if c.live {
			add(c.kind, "CASE WHEN deleted_at IS NULL THEN 1 ELSE 0 END")
		} else if c.kind != "" {
			add(c.kind, "1")
		}
	}
	return strings.Join(parts, " UNION ALL ")
}

// recountOld corrects counters that have not been corrected for a day.
func (db *DB) recountOld(ctx context.Context) error {
	users, err := reading(ctx, db, func(s *session) ([]string, error) {
		return sqldb.All[string](s, "SELECT DISTINCT user_id FROM quotas WHERE counted_at <= ?", s.Now().Add(-recountEvery))
	})
	if err != nil {
		return err
	}
	for _, id := range users {
		if err := db.recount(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
