package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/internal/jsonlimit"
)

// importer is one import: its limits and what it has to tell.
type importer struct {
	limits   Limits
	filename string
	dialect  Dialect // in which what is imported will be played; "" = NodeST
	warnings []Warning
	assets   []Asset
	cover    []byte         // the picture before an archive; nil if there is none
	lists    map[string]int // limits of lists in a document, as jsonlimit has them
	swipes   int            // swipes of a chat log, so far
	room     int            // bytes that may still be unpacked of the file
	packed   bool           // the file is an image or an archive, whose size does not show what it contains
}

func newImporter(filename string, limits Limits) *importer {
	limits = limits.withDefaults()
	return &importer{filename: filename, limits: limits, room: limits.TotalBytes}
}

// maxPath is how many code points of a path a warning has: names of members may be of any length.
const maxPath = 200

func (im *importer) warn(path, code, format string, args ...any) {
	if len(path) > maxPath {
		path = clip(path, maxPath)
	}
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

func (im *importer) ask(bytes, values int) error {
	if im.limits.Room == nil {
		return nil
	}
	return im.limits.Room(bytes, values)
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
	values, err := jsonlimit.Count(data, jsonlimit.Limits{Depth: im.limits.Depth, Deep: code, Values: im.limits.Values, Lists: im.lists})
	if err == nil && im.packed {
		err = im.ask(0, values)
	}
	if err != nil {
		return nil, err
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

// Limits of every view, whatever the caller's Limits are.
const (
	maxViewEntries = 20_000 // entries of a book, prompts, scripts
	maxGreetings   = 1000   // greetings of a card: each is a swipe of every new chat
	maxKeys        = 1000   // keys of each kind in one entry of a book
	maxSwipes      = 1000   // swipes of one message of a chat log

	// maxGreetingBytes bounds what every new chat of a character stores at once.
	maxGreetingBytes = 2 << 20
)

func checkCount(what string, n, limit int) error {
	if n > limit {
		return fault.New(fault.TooLarge, "%d %s, limit %d", n, what, limit).With("limit", limit)
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
