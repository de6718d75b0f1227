package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/internal/fault"
)

// A row is a struct. Its exported fields are columns: a field without the tag
// `db:"name"` is the column of its name in snake case, one with `db:"-"` is none. The
// fields of an embedded struct (not of an embedded pointer) are columns of the row too, and
// so on for the structs embedded in it; its tag names those that are called otherwise, and
// those that are not columns: `db:"By=device -Uses"`. A field of the row itself hides an embedded one of the same
// column.

// field is a column of a row.
type field struct {
	column string
	index  []int
}

// form is how rows of a type stand in statements.
type form struct {
	fields  []field
	columns []string       // columns of fields
	at      map[string]int // places in fields, by column
}

var forms sync.Map // a *form for each type of a row

func formOf(row reflect.Type) *form {
	if f, ok := forms.Load(row); ok {
		return f.(*form)
	}
	f := &form{at: map[string]int{}}
	f.add(row, nil, nil)
	forms.Store(row, f)
	return f
}

// add gives the form the fields of a struct, those of embedded structs last.
func (f *form) add(t reflect.Type, index []int, called map[string]string) {
	for i := range t.NumField() {
		part := t.Field(i)
		if part.Anonymous || !part.IsExported() {
			continue
		}
		column := snake(part.Name)
		if name := part.Tag.Get("db"); name != "" {
			column = name
		}
		if name, ok := called[part.Name]; ok {
			column = name
		}
		if _, hidden := f.at[column]; column != "-" && !hidden {
			f.at[column] = len(f.fields)
			f.fields = append(f.fields, field{column, append(slices.Clone(index), i)})
			f.columns = append(f.columns, column)
		}
	}
	for i := range t.NumField() {
		if part := t.Field(i); part.Anonymous && part.Type.Kind() == reflect.Struct {
			names := otherNames(part)
			maps.Copy(names, called)
			f.add(part.Type, append(slices.Clone(index), i), names)
		}
	}
}

// otherNames reads the tag of an embedded struct.
func otherNames(part reflect.StructField) map[string]string {
	called := map[string]string{}
	for word := range strings.FieldsSeq(part.Tag.Get("db")) {
		name, column, _ := strings.Cut(word, "=")
		if left, ok := strings.CutPrefix(name, "-"); ok {
			name, column = left, "-"
		}
		if _, ok := part.Type.FieldByName(name); !ok {
			panic("sqldb: " + part.Type.String() + " has no field " + name)
		}
		called[name] = column
	}
	return called
}

// snake is a name in snake case: ConversationID is conversation_id.
func snake(name string) string {
	out := make([]byte, 0, len(name)+4)
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z') {
				out = append(out, '_')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

// Columns are the columns of a row.
func Columns[T any]() []string {
	return slices.Clone(formOf(reflect.TypeFor[T]()).columns)
}

// Querier is a Session, or what embeds one.
type Querier interface{ querier() *Session }

func (s *Session) querier() *Session { return s }

// Each calls fn with each row that a query finds: a struct, or the value of the only
// column. fn runs no statements of its own, and does not keep the pointer.
func Each[T any](q Querier, fn func(*T) error, query string, args ...any) error {
	return EachSized(q, func(row *T, _ int) error { return fn(row) }, query, args...)
}

// EachSized is Each whose fn gets the size of a row too, in bytes of text and data.
func EachSized[T any](q Querier, fn func(row *T, size int) error, query string, args ...any) error {
	var row, zero T
	return each(q, func() *T { row = zero; return &row }, fn, query, args)
}

// each is EachSized with rows that next returns.
func each[T any](q Querier, next func() *T, fn func(row *T, size int) error, query string, args []any) error {
	s := q.querier()
	rows, err := s.query(query, args)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err reports the error of Close too
	size := 0
	scan, err := scanner(rows, reflect.TypeFor[T](), &size)
	if err != nil {
		return s.fail(err)
	}
	for rows.Next() {
		row := next()
		size = 0
		if err := scan(reflect.ValueOf(row).Elem()); err != nil {
			return s.fail(err)
		}
		if err := fn(row, size); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return s.fail(err)
	}
	return nil
}

// scanner returns what reads a row into a value of a type, and adds to size.
func scanner(rows *sql.Rows, t reflect.Type, size *int) (func(reflect.Value) error, error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	cells, targets := make([]cell, len(columns)), make([]any, len(columns))
	for i := range cells {
		cells[i].size, targets[i] = size, &cells[i]
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return func(v reflect.Value) error {
			cells[0].v = v
			return rows.Scan(targets...)
		}, nil
	}
	f := formOf(t)
	fields := make([][]int, len(columns))
	for i, column := range columns {
		at, ok := f.at[column]
		if !ok {
			return nil, fmt.Errorf("sqldb: %s has no field for the column %s", t, column)
		}
		fields[i] = f.fields[at].index
	}
	return func(v reflect.Value) error {
		for i, index := range fields {
			cells[i].v = v.FieldByIndex(index)
		}
		return rows.Scan(targets...)
	}, nil
}

// All returns the rows that a query finds; never nil.
func All[T any](q Querier, query string, args ...any) (rows []T, err error) {
	rows = []T{}
	err = Each(q, func(row *T) error { rows = append(rows, *row); return nil }, query, args...)
	return rows, err
}

// Map returns what of makes of the rows that a query finds. It is never nil.
func Map[T, R any](q Querier, of func(*T) R, query string, args ...any) ([]R, error) {
	items := []R{}
	next := func() *T { return new(T) } // a new one each time: of may return a part of it
	err := each(q, next, func(row *T, _ int) error { items = append(items, of(row)); return nil }, query, args)
	return items, err
}

// Part is Map that stops before the rows exceed PageBytes together, but after at least one.
func Part[T, R any](q Querier, of func(*T) R, query string, args ...any) ([]R, error) {
	items, total := []R{}, 0
	next := func() *T { return new(T) } // a new one each time: of may return a part of it
	err := each(q, next, func(row *T, size int) error {
		if total += size; total > PageBytes && len(items) > 0 {
			return errEnough
		}
		items = append(items, of(row))
		return nil
	}, query, args)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return items, err
}

var errEnough = errors.New("sqldb: one row is enough")

// One returns the first row that a query finds, nil if there is none.
func One[T any](q Querier, query string, args ...any) (first *T, err error) {
	err = Each(q, func(row *T) error { first = row; return errEnough }, query, args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return first, err
}

// Get is One that returns fault.NotFound, "no such " and what, if there is no row.
func Get[T any](q Querier, what, query string, args ...any) (*T, error) {
	row, err := One[T](q, query, args...)
	if err == nil && row == nil {
		err = fault.New(fault.NotFound, "no such %s", what)
	}
	return row, err
}

// Find is Get that returns what of makes of the row.
func Find[T, R any](q Querier, what string, of func(*T) *R, query string, args ...any) (*R, error) {
	row, err := Get[T](q, what, query, args...)
	if err != nil {
		return nil, err
	}
	return of(row), nil
}

// Value is the first row that a query finds, zero if there is none.
func Value[T any](q Querier, query string, args ...any) (value T, err error) {
	row, err := One[T](q, query, args...)
	if row != nil {
		value = *row
	}
	return value, err
}
