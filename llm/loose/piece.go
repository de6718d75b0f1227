package loose

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes a JSON string as it is: bytes that are not UTF-8 stay, and so does half a
// surrogate pair, as the three bytes that UTF-8 would have for it. Another event may complete
// them. Tail puts them together.
func Unquote(quoted json.RawMessage) string {
	in := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	out := make([]byte, 0, len(in))
	for len(in) > 0 {
		at := bytes.IndexByte(in, '\\')
		if at < 0 {
			at = len(in)
		}
		out, in = append(out, in[:at]...), in[at:]
		if len(in) > 1 {
			out, in = unescape(out, in)
		}
	}
	return string(joinHalves(out))
}

// escapes are the escapes of JSON of two bytes.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends what the escape at the beginning of in stands for. It returns the rest of in.
func unescape(out, in []byte) (text, rest []byte) {
	if in[1] != 'u' {
		return append(out, escapes[in[1]]), in[2:]
	}
	unit, err := strconv.ParseUint(string(in[2:min(6, len(in))]), 16, 16)
	if err != nil { // the decoder has checked it
		return out, nil
	}
	if r := rune(unit); utf16.IsSurrogate(r) {
		out = append(out, 0xED, 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
	} else {
		out = utf8.AppendRune(out, r)
	}
	return out, in[6:]
}

// halfSize is the length of half a surrogate pair in bytes.
const halfSize = 3

// half reads half a surrogate pair at the beginning of b.
func half(b []byte) (unit rune, ok bool) {
	if len(b) < halfSize || b[0] != 0xED || b[1] < 0xA0 || b[1]&0xC0 != 0x80 || b[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), true
}

// joinHalves makes code points of the two halves of surrogate pairs that stand side by side.
func joinHalves(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		first, ok := half(b)
		if ok {
			if second, is := half(b[halfSize:]); is {
				if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
					out, b = utf8.AppendRune(out, r), b[2*halfSize:]
					continue
				}
			}
		}
		out, b = append(out, b[0]), b[1:]
	}
	return out
}

// Sound makes a text of what Unquote has left, with U+FFFD for what nothing has completed.
func Sound(b []byte) string { return strings.ToValidUTF8(string(joinHalves(b)), "\uFFFD") }

// Tail holds back the beginning of a code point that a server has cut in two. The zero value is at
// the beginning of a text.
type Tail struct{ cut []byte }

// Join returns the text that is complete when piece follows what was held back.
func (t *Tail) Join(piece []byte) string {
	if len(t.cut) > 0 {
		piece = append(t.cut, piece...)
		t.cut = nil
	}
	if n := cutOff(piece); n > 0 {
		t.cut = bytes.Clone(piece[len(piece)-n:])
		piece = piece[:len(piece)-n]
	}
	return Sound(piece)
}

// Rest returns what never became whole.
func (t *Tail) Rest() string { return Sound(t.cut) }

// cutOff returns how many bytes at the end of b begin a code point that needs more.
func cutOff(b []byte) int {
	if n := len(b) - halfSize; n >= 0 {
		if unit, ok := half(b[n:]); ok && unit < 0xDC00 { // the first half of a pair
			return halfSize
		}
	}
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		c := b[len(b)-n]
		switch {
		case c < utf8.RuneSelf:
			return 0
		case utf8.RuneStart(c):
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}
