package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/fault"
)

// A row is a struct. Its exported fields are columns: a field without the tag
// `db:"name"` is the column of its name in snake case, one with `db:"-"` is none. The
// fields of an embedded struct are columns of the row too; its tag names those that
// are called otherwise, and those that are not columns: `db:"By=device -Uses"`. A
// field of the row itself hides an embedded one of the same column.

// field is a column of a row.
type field struct {
	column string
	index  []int
}

// form is how rows of a type stand in statements.
type form struct {
	fields []field
	at     map[string]int // places in fields, by column
}

var forms sync.Map // of *form, by the type of the row

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
		}
	}
	for i := range t.NumField() {
		if part := t.Field(i); part.Anonymous {
			f.add(part.Type, append(slices.Clone(index), i), otherNames(part))
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
	f := formOf(reflect.TypeFor[T]())
	names := make([]string, len(f.fields))
	for i, field := range f.fields {
		names[i] = field.column
	}
	return names
}

// Querier is a Session, or what embeds one.
type Querier interface{ querier() *Session }

func (s *Session) querier() *Session { return s }

// Each calls fn with each row that a query finds: a struct, or the value of the only
// column. fn runs no statements of its own.
func Each[T any](q Querier, fn func(*T) error, query string, args ...any) error {
	s := q.querier()
	rows, err := s.query(query, args)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // what it says, Err says too
	scan, err := scanner(rows, reflect.TypeFor[T]())
	if err != nil {
		return s.fail(err)
	}
	for rows.Next() {
		row := new(T)
		if err := scan(reflect.ValueOf(row).Elem()); err != nil {
			return s.fail(err)
		}
		if err := fn(row); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return s.fail(err)
	}
	return nil
}

// scanner returns what reads a row into a value of a type.
func scanner(rows *sql.Rows, t reflect.Type) (func(reflect.Value) error, error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	cells, targets := make([]cell, len(columns)), make([]any, len(columns))
	for i := range cells {
		targets[i] = &cells[i]
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
	err := Each(q, func(row *T) error { items = append(items, of(row)); return nil }, query, args...)
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

// Value is the first row that a query finds, zero if there is none.
func Value[T any](q Querier, query string, args ...any) (value T, err error) {
	row, err := One[T](q, query, args...)
	if row != nil {
		value = *row
	}
	return value, err
}

// mostBound is how many arguments an INSERT has at most: a longer one is rare, and
// would be parsed anew each time.
const mostBound = 1000

// Insert stores one row (a pointer to it), or several (a slice of rows, or of pointers
// to them). rest is the end of the statement: ON CONFLICT …
func (s *Session) Insert(table string, rows any, rest ...string) error {
	_, err := s.InsertNew(table, rows, rest...)
	return err
}

// InsertNew is Insert that returns how many rows were stored or changed.
func (s *Session) InsertNew(table string, rows any, rest ...string) (stored int64, err error) {
	list := reflect.ValueOf(rows)
	if list.Kind() == reflect.Pointer {
		list = reflect.Append(reflect.MakeSlice(reflect.SliceOf(list.Type()), 0, 1), list)
	}
	item := list.Type().Elem()
	if item.Kind() == reflect.Pointer {
		item = item.Elem()
	}
	f := formOf(item)
	for most := mostBound / len(f.fields); list.Len() > 0; {
		n := min(most, list.Len())
		some, err := s.insert(f, table, list.Slice(0, n), rest)
		if err != nil {
			return stored, err
		}
		stored, list = stored+some, list.Slice(n, list.Len())
	}
	return stored, nil
}

func (s *Session) insert(f *form, table string, list reflect.Value, rest []string) (int64, error) {
	query := make([]byte, 0, 512)
	query = append(append(query, "INSERT INTO "...), table...)
	sep := " ("
	for _, field := range f.fields {
		query, sep = append(append(query, sep...), field.column...), ", "
	}
	args := make([]any, 0, list.Len()*len(f.fields))
	sep = ") VALUES "
	for i := range list.Len() {
		row := reflect.Indirect(list.Index(i))
		query = append(query, sep...)
		for j, field := range f.fields {
			if j == 0 {
				query = append(query, "(?"...)
			} else {
				query = append(query, ", ?"...)
			}
			v, err := fieldOf(row, field)
			if err != nil {
				return 0, err
			}
			args = append(args, v)
		}
		query, sep = append(query, ')'), ", "
	}
	for _, part := range rest {
		query = append(append(query, ' '), part...)
	}
	return s.exec(s.placed(string(query), args), args)
}

// fieldOf is what stands in a column for a field of a row. A document may have a
// method that writes it, of its pointer.
func fieldOf(row reflect.Value, f field) (any, error) {
	v := row.FieldByIndex(f.index)
	if v.Kind() == reflect.Struct && !isPlain(v.Type()) {
		v = v.Addr()
	}
	return toColumn(v.Interface())
}

// Update stores the columns of row (a pointer) that are not named in but, where rest,
// the end of the statement, says. It returns the number of rows that it changed.
func (s *Session) Update(table string, row any, but []string, rest string, args ...any) (int64, error) {
	v := reflect.ValueOf(row).Elem()
	query := make([]byte, 0, 512)
	query = append(append(query, "UPDATE "...), table...)
	var all []any
	sep := " SET "
	for _, field := range formOf(v.Type()).fields {
		if slices.Contains(but, field.column) {
			continue
		}
		query = append(append(append(query, sep...), field.column...), " = ?"...)
		value, err := fieldOf(v, field)
		if err != nil {
			return 0, err
		}
		all, sep = append(all, value), ", "
	}
	for _, arg := range args {
		value, err := toColumn(arg)
		if err != nil {
			return 0, err
		}
		all = append(all, value)
	}
	query = append(append(query, ' '), rest...)
	return s.exec(s.placed(string(query), all), all)
}

// placed is a statement without lists as its database reads it.
func (s *Session) placed(query string, bound []any) string {
	if s.Postgres {
		return numbered(query, bound)
	}
	return query
}
