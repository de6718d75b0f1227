package card

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// object is a JSON object that keeps the order of its members. Of a repeated key
// the first place and the last value count, as in JavaScript.
type object struct {
	keys []string
	fields
}

func newObject() *object { return &object{fields: fields{}} }

// errNoObject reports a document of another type. Callers give it a code.
var errNoObject = errors.New("not a JSON object")

// parseObject reads one object. Its values are not looked into.
func parseObject(doc json.RawMessage) (*object, error) {
	o := newObject()
	dec := json.NewDecoder(bytes.NewReader(doc))
	t, err := dec.Token()
	if err != nil || t != json.Delim('{') {
		return nil, errNoObject
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o.set(t.(string), value)
	}
	_, err = dec.Token()
	return o, err
}

// get returns a member; nil when it is absent.
func (o *object) get(key string) json.RawMessage { return o.fields[key] }

// set replaces a member in its place, or adds it at the end.
func (o *object) set(key string, value json.RawMessage) {
	if !o.has(key) {
		o.keys = append(o.keys, key)
	}
	o.fields[key] = value
}

func (o *object) insert(at int, key string, value json.RawMessage) {
	o.keys = slices.Insert(o.keys, max(0, min(at, len(o.keys))), key)
	o.fields[key] = value
}

// put is set for a Go value; it must be one that encodes.
func (o *object) put(key string, value any) { o.set(key, encode(value)) }

// fill is put for a member that is absent.
func (o *object) fill(key string, value any) {
	if !o.has(key) {
		o.put(key, value)
	}
}

func (o *object) remove(key string) json.RawMessage {
	value, ok := o.fields[key]
	if ok {
		delete(o.fields, key)
		o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
	}
	return value
}

// object returns a member that is an object, for reading and changing; nil when
// it is not one. The change must be written back with set.
func (o *object) object(key string) *object {
	child, err := parseObject(o.get(key))
	if err != nil {
		return nil
	}
	return child
}

// objectOrNew is object, with an empty one where there is none.
func (o *object) objectOrNew(key string) *object {
	if child := o.object(key); child != nil {
		return child
	}
	return newObject()
}

func (o *object) encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(key))
		b.WriteByte(':')
		b.Write(o.fields[key])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// encode turns a Go value into JSON, without escaping < > & as json.Marshal
// does. It is for values that always encode.
func encode(value any) json.RawMessage {
	switch v := value.(type) {
	case *object:
		return v.encode()
	case json.RawMessage:
		if v == nil {
			return json.RawMessage("null")
		}
		return v
	case string:
		if isPlain(v) {
			return json.RawMessage(`"` + v + `"`)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// isPlain reports whether JSON needs no escapes to write a string.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// encodeList makes a JSON array of documents, which stay as they are written.
func encodeList(docs []json.RawMessage) json.RawMessage {
	list := json.RawMessage("[")
	for i, doc := range docs {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, doc...)
	}
	return append(list, ']')
}

// absent reports whether a document or member is missing: nothing, or null.
func absent(doc json.RawMessage) bool {
	doc = bytes.TrimSpace(doc)
	return len(doc) == 0 || string(doc) == "null"
}

// startsWith reports whether a document begins with '{', '[' or '"'.
func startsWith(doc json.RawMessage, c byte) bool {
	doc = bytes.TrimSpace(doc)
	return len(doc) > 0 && doc[0] == c
}

// sameJSON reports whether two documents mean the same and have their keys in
// the same order; white space and the spelling of strings do not count.
func sameJSON(a, b json.RawMessage) bool {
	if absent(a) || absent(b) {
		return absent(a) && absent(b)
	}
	if bytes.Equal(a, b) {
		return true
	}
	x, err := canonical(a)
	if err != nil {
		return false
	}
	y, err := canonical(b)
	return err == nil && bytes.Equal(x, y)
}

// canonical writes the tokens of a document in one spelling, which is for
// comparing and hashing only.
func canonical(doc json.RawMessage) ([]byte, error) {
	var out []byte
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case string:
			out = strconv.AppendQuote(out, t)
		default:
			out = fmt.Append(out, t) // bracket, number, bool or nil
		}
		out = append(out, ' ')
	}
}
