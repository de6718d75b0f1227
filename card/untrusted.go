package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf16"
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

// escapes match an escape of a JSON string; that of a surrogate pair is one match.
var escapes = regexp.MustCompile(`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)`)

// dropBadEscapes removes \u0000 and lone surrogates from the strings of a valid
// document: PostgreSQL refuses both, and neither is text.
func dropBadEscapes(doc []byte) (clean []byte, changed bool) {
	if !bytes.Contains(doc, []byte(`\u0000`)) && !bytes.Contains(doc, []byte(`\ud`)) && !bytes.Contains(doc, []byte(`\uD`)) {
		return doc, false
	}
	clean = escapes.ReplaceAllFunc(doc, func(escape []byte) []byte {
		if len(escape) == len(`\u0000`) {
			if r, _ := strconv.ParseUint(string(escape[2:]), 16, 16); r == 0 || utf16.IsSurrogate(rune(r)) {
				return nil
			}
		}
		return escape
	})
	return clean, len(clean) < len(doc)
}
