package card

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/card/pngfile"
	"nodest/internal/fault"
)

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
// character as JSON SpecNodeST. The card formats carry a NodeST character in
// full too, so that importing any of them gives the same documents.
//
// A JSON file has no picture. A PNG of a character without an avatar, or with one that
// cannot be converted, shows a plain placeholder.
//
// Errors: fault.Invalid for an unknown format or spec.
func Export(ch *Character, format Format, spec Spec) (*File, error) {
	if spec == "" {
		spec = SpecV3
		if format == JSON && ch.Dialect == NodeST {
			spec = SpecNodeST
		}
	}
	if spec != SpecV2 && spec != SpecV3 && (spec != SpecNodeST || format != JSON) {
		return nil, fault.InvalidField("spec", "unknown", "must be v2 or v3, or nodest with format json")
	}
	switch format {
	case JSON:
		doc, err := ch.document(spec)
		if err != nil {
			return nil, err
		}
		return ExportDocument(doc, ch.Name)
	case PNG:
		return ch.exportPNG()
	case CHARX:
		return ch.exportCHARX(spec)
	}
	return nil, fault.InvalidField("format", "unknown", "must be png, json or charx")
}

func (ch *Character) exportPNG() (*File, error) {
	v2, err := ch.document(SpecV2)
	if err != nil {
		return nil, err
	}
	v3, err := ch.document(SpecV3)
	if err != nil {
		return nil, err
	}
	chunks, err := pngfile.Chunks(ch.picture())
	if err != nil {
		return nil, err
	}
	data := writePNG(chunks, cardText(keywordV2, v2), cardText(keywordV3, v3))
	return &File{Data: data, ContentType: "image/png", Name: FileName(ch.Name, ".png")}, nil
}

func (ch *Character) exportCHARX(spec Spec) (*File, error) {
	card, err := ch.card(spec)
	if err != nil {
		return nil, err
	}
	assets := ch.packedAssets(card)
	data, err := writeCHARX(card.encode(), assets)
	if err != nil {
		return nil, err
	}
	return &File{Data: data, ContentType: "application/zip", Name: FileName(ch.Name, ".charx")}, nil
}

// document returns the card document of a version.
func (ch *Character) document(spec Spec) (json.RawMessage, error) {
	if spec == SpecNodeST {
		return ch.nodestDocument(), nil
	}
	card, err := ch.card(spec)
	if err != nil {
		return nil, err
	}
	return card.encode(), nil
}

// nodestDocument returns the file form of the NodeST app.
func (ch *Character) nodestDocument() json.RawMessage {
	o := newObject()
	extra, err := parseObject(ch.Extra)
	if err == nil {
		copyMembers(o, extra)
	}
	for _, member := range []struct {
		key string
		doc json.RawMessage
	}{{"roleCard", valueOr(ch.RoleCard, map[string]any{})}, {"worldBook", ch.WorldBook}, {"preset", ch.Preset}, {"authorNote", ch.AuthorNote}} {
		if !absent(member.doc) {
			o.put(member.key, member.doc)
		}
	}
	if data := fieldsOf(fieldsOf(ch.RoleCard)["data"]); absent(ch.WorldBook) && fieldsOf(data["character_book"]) != nil {
		o.put("worldBook", map[string]any{"entries": map[string]any{}}) // or the one in the card would come back
	}
	if !ch.sameScripts(scriptsOfCard(ch.RoleCard)) {
		o.set("regexScripts", valueOr(ch.RegexScripts, []string{}))
	}
	if fieldsOf(ch.RoleCard).text("name", "") == "" && !o.has("name") {
		o.put("name", ch.Name)
	}
	if ch.Dialect == SillyTavern {
		o.put("dialect", ch.Dialect)
	}
	return o.encode()
}

// card returns the card of a version, with the working copies written back.
func (ch *Character) card(spec Spec) (*object, error) {
	card := newObject()
	if !absent(ch.RoleCard) {
		var err error
		if card, err = parseObject(ch.RoleCard); err != nil {
			return nil, fault.Wrap(err, fault.UnsupportedCard, "a role card must be a JSON object")
		}
	}
	nodestRole := absent(ch.RoleCard) || absent(card.get("spec")) || card.object("data") == nil
	if nodestRole {
		card = cardOfRole(card, ch)
	}
	data := card.object("data")
	if !sameJSON(bookFromCard(data.get("character_book"), nameOf(data)), ch.WorldBook) {
		if absent(ch.WorldBook) {
			data.remove("character_book")
		} else {
			data.set("character_book", cardFromBook(ch.WorldBook, data.get("character_book"), ch.Dialect))
		}
	}
	extensions := data.objectOrNew("extensions")
	if scripts := extensions.get("regex_scripts"); !ch.sameScripts(scripts) {
		extensions.set("regex_scripts", valueOr(ch.RegexScripts, []string{}))
		data.put("extensions", extensions)
	}
	writeSpec(card, data, spec)
	book := data.get("character_book")
	changes := conform(card, data, spec)
	addBundle(data, book, ch, nodestRole, changes)
	card.put("data", data)
	return card, nil
}

// cardOfRole makes a V2 card of a NodeST role card. The role card itself travels in
// the bundle.
func cardOfRole(role *object, ch *Character) *object {
	card, data := newObject(), newObject()
	for _, key := range promptFields {
		data.set(key, valueOr(role.get(key), ""))
	}
	if data.text("name", "") == "" {
		data.put("name", ch.Name)
	}
	greetings := fieldsOf(ch.Extra).texts("extraGreetings")
	for _, field := range []extensionField{
		{card: "creator_notes", missing: ""}, {card: "system_prompt", missing: ""},
		{card: "post_history_instructions", missing: ""}, {card: "tags", missing: []string{}},
		{card: "creator", missing: ""}, {card: "character_version", missing: ""},
		{card: "alternate_greetings", missing: append([]string{}, greetings...)},
	} {
		data.set(field.card, valueOr(role.get(field.card), field.missing))
	}
	extensions := newObject()
	copyMembers(extensions, role.objectOrNew("data").object("extensions"))
	data.put("extensions", extensions)
	card.put("spec", "")
	card.put("spec_version", "")
	card.put("data", data)
	return card
}

// sameScripts reports whether the scripts of a card are the working copy.
func (ch *Character) sameScripts(ofCard json.RawMessage) bool {
	if len(listOf(ofCard)) == 0 || len(listOf(ch.RegexScripts)) == 0 {
		return len(listOf(ofCard)) == len(listOf(ch.RegexScripts))
	}
	return sameJSON(ofCard, ch.RegexScripts)
}

// ExportDocument writes a document as a JSON file for people: indented, with a newline
// at the end, fields and their order unchanged.
func ExportDocument(doc json.RawMessage, name string) (*File, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, doc, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return &File{Data: b.Bytes(), ContentType: "application/json", Name: FileName(name, ".json")}, nil
}

// maxFileName bounds the stem of a file name, in bytes.
const maxFileName = 100

// FileName makes a file name that is safe on all systems: without characters,
// dots and reserved words that some of them refuse.
func FileName(name, extension string) string {
	name = fileSafe(withoutDirection(strings.ToValidUTF8(name, "")))
	for len(name) > maxFileName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	name = strings.Trim(name, ". ")
	switch strings.ToUpper(name) {
	case "", "CON", "PRN", "AUX", "NUL":
		name = "character" + strings.ToLower(name)
	}
	return name + extension
}

// withoutDirection removes the characters that reverse text: they can disguise a file's
// extension.
func withoutDirection(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, name)
}
