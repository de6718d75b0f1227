package card

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"nodest/card/foreign"
	"nodest/card/pngfile"
	"nodest/internal/fault"
)

// Dialect names the set of rules by which a prompt is built from the documents,
// and thereby the defaults of fields that are missing in them.
type Dialect string

// The dialects. NodeST documents and characters made through the API are
// NodeST, imported SillyTavern files are SillyTavern.
const (
	NodeST      Dialect = "nodest"
	SillyTavern Dialect = "sillytavern"
)

// Character is a character with all its documents. A document that is absent is
// nil.
//
// RoleCard is the whole card as it came (for V1 to V3 in the V3 form with
// "spec" and "data"), the embedded book and scripts included. WorldBook and
// RegexScripts are working copies made from those: they are what is used and
// edited. Export writes them back into the card where they have changed.
type Character struct {
	Name         string  // as shown; never empty after Import
	Dialect      Dialect // the rules that the documents were written for
	RoleCard     json.RawMessage
	WorldBook    json.RawMessage // world info form: {"entries":{…}}
	Preset       json.RawMessage
	AuthorNote   json.RawMessage
	RegexScripts json.RawMessage // an array
	Extra        json.RawMessage // members of a NodeST file that we do not use, an object

	Avatar     []byte    // the picture file without card data; nil if there is none
	AvatarType string    // media type of Avatar: image/png, image/jpeg, image/webp or image/gif
	Assets     []Asset   // other files of a CHARX archive
	Original   *Original // how the PNG file differs that it came in; nil = it came in another one

	Greetings []string // first message, then the alternate greetings; at least one
	Warnings  []Warning
}

// Warning reports something that an import changed, dropped or did not understand
// without failing.
type Warning struct {
	Path   string `json:"path"`   // names the field, e.g. "data.spec_version"; empty for the whole file
	Code   string `json:"code"`   // a word, e.g. "newer_version"
	Detail string `json:"detail"` // English, for people
}

// Limits bounds the cost of an import. A zero field means its default. In addition,
// a view holds at most 20,000 entries of a world book, prompts or scripts, 1,000 keys of an
// entry, 1,000 greetings and 1,000 swipes of a message.
type Limits struct {
	FileBytes  int // the file as uploaded; default 32 MiB
	JSONBytes  int // one JSON document, after decoding and unpacking; default 16 MiB
	TotalBytes int // everything unpacked from one archive; default 64 MiB
	Depth      int // nesting of a JSON document; default 64
	Values     int // values in a JSON document; default 1,000,000
	Files      int // members of an archive; default 2,000
	Messages   int // messages of a chat log; default 200,000
	Swipes     int // swipes of all messages of a chat log; default 400,000
	Room       Room
}

// Room reserves memory before the content of an image or an archive is read, by its size in bytes
// and its number of JSON values. It returns an error if there is not enough. nil = no limit.
type Room func(bytes, values int) error

func (l Limits) withDefaults() Limits {
	l.FileBytes = cmp.Or(l.FileBytes, 32<<20)
	l.JSONBytes = cmp.Or(l.JSONBytes, 16<<20)
	l.TotalBytes = cmp.Or(l.TotalBytes, 64<<20)
	l.Depth = cmp.Or(l.Depth, 64)
	l.Values = cmp.Or(l.Values, 1_000_000)
	l.Files = cmp.Or(l.Files, 2000)
	l.Messages = cmp.Or(l.Messages, 200_000)
	l.Swipes = cmp.Or(l.Swipes, 400_000)
	return l
}

// Import reads a character from a file: PNG, CHARX or JSON in any of the card
// versions, or NodeST JSON. The name of the file serves only as a hint in
// messages.
//
// Errors: TooLarge over a limit; UnsupportedCard for a file that is cut, carries
// no card, or whose card has no name; InvalidWorldBook when the embedded book is
// no book.
func Import(data []byte, filename string, limits Limits) (*Character, error) {
	im := newImporter(filename, limits)
	if err := im.checkFile(data, fault.UnsupportedCard); err != nil {
		return nil, err
	}
	ch, err := im.importFile(data)
	if err != nil {
		return nil, err
	}
	ch.Assets = append(ch.Assets, im.assets...)
	ch.takeAvatar()
	if ch.Avatar == nil && im.cover != nil {
		ch.Avatar, ch.AvatarType = im.cover, pictureType(im.cover)
	}
	if err := im.warnUnused(ch); err != nil {
		return nil, err
	}
	ch.Warnings = im.warnings
	return ch, nil
}

func (im *importer) importFile(data []byte) (*Character, error) {
	switch {
	case bytes.HasPrefix(data, []byte(pngfile.Signature)):
		ch, err := im.importPNG(data)
		if fault.Is(err, fault.UnsupportedCard) && isArchive(data) {
			return im.importCHARX(data)
		}
		return ch, err
	case startsWith(bytes.TrimPrefix(data, []byte("\ufeff")), '{'):
		doc, err := im.document(data, fault.UnsupportedCard)
		if err != nil {
			return nil, err
		}
		return im.importJSON(doc)
	case isArchive(data):
		return im.importCHARX(data)
	case foreign.IsYAML(data):
		return im.importYAML(data)
	}
	return nil, fault.New(fault.UnsupportedCard, "the file is %s; a character card is a PNG image, a CHARX archive or a JSON file", describe(data))
}

// describe says in a word or two what a file is, for messages.
func describe(data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	if kind == "application/octet-stream" {
		return "of an unknown type"
	}
	return kind
}
