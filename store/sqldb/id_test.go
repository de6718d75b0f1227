package sqldb

import (
	"database/sql"
	"reflect"
	"slices"
	"testing"
)

// Texts of every kind come back as they were, are found again, also in lists, and a UUID takes
// 16 bytes of the file, or 11 if the others are zero, also in a document.
func TestSQLiteStoresUUIDsAsBytes(t *testing.T) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was in memory
	db.SetMaxOpenConns(1)
	s := &Session{caller: t.Context(), ctx: t.Context(), db: db}
	if err := s.Run("CREATE TABLE t (text TEXT NOT NULL, data BLOB NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	const made, id, next = "01a21bbf-d3ad-7938-9d85-f70000000000", "01a21bbf-d3ad-7938-9d85-f7b9c150b7b0", "01a21bbf-d3ad-7938-9d85-f7b9c150b7b1"
	documents := []string{ // in the order of the column
		`[{"id":"` + made + `","more":"01A21BBF-D3AD-7938-9D85-F7B9C150B7B0 - ` + next + `"}]`,
		`["` + made + `"]`,
		`{"a":"` + id + `","b":"` + made + `","c":"` + made[:35] + `"}`,
	}
	texts := []string{ // in the order of the column
		"", "01A21BBF-D3AD-7938-9D85-F7B9C150B7B0", "01a21bbf-d3ad-7938-9d85-f7b9c150b7b0 ", "01a21bbfd3ad79389d85f7b9c150b7b0",
		"01a21bbfd-3ad-7938-9d85-f7b9c150b7b0", "01g21bbf-d3ad-7938-9d85-f7b9c150b7b0", "0123456789abcdef", "=", "dead", "tea\x00",
		`{"a":"` + "\x02" + id + `"}`, `["01a21bbf"]`, "[" + made + "\x03", "[-" + made, "[] " + made,
		made, id, next,
	}
	texts = append(texts, documents...)
	type row struct {
		Text string
		Data []byte
	}
	for _, text := range texts {
		if err := s.Insert("t", &row{text, []byte("0123456789abcdef")}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Map(s, func(r *row) string { return r.Text }, "SELECT * FROM t WHERE text IN (?) AND data = ? ORDER BY rowid", texts, []byte("0123456789abcdef"))
	if err != nil || !reflect.DeepEqual(got, texts) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, text := range texts {
		found, err := All[row](s, "SELECT * FROM t WHERE text = ?", text)
		if err != nil || len(found) != 1 || found[0].Text != text || string(found[0].Data) != "0123456789abcdef" {
			t.Errorf("%q is read as %q, %v", text, found, err)
		}
	}
	last, err := All[string](s, "SELECT text FROM t WHERE text > ? ORDER BY text", "zzz")
	if err != nil || len(last) < 3 || !reflect.DeepEqual(slices.DeleteFunc(last, func(s string) bool { return len(s) != len(id) || s[0] == '[' }), []string{made, id, next}) {
		t.Errorf("the last texts are %q, %v", last, err)
	}
	sizes, err := All[int](s, "SELECT octet_length(text) FROM t WHERE text IN (?) ORDER BY text", []string{made, id, next, documents[1]})
	if err != nil || !reflect.DeepEqual(sizes, []int{11, 16, 16, 17}) {
		t.Errorf("ids have %d bytes, %v", sizes, err)
	}
}
