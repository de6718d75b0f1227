package sqldb

import (
	"encoding/base64"
	"reflect"
	"strconv"
	"strings"

	"nodest/fault"
)

// Length is limit, or 50 where none is given.
func Length(limit int) int {
	if limit <= 0 {
		return 50
	}
	return limit
}

// Page reads a page of a list, newest first, beginning after cursor, and returns the
// cursor of the next page if there is one. by is the column that orders the list: a
// time, before the id, or the id itself. query ends within its WHERE. Reading on is a
// search in an index, however far the cursor is.
func Page[T any](q Querier, by, cursor string, limit int, query string, args ...any) (rows []T, next string, err error) {
	after, err := ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	limit = Length(limit)
	prefix, column := "", by
	if table, name, ok := strings.Cut(by, "."); ok {
		prefix, column = table+".", name
	}
	switch {
	case column == "id":
		if cursor != "" {
			query, args = query+" AND "+by+" < ?", append(args, after.ID)
		}
		query += " ORDER BY " + by + " DESC LIMIT ?"
	default:
		if cursor != "" {
			query, args = query+" AND ("+by+", "+prefix+"id) < (?, ?)", append(args, after.Number, after.ID)
		}
		query += " ORDER BY " + by + " DESC, " + prefix + "id DESC LIMIT ?"
	}
	// One row more than the page has tells whether there is another one.
	rows, err = All[T](q, query, append(args, limit+1)...)
	if err != nil {
		return nil, "", err
	}
	rows, next = Cut(rows, limit, func(row T) Place {
		f, v := formOf(reflect.TypeFor[T]()), reflect.ValueOf(row)
		p := Place{ID: v.FieldByIndex(f.fields[f.at["id"]].index).String()}
		if column != "id" {
			at, _ := toColumn(v.FieldByIndex(f.fields[f.at[column]].index).Interface()) // it came from there
			p.Number, _ = at.(int64)
		}
		return p
	})
	return rows, next, nil
}

// Cut returns the rows of a page, of which one more was read than it has, and the
// cursor of the next page if there is one.
func Cut[T any](rows []T, limit int, where func(T) Place) ([]T, string) {
	if len(rows) <= limit {
		return rows, ""
	}
	rows = rows[:limit]
	return rows, where(rows[limit-1]).cursor()
}

// Place is where a page of a list ended: lists are ordered by a number, such as a
// time, and where numbers are equal by id.
type Place struct {
	Number int64
	ID     string
}

func (p Place) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.Number, 10) + ":" + p.ID))
}

// ParseCursor returns the place of a cursor; that of "" is zero. It returns
// fault.Invalid for a cursor that is not one of ours.
func ParseCursor(cursor string) (Place, error) {
	if cursor == "" {
		return Place{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		number, id, ok := strings.Cut(string(b), ":")
		n, err := strconv.ParseInt(number, 10, 64)
		if ok && err == nil {
			return Place{n, id}, nil
		}
	}
	return Place{}, fault.InvalidField("cursor", "format", "not a cursor of this list; use the nextCursor of the previous page")
}
