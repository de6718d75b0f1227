package sqldb

import (
	"bytes"
	"strings"
)

// A packed text has marks where UUIDs and phrases of JSON are. The marks are control characters,
// which JSON does not have: a text that has one is not packed.

const (
	packedJSON = "\x02"
	filler     = '\x1f' // stands for nothing
)

// phrases are what the documents of turns have in common. Rows are written with it: it does not
// change, a better list would need another packedJSON.
var phrases = [' ']string{
	0x04: `{"promptTokens":`, 0x05: `,"completionTokens":`, // usage
	0x06: `{"accepted":`, 0x07: `,"gather":[`, 0x08: `],"sources":[{"name":"`, 0x0b: `","took":[`, // timing
	0x0c: `]}],"build":[`, 0x0e: `],"asked":`, 0x0f: `,"lastToken":`, 0x10: `]},{"name":"`,
	0x17: `{"u":"`, 0x18: `","m":"`, 0x19: `","g":"`, // answers of calls
	0x1a: `":"`, 0x1b: `","`, 0x1c: `":`, 0x1d: `,"`, 0x1e: `{"`,
}

// toPhrases writes marks for phrases; the longer ones come first.
var toPhrases = func() *strings.Replacer {
	var pairs []string
	for mark, text := range phrases {
		if text != "" {
			pairs = append(pairs, text, string(rune(mark)))
		}
	}
	return strings.NewReplacer(pairs...)
}()

// packJSON is what SQLite stores for a document: a BLOB where that is shorter.
func packJSON(text string) any {
	if strings.ContainsFunc(text, isMark) {
		return text
	}
	packed := PackText(packedJSON + toPhrases.Replace(text))
	if len(packed) == idBytes || len(packed) == madeBytes {
		packed = append(packed, filler) // an id has as many bytes
	}
	if len(packed) >= len(text) {
		return text
	}
	return packed
}

// packTextJSON is packJSON for PostgreSQL, which has texts only.
func packTextJSON(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r == textMark || isMark(r) }) {
		return text
	}
	packed := packText([]byte{textMark, packedJSON[0]}, toPhrases.Replace(text), true)
	if len(packed) >= len(text) {
		return text
	}
	return string(packed)
}

func isMark(r rune) bool {
	return r < ' ' && (r == rune(wholeID[0]) || r == rune(madeID[0]) || r == filler || phrases[r] != "")
}

// PackText writes the UUIDs in a text as their bytes. The text must not have marks of ids.
func PackText(text string) []byte { return packText(make([]byte, 0, len(text)), text, false) }

// packText adds a packed text to b; the bytes of UUIDs are in digits if asText.
func packText(b []byte, text string, asText bool) []byte {
	for {
		i := strings.IndexByte(text, '-')
		if i < 0 {
			return append(b, text...)
		}
		if i >= 8 && len(text) >= i-8+idChars {
			if id, ok := PackID(text[i-8 : i-8+idChars]); ok {
				mark, bytes := wholeID, stored(&id)
				if len(bytes) < idBytes && (!asText || isV7(&id)) {
					mark = madeID
				}
				b = append(append(b, text[:i-8]...), mark...)
				switch {
				case !asText:
					b = append(b, bytes...)
				case mark == madeID:
					b = appendDigits(b, &id)
				default:
					b = idEncoding.AppendEncode(b, id[:])
				}
				text = text[i-8+idChars:]
				continue
			}
		}
		b, text = append(b, text[:i+1]...), text[i+1:]
	}
}

// UnpackText is the text of PackText, or of a document.
func UnpackText(packed []byte) string { return unpackText(packed, false) }

func unpackText(packed []byte, asText bool) string {
	b := make([]byte, 0, 2*len(packed))
	for {
		i := bytes.IndexFunc(packed, isMark)
		if i < 0 {
			return string(append(b, packed...))
		}
		b = append(b, packed[:i]...)
		mark, rest := packed[i], packed[i+1:]
		size := 0
		switch mark {
		case wholeID[0]:
			size = idBytes
			if asText {
				size = wholeDigits
			}
		case madeID[0]:
			size = madeBytes
			if asText {
				size = madeDigits
			}
		default:
			b = append(b, phrases[mark]...)
		}
		if size > 0 {
			size = min(size, len(rest))
			id := rest[:size]
			if asText {
				whole, _ := ofDigits(string(id))
				id = whole[:]
			}
			b = append(b, UnpackID(id)...)
		}
		packed = rest[size:]
	}
}
