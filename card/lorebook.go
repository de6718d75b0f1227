package card

import (
	"encoding/json"
	"strings"

	"nodest/internal/fault"
)

// Formats of world books. The first two are stored as they are, all others are
// converted.
const (
	bookWorldInfo    = "sillytavern"
	bookNodeST       = "nodest"
	bookCharacter    = "character_book"
	bookLorebookV3   = "lorebook_v3"
	bookNovelAI      = "novelai"
	bookAgnai        = "agnai"
	bookRisu         = "risu"
	bookNativeTavern = "nativetavern"
)

// bookFormat recognises a world book; "" for anything else.
func bookFormat(o *object) string {
	switch {
	case strings.HasPrefix(o.text("spec", ""), "lorebook") && o.object("data") != nil:
		return bookLorebookV3
	case o.has("lorebookVersion"):
		return bookNovelAI
	case o.text("kind", "") == "memory":
		return bookAgnai
	case o.text("type", "") == "risu" && startsWith(o.get("data"), '['):
		return bookRisu
	case startsWith(o.get("entries"), '{'):
		return formatOfEntries(o.get("entries"))
	case startsWith(o.get("entries"), '['):
		return formatOfList(o.list("entries"))
	}
	return ""
}

// formatOfEntries tells the two forms with an object of entries apart: only
// SillyTavern numbers its entries and gives them secondary keys.
func formatOfEntries(entries json.RawMessage) string {
	o, err := parseObject(entries)
	if err != nil || len(o.keys) == 0 {
		return bookNodeST
	}
	first := fieldsOf(o.get(o.keys[0]))
	if isCardEntry(first) {
		return bookCharacter
	}
	if first.has("uid") || first.has("keysecondary") || first.has("selective") {
		return bookWorldInfo
	}
	return bookNodeST
}

func formatOfList(list []json.RawMessage) string {
	if len(list) == 0 {
		return bookWorldInfo
	}
	switch first := fieldsOf(list[0]); {
	case first.has("insertionOrder"):
		return bookNativeTavern
	case isCardEntry(first):
		return bookCharacter
	}
	return bookWorldInfo
}

// isCardEntry recognises an entry in the form of a card's book.
func isCardEntry(f fields) bool {
	return !f.has("key") && (f.has("keys") || f.has("insertion_order") && f.has("enabled"))
}

// BookDialect is the dialect of a world book that does not name one: only those in the form
// of the NodeST app are NodeST.
func BookDialect(doc json.RawMessage) Dialect {
	o, err := parseObject(doc)
	if err != nil {
		return NodeST
	}
	switch bookFormat(o) {
	case "", bookNodeST:
		return NodeST
	}
	return SillyTavern
}

// worldInfo returns a book in world info form, with the dialect that it is to be read in.
func worldInfo(doc json.RawMessage, book fields, dialect Dialect) (fields, Dialect) {
	o, err := parseObject(doc)
	if err != nil {
		return book, dialect
	}
	switch format := bookFormat(o); format {
	case "", bookWorldInfo, bookNodeST:
		return book, dialect
	default:
		converted, err := convertBook(o, format, "")
		if err != nil {
			return book, dialect // its entries are no entries: as an empty book
		}
		return fieldsOf(converted), SillyTavern
	}
}

// ImportWorldBook reads a world book: SillyTavern, NodeST, an embedded
// character_book, lorebook_v3, NovelAI, Agnai, Risu or NativeTavern. The first
// two stay as they are; the others are converted to world info and kept whole as
// originalData.
//
// Errors: TooLarge, InvalidWorldBook.
func ImportWorldBook(data []byte, filename string, limits Limits) (*Resource, error) {
	im := newImporter(filename, limits)
	doc, err := im.resource(data, fault.InvalidWorldBook)
	if err != nil {
		return nil, err
	}
	o, err := parseObject(doc)
	if err != nil {
		return nil, invalidBook("file", "a world book must be a JSON object")
	}
	format := bookFormat(o)
	if format == "" {
		return nil, invalidBook("entries", "missing; unknown world book format")
	}
	name := o.text("name", fieldsOf(o.get("data")).text("name", "")) // lorebook_v3 has it inside
	book := &Resource{Name: im.name(name), Format: format, Dialect: SillyTavern, Doc: doc}
	switch format {
	case bookNodeST:
		book.Dialect = NodeST
	case bookWorldInfo:
	default:
		if book.Doc, err = convertBook(o, format, book.Name); err != nil {
			return nil, err
		}
	}
	if err := im.warnBook(book.Doc, book.Dialect, ""); err != nil {
		return nil, err
	}
	book.Warnings = im.warnings
	return book, nil
}

