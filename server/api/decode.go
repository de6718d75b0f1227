package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// Decode reads one JSON object into v, a pointer to a struct. Every member
// must be known and of the right type; all that are not are named in one
// invalid_field. null means that a member is absent. Nothing may follow the object.
func Decode(data []byte, v any) error {
	if err := CheckObject(data); err != nil {
		return err
	}
	if wrong := check(data, reflect.TypeOf(v).Elem(), ""); len(wrong) > 0 {
		return invalid(wrong)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fault.Wrap(err, fault.Invalid, "a member has a value of the wrong type")
	}
	return nil
}

// CheckObject is CheckJSON for an object.
func CheckObject(data []byte) error {
	err := CheckJSON(data)
	if err == nil && bytes.TrimSpace(data)[0] != '{' {
		err = fault.New(fault.BadRequest, "expected a JSON object")
	}
	return err
}

// CheckJSON refuses what is not one JSON value: UTF-8, within the limits of op.CheckLimits,
// with nothing after it. It does not build the value.
//
// Errors: BadRequest, TooLarge.
func CheckJSON(data []byte) error {
	if !utf8.Valid(data) {
		return fault.New(fault.BadRequest, "the body is not valid UTF-8")
	}
	if err := op.CheckLimits(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &unread{}); err != nil {
		return fault.Wrap(err, fault.BadRequest, "invalid JSON: %s", syntaxDetail(err))
	}
	return nil
}

// unread is any valid JSON value, of which nothing is kept.
type unread struct{}

func (*unread) UnmarshalJSON([]byte) error { return nil }

// syntaxDetail is the decoder's message without the parts of the input that
// other errors would quote.
func syntaxDetail(err error) string {
	if e, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // the decoder returns it bare
		return fmt.Sprintf("error at byte %d", e.Offset)
	}
	return "unexpected end of input"
}

// mostTold limits how many wrong members one error lists: a body can have a million of them.
const mostTold = 20

func invalid(wrong []fault.Field) error {
	slices.SortFunc(wrong, func(a, b fault.Field) int { return strings.Compare(a.Field, b.Field) })
	wrong = slices.Clone(wrong[:min(len(wrong), mostTold)])
	e := fault.New(fault.Invalid, "%s: %s", wrong[0].Field, wrong[0].Detail)
	e.Fields = wrong
	return e
}

var (
	typeRaw  = reflect.TypeFor[json.RawMessage]()
	typeTime = reflect.TypeFor[time.Time]()
)

// check compares a valid JSON value with the type that will hold it. at is the path of the value as
// the client wrote it. Of documents, which are kept as they are, it reads nothing.
func check(v json.RawMessage, t reflect.Type, at string) []fault.Field {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if op.IsNull(v) || t == typeRaw || t.Kind() == reflect.Interface {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		if t == typeTime {
			return mustBe(holds[time.Time](v), at, "an RFC 3339 time such as 2026-01-31T12:00:00Z")
		}
		members := MembersOf(t)
		return checkObject(v, at, func(name string) reflect.Type { return members[name] })
	case reflect.Map:
		return checkObject(v, at, func(string) reflect.Type { return t.Elem() })
	case reflect.Slice:
		return checkSlice(v, t, at)
	case reflect.String:
		return mustBe(bytes.TrimSpace(v)[0] == '"', at, "a string")
	case reflect.Bool:
		return mustBe(holds[bool](v), at, "true or false")
	case reflect.Float64:
		return mustBe(holds[float64](v), at, "a number")
	case reflect.Int, reflect.Int64:
		return mustBe(holds[int64](v), at, "a whole number")
	}
	return []fault.Field{{Field: at, Code: "type", Detail: "cannot be set"}}
}

// holds reports whether a T can hold a value.
func holds[T any](v json.RawMessage) bool {
	var into T
	return json.Unmarshal(v, &into) == nil
}

func mustBe(ok bool, at, what string) []fault.Field {
	if ok {
		return nil
	}
	return []fault.Field{{Field: at, Code: "type", Detail: "must be " + what}}
}

// checkObject checks the members of an object; typeOf is nil for an unknown one.
func checkObject(v json.RawMessage, at string, typeOf func(name string) reflect.Type) []fault.Field {
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) != nil {
		return mustBe(false, at, "an object")
	}
	var wrong []fault.Field
	for name, value := range object {
		path := join(at, name)
		if t := typeOf(name); t != nil {
			wrong = append(wrong, check(value, t, path)...)
		} else {
			wrong = append(wrong, fault.Field{Field: path, Code: "unknown", Detail: "no such member"})
		}
	}
	return wrong
}

// MembersOf returns the JSON members of a struct, those of embedded structs included.
func MembersOf(t reflect.Type) map[string]reflect.Type {
	members := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(members, MembersOf(f.Type))
		case name != "-" && name != "" && f.IsExported():
			members[name] = f.Type
		}
	}
	return members
}

func checkSlice(v json.RawMessage, t reflect.Type, at string) []fault.Field {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return mustBe(false, at, "an array")
	}
	var wrong []fault.Field
	for i, value := range list {
		path := at + "[" + strconv.Itoa(i) + "]"
		if op.IsNull(value) && t.Elem() != typeRaw {
			wrong = append(wrong, mustBe(false, path, "a value, not null")...)
			continue
		}
		wrong = append(wrong, check(value, t.Elem(), path)...)
	}
	return wrong
}

// OrObject makes absent data an empty object.
func OrObject(data []byte) []byte {
	if len(data) == 0 || string(data) == "null" {
		return []byte("{}")
	}
	return data
}

func join(at, name string) string {
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "…"
	}
	if at == "" {
		return name
	}
	return at + "." + name
}
