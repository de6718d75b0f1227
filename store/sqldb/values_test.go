package sqldb

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "tea", "\x00", "\x01", "\x010", "\x00\x01\x001", "\xff\xfe", "茶", `{"a": 1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		stored := escape(s)
		if strings.ContainsRune(stored, 0) || !utf8.ValidString(stored) {
			t.Errorf("%q is stored as %q", s, stored)
		}
		var got string
		if err := fromColumn(reflect.ValueOf(&got).Elem(), stored); err != nil || got != strings.ToValidUTF8(s, "\uFFFD") {
			t.Errorf("%q came back as %q, %v", s, got, err)
		}
		_, _ = ParseCursor(s) // must not panic
		for _, postgres := range []bool{false, true} {
			query, _, err := (&Session{Postgres: postgres}).bind(s, make([]any, strings.Count(s, "?")))
			if err != nil || !postgres && query != s {
				t.Errorf("the statement %q is read as %q, %v", s, query, err)
			}
		}
	})
}

type inner struct {
	ID, Title string
	By        string
	Uses      []string
	At        time.Time
}

type outer struct {
	inner  `db:"By=device -Uses"`
	Title  *string // hides inner.Title
	UserID string
	Blob   []byte
	Tags   map[string]int
	Until  *time.Time
	hidden int //nolint:unused // unexported, so not a column
}

func TestColumnsOfARow(t *testing.T) {
	if got := strings.Join(Columns[outer](), " "); got != "title user_id blob tags until id device at" {
		t.Errorf("columns are %s", got)
	}
	for name, want := range map[string]string{"ID": "id", "MemoryIDs": "memory_ids", "ClientMsgID": "client_msg_id", "CostUSD": "cost_usd", "ETag": "etag"} {
		if got := snake(name); got != want {
			t.Errorf("%s is the column %s, want %s", name, got, want)
		}
	}
}

func TestPlaceholdersAreBoundForEachDatabase(t *testing.T) {
	const query = "SELECT '?' FROM t WHERE a = ? AND b IN (?) AND c = ?"
	for _, tt := range []struct {
		list             []string
		sqlite, postgres string
	}{
		{[]string{"x"}, query, "SELECT '?' FROM t WHERE a = $1::BIGINT AND b IN ($2) AND c = $3"},
		{[]string{"x", "y"}, "SELECT '?' FROM t WHERE a = ? AND b IN (SELECT value FROM json_each(?)) AND c = ?",
			"SELECT '?' FROM t WHERE a = $1::BIGINT AND b = ANY ($2) AND c = $3"},
		{nil, "SELECT '?' FROM t WHERE a = ? AND b IN (SELECT value FROM json_each(?)) AND c = ?",
			"SELECT '?' FROM t WHERE a = $1::BIGINT AND b = ANY ($2) AND c = $3"},
	} {
		for _, s := range []*Session{{}, {Postgres: true}} {
			got, args, err := s.bind(query, []any{1, tt.list, "z"})
			want := tt.sqlite
			if s.Postgres {
				want = tt.postgres
			}
			if err != nil || got != want || len(args) != 3 || args[0] != int64(1) {
				t.Errorf("%v: %s %v %v", tt.list, got, args, err)
			}
		}
	}
}

// A row names the columns of embedded structs, and of those embedded in them.
func TestColumnsOfPartsInParts(t *testing.T) {
	t.Parallel()
	type times struct{ CreatedAt, EditedAt, ReadAt time.Time }
	type note struct {
		ID string
		times
		Text string
	}
	type row struct {
		note   `db:"EditedAt=changed_at -ReadAt"`
		UserID string
	}
	want := []string{"user_id", "id", "text", "created_at", "changed_at"}
	if got := Columns[row](); !slices.Equal(got, want) {
		t.Errorf("the columns are %q, want %q", got, want)
	}
}
