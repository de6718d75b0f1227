package sqldb

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// Texts of every kind come back as they were, are found again, also in lists, and a UUID takes
// 16 bytes of the file, or 11 if the others are zero.
func TestSQLiteStoresUUIDsAsBytes(t *testing.T) {
	s := inMemory(t, "text TEXT NOT NULL, data BLOB NOT NULL")
	const made, id, next = "01a21bbf-d3ad-7938-9d85-f70000000000", "01a21bbf-d3ad-7938-9d85-f7b9c150b7b0", "01a21bbf-d3ad-7938-9d85-f7b9c150b7b1"
	texts := []string{ // in the order of the column
		"", "01A21BBF-D3AD-7938-9D85-F7B9C150B7B0", "01a21bbf-d3ad-7938-9d85-f7b9c150b7b0 ", "01a21bbfd3ad79389d85f7b9c150b7b0",
		"01a21bbfd-3ad-7938-9d85-f7b9c150b7b0", "01g21bbf-d3ad-7938-9d85-f7b9c150b7b0", "0123456789abcdef", "=", "dead", "tea\x00",
		made, id, next,
	}
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
	if err != nil || !reflect.DeepEqual(last, []string{made, id, next}) {
		t.Errorf("the last texts are %q, %v", last, err)
	}
	sizes, err := All[int](s, "SELECT octet_length(text) FROM t WHERE text IN (?)", []string{made, id, next})
	if err != nil || !reflect.DeepEqual(sizes, []int{11, 16, 16}) {
		t.Errorf("ids have %d bytes, %v", sizes, err)
	}
}

// Documents come back as they were, and are short where they have ids and phrases of every turn.
func TestSQLiteStoresDocumentsPacked(t *testing.T) {
	s := inMemory(t, "document TEXT")
	const made, id = "01a21bbf-d3ad-7938-9d85-f70000000000", "01a21bbf-d3ad-7938-9d85-f7b9c150b7b0"
	type row struct{ Document json.RawMessage }
	for _, tt := range []struct {
		text string
		size int
	}{
		{`{"u":"` + made + `","m":"` + made + `","g":"` + made + `"}`, 42},
		{`["` + made + `"]`, 17},
		{`["` + id + `", "01A21BBF-D3AD-7938-9D85-F7B9C150B7B0 - ` + made[:35] + `"]`, 100},
		{`{"promptTokens":100,"completionTokens":50}`, 9},
		{`{"accepted":3,"gather":[4,7],"sources":[{"name":"memory","took":[7,52]}],"build":[52,52],"asked":52,"lastToken":57}`, 32},
		{`["a","b","c"]`, 10}, {`["a","bc","c"]`, 12}, {`["abc","abc","ab","a"]`, 17}, {`["abcde","abcde"]`, 17}, // the others would be as long as an id
		{`{}`, 2}, {`null`, 4}, {`{"a":"` + "\x02" + id + `"}`, 45},
	} {
		if err := s.Insert("t", &row{json.RawMessage(tt.text)}); err != nil {
			t.Fatal(err)
		}
		got, err := All[row](s, "DELETE FROM t RETURNING document")
		if err != nil || len(got) != 1 || string(got[0].Document) != tt.text {
			t.Errorf("%q is read as %q, %v", tt.text, got, err)
		}
		if err := s.Insert("t", &row{json.RawMessage(tt.text)}); err != nil {
			t.Fatal(err)
		}
		sizes, err := All[int](s, "DELETE FROM t RETURNING octet_length(document)")
		if err != nil || len(sizes) != 1 || sizes[0] != tt.size {
			t.Errorf("%q has %d bytes, not %d, %v", tt.text, sizes, tt.size, err)
		}
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

// PostgreSQL stores UUIDs, and documents, as shorter texts. Every text is read as it was written, also
// one that looks like them.
func TestPostgresStoresUUIDsAsShortTexts(t *testing.T) {
	t.Parallel()
	const made, id, other = "01a21bbf-d3ad-7938-9d85-f70000000000", "01a21bbf-d3ad-7938-9d85-f7b9c150b7b0", "01a21bbf-d3ad-4938-9d85-f70000000000"
	digits := textID(made)[1:]
	for _, text := range []string{"", "\x01", "\x01" + digits, "\x01\x02" + digits, "\x00" + digits, "tea", id + " ", made, id, other} {
		args := []any{escape(text), []string{escape(text)}}
		PackTextIDs(args)
		for _, stored := range []string{args[0].(string), args[1].([]string)[0]} {
			if got := unescape(OfPostgres(stored)); got != text {
				t.Errorf("%q is stored as %q and read as %q", text, stored, got)
			}
		}
	}
	if len(textID(made)) != 15 || len(textID(id)) != 22 || len(textID(other)) != 23 {
		t.Error("ids are too long")
	}
	for text, size := range map[string]int{
		`{"u":"` + made + `","m":"` + made + `","g":"` + made + `"}`: 52,
		`["` + id + `"]`: 29, `["` + other + `"]`: 29, `["` + "\x01" + made + `"]`: 41, `[]`: 2,
	} {
		stored := packTextJSON(text)
		if got := OfPostgres(stored); got != text || len(stored) != size {
			t.Errorf("%q is stored as %q and read as %q", text, stored, got)
		}
	}
}

// Ids are read as they were, and have the order of their texts: those of UUIDv7, other ones, and by the
// time both.
func TestPostgresKeepsTheOrderOfIDs(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	ids := make([]string, 2000)
	for i := range ids {
		var id [idBytes]byte
		binary.BigEndian.PutUint64(id[:], random.Uint64())
		binary.BigEndian.PutUint64(id[8:], random.Uint64())
		if i > 0 { // they have a beginning in common with the one before
			before, _ := PackID(ids[i-1])
			copy(id[:], before[:random.IntN(idBytes)])
		}
		if i%3 > 0 {
			id[6], id[8] = 7<<4|id[6]&15, 2<<6|id[8]&63
		}
		if i%2 > 0 {
			clear(id[madeBytes:])
		}
		ids[i] = UnpackID(id[:])
		if got := OfPostgres(textID(ids[i])); got != ids[i] {
			t.Fatalf("%s is read as %s", ids[i], got)
		}
		if doc := `["` + ids[i] + `"]`; OfPostgres(packTextJSON(doc)) != doc {
			t.Fatalf("%s is read as %s", doc, OfPostgres(packTextJSON(doc)))
		}
	}
	type stored struct {
		text string
		time [6]byte
		isV7 bool
	}
	kept := make([]stored, len(ids))
	for i, id := range ids {
		packed, _ := PackID(id)
		kept[i] = stored{textID(id), [6]byte(packed[:]), isV7(&packed)}
	}
	for i, a := range kept {
		for j, b := range kept {
			if a.isV7 != b.isV7 && a.time == b.time {
				continue
			}
			if strings.Compare(ids[i], ids[j]) != strings.Compare(a.text, b.text) {
				t.Fatalf("%s and %s are stored as %q and %q", ids[i], ids[j], a.text, b.text)
			}
		}
	}
}

func BenchmarkPostgresIDs(b *testing.B) {
	const id = "01a21bbf-d3ad-7938-9d85-f70000000000"
	for b.Loop() {
		if OfPostgres(textID(id)) != id {
			b.Fatal("another id")
		}
	}
}
