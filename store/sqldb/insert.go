package sqldb

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op/id"
)

// mostBound is the maximum number of arguments of an INSERT: longer ones are rare, and
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
	if err := s.Writable(); err != nil { // also where there are no rows
		return 0, err
	}
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
	args := make([]any, 0, list.Len()*len(f.fields))
	for i := range list.Len() {
		row := reflect.Indirect(list.Index(i))
		for _, field := range f.fields {
			v, err := s.place(row, field)
			if err != nil {
				return 0, err
			}
			args = append(args, v)
		}
	}
	n, err := s.exec(s.numbered(insertText(f, table, list.Len(), rest), args), args)
	if err == nil && s.Inserted != nil {
		s.Inserted(table, f.columns, args)
	}
	return n, err
}

// insertText is the INSERT of some rows.
func insertText(f *form, table string, rows int, rest []string) string {
	query := make([]byte, 0, 512)
	query = append(append(query, "INSERT INTO "...), table...)
	sep := " ("
	for _, column := range f.columns {
		query, sep = append(append(query, sep...), column...), ", "
	}
	sep = ") VALUES "
	for range rows {
		query = append(query, sep...)
		for j := range f.columns {
			if j == 0 {
				query = append(query, "(?"...)
			} else {
				query = append(query, ", ?"...)
			}
		}
		query, sep = append(query, ')'), ", "
	}
	for _, part := range rest {
		query = append(append(query, ' '), part...)
	}
	return string(query)
}

// place is what stands in a column for a field of a row.
func (s *Session) place(row reflect.Value, f field) (any, error) {
	if !idColumn(f.column) {
		return fieldOf(row, f)
	}
	v := row.FieldByIndex(f.index)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return s.placeID(""), nil
		}
		v = v.Elem()
	}
	text := v.String()
	parsed, ok := id.Parse(text)
	if !ok && text != "" {
		return nil, fmt.Errorf("sqldb: %q is no id for %s", text, f.column)
	}
	return s.placed(parsed, ok), nil
}

// fieldOf is what stands in a column for a field of a row that is no id. A document may have a
// method that writes it, of its pointer.
func fieldOf(row reflect.Value, f field) (any, error) {
	v := row.FieldByIndex(f.index)
	if v.CanAddr() { // so that nothing is copied
		switch p := v.Addr().Interface().(type) {
		case *string:
			return escape(*p), nil
		case *time.Time:
			return Millis(*p), nil
		case *int64:
			return *p, nil
		case *bool:
			return *p, nil
		}
	}
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
		value, err := s.place(v, field)
		if err != nil {
			return 0, err
		}
		all, sep = append(all, value), ", "
	}
	end := parse(rest)
	for n := range end.places {
		value, _, err := s.argument(args[n], &end.places[n])
		if err != nil {
			return 0, err
		}
		all = append(all, value)
	}
	query = append(append(query, ' '), rest...)
	return s.exec(s.numbered(string(query), all), all)
}

// UpdateOne is Update that returns fault.NotFound, "no such " and what, where it
// changed no row.
func (s *Session) UpdateOne(what, table string, row any, but []string, rest string, args ...any) error {
	n, err := s.Update(table, row, but, rest, args...)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "no such %s", what)
	}
	return err
}

// numbered writes the places of arguments as the database reads them.
func (s *Session) numbered(query string, bound []any) string {
	if !s.Postgres {
		return query
	}
	out := make([]byte, 0, len(query)+8*len(bound))
	placeholders(query, func(part string, n int) {
		if out = append(out, part...); n >= 0 {
			out = s.appendPlace(out, n, s.typed(bound[n]))
		}
	})
	return string(out)
}
