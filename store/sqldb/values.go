package sqldb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"nodest/internal/codec"
)

// The types of Go and what stands in a column for them:
//
//   - strings: TEXT, or an id (see id.go). Bytes that are not UTF-8 become U+FFFD, as encoding/json does it.
//     PostgreSQL cannot store NUL, so NUL is stored as U+0001 '0' and U+0001 itself as
//     U+0001 '1'.
//   - time.Time: BIGINT, milliseconds since 1970 UTC; the zero time is 0.
//   - json.RawMessage: TEXT, as it came (jsonb would forget the order of the keys).
//   - []byte: BLOB or BYTEA. Numbers and bool are themselves.
//   - Zstd, ZstdNumbers: the same, compressed if they are long.
//   - a pointer to one of these: the same, and nil is NULL.
//   - other structs, maps, slices and pointers: JSON, like json.RawMessage; what is nil, and a slice
//     without items, is NULL.
//
// NULL that is read is the zero value.

// Zstd is a text that a column for bytes holds as a zstd frame, if it is long (package codec).
// It is data: NUL and bytes that are not UTF-8 stay.
type Zstd []byte

// ZstdNumbers is Zstd for bytes that are no text.
type ZstdNumbers []byte

var (
	escapeNul   = strings.NewReplacer("\x00", "\x010", "\x01", "\x011")
	unescapeNul = strings.NewReplacer("\x010", "\x00", "\x011", "\x01")
)

func escape(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 || strings.IndexByte(s, 1) >= 0 {
		s = escapeNul.Replace(s)
	}
	return s
}

func unescape(s string) string {
	if strings.IndexByte(s, 1) >= 0 {
		s = unescapeNul.Replace(s)
	}
	return s
}

// toColumn is what stands in a column for v.
func toColumn(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64, float64, []byte:
		return v, nil
	case string:
		return escape(v), nil
	case int:
		return int64(v), nil
	case time.Time:
		return Millis(v), nil
	case json.RawMessage:
		if v == nil {
			return nil, nil
		}
		return escape(string(v)), nil
	case Zstd:
		if v == nil {
			return nil, nil
		}
		return codec.Pack(v), nil
	case ZstdNumbers:
		if v == nil {
			return nil, nil
		}
		return codec.PackNumbers(v), nil
	}
	return toColumnByKind(v, reflect.ValueOf(v))
}

// toColumnByKind is toColumn for other types than the plain ones themselves.
func toColumnByKind(v any, r reflect.Value) (any, error) {
	switch r.Kind() { //nolint:exhaustive // the others are documents
	case reflect.String:
		return escape(r.String()), nil
	case reflect.Bool:
		return r.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), nil
	case reflect.Float32, reflect.Float64:
		return r.Float(), nil
	case reflect.Pointer:
		if r.IsNil() {
			return nil, nil
		}
		if isPlain(r.Type().Elem()) {
			return toColumn(r.Elem().Interface())
		}
	case reflect.Slice:
		if r.Len() == 0 {
			return nil, nil
		}
		if r.Type().Elem().Kind() == reflect.Uint8 {
			return r.Bytes(), nil
		}
	}
	return document(v)
}

// isPlain says that a type is not stored as a document.
func isPlain(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // the others are documents
	case reflect.Struct:
		return t == reflect.TypeFor[time.Time]()
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		return false
	}
	return true
}

// document is v as JSON, in which strings are changed no more than JSON needs.
func document(v any) (any, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("sqldb: encode %T: %w", v, err)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if text == "null" {
		return nil, nil
	}
	return escape(text), nil
}

// cell reads a column into a value of Go.
type cell struct {
	v    reflect.Value
	size *int // size of the row, in bytes of text and data
}

// Scan implements sql.Scanner.
func (c *cell) Scan(src any) error {
	switch src := src.(type) {
	case string:
		*c.size += len(src)
	case []byte:
		*c.size += len(src)
	}
	return fromColumn(c.v, src)
}

// fromColumn sets v, which is addressable, to what a column holds.
func fromColumn(v reflect.Value, src any) error {
	if src == nil {
		v.SetZero()
		return nil
	}
	if v.Kind() == reflect.Pointer && isPlain(v.Type().Elem()) {
		v.Set(reflect.New(v.Type().Elem()))
		return fromColumn(v.Elem(), src)
	}
	switch src := src.(type) {
	case int64:
		return fromInt(v, src)
	case float64:
		if v.CanFloat() {
			v.SetFloat(src)
			return nil
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(src)
			return nil
		}
	case string:
		return fromText(v, unescape(src))
	case []byte:
		return fromBytes(v, src)
	}
	return fmt.Errorf("a column of %T cannot be read as %s", src, v.Type())
}

func fromBytes(v reflect.Value, src []byte) error {
	switch p := v.Addr().Interface().(type) {
	case *[]byte:
		*p = bytes.Clone(src)
		return nil
	case *Zstd:
		return unpack((*[]byte)(p), src)
	case *ZstdNumbers:
		return unpack((*[]byte)(p), src)
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 && v.Type() != reflect.TypeFor[json.RawMessage]() {
		v.SetBytes(bytes.Clone(src))
		return nil
	}
	id, err := idOf(src)
	if err != nil {
		return err
	}
	return fromText(v, id)
}

func unpack(p *[]byte, stored []byte) error {
	text, err := codec.Unpack(stored)
	*p = bytes.Clone(text)
	return err
}

func fromInt(v reflect.Value, n int64) error {
	if p, ok := v.Addr().Interface().(*time.Time); ok {
		*p = Moment(n)
		return nil
	}
	switch {
	case v.CanInt():
		v.SetInt(n)
	case v.CanFloat():
		v.SetFloat(float64(n))
	case v.Kind() == reflect.Bool:
		v.SetBool(n != 0)
	default:
		return fmt.Errorf("a number cannot be read as %s", v.Type())
	}
	return nil
}

func fromText(v reflect.Value, text string) error {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
		return nil
	case *json.RawMessage:
		*p = json.RawMessage(text)
		return nil
	}
	switch v.Kind() { //nolint:exhaustive // the others are documents, or an error
	case reflect.String:
		v.SetString(text)
		return nil
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer:
		if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil {
			return fmt.Errorf("decode %s: %w", v.Type(), err)
		}
		return nil
	}
	return fmt.Errorf("a text cannot be read as %s", v.Type())
}

// Millis is a time as it is stored: whole milliseconds since 1970 UTC.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Moment is the time that is stored as ms.
func Moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
