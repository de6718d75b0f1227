package sqldb

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// SQLite stores a text that is a UUID in its usual form (36 characters, lower case) as a
// BLOB of its 16 bytes, in any column for texts; of one that op.NewID made, whose last five
// bytes are zero, as the other 11. Documents are BLOBs of another length, see packJSON.
// Nothing else in such a column is a BLOB, so each text is read as it was written, and equal
// texts are equal values. UUIDs have the order of their texts, after all other texts. PostgreSQL
// stores the same bytes as a text: a mark, and a digit for each six bits (textID). Its columns for
// texts have the collation "C", the order of the bytes.

const (
	idBytes   = 16
	madeBytes = 11 // of an id that op.NewID made
	idChars   = 36
)

// textMark is what stands before such an id, and before packedJSON.
const textMark = '\x01'

// idDigits stand for 0 to 63 in an id that PostgreSQL stores, in the order of their codes. 0 and 1,
// which follow textMark in an escaped text, are not among them, nor what LIKE treats as special.
const idDigits = "23456789:;<=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

var idEncoding = base64.NewEncoding(idDigits).WithPadding(base64.NoPadding)

// base64Digits are those that functions of PostgreSQL have.
const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// IDBytes is an expression for the bytes of an id as PostgreSQL stores it; bytes that are missing
// are zero.
func IDBytes(id string) string {
	return "decode(rpad(translate(substr(" + id + ", 2), '" + idDigits + "', '" + base64Digits + "'), 24, 'A'), 'base64')"
}

// IDOfBytes is an expression for an id as PostgreSQL stores it, of its 11 or 16 bytes.
func IDOfBytes(bytes string) string {
	return "chr(1) || translate(encode(" + bytes + ", 'base64'), '" + base64Digits + "=', '" + idDigits + "')"
}

// What stands before a UUID in a packed text, by its number of bytes.
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

// StoredID returns the 11 or 16 bytes that SQLite stores of a UUID, as UnpackID reads them; nil =
// the text is no UUID in its usual form.
func StoredID(text string) []byte {
	id, ok := PackID(text)
	if !ok {
		return nil
	}
	return stored(&id)
}

// stored is the bytes of a UUID that are stored.
func stored(id *[idBytes]byte) []byte {
	if [idBytes - madeBytes]byte(id[madeBytes:]) == [idBytes - madeBytes]byte{} {
		return id[:madeBytes]
	}
	return id[:]
}

// PackIDs replaces the UUIDs among the arguments of a statement by what SQLite stores.
func PackIDs(args []any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			if id := StoredID(text); id != nil {
				args[i] = id
			}
		}
	}
}

// PackTextIDs is PackIDs for PostgreSQL.
func PackTextIDs(args []any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = textID(arg)
		case []string:
			for j, text := range arg {
				arg[j] = textID(text)
			}
		}
	}
}

// textID is what PostgreSQL stores for a text: less for a UUID.
func textID(text string) string {
	id := StoredID(text)
	if id == nil {
		return text
	}
	return string(idEncoding.AppendEncode([]byte{textMark}, id))
}

// OfPostgres is the text of a column for texts of PostgreSQL.
func OfPostgres(stored string) string {
	switch {
	case len(stored) < 2 || stored[0] != textMark:
	case stored[1] == packedJSON[0]:
		return unpackText([]byte(stored[2:]), true)
	case len(stored) == 1+idEncoding.EncodedLen(idBytes) || len(stored) == 1+idEncoding.EncodedLen(madeBytes):
		if id, err := idEncoding.DecodeString(stored[1:]); err == nil { // else it is an escaped text
			return UnpackID(id)
		}
	}
	return stored
}

// Text reads a column of texts of either database.
type Text string

// Scan implements sql.Scanner.
func (t *Text) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*t = ""
	case string:
		*t = Text(OfPostgres(src))
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
	case len(b) > 0 && b[0] == packedJSON[0]:
		return UnpackText(b[1:])
	}
	return string(b)
}
