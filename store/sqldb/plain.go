package sqldb

import (
	"reflect"
	"slices"
)

// EachValues calls fn with the values of each row that a query finds: texts, ids as texts, numbers,
// bool, []byte, and nil for NULL. fn runs no statements of its own, and values are used again.
func EachValues(q Querier, fn func(values []any) error, query string, args ...any) error {
	s := q.querier()
	rows, err := s.query(query, args)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err reports the error of Close too
	columns, err := rows.Columns()
	if err != nil {
		return s.fail(err)
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return s.fail(err)
		}
		for i, v := range values {
			if values[i], err = plain(columns[i], v); err != nil {
				return s.fail(err)
			}
		}
		if err := fn(values); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return s.fail(err)
	}
	return nil
}

// plain is the value of a column as EachValues has it.
func plain(column string, v any) (any, error) {
	if text, ok := v.(string); ok {
		return unescape(text), nil
	}
	if v == nil || !idColumn(column) {
		return v, nil
	}
	var id string
	err := fromColumn(reflect.ValueOf(&id).Elem(), v)
	return id, err
}

// InsertValues stores rows of values for columns: those of EachValues, or others that a column may have. rest
// is the end of the statement. It returns how many rows were stored.
func (s *Session) InsertValues(table string, columns []string, rows [][]any, rest ...string) (stored int64, err error) {
	f := &form{columns: columns}
	for some := range slices.Chunk(rows, max(1, mostBound/len(columns))) {
		args := make([]any, 0, len(some)*len(columns))
		for _, row := range some {
			for i, v := range row {
				if text, ok := v.(string); ok && idColumn(columns[i]) {
					args = append(args, s.placeID(text))
					continue
				}
				placed, err := toColumn(v)
				if err != nil {
					return stored, err
				}
				args = append(args, placed)
			}
		}
		n, err := s.exec(s.numbered(insertText(f, table, len(some), rest), args), args)
		if err != nil {
			return stored, err
		}
		if stored += n; s.Inserted != nil {
			s.Inserted(table, columns, args)
		}
	}
	return stored, nil
}
