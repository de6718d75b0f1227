package sqldb

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
)

// SQLite stores a text that is a UUID in its usual form (36 characters, lower case) as a
// BLOB of its 16 bytes, in any column for texts; of one that op.NewID made, whose last five
// bytes are zero, as the other 11. In JSON texts it stores UUIDs in this way too (PackText),
// as a BLOB that is longer. Nothing else in such a column is a BLOB, so each text is read as
// it was written, and equal texts are equal values. UUIDs have the order of their texts, after
// all other texts. PostgreSQL stores them as texts.

const (
	idBytes   = 16
	madeBytes = 11 // of an id that op.NewID made
	idChars   = 36
)

// What stands before a UUID in a packed text, by its number of bytes. A text that has one of
// these characters itself is not packed; JSON has none.
const (
	wholeID = "\x02"
	madeID  = "\x03"
)

// groups are the bytes between the hyphens of a UUID, and where their digits begin.
var groups = [...]struct{ from, to, at int }{{0, 4, 0}, {4, 6, 9}, {6, 8, 14}, {8, 10, 19}, {10, 16, 24}}

// PackID returns the 16 bytes of a UUID in its usual form; ok is false for any other text.
func PackID(text string) (id [idBytes]byte, ok bool) {
	if len(text) != idChars || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, false
	}
	for _, g := range groups {
		for i := g.from; i < g.to; i++ {
			at := g.at + 2*(i-g.from)
			high, low := digits[text[at]], digits[text[at+1]]
			if high > 15 || low > 15 {
				return id, false
			}
			id[i] = high<<4 | low
		}
	}
	return id, true
}

// digits are the values of the hexadecimal digits, 255 for other characters.
var digits = func() (values [256]byte) {
	for i := range values {
		values[i] = 255
	}
	for i, c := range "0123456789abcdef" {
		values[c] = byte(i)
	}
	return values
}()

// UnpackID is the text that PackID made id of; bytes that are missing are zero.
func UnpackID(stored []byte) string {
	var id [idBytes]byte
	copy(id[:], stored)
	var text [idChars]byte
	for i := range text {
		text[i] = '-'
	}
	for _, g := range groups {
		hex.Encode(text[g.at:], id[g.from:g.to])
	}
	return string(text[:])
}

// stored is the bytes of a UUID that are stored.
func stored(id *[idBytes]byte) []byte {
	if [idBytes - madeBytes]byte(id[madeBytes:]) == [idBytes - madeBytes]byte{} {
		return id[:madeBytes]
	}
	return id[:]
}

// PackIDs replaces the UUIDs among the arguments of a statement, and in JSON texts, by what
// SQLite stores.
func PackIDs(args []any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			if packed := packedText(text); packed != nil {
				args[i] = packed
			}
		}
	}
}

// packedText is what SQLite stores for a text that is a UUID or has some; nil = the text itself.
func packedText(text string) []byte {
	if id, ok := PackID(text); ok {
		return stored(&id)
	}
	if len(text) < idChars || text[0] != '{' && text[0] != '[' || strings.ContainsAny(text, wholeID+madeID) {
		return nil
	}
	packed := PackText(wholeID + text)
	if len(packed) > len(text) || len(packed) <= idBytes {
		return nil // no UUID is in it, or it would look like one
	}
	return packed
}

// PackText writes the UUIDs in a text as their bytes. The text must have neither U+0002 nor
// U+0003, but may begin with one.
func PackText(text string) []byte {
	b := make([]byte, 0, len(text))
	for {
		i := strings.IndexByte(text, '-')
		if i < 0 {
			return append(b, text...)
		}
		if i >= 8 && len(text) >= i-8+idChars {
			if id, ok := PackID(text[i-8 : i-8+idChars]); ok {
				mark, bytes := wholeID, stored(&id)
				if len(bytes) < idBytes {
					mark = madeID
				}
				b = append(append(append(b, text[:i-8]...), mark...), bytes...)
				text = text[i-8+idChars:]
				continue
			}
		}
		b, text = append(b, text[:i+1]...), text[i+1:]
	}
}

// UnpackText is the text of PackText.
func UnpackText(packed []byte) string {
	b := make([]byte, 0, 2*len(packed))
	for {
		i := bytes.IndexAny(packed, wholeID+madeID)
		if i < 0 {
			return string(append(b, packed...))
		}
		size := idBytes
		if packed[i] == madeID[0] {
			size = madeBytes
		}
		rest := packed[i+1:]
		size = min(size, len(rest)) // of a text that was cut
		b = append(append(b, packed[:i]...), UnpackID(rest[:size])...)
		packed = rest[size:]
	}
}

// Text reads a column of texts of either database.
type Text string

// Scan implements sql.Scanner.
func (t *Text) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*t = ""
	case string:
		*t = Text(src)
	case []byte:
		*t = Text(TextOf(src))
	default:
		return fmt.Errorf("a column of %T cannot be read as a text", src)
	}
	return nil
}

// TextOf is the text of a column for texts that a database returned as bytes.
func TextOf(b []byte) string {
	switch {
	case len(b) == idBytes || len(b) == madeBytes:
		return UnpackID(b)
	case len(b) > idBytes && b[0] == wholeID[0]:
		return UnpackText(b[1:])
	}
	return string(b)
}
