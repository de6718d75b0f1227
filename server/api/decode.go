package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/fault"
	"nodest/op"
)

// Decode reads one JSON object into v, a pointer to a struct. Every member
// must be known and of the right type; all that are not are named in one
// invalid_field. null means that a member is absent. Nothing may follow the object.
func Decode(data []byte, v any) error {
	tree, err := ParseJSON(data)
	if err != nil {
		return err
	}
	if _, ok := tree.(map[string]any); !ok {
		return fault.New(fault.BadRequest, "expected a JSON object")
	}
	if wrong := check(tree, reflect.TypeOf(v).Elem(), ""); len(wrong) > 0 {
		return invalid(wrong)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fault.Wrap(err, fault.Invalid, "a member has a value of the wrong type")
	}
	return nil
}

// ParseJSON reads one JSON value: UTF-8, nested at most op.MaxDepth deep, with nothing after it.
func ParseJSON(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, fault.New(fault.BadRequest, "the body is not valid UTF-8")
	}
	if op.Depth(data) > op.MaxDepth {
		return nil, fault.New(fault.BadRequest, "the JSON is nested more than %d levels deep", op.MaxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, fault.Wrap(err, fault.BadRequest, "invalid JSON: %s", syntaxDetail(err))
	}
	if dec.More() || len(bytes.TrimSpace(data[dec.InputOffset():])) > 0 {
		return nil, fault.New(fault.BadRequest, "unexpected data after the JSON value")
	}
	return tree, nil
}

// syntaxDetail is the decoder's message without the parts of the input that
// other errors would quote.
func syntaxDetail(err error) string {
	if e, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // the decoder returns it bare
		return fmt.Sprintf("error at byte %d", e.Offset)
	}
	return "unexpected end of input"
}

// mostTold limits how many wrong members one error lists: a body can have a million of
// them.
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

// check compares a JSON value with the type that will hold it. at is the path
// of the value as the client wrote it.
func check(v any, t reflect.Type, at string) []fault.Field {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil || t == typeRaw || t.Kind() == reflect.Interface {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		if t == typeTime {
			s, _ := v.(string)
			_, err := time.Parse(time.RFC3339, s)
			return mustBe(err == nil, at, "an RFC 3339 time such as 2026-01-31T12:00:00Z")
		}
		members := MembersOf(t)
		return checkObject(v, at, func(name string) reflect.Type { return members[name] })
	case reflect.Map:
		return checkObject(v, at, func(string) reflect.Type { return t.Elem() })
	case reflect.Slice:
		return checkSlice(v, t, at)
	case reflect.String:
		_, ok := v.(string)
		return mustBe(ok, at, "a string")
	case reflect.Bool:
		_, ok := v.(bool)
		return mustBe(ok, at, "true or false")
	case reflect.Float64:
		n, _ := v.(json.Number)
		f, err := n.Float64()
		return mustBe(err == nil && !math.IsInf(f, 0), at, "a number")
	case reflect.Int, reflect.Int64:
		n, _ := v.(json.Number)
		_, err := n.Int64()
		return mustBe(err == nil, at, "a whole number")
	}
	return []fault.Field{{Field: at, Code: "type", Detail: "cannot be set"}}
}

func mustBe(ok bool, at, what string) []fault.Field {
	if ok {
		return nil
	}
	return []fault.Field{{Field: at, Code: "type", Detail: "must be " + what}}
}

// checkObject checks the members of an object; typeOf is nil for an unknown one.
func checkObject(v any, at string, typeOf func(name string) reflect.Type) []fault.Field {
	object, ok := v.(map[string]any)
	if !ok {
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

// MembersOf returns the JSON members of a struct, those of embedded structs
// included.
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

func checkSlice(v any, t reflect.Type, at string) []fault.Field {
	list, ok := v.([]any)
	if !ok {
		return mustBe(false, at, "an array")
	}
	var wrong []fault.Field
	for i, value := range list {
		path := at + "[" + strconv.Itoa(i) + "]"
		if value == nil {
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
