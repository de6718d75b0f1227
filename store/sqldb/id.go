package sqldb

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// SQLite stores a text that is a UUID in its usual form (36 characters, lower case) as a
// BLOB of its 16 bytes, in any column for texts; of one that op.NewID made, whose last five
// bytes are zero, as the other 11. Documents are BLOBs of another length, see packJSON.
// Nothing else in such a column is a BLOB, so each text is read as it was written, and equal
// texts are equal values. UUIDs have the order of their texts, after all other texts.
//
// PostgreSQL stores a UUID as a text: a mark, and digits for six bits each (textID). Of a UUIDv7 the six
// bits that all have are left out: 14 digits are for its first 11 bytes, and 7 for the others if
// they are not zero. Other UUIDs have 22 digits. The first 8 are always those of the first six
// bytes, the time: those of UUIDv7 are in the order of their texts, and so are the others; between
// the two only the time counts. The columns have the collation "C", the order of the bytes.

const (
	idBytes   = 16
	madeBytes = 11 // of an id that op.NewID made
	idChars   = 36

	wholeDigits = 22
	longDigits  = 21 // of a UUIDv7
	madeDigits  = 14 // of an id that op.NewID made
)

// textMark is what stands before such an id, and before packedJSON.
const textMark = '\x01'

// idDigits stand for 0 to 63 in an id that PostgreSQL stores, in the order of their codes. 0 and 1,
// which follow textMark in an escaped text, are not among them, nor what LIKE treats as special.
const idDigits = "23456789:;<=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

var idEncoding = base64.NewEncoding(idDigits).WithPadding(base64.NoPadding)

// EndOfID is an expression for the last seven digits that PostgreSQL stores of a UUIDv7, by its last
// five bytes. Ten digits are before them, with textMark 11 characters, for the first eight bytes.
func EndOfID(bytes string) string {
	return "translate(encode(" + bytes + ", 'base64'), 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=', '" + idDigits + "')"
}

// appendDigits adds what PostgreSQL stores of a UUID, without the mark.
func appendDigits(b []byte, id *[idBytes]byte) []byte {
	if !isV7(id) {
		return idEncoding.AppendEncode(b, id[:])
	}
	first := binary.BigEndian.Uint64(id[:8])
	b = appendBits(b, first>>16<<12|first&0xfff, 10)
	b = appendBits(b, uint64(id[8]&63)<<18|uint64(id[9])<<10|uint64(id[10])<<2, 4)
	if len(stored(id)) == madeBytes {
		return b
	}
	return idEncoding.AppendEncode(b, id[madeBytes:])
}

func isV7(id *[idBytes]byte) bool { return id[6]>>4 == 7 && id[8]>>6 == 2 }

// appendBits adds n digits.
func appendBits(b []byte, bits uint64, n int) []byte {
	for n--; n >= 0; n-- {
		b = append(b, idDigits[bits>>(6*n)&63])
	}
	return b
}

// ofDigits reads what appendDigits wrote; ok is false for other texts.
func ofDigits(text string) (id [idBytes]byte, ok bool) {
	if len(text) == wholeDigits {
		_, err := idEncoding.Decode(id[:], []byte(text))
		return id, err == nil
	}
	if len(text) != longDigits && len(text) != madeDigits {
		return id, false
	}
	first, ok := ofBits(text[:10])
	next, ok2 := ofBits(text[10:madeDigits])
	_, err := idEncoding.Decode(id[madeBytes:], []byte(text[madeDigits:]))
	binary.BigEndian.PutUint64(id[:], first>>12<<16|7<<12|first&0xfff)
	id[8], id[9], id[10] = 2<<6|byte(next>>18), byte(next>>10), byte(next>>2)
	return id, ok && ok2 && err == nil
}

// ofBits reads what appendBits wrote.
func ofBits(text string) (bits uint64, ok bool) {
	for i := range len(text) {
		bit := idValues[text[i]]
		if bit > 63 {
			return 0, false
		}
		bits = bits<<6 | uint64(bit)
	}
	return bits, true
}

// idValues are the values of idDigits, 255 for other characters.
var idValues = valuesOf(idDigits)

// What stands before a UUID in a packed text, by its number of bytes.
const (
	wholeID = "\x02"
	madeID  = "\x03"

	IDMarks = wholeID + madeID
)

// IDSize is the number of bytes of the UUID that follows one of IDMarks in what PackText makes.
func IDSize(mark byte) int {
	if mark == wholeID[0] {
		return idBytes
	}
	return madeBytes
}

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
var digits = valuesOf("0123456789abcdef")

func valuesOf(digits string) (values [256]byte) {
	for i := range values {
		values[i] = 255
	}
	for i, c := range digits {
		values[c] = byte(i)
	}
	return values
}

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
	id, ok := PackID(text)
	if !ok {
		return text
	}
	b := [1 + wholeDigits]byte{textMark}
	return string(appendDigits(b[:1], &id))
}

// OfPostgres is the text of a column for texts of PostgreSQL.
func OfPostgres(stored string) string {
	switch {
	case len(stored) < 2 || stored[0] != textMark:
	case stored[1] == packedJSON[0]:
		return unpackText([]byte(stored[2:]), true)
	default:
		if id, ok := ofDigits(stored[1:]); ok { // else it is an escaped text
			return UnpackID(id[:])
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
