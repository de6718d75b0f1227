package store

import (
	"context"
	"database/sql"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// bound is a connection for one statement, to which it gives the arguments. Left
// to itself bun writes them into the text, and SQLite has to parse every
// statement again; a text that stays the same is parsed once per connection.
type bound struct {
	conn bun.IConn
	args []any
}

// ExecContext implements bun.IConn.
func (b bound) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	return b.conn.ExecContext(ctx, query, b.args...)
}

// QueryContext implements bun.IConn.
func (b bound) QueryContext(ctx context.Context, query string, _ ...any) (*sql.Rows, error) {
	return b.conn.QueryContext(ctx, query, b.args...)
}

// QueryRowContext implements bun.IConn.
func (b bound) QueryRowContext(ctx context.Context, query string, _ ...any) *sql.Row {
	return b.conn.QueryRowContext(ctx, query, b.args...)
}

// mostBound is how many arguments a statement may have to be kept parsed; with
// more it is a rare one, and SQLite takes at most 32,766.
const mostBound = 1000

// raw is a statement with ? for its arguments.
func (s *session) raw(query string, args ...any) *bun.RawQuery {
	if s.binds == nil || len(args) > mostBound || slices.ContainsFunc(args, isSQL) {
		return s.db.NewRaw(query, args...)
	}
	return s.db.NewRaw(query).Conn(bound{s.binds, args})
}

// isSQL says that an argument can only be written into the text.
func isSQL(arg any) bool {
	_, ok := arg.(schema.QueryAppender)
	return ok
}

// insert stores one row (a pointer) or several (a pointer to a slice of rows or
// of pointers to them). rest is the end of the statement: ON CONFLICT …
func (s *session) insert(rows any, rest ...string) error {
	list := reflect.ValueOf(rows).Elem()
	if list.Kind() != reflect.Slice {
		list = reflect.Append(reflect.MakeSlice(reflect.SliceOf(list.Type()), 0, 1), list)
	}
	f := s.form(list.Type().Elem())
	query := f.insert + strings.Repeat(", "+f.places, list.Len())[2:]
	for _, part := range rest {
		query += " " + part
	}
	args := make([]any, 0, list.Len()*len(f.fields))
	for i := range list.Len() {
		row := reflect.Indirect(list.Index(i))
		for _, field := range f.fields {
			args = append(args, row.FieldByIndex(field.Index).Interface())
		}
	}
	_, err := s.exec(s.raw(query, args...))
	return err
}

// update stores the columns of row (a pointer) that are not named in but, where
// rest, the end of the statement, says.
func (s *session) update(row any, but []string, rest string, args ...any) (int64, error) {
	v := reflect.ValueOf(row).Elem()
	f := s.form(v.Type())
	query := make([]byte, 0, 512)
	query = append(query, "UPDATE "+f.table...)
	sep := " SET "
	all := make([]any, 0, len(f.fields)+len(args))
	for _, field := range f.fields {
		if slices.Contains(but, field.Name) {
			continue
		}
		query = append(append(append(query, sep...), field.SQLName...), " = ?"...)
		all = append(all, v.FieldByIndex(field.Index).Interface())
		sep = ", "
	}
	query = append(append(query, ' '), rest...)
	return s.exec(s.raw(string(query), append(all, args...)...))
}

// form is how rows of a type stand in statements.
type form struct {
	table  string // quoted, with its alias
	insert string // INSERT INTO … VALUES
	places string // (?, ?, …)
	fields []*schema.Field
}

var forms sync.Map // of *form, by the type of the row; the databases quote alike

func (s *session) form(row reflect.Type) *form {
	if row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	if f, ok := forms.Load(row); ok {
		return f.(*form)
	}
	table := s.db.Dialect().Tables().Get(row)
	f := &form{table: string(table.SQLName) + " AS " + string(table.SQLAlias), fields: table.Fields}
	names := make([]string, len(f.fields))
	for i, field := range f.fields {
		names[i] = string(field.SQLName)
	}
	f.places = "(" + strings.Repeat(", ?", len(names))[2:] + ")"
	f.insert = "INSERT INTO " + f.table + " (" + strings.Join(names, ", ") + ") VALUES "
	forms.Store(row, f)
	return f
}
