package sqldb

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"
)

// statement is the text of a statement, cut where its arguments are.
type statement struct {
	places []place
	rest   string // behind the last argument
}

// place is where a statement has an argument.
type place struct {
	before   string // the text from the argument before it on
	operator string // by which it is compared with a column; see comparedWith
	isID     bool   // so is the column
}

// parsed are the statements that have run, by their texts. Their number is bounded, because no text has
// anything that a user says, and lists of rows, whose texts have any length, are left out.
var parsed sync.Map

// mostParsed is how many arguments a statement in parsed has at most: those of lists of rows have more.
const mostParsed = 40

func parse(query string) *statement {
	if known, ok := parsed.Load(query); ok {
		return known.(*statement)
	}
	s := new(statement)
	placeholders(query, func(part string, n int) {
		if n < 0 {
			s.rest = part
			return
		}
		column, operator := comparedWith(part)
		s.places = append(s.places, place{part, operator, idColumn(column)})
	})
	if len(s.places) <= mostParsed {
		parsed.Store(query, s)
	}
	return s
}

// bind makes the text and the arguments of a statement what its database takes. A
// []string is a list, in the statement IN (?). For one value, as it mostly is, that
// stays as it is; for other numbers it is a query of one array, so that the text is
// the same for any number, and may be of any length.
func (s *Session) bind(query string, args []any) (string, []any, error) {
	p := parse(query)
	bound, places := make([]any, len(args)), make([]string, len(args))
	same := !s.Postgres // the statement stays as it is
	for n := range p.places {
		var err error
		if bound[n], places[n], err = s.argument(args[n], &p.places[n]); err != nil {
			return "", nil, err
		}
		same = same && places[n] == "?"
	}
	if same {
		return query, bound, nil
	}
	out := make([]byte, 0, len(query)+8*len(args)+16)
	for n := range p.places {
		out = s.appendPlace(append(out, p.places[n].before...), n, places[n])
	}
	return string(append(out, p.rest...)), bound, nil
}

// argument is what the database takes for an argument at a place of a statement, and what stands
// for it there, with a question mark. No id is less than all ids, and equal to none.
func (s *Session) argument(arg any, at *place) (value any, place string, err error) {
	switch arg := arg.(type) {
	case ID:
		value = s.placeID(string(arg))
	case IDRows:
		value, place = s.idRows(arg)
		return value, place, nil
	case []string:
		return s.list(arg, at.isID)
	case *string:
		if value, err = toColumn(arg); err == nil && at.isID {
			text, _ := value.(string)
			value = s.placeID(text)
		}
	case string:
		switch {
		case at.isID && arg == "" && at.operator == ">":
			value = s.placeID(beforeIDs)
		case at.isID:
			value = s.placeID(arg)
		default:
			value = escape(arg)
		}
	default:
		value, err = toColumn(arg)
	}
	return value, s.typed(value), err
}

// typed is what stands for a value in a statement. PostgreSQL would take some for a text where
// nothing else tells their type.
func (s *Session) typed(value any) string {
	if s.Postgres {
		switch value.(type) {
		case pgtype.UUID:
			return "?::UUID"
		case int64:
			return "?::BIGINT"
		}
	}
	return "?"
}

// list is the argument for several values.
func (s *Session) list(texts []string, isID bool) (value any, place string, err error) {
	switch {
	case len(texts) == 1 && isID:
		value = s.placeID(texts[0])
		return value, s.typed(value), nil
	case len(texts) == 1:
		return escape(texts[0]), "?", nil
	case isID:
		value, place = s.idList(texts)
		return value, place, nil
	}
	array := make([]string, len(texts))
	for i, text := range texts {
		array[i] = escape(text)
	}
	if s.Postgres {
		return array, "= ANY (?", nil
	}
	b, err := json.Marshal(array)
	return string(b), "SELECT value FROM json_each(?)", err
}

// appendPlace adds what stands for argument n to a statement.
func (s *Session) appendPlace(query []byte, n int, place string) []byte {
	if !s.Postgres {
		return append(query, place...)
	}
	if strings.HasPrefix(place, "= ANY") {
		query = bytes.TrimSuffix(query, []byte("IN ("))
	}
	return append(query, strings.ReplaceAll(place, "?", "$"+strconv.Itoa(n+1))...)
}

// comparedWith is the column that a statement compares with its next argument, or sets to it, of
// COALESCE the first one, and how; > stands for >= too. "" = something else comes before the argument.
func comparedWith(before string) (column, operator string) {
	left := strings.TrimSuffix(strings.TrimRight(before, " "), "(")
	left = strings.TrimRight(left, " ")
	for _, operator = range []string{"=", "<", ">", " IN", " IS NOT DISTINCT FROM", " IS DISTINCT FROM"} {
		if rest, ok := strings.CutSuffix(left, operator); ok {
			if rest, ok = strings.CutSuffix(rest, ">"); ok {
				operator = ">"
			}
			left = strings.TrimRight(rest, "<>= ")
			left = strings.TrimSuffix(left, " NOT")
			if at := strings.LastIndex(left, "COALESCE("); at >= 0 && strings.HasSuffix(left, ")") {
				left, _, _ = strings.Cut(left[at:], ",")
			}
			return left[lastOutside(left)+1:], operator
		}
	}
	return "", ""
}

// lastOutside is where the last byte is that no name of a column has, -1 if there is none.
func lastOutside(text string) int {
	return strings.LastIndexFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
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
