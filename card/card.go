package card

import (
	"encoding/json"

	"nodest/fault"
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
	Extra        json.RawMessage // top-level members of a NodeST file that we do not use, an object; see History

	Avatar     []byte // the picture file without card data; nil if there is none
	AvatarType string // media type of Avatar, e.g. "image/png"

	Greetings []string // first message, then the alternate greetings; at least one
	Warnings  []Warning
}

// Warning tells about something that an import changed, dropped or did not
// understand. The import went on.
type Warning struct {
	Path   string `json:"path"`   // of the field, e.g. "data.spec_version"; empty for the whole file
	Code   string `json:"code"`   // a word, e.g. "newer_version"
	Detail string `json:"detail"` // English, for people
}

// Limits bounds what an import may cost. A zero field means its default.
type Limits struct {
	FileBytes  int // the file as uploaded; default 32 MiB
	JSONBytes  int // one JSON document, after decoding and unpacking; default 16 MiB
	TotalBytes int // everything unpacked from one archive; default 64 MiB
	Depth      int // nesting of a JSON document; default 64
	Entries    int // members of an archive, entries of a world book, prompts, scripts; default 20,000
	Messages   int // messages of a chat log; default 200,000
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.FileBytes, 32 << 20}, {&l.JSONBytes, 16 << 20}, {&l.TotalBytes, 64 << 20},
		{&l.Depth, 64}, {&l.Entries, 20_000}, {&l.Messages, 200_000},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
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
	return nil, fault.New(fault.UnsupportedCard, "not yet")
}

// Format is a file form of a character.
type Format string

// The file forms.
const (
	PNG   Format = "png"
	JSON  Format = "json"
	CHARX Format = "charx"
)

// Spec is the version of the card that an export claims.
type Spec string

// The versions. SpecNodeST is the JSON of the NodeST app (format json only). A
// PNG always carries V2 and V3 side by side.
const (
	SpecV2     Spec = "v2"
	SpecV3     Spec = "v3"
	SpecNodeST Spec = "nodest"
)

// File is the outcome of an export.
type File struct {
	Data        []byte
	ContentType string
	Name        string // file name, safe on all systems
}

// Export writes a character as a file. An empty spec means SpecV3, for a NodeST
// character as JSON SpecNodeST.
//
// Errors: fault.Invalid for an unknown format or spec.
func Export(ch *Character, format Format, spec Spec) (*File, error) {
	return nil, fault.New(fault.Invalid, "not yet")
}
