package macro

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Vars are the variables of a chat or of a user: texts and numbers by name. As JSON they
// are an object, as in the metadata of a SillyTavern chat. Vars are not safe for concurrent use;
// nil is empty and keeps nothing.
type Vars struct {
	values  map[string]any // string or float64
	size    int            // bytes of the members of the JSON object, each with a comma
	changed bool
}

// The limits of variables: a macro that would exceed them changes nothing. So the variables that macros have made
// can always be stored.
const (
	MaxVars     = 256 << 10 // bytes of the JSON object
	MaxVarCount = 5_000
	MaxVarName  = 256      // bytes
	MaxVarValue = 64 << 10 // bytes of a text
)

// NewVars returns variables with values, which may be texts and numbers. Values of other
// kinds are kept as their JSON.
func NewVars(values map[string]any) *Vars {
	v := &Vars{values: make(map[string]any, len(values))}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name].(type) {
		case string, float64:
			v.put(name, value)
		case int:
			v.put(name, float64(value))
		case nil:
			v.put(name, "")
		default:
			v.put(name, compact(value))
		}
	}
	v.changed = false
	return v
}

// Changed reports that a macro set or removed a variable.
func (v *Vars) Changed() bool { return v != nil && v.changed }

// All returns a copy of the values: texts and float64.
func (v *Vars) All() map[string]any {
	if v == nil {
		return nil
	}
	return maps.Clone(v.values)
}

// Clone returns a copy that has not changed.
func (v *Vars) Clone() *Vars { return NewVars(v.All()) }

// MarshalJSON writes an object with sorted names.
func (v *Vars) MarshalJSON() ([]byte, error) {
	if v == nil || v.values == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(v.values)
}

// UnmarshalJSON reads an object; null is an empty one.
func (v *Vars) UnmarshalJSON(data []byte) error {
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return errors.New("variables must be an object")
	}
	*v = *NewVars(values)
	return nil
}

// Get returns the text of a variable, and whether there is one.
func (v *Vars) Get(name string) (string, bool) {
	if v == nil {
		return "", false
	}
	value, ok := v.values[name]
	return textOf(value), ok
}

// Set stores a text.
func (v *Vars) Set(name, value string) { v.put(name, value) }

// cost is the work of a use of a variable: what may be JSON is read and written anew.
func (v *Vars) cost(name string) int {
	text, _ := v.Get(name)
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return 20 * len(text)
	}
	return len(text)
}

func (v *Vars) put(name string, value any) {
	if v == nil {
		return
	}
	old, there := v.values[name]
	if there && old == value {
		return
	}
	if text, _ := value.(string); name == "" || len(name) > MaxVarName || len(text) > MaxVarValue {
		return
	}
	size := memberSize(name, value)
	if there {
		size -= memberSize(name, old)
	}
	if size > 0 && v.size+size >= MaxVars || !there && len(v.values) >= MaxVarCount { // the braces need a byte more than the commas
		return
	}
	if v.values == nil {
		v.values = map[string]any{}
	}
	v.values[name], v.changed = value, true
	v.size += size
}

func (v *Vars) remove(name string) {
	if v == nil {
		return
	}
	if old, there := v.values[name]; there {
		delete(v.values, name)
		v.size -= memberSize(name, old)
		v.changed = true
	}
}

// add adds to a variable: an element to a JSON array, a number to a number, a text to a text.
func (v *Vars) add(name, value string) {
	old, _ := v.Get(name)
	if strings.HasPrefix(strings.TrimSpace(old), "[") {
		var list []json.RawMessage
		if json.Unmarshal([]byte(old), &list) == nil {
			v.put(name, compact(append(list, json.RawMessage(compact(value)))))
			return
		}
	}
	a, numbers := number(old)
	b, isNumber := number(value)
	if sum := a + b; numbers && isNumber && !math.IsInf(sum, 0) {
		v.put(name, sum)
		return
	}
	v.put(name, old+value)
}

