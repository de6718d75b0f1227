package sqldb

import (
	"database/sql"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

const (
	anID    = "01a21bbf-d3ad-7938-9d85-f7b9c150b7b0"
	nextID  = "01a21bbf-d3ad-7938-9d85-f7b9c150b7b1"
	otherID = "01a21bbf-d3ad-4938-9d85-f7b9c150b7b0" // another version
)

type idRow struct {
	ID, ParentID string
	ClientKey    string
	Document     json.RawMessage
}

const idTable = "id BLOB(16) NOT NULL CHECK (length(id) = 16 AND id > x''), parent_id BLOB(16) CHECK (length(parent_id) = 16 AND parent_id > x''), client_key TEXT NOT NULL, document TEXT"

// An id is 16 bytes, none is NULL, and a text is a text, also one that looks like an id.
func TestSQLiteStoresIDsAsBytes(t *testing.T) {
	t.Parallel()
	s := inMemory(t, idTable)
	rows := []idRow{{anID, "", anID, json.RawMessage(`["` + anID + `"]`)}, {nextID, anID, "", nil}, {otherID, nextID, "\x00tea\x01", nil}}
	if err := s.Insert("t", rows); err != nil {
		t.Fatal(err)
	}
	got, err := All[idRow](s, "SELECT * FROM t ORDER BY rowid")
	if err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("read %+v, %v", got, err)
	}
	types, err := All[string](s, "SELECT typeof(id) || length(id) || ' ' || typeof(parent_id) || ' ' || typeof(client_key) || ' ' || COALESCE(document, '-') FROM t ORDER BY rowid")
	if err != nil || !slices.Equal(types, []string{`blob16 null text ["` + anID + `"]`, "blob16 blob text -", "blob16 blob text -"}) {
		t.Errorf("stored as %q, %v", types, err)
	}
}

// Ids are found by their texts wherever a statement compares them.
func TestIDsAreFound(t *testing.T) {
	t.Parallel()
	s := inMemory(t, idTable)
	if err := s.Insert("t", []idRow{{anID, "", anID, nil}, {nextID, anID, "", nil}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		where string
		args  []any
		want  []string
	}{
		{"id = ?", []any{anID}, []string{anID}},
		{"t.id = ? AND client_key = ?", []any{anID, anID}, []string{anID}},
		{"id IN (?)", []any{[]string{anID}}, []string{anID}},
		{"id IN (?)", []any{[]string{anID, nextID, "none", ""}}, []string{anID, nextID}},
		{"id IN (?)", []any{[]string{}}, nil},
		{"client_key IN (?)", []any{[]string{anID, "x"}}, []string{anID}},
		{"id NOT IN (?)", []any{[]string{anID, "none"}}, []string{nextID}},
		{"id <> ?", []any{anID}, []string{nextID}},
		{"id > ?", []any{anID}, []string{nextID}},
		{"id >= ?", []any{""}, []string{anID, nextID}},
		{"id < ?", []any{nextID}, []string{anID}},
		{"parent_id IS NOT DISTINCT FROM ?", []any{""}, []string{anID}},
		{"parent_id IS DISTINCT FROM ?", []any{""}, []string{nextID}},
		{"parent_id = ?", []any{""}, nil},
		{"COALESCE(parent_id, parent_id) = ?", []any{anID}, []string{nextID}},
		{"(client_key, id) > (?, ?)", []any{"", ID(anID)}, []string{anID, nextID}},
		{"(id, client_key) IN (VALUES (?, ?))", []any{ID(anID), anID}, []string{anID}},
		{"id = ?", []any{"none"}, nil},
		{"id = ?", []any{"01A21BBF-D3AD-7938-9D85-F7B9C150B7B0"}, nil},
		{"id = ?", []any{"{" + anID + "}"}, nil},
		{"id IN (SELECT new_id FROM (WITH pairs (old_id, new_id, none_id) AS MATERIALIZED (?) SELECT * FROM pairs WHERE none_id IS NULL AND old_id IS NOT NULL))",
			[]any{IDRows{{nextID, anID, ""}, {anID, otherID, "x"}}}, []string{anID}},
	} {
		got, err := All[string](s, "SELECT id FROM t WHERE "+tt.where+" ORDER BY id", tt.args...)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s finds %q, not %q: %v", tt.where, got, tt.want, err)
		}
	}
}

// A text never slips into a column of ids.
func TestATextIsNoID(t *testing.T) {
	t.Parallel()
	s := inMemory(t, idTable)
	if err := s.Insert("t", &idRow{ID: "none"}); err == nil {
		t.Error("a text was stored as an id")
	}
	if err := s.Insert("t", &idRow{ID: anID, ParentID: "none"}); err == nil {
		t.Error("a text was stored as no id")
	}
	for _, id := range []any{"0123456789abcdef", anID, []byte("0123456789abcde"), 1} {
		if _, err := s.db.ExecContext(t.Context(), "INSERT INTO t VALUES (?, NULL, '', NULL)", id); err == nil {
			t.Errorf("SQLite has stored %v as an id", id)
		}
	}
}

func TestTheTextOfAnID(t *testing.T) {
	t.Parallel()
	s := inMemory(t, idTable)
	if err := s.Insert("t", &idRow{ID: anID}); err != nil {
		t.Fatal(err)
	}
	got, err := Value[string](s, "SELECT "+s.IDText("id")+" FROM t")
	if err != nil || got != anID {
		t.Errorf("%q, %v", got, err)
	}
}

func inMemory(t *testing.T, columns string) *Session {
	t.Helper()
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	s := &Session{caller: t.Context(), ctx: t.Context(), db: db}
	if err := s.Run("CREATE TABLE t (" + columns + ")"); err != nil {
		t.Fatal(err)
	}
	return s
}
