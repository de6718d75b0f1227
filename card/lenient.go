package card

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// fields reads the members of an object without ever failing: a member of an odd
// type counts as missing, unless its meaning is beyond doubt.
type fields map[string]json.RawMessage

// fieldsOf returns no fields for anything but an object.
func fieldsOf(doc json.RawMessage) fields {
	var f fields
	if !startsWith(doc, '{') || json.Unmarshal(doc, &f) != nil {
		return nil
	}
	return f
}

func (f fields) has(key string) bool {
	_, ok := f[key]
	return ok
}

// text returns a string; of a number or bool its spelling. NUL characters are
// left out: databases refuse them.
func (f fields) text(key, missing string) string {
	s, ok := textOf(f[key])
	if !ok {
		return missing
	}
	return s
}

// textOr is text with a default for the empty string too.
func (f fields) textOr(key, missing string) string {
	if s := f.text(key, ""); s != "" {
		return s
	}
	return missing
}

func textOf(doc json.RawMessage) (string, bool) {
	doc = bytes.TrimSpace(doc)
	if len(doc) == 0 {
		return "", false
	}
	switch doc[0] {
	case '"':
		s := string(doc[1:max(1, len(doc)-1)])
		if isPlain(s) {
			return s, true
		}
		err := json.Unmarshal(doc, &s)
		return strings.ReplaceAll(s, "\x00", ""), err == nil
	case '{', '[', 'n':
		return "", false
	}
	return string(doc), true
}

func (f fields) number(key string) (float64, bool) {
	doc := bytes.TrimSpace(f[key])
	if len(doc) == 0 || doc[0] != '-' && (doc[0] < '0' || doc[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(doc), 64)
	return n, err == nil
}

// looseNumber takes a string that spells a number too.
func (f fields) looseNumber(key string) (float64, bool) {
	if n, ok := f.number(key); ok {
		return n, true
	}
	if !startsWith(f[key], '"') {
		return 0, false
	}
	s, _ := textOf(f[key])
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

func (f fields) float(key string, missing float64) float64 {
	if n, ok := f.looseNumber(key); ok {
		return n
	}
	return missing
}

func (f fields) int(key string, missing int) int {
	if p := f.optInt(key); p != nil {
		return *p
	}
	return missing
}

// optInt returns nil for a missing number. Fractions are cut, large numbers
// stop at ±2³¹.
func (f fields) optInt(key string) *int {
	n, ok := f.looseNumber(key)
	if !ok {
		return nil
	}
	i := int(min(max(n, math.MinInt32), math.MaxInt32))
	return &i
}

// floatWithin returns nil for a number that is missing or out of range.
func (f fields) floatWithin(key string, low, high float64) *float64 {
	if n, ok := f.looseNumber(key); ok && n >= low && n <= high {
		return &n
	}
	return nil
}

// intWithin is floatWithin for whole numbers.
func (f fields) intWithin(key string, low, high int) *int {
	if n := f.optInt(key); n != nil && *n >= low && *n <= high {
		return n
	}
	return nil
}

// flag returns a bool; numbers and the words "true" and "false" count too.
func (f fields) flag(key string, missing bool) bool {
	if p := f.optFlag(key); p != nil {
		return *p
	}
	return missing
}

func (f fields) optFlag(key string) *bool {
	s, ok := textOf(f[key])
	if !ok {
		return nil
	}
	yes := false
	switch s {
	case "true":
		yes = true
	case "false":
	default:
		n, isNumber := f.number(key)
		if !isNumber {
			return nil
		}
		yes = n != 0
	}
	return &yes
}

// list returns the elements of an array; nil for anything else.
func (f fields) list(key string) []json.RawMessage { return listOf(f[key]) }

func listOf(doc json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if !startsWith(doc, '[') || json.Unmarshal(doc, &list) != nil {
		return nil
	}
	return list
}

// texts returns the strings of an array; other elements by their spelling.
func (f fields) texts(key string) []string { return textsOf(f.list(key)) }

func textsOf(list []json.RawMessage) []string {
	var all []string
	for _, element := range list {
		if s, ok := textOf(element); ok {
			all = append(all, s)
		}
	}
	return all
}

// commaTexts is texts that also takes one string of names separated by commas.
func (f fields) commaTexts(key string) []string {
	if list := f.texts(key); list != nil {
		return list
	}
	return splitComma(f.text(key, ""))
}

func splitComma(s string) []string {
	var all []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// role reads a role that is a name or one of SillyTavern's numbers; default system.
func (f fields) role(key string) string {
	switch f.text(key, "") {
	case "1", "user":
		return "user"
	case "2", "assistant", "model":
		return "assistant"
	}
	return "system"
}
