package sqldb

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"nodest/internal/fault"
)

// Length is limit, or 50 where none is given.
func Length(limit int) int {
	if limit <= 0 {
		return 50
	}
	return limit
}

// Page reads a page of a list, newest first, beginning after cursor, and returns what of
// makes of its rows, and the cursor of the next page if there is one. by is the column
// that orders the list: a time, before the id, or the id itself. query ends within its
// WHERE. Reading on is a search in an index, however far the cursor is.
func Page[T, R any](q Querier, of func(*T) R, by, cursor string, limit int, query string, args ...any) (items []R, next string, err error) {
	return PageOf(q, nil, of, by, cursor, limit, query, args...)
}

// PageBytes is how many bytes of text and data the rows of a page may have. A single row may
// have more.
const PageBytes = 4 << 20

// PageOf is Page of those rows that keep accepts; nil = all. It reads until the page is
// full.
func PageOf[T, R any](q Querier, keep func(*T) bool, of func(*T) R, by, cursor string, limit int, query string, args ...any) (items []R, next string, err error) {
	after, err := ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	table, column := "", by
	if dot := strings.IndexByte(by, '.'); dot >= 0 {
		table, column = by[:dot+1], by[dot+1:]
	}
	order, from := by+" DESC", by+" < ?"
	at := []any{ID(after.ID)}
	if column != "id" {
		order, from = order+", "+table+"id DESC", "("+by+", "+table+"id) < (?, ?)"
		at = []any{after.Number, ID(after.ID)}
	}
	if cursor != "" {
		query, args = query+" AND "+from, append(args, at...)
	}
	limit = Length(limit)
	query += " ORDER BY " + order
	// One row more than the page has tells whether there is another one.
	most := limit + 1
	if keep == nil {
		query, args = query+" LIMIT ?", append(args, most)
	}
	rows := make([]T, 0, min(most, 64))
	total := 0
	var read, zero T
	err = each(q, func() *T { read = zero; return &read }, func(row *T, size int) error {
		if keep != nil && !keep(row) {
			return nil
		}
		if total += size; len(rows) == limit || total > PageBytes && len(rows) > 0 {
			return errEnough
		}
		rows = append(rows, *row)
		return nil
	}, query, args)
	if errors.Is(err, errEnough) {
		err = nil
		next = placeOf(reflect.ValueOf(&rows[len(rows)-1]).Elem(), column).cursor()
	}
	items = make([]R, len(rows))
	for i := range rows {
		items[i] = of(&rows[i])
	}
	return items, next, err
}

// placeOf is the place of a row in a list that a column orders.
func placeOf(row reflect.Value, column string) (p Place) {
	f := formOf(row.Type())
	p.ID = row.FieldByIndex(f.fields[f.at["id"]].index).String()
	if column != "id" {
		at, _ := fieldOf(row, f.fields[f.at[column]]) // it came from there
		p.Number, _ = at.(int64)
	}
	return p
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
