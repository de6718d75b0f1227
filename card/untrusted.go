package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"nodest/fault"
)

// importer is one import: its limits and what it has to tell.
type importer struct {
	limits   Limits
	filename string
	warnings []Warning
	assets   []Asset
}

func newImporter(filename string, limits Limits) *importer {
	return &importer{filename: filename, limits: limits.withDefaults()}
}

func (im *importer) warn(path, code, format string, args ...any) {
	im.warnings = append(im.warnings, Warning{Path: path, Code: code, Detail: fmt.Sprintf(format, args...)})
}

// CheckEncoding refuses a text file in UTF-16, which Windows programs write, with
// the given code. All that is imported is UTF-8.
func CheckEncoding(data []byte, code fault.Code) error {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return fault.New(code, "the file is UTF-16; save it as UTF-8")
	}
	return nil
}

// checkFile refuses a file over the limit, without content or in UTF-16.
func (im *importer) checkFile(data []byte, code fault.Code) error {
	if len(data) > im.limits.FileBytes {
		return fault.New(fault.TooLarge, "file too large: %s", fault.OverLimit(len(data), im.limits.FileBytes))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return fault.New(code, "the file is empty")
	}
	return CheckEncoding(data, code)
}

// document checks one JSON document and returns it compact. Bytes that are no
// UTF-8 become U+FFFD; a byte order mark and NUL characters are taken out. A document
// that cannot be read gets the given code.
func (im *importer) document(data []byte, code fault.Code) (json.RawMessage, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > im.limits.JSONBytes {
		return nil, fault.New(fault.TooLarge, "JSON too large: %s", fault.OverLimit(len(data), im.limits.JSONBytes))
	}
	if !utf8.Valid(data) {
		im.warn("", "invalid_utf8", "invalid UTF-8 bytes were replaced")
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	depth, values := measure(data)
	if depth > im.limits.Depth {
		return nil, fault.New(code, "the JSON is nested more than %d levels deep", im.limits.Depth)
	}
	if values > im.limits.Values {
		return nil, fault.New(fault.TooLarge, "the JSON has more than %d values", im.limits.Values)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil, fault.Wrap(err, code, "invalid JSON: %v", err)
	}
	doc, changed := dropBadEscapes(b.Bytes())
	if changed {
		im.warn("", "invalid_character", "NUL characters and unpaired surrogates were removed")
	}
	return doc, nil
}

// measure returns how deep brackets are nested and an upper bound of the number
// of values, without checking anything else.
func measure(data []byte) (deepest, values int) {
	depth, inString := 0, false
	values = 1
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == ',':
			values++
		case c == '{' || c == '[':
			values++
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest, values
}

// maxViewEntries bounds what a view holds of one kind (entries of a book,
// prompts, scripts), whoever asks for it.
const maxViewEntries = 20_000

func checkCount(what string, n int) error {
	if n > maxViewEntries {
		return fault.New(fault.TooLarge, "%d %s, limit %d", n, what, maxViewEntries)
	}
	return nil
}

// dropBadEscapes removes \u0000 and lone surrogates from the strings of a valid
// document: PostgreSQL refuses both, and neither is text.
func dropBadEscapes(doc []byte) (clean []byte, changed bool) {
	if !bytes.Contains(doc, []byte(`\u0000`)) && !containsSurrogate(doc) {
		return doc, false
	}
	clean = make([]byte, 0, len(doc))
	for i := 0; i < len(doc); i++ {
		if doc[i] != '\\' {
			clean = append(clean, doc[i])
			continue
		}
		if doc[i+1] != 'u' {
			clean = append(clean, doc[i], doc[i+1])
			i++
			continue
		}
		n := 6
		r := hex4(doc[i+2:])
		switch {
		case r == 0, r >= 0xDC00 && r <= 0xDFFF:
			n = 0
		case r >= 0xD800 && r <= 0xDBFF:
			n = 0
			if low := doc[i+6:]; len(low) >= 6 && low[0] == '\\' && low[1] == 'u' && hex4(low[2:])>>10 == 0xDC00>>10 {
				n = 12
			}
		}
		clean = append(clean, doc[i:i+n]...)
		changed = changed || n == 0
		i += max(n, 6) - 1
	}
	return clean, changed
}

func containsSurrogate(doc []byte) bool {
	return bytes.Contains(doc, []byte(`\ud`)) || bytes.Contains(doc, []byte(`\uD`))
}

// hex4 reads four hexadecimal digits of a valid escape.
func hex4(s []byte) (r rune) {
	for _, c := range s[:4] {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r
}
