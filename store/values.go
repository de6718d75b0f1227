package store

import (
	"bytes"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nodest/fault"
)

// text is a string column that may hold anything people or models write. Bytes
// that are not UTF-8 become U+FFFD, as encoding/json does it. PostgreSQL cannot
// store NUL, so NUL is stored as U+0001 '0' and U+0001 itself as U+0001 '1'.
type text string

var (
	escapeNul   = strings.NewReplacer("\x00", "\x010", "\x01", "\x011")
	unescapeNul = strings.NewReplacer("\x010", "\x00", "\x011", "\x01")
)

// Value implements driver.Valuer.
func (t text) Value() (driver.Value, error) {
	s := strings.ToValidUTF8(string(t), "\uFFFD")
	if strings.ContainsAny(s, "\x00\x01") {
		s = escapeNul.Replace(s)
	}
	return s, nil
}

// Scan implements sql.Scanner.
func (t *text) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = ""
	case string:
		*t = text(v)
	case []byte:
		*t = text(v)
	default:
		return fmt.Errorf("store: %T in a text column", src)
	}
	if strings.Contains(string(*t), "\x01") {
		*t = text(unescapeNul.Replace(string(*t)))
	}
	return nil
}

// document is a JSON text that is kept as it came; nil is NULL. It is a text
// column on both databases, because jsonb would forget the order of the keys.
type document json.RawMessage

// Value implements driver.Valuer.
func (d document) Value() (driver.Value, error) {
	if d == nil {
		return nil, nil
	}
	return text(d).Value()
}

// Scan implements sql.Scanner.
func (d *document) Scan(src any) error {
	if src == nil {
		*d = nil
		return nil
	}
	var t text
	if err := t.Scan(src); err != nil {
		return err
	}
	*d = document(t)
	return nil
}

// encode returns v as JSON without changing the bytes of strings more than JSON
// needs; nil pointers and empty slices become NULL.
func encode(v any) (document, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("store: encode %T: %w", v, err)
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if bytes.Equal(out, []byte("null")) {
		return nil, nil
	}
	return document(out), nil
}

// decode reads what encode wrote; NULL leaves v as it is.
func decode(d document, v any) error {
	if d == nil {
		return nil
	}
	if err := json.Unmarshal(d, v); err != nil {
		return fmt.Errorf("store: decode %T: %w", v, err)
	}
	return nil
}

// millis is a time as it is stored: whole milliseconds since 1970 UTC.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func millisOrNull(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func momentOrNil(ms *int64) *time.Time {
	if ms == nil {
		return nil
	}
	t := time.UnixMilli(*ms).UTC()
	return &t
}

// place is where a page of a list ended: lists are ordered by a time and, where
// times are equal, by id.
type place struct {
	ms int64
	id string
}

func (p place) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.ms, 10) + ":" + p.id))
}

// parseCursor returns fault.Invalid for a cursor that is not one of ours.
func parseCursor(cursor string) (place, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		ms, id, ok := strings.Cut(string(b), ":")
		n, err := strconv.ParseInt(ms, 10, 64)
		if ok && err == nil {
			return place{n, id}, nil
		}
	}
	return place{}, fault.InvalidField("cursor", "format", "not a cursor of this list; use the nextCursor of the previous page")
}
