// Package loose reads JSON of servers that are not ours as far as it can be read: a member of
// another type than expected counts as missing, and its neighbours are read all the same. It must
// not be used for what users and apps send us, where a wrong member is an error.
package loose

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshal reads a JSON document, which may begin with a byte order mark. Members and elements
// whose type does not fit stay at zero; a pointer then points to zero, so use Number for numbers
// that may be missing.
//
// Errors: data are no JSON, or as a whole of another type than into.
func Unmarshal(data []byte, into any) error {
	err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && (wrong.Field != "" || wrong.Type != reflect.TypeOf(into).Elem()) {
		return nil
	}
	return err
}

// Number is a number, also one that is spelled as a text. The zero value is unknown. What cannot be
// read leaves it as it was, so that a later document adds to an earlier one.
type Number struct {
	value float64
	known bool
}

// UnmarshalJSON never fails.
func (n *Number) UnmarshalJSON(doc []byte) error {
	spelled := strings.TrimSpace(string(textOf(doc)))
	if spelled == "" || strings.Trim(spelled, "+-.0123456789eE") != "" { // no words, and no hexadecimal digits
		return nil
	}
	if f, err := strconv.ParseFloat(spelled, 64); err == nil {
		*n = Number{f, true}
	}
	return nil
}

func (n Number) missing() bool { return !n.known }

// Float returns the number; nil = unknown.
func (n Number) Float() *float64 {
	if !n.known {
		return nil
	}
	return &n.value
}

// Int returns a whole number of at most 2^53; ok is false for every other one.
func (n Number) Int() (i int, ok bool) {
	if !n.known || n.value != math.Trunc(n.value) || math.Abs(n.value) > 1<<53 {
		return 0, false
	}
	return int(n.value), true
}

// IntOr returns the whole number, or another one where it is unknown.
func (n Number) IntOr(other int) int {
	if i, ok := n.Int(); ok {
		return i
	}
	return other
}

// Text is a text; a number counts as its spelling, and everything else as an empty text.
type Text string

// UnmarshalJSON never fails.
func (t *Text) UnmarshalJSON(doc []byte) error {
	*t = textOf(doc)
	return nil
}

func (t Text) missing() bool { return t == "" }

func textOf(doc []byte) Text {
	var s string
	switch doc = bytes.TrimSpace(doc); {
	case len(doc) == 0:
	case doc[0] == '"' && json.Unmarshal(doc, &s) == nil:
		return Text(s)
	case doc[0] == '-', doc[0] >= '0' && doc[0] <= '9':
		return Text(doc)
	}
	return ""
}

// List is a list without the elements that are null, empty texts or of another type. A lone object
// counts as a list of one.
type List[T any] []T

// UnmarshalJSON never fails: what is no list is an empty one.
func (l *List[T]) UnmarshalJSON(doc []byte) error {
	*l = nil
	var elements []json.RawMessage
	if doc = bytes.TrimSpace(doc); len(doc) > 0 && doc[0] == '{' {
		elements = []json.RawMessage{doc}
	} else {
		_ = json.Unmarshal(doc, &elements) // anything but a list has no elements
	}
	for _, e := range elements {
		var v T
		if string(e) == "null" || Unmarshal(e, &v) != nil {
			continue
		}
		if one, ok := any(v).(interface{ missing() bool }); ok && one.missing() {
			continue
		}
		*l = append(*l, v)
	}
	return nil
}

// Empty reports that a JSON value says nothing: that it is missing, null, false, 0, a text of
// blanks, or a list or an object of such values.
func Empty(doc []byte) bool {
	if len(doc) == 0 || string(doc) == "null" {
		return true
	}
	var v any
	return json.Unmarshal(doc, &v) == nil && empty(v)
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		for _, e := range v {
			if !empty(e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !empty(e) {
				return false
			}
		}
	}
	return true
}