// subtract takes a number from a number; other values stay.
func (v *Vars) subtract(name, value string) {
	old, _ := v.Get(name)
	a, numbers := number(old)
	b, isNumber := number(value)
	if numbers && isNumber && !math.IsInf(a-b, 0) {
		v.put(name, a-b)
	}
}

// setKey sets an element of a JSON array, or a member of a JSON object. Without either, the
// variable becomes an array for a number and an object for another key.
func (v *Vars) setKey(name, key, value string) {
	old, _ := v.Get(name)
	index, err := strconv.Atoi(key)
	var list []json.RawMessage
	if isList := json.Unmarshal([]byte(old), &list) == nil && list != nil; err == nil && (isList || strings.TrimSpace(old) == "") {
		if index < 0 || index > MaxVarValue/len("null,") {
			return
		}
		for len(list) <= index {
			list = append(list, json.RawMessage("null"))
		}
		list[index] = json.RawMessage(compact(value))
		v.put(name, compact(list))
		return
	}
	if m, ok := readMembers(old); ok || strings.TrimSpace(old) == "" {
		v.put(name, m.with(key, compact(value)).json())
	}
}

// key returns an element of a JSON array or a member of a JSON object; "" = there is none.
func (v *Vars) key(name, key string) string {
	text, _ := v.Get(name)
	var list []json.RawMessage
	if json.Unmarshal([]byte(text), &list) == nil {
		if index, err := strconv.Atoi(key); err == nil && index >= 0 && index < len(list) {
			return plainJSON(list[index])
		}
		return ""
	}
	m, _ := readMembers(text)
	for _, member := range m {
		if member.name == key {
			return plainJSON([]byte(member.value))
		}
	}
	return ""
}

// members are those of a JSON object in their order.
type members []member

type member struct{ name, value string }

func readMembers(text string) (members, bool) {
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var m members
	seen := map[string]int{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		text, _ := name.(string)
		if at, twice := seen[text]; twice {
			m[at].value = string(value)
			continue
		}
		seen[text] = len(m)
		m = append(m, member{text, string(value)})
	}
	return m, true
}

func (m members) with(name, value string) members {
	for i := range m {
		if m[i].name == name {
			m[i].value = value
			return m
		}
	}
	return append(m, member{name, value})
}

func (m members) json() string {
	list := make([]string, len(m))
	for i, member := range m {
		list[i] = compact(member.name) + ":" + member.value
	}
	return "{" + strings.Join(list, ",") + "}"
}

// compact writes a value as JSON.stringify does.
func compact(value any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plainJSON is a JSON value as text: strings without quotes, null as nothing.
func plainJSON(value []byte) string {
	var s string
	switch {
	case string(value) == "null":
		return ""
	case json.Unmarshal(value, &s) == nil:
		return s
	}
	return string(value)
}

// memberSize is the size of a variable in the JSON object, with a comma.
func memberSize(name string, value any) int {
	size := textSize(name) + len(":,")
	if s, ok := value.(string); ok {
		return size + textSize(s)
	}
	n, _ := json.Marshal(value) // a finite number
	return size + len(n)
}

// textSize is the size of a text as json.Marshal writes it.
func textSize(s string) int {
	size := len(`""`)
	for i, c := range s {
		switch {
		case strings.ContainsRune("\"\\\b\f\n\r\t", c):
			size += len(`\n`)
		case c < ' ', strings.ContainsRune("<>&\u2028\u2029", c), c == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			size += len(`\u0000`)
		default:
			size += utf8.RuneLen(c)
		}
	}
	return size
}

func textOf(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case float64:
		return formatNumber(value)
	}
	return ""
}

// formatNumber writes a number as JavaScript does.
func formatNumber(n float64) string {
	if abs := math.Abs(n); abs >= 1e21 || abs < 1e-6 && abs > 0 {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(n, 'e', -1, 64), "e")
		sign, digits := exponent[:1], strings.TrimLeft(exponent[1:], "0")
		return mantissa + "e" + sign + digits
	}
	if n == 0 { // also minus zero
		return "0"
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// number reads a number as JavaScript's Number does, decimal and finite ones alone; blank is 0.
func number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, true
	}
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}
