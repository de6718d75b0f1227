package sqldb

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
)

// bind makes the text and the arguments of a statement what its database takes. A
// []string is a list, in the statement IN (?). For one value, as it mostly is, that
// stays as it is; for other numbers it is a query of one array, so that the text is
// the same for any number, and may be of any length.
func (s *Session) bind(query string, args []any) (string, []any, error) {
	bound := make([]any, len(args))
	lists := false
	for i, arg := range args {
		list, ok := arg.([]string)
		switch {
		case !ok:
			v, err := toColumn(arg)
			if err != nil {
				return "", nil, err
			}
			bound[i] = v
		case len(list) == 1:
			bound[i] = escape(list[0])
		case s.Postgres:
			array := make([]string, len(list))
			for j, item := range list {
				array[j] = escape(item)
			}
			bound[i], lists = array, true
		default:
			array, err := jsonList(list)
			if err != nil {
				return "", nil, err
			}
			bound[i], lists = array, true
		}
	}
	if s.Postgres {
		query = numbered(query, bound)
	} else if lists {
		query = listed(query, args)
	}
	return query, bound, nil
}

// jsonList is a list as readList reads it: what SQLite stores as bytes is in digits that unhex can
// read, and other texts follow a character that it cannot read.
func jsonList(list []string) (string, error) {
	array := make([]string, len(list))
	for i, item := range list {
		if id, ok := PackID(item); ok {
			array[i] = hex.EncodeToString(stored(&id))
		} else {
			array[i] = "=" + escape(item)
		}
	}
	b, err := json.Marshal(array)
	return string(b), err
}

// readList is a query for the items of a list in SQLite.
const readList = "SELECT COALESCE(unhex(value), substr(value, 2)) FROM json_each(?)"

// listed writes lists of several values as SQLite reads them.
func listed(query string, args []any) string {
	out := make([]byte, 0, len(query)+64)
	placeholders(query, func(part string, n int) {
		out = append(out, part...)
		if n < 0 {
			return
		}
		if list, ok := args[n].([]string); ok && len(list) != 1 {
			out = append(out, readList...)
		} else {
			out = append(out, '?')
		}
	})
	return string(out)
}

// numbered writes $1, $2, … for the arguments, as PostgreSQL reads them.
func numbered(query string, bound []any) string {
	out := make([]byte, 0, len(query)+4*len(bound)+16)
	placeholders(query, func(part string, n int) {
		out = append(out, part...)
		if n < 0 {
			return
		}
		if _, ok := bound[n].([]string); ok {
			out = append(bytes.TrimSuffix(out, []byte("IN (")), "= ANY ("...)
		}
		out = strconv.AppendInt(append(out, '$'), int64(n+1), 10)
		if _, ok := bound[n].(int64); ok { // where nothing else tells its type it would be a text
			out = append(out, "::BIGINT"...)
		}
	})
	return string(out)
}

// placeholders calls found with the text before each ? that stands for an argument, and the
// argument's number; with -1 for the rest.
func placeholders(query string, found func(part string, n int)) {
	for n := 0; ; n++ {
		end := placeholder(query)
		if end < 0 {
			found(query, -1)
			return
		}
		found(query[:end], n)
		query = query[end+1:]
	}
}

// placeholder is where the first ? outside of quotes is, -1 if there is none.
func placeholder(query string) int {
	for from := 0; ; {
		i := strings.IndexAny(query[from:], "?'")
		if i < 0 {
			return -1
		}
		at := from + i
		if query[at] == '?' {
			return at
		}
		end := strings.IndexByte(query[at+1:], '\'')
		if end < 0 {
			return -1
		}
		from = at + end + 2
	}
}
