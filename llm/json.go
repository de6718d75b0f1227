package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"nodest/llm/loose"
)

// errNoObject is the failure of ReadObject.
var errNoObject = errors.New("the reply contains no JSON object with the expected key")

// scanBudget is how many bytes ReadObject reads in search of bare objects, so that a
// hostile reply costs milliseconds and not hours.
const scanBudget = 4 << 20

// ReadObject finds the JSON object with a top-level key that a model was asked for. It tries the
// whole reply, then the fenced blocks that are tagged json or not at all, then every object in the
// text. It ignores a byte order mark and leading thoughts, and repairs nothing else.
func ReadObject(reply, key string) (Object, error) {
	reply = WithoutThoughts(reply)
	if o := ObjectOf(reply, key); o != nil {
		return o, nil
	}
	for rest := reply; ; {
		block, after, ok := fencedBlock(rest)
		if !ok {
			break
		}
		if o := ObjectOf(WithoutThoughts(block), key); o != nil {
			return o, nil
		}
		rest = after
	}
	return scanObjects(reply, key)
}

// WithoutThoughts strips the thoughts that a reply begins with. Their opening tag is
// missing where the prompt template contains it. A reply that begins with JSON has none.
func WithoutThoughts(s string) string {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "\ufeff"))
	thoughts, behind, closed := strings.Cut(s, shutThoughts)
	if !closed || strings.HasPrefix(s, "{") || strings.LastIndex(thoughts, openThoughts) > 0 {
		return s
	}
	for s = strings.TrimSpace(behind); strings.HasPrefix(s, openThoughts); s = strings.TrimSpace(behind) {
		if _, behind, closed = strings.Cut(s, shutThoughts); !closed {
			return s
		}
	}
	return s
}

// fencedBlock returns the content of the first fenced block that may be JSON, and the
// text after it.
func fencedBlock(s string) (block, after string, ok bool) {
	const fence = "```"
	for {
		_, rest, found := strings.Cut(s, fence)
		if !found {
			return "", "", false
		}
		content, behind, closed := strings.Cut(rest, fence)
		if !closed {
			return "", "", false
		}
		tag := content[:len(content)-len(strings.TrimLeft(content, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-#"))]
		if tag == "" || strings.EqualFold(tag, "json") {
			return content[len(tag):], behind, true
		}
		s = behind
	}
}

// scanObjects tries every balanced object in the text, from left to right.
func scanObjects(s, key string) (Object, error) {
	left := scanBudget
	for at := 0; ; at++ {
		next := strings.IndexByte(s[at:], '{')
		if next < 0 || left <= 0 {
			return nil, errNoObject
		}
		at += next
		end, looked := objectEnd(s[at:])
		left -= looked
		if end == 0 {
			continue
		}
		left -= end
		if o := ObjectOf(s[at:at+end], key); o != nil {
			return o, nil
		}
	}
}

// objectEnd returns where the object at the beginning of s ends, 0 when it does
// not, and how many bytes it looked at.
func objectEnd(s string) (end, looked int) {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1, i + 1
			}
		}
	}
	return 0, len(s)
}

// Object is a JSON object whose members are read leniently: a member of another type
// counts as missing unless its meaning is clear.
type Object map[string]json.RawMessage

// ObjectOf returns nil for anything but an object, and for one without key; any
// object will do where key is empty.
func ObjectOf(text, key string) Object {
	var o Object
	if json.Unmarshal([]byte(text), &o) != nil || o == nil {
		return nil
	}
	if _, has := o[key]; key != "" && !has {
		return nil
	}
	return o
}

// List returns the elements of an array; a lone object counts as an array of one.
func (o Object) List(key string) []json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(o[key], &all) == nil {
		return all
	}
	if ObjectOf(string(o[key]), "") != nil {
		return []json.RawMessage{o[key]}
	}
	return nil
}

// Text returns a string, of a number its spelling.
func (o Object) Text(key string) string {
	var s string
	doc := bytes.TrimSpace(o[key])
	if len(doc) == 0 {
		return ""
	}
	if json.Unmarshal(doc, &s) == nil {
		return strings.TrimSpace(strings.ReplaceAll(s, "\x00", ""))
	}
	if doc[0] == '-' || doc[0] >= '0' && doc[0] <= '9' {
		return string(doc)
	}
	return ""
}

// Number returns a number, also one that is spelled as a string.
func (o Object) Number(key string) (float64, bool) {
	var n loose.Number
	if len(o[key]) == 0 || n.UnmarshalJSON(o[key]) != nil || n.Float() == nil {
		return 0, false
	}
	return *n.Float(), true
}

// Integers returns the whole numbers of an array, or a lone one.
func (o Object) Integers(key string) []int64 {
	var out []int64
	var all loose.List[loose.Number]
	if len(o[key]) > 0 && o[key][0] == '[' {
		_ = all.UnmarshalJSON(o[key]) // never fails
	} else {
		all = make([]loose.Number, 1)
		_ = all[0].UnmarshalJSON(o[key]) // never fails
	}
	for _, n := range all {
		if i, ok := n.Int(); ok {
			out = append(out, int64(i))
		}
	}
	return out
}