// convertBook converts a foreign book to the form of a card's book, and that to world
// info.
func convertBook(o *object, format, name string) (json.RawMessage, error) {
	cardBook, err := cardBookOf(o, format, name)
	if err != nil {
		return nil, err
	}
	converted, err := parseObject(bookFromCard(cardBook.encode(), name))
	if err != nil {
		return nil, err
	}
	converted.set("originalData", o.encode())
	return converted.encode(), nil
}

// cardBookOf converts a foreign book to the form of a card's book.
func cardBookOf(o *object, format, name string) (*object, error) {
	source := o
	list := o.get("entries")
	switch format {
	case bookLorebookV3:
		source = o.object("data")
		list = source.get("entries")
	case bookRisu:
		list = o.get("data")
	}
	members, err := bookEntries(list)
	if err == nil {
		err = checkCount("entries in the world book", len(members), maxViewEntries)
	}
	if err != nil {
		return nil, err
	}
	cardBook := newObject()
	copyMembers(cardBook, source)
	if convert := foreignEntries[format]; convert != nil {
		entries := make([]json.RawMessage, 0, len(members))
		for _, m := range members {
			if f := fieldsOf(m.doc); f != nil {
				entries = append(entries, convert(f).encode())
			}
		}
		cardBook.set("entries", encodeList(entries))
	}
	cardBook.put("name", name)
	return cardBook, nil
}

// foreignEntries holds one function per foreign form; each makes an entry of a
// card's book.
var foreignEntries = map[string]func(fields) *object{
	bookNovelAI: func(f fields) *object {
		return cardBookEntry(map[string]json.RawMessage{
			"keys": f["keys"], "content": f["text"], "comment": f["displayName"], "enabled": f["enabled"],
			"insertion_order": fieldsOf(f["contextConfig"])["budgetPriority"],
		})
	},
	bookAgnai: func(f fields) *object {
		return cardBookEntry(map[string]json.RawMessage{
			"keys": f["keywords"], "content": f["entry"], "comment": f["name"], "enabled": f["enabled"],
			"insertion_order": f["weight"],
		})
	},
	bookRisu: func(f fields) *object {
		entry := cardBookEntry(map[string]json.RawMessage{
			"keys":           encode(append([]string{}, f.commaTexts("key")...)),
			"secondary_keys": encode(append([]string{}, f.commaTexts("secondkey")...)),
			"content":        f["content"], "comment": f["comment"],
			"constant": f["alwaysActive"], "selective": f["selective"], "insertion_order": f["insertorder"],
		})
		if percent := f["activationPercent"]; !absent(percent) {
			entry.put("extensions", map[string]any{"probability": percent, "useProbability": true})
		}
		return entry
	},
	bookNativeTavern: func(f fields) *object {
		entry := cardBookEntry(map[string]json.RawMessage{
			"keys": f["keys"], "secondary_keys": f["secondaryKeys"], "content": f["content"], "comment": f["comment"],
			"enabled": f["enabled"], "constant": f["constant"], "selective": f["selective"],
			"insertion_order": f["insertionOrder"],
		})
		extensions := newObject()
		for _, field := range extensionFields {
			if value := f[field.info]; !absent(value) {
				extensions.set(field.card, value)
			}
		}
		if position := f["position"]; !absent(position) {
			extensions.set("position", position)
		}
		entry.put("extensions", extensions)
		return entry
	},
}

// cardBookEntry makes an entry before the character of the members that are
// there.
func cardBookEntry(members map[string]json.RawMessage) *object {
	entry := newObject()
	for _, key := range []string{"keys", "secondary_keys", "content", "comment", "enabled", "constant", "selective", "insertion_order"} {
		if value := members[key]; !absent(value) {
			entry.set(key, value)
		}
	}
	entry.put("position", "before_char")
	return entry
}
