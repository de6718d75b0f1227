package sqldb

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"nodest/internal/op/id"
)

// A column that is called id, or whose name ends in _id, holds UUIDs: UUID on PostgreSQL,
// BLOB(16) on SQLite; NULL = none. In Go an id is a string of 36 characters in lower case, and
// "" is none. Both databases order ids by their bytes, as Go orders their texts.

// ID is an argument of a statement that is an id where the statement does not tell: an argument
// that is compared with a column for ids, or stored in one, may be a plain string.
type ID string

// After is an argument for an id that others follow: "" comes before all ids.
func After(id string) ID { return ID(cmp.Or(id, beforeIDs)) }

// beforeIDs comes before all ids.
var beforeIDs = uuid.Nil.String()

// idColumn reports whether a column holds ids.
func idColumn(name string) bool { return name == "id" || strings.HasSuffix(name, "_id") }

// placeID is what stands in a column for an id. A text that is no id is NULL, which equals nothing.
func (s *Session) placeID(text string) any {
	return s.placed(id.Parse(text))
}

// placed is what stands in a column for an id that was read; if it is not ok, NULL.
func (s *Session) placed(id uuid.UUID, ok bool) any {
	switch {
	case s.Postgres:
		return pgtype.UUID{Bytes: id, Valid: ok}
	case ok:
		return id[:]
	}
	return nil
}

// idList is the argument for a list of ids, without the texts that are none.
func (s *Session) idList(texts []string) (value any, place string) {
	list := make([]pgtype.UUID, 0, len(texts))
	for _, text := range texts {
		if id, ok := id.Parse(text); ok {
			list = append(list, pgtype.UUID{Bytes: id, Valid: true})
		}
	}
	if s.Postgres {
		return list, "= ANY (?::UUID[]"
	}
	return digitsOf(len(list), func(b []byte, i int) []byte { return hex.AppendEncode(b, list[i].Bytes[:]) }),
		"SELECT unhex(value) FROM json_each(?)"
}

// IDRows is an argument for rows of ids of equal length, which are read as a table:
// WITH pairs (old_id, new_id) AS MATERIALIZED (?).
type IDRows [][]string

const idDigits = 32

// noDigits stand for no id.
var noDigits = strings.Repeat("-", idDigits)

func (s *Session) idRows(rows IDRows) (value any, place string) {
	width := 1
	if len(rows) > 0 {
		width = len(rows[0])
	}
	digits := digitsOf(len(rows), func(b []byte, i int) []byte {
		for _, text := range rows[i] {
			if id, ok := id.Parse(text); ok {
				b = hex.AppendEncode(b, id[:])
			} else {
				b = append(b, noDigits...)
			}
		}
		return b
	})
	read, from := "unhex(substr(value, %d, 32))", "json_each(?)"
	if s.Postgres {
		read, from = "CAST(NULLIF(substr(value, %d, 32), '"+noDigits+"') AS UUID)", "json_array_elements_text(CAST(? AS JSON))"
	}
	columns := make([]string, width)
	for i := range columns {
		columns[i] = fmt.Sprintf(read, i*idDigits+1)
	}
	return digits, "SELECT " + strings.Join(columns, ", ") + " FROM " + from
}

// digitsOf is a JSON array of n texts of digits.
func digitsOf(n int, appendItem func(b []byte, i int) []byte) string {
	list := []byte{'['}
	for i := range n {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(appendItem(append(list, '"'), i), '"')
	}
	return string(append(list, ']'))
}

// NoID is a literal that stands for NULL in an index, and is no id.
func (s *Session) NoID() string {
	if s.Postgres {
		return "'00000000-0000-0000-0000-000000000000'::UUID"
	}
	return "x''"
}

// IDText is an expression for the text of an id that an expression has.
func (s *Session) IDText(id string) string {
	if s.Postgres {
		return "CAST(" + id + " AS TEXT)"
	}
	digits := "lower(hex(" + id + "))"
	return fmt.Sprintf("substr(%[1]s, 1, 8) || '-' || substr(%[1]s, 9, 4) || '-' || substr(%[1]s, 13, 4) || '-' || substr(%[1]s, 17, 4) || '-' || substr(%[1]s, 21)", digits)
}

// Text reads a column of texts, or of ids, of either database.
type Text string

// Scan implements sql.Scanner.
func (t *Text) Scan(src any) error { return fromColumn(reflect.ValueOf(t).Elem(), src) }

// idOf is the text of an id that SQLite returned.
func idOf(stored []byte) (string, error) {
	id, err := uuid.FromBytes(stored)
	if err != nil {
		return "", fmt.Errorf("%d bytes are no id", len(stored))
	}
	return id.String(), nil
}
