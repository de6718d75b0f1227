package card

import (
	"encoding/json"
	"math"
	"strconv"
)

// extensionField is a field of a world-info entry that an entry of a card's book
// carries in its extensions.
type extensionField struct {
	info, card string
	missing    any // the value where a card's entry lacks it
}

// extensionFields in the order in which SillyTavern writes them.
var extensionFields = []extensionField{
	{"excludeRecursion", "exclude_recursion", false},
	{"preventRecursion", "prevent_recursion", false},
	{"delayUntilRecursion", "delay_until_recursion", false},
	{"probability", "probability", 100},
	{"useProbability", "useProbability", true},
	{"depth", "depth", 4},
	{"selectiveLogic", "selectiveLogic", 0},
	{"outletName", "outlet_name", ""},
	{"group", "group", ""},
	{"groupOverride", "group_override", false},
	{"groupWeight", "group_weight", 100},
	{"scanDepth", "scan_depth", nil},
	{"caseSensitive", "case_sensitive", nil},
	{"matchWholeWords", "match_whole_words", nil},
	{"useGroupScoring", "use_group_scoring", nil},
	{"automationId", "automation_id", ""},
	{"role", "role", 0},
	{"vectorized", "vectorized", false},
	{"sticky", "sticky", nil},
	{"cooldown", "cooldown", nil},
	{"delay", "delay", nil},
	{"triggers", "triggers", []string{}},
	{"ignoreBudget", "ignore_budget", false},
	{"matchPersonaDescription", "match_persona_description", false},
	{"matchCharacterDescription", "match_character_description", false},
	{"matchCharacterPersonality", "match_character_personality", false},
	{"matchCharacterDepthPrompt", "match_character_depth_prompt", false},
	{"matchScenario", "match_scenario", false},
	{"matchCreatorNotes", "match_creator_notes", false},
}

// plainFields have the same meaning in both forms, outside the extensions.
var plainFields = []extensionField{
	{"key", "keys", []string{}},
	{"keysecondary", "secondary_keys", []string{}},
	{"comment", "comment", ""},
	{"content", "content", ""},
	{"constant", "constant", false},
	{"selective", "selective", false},
}

// embeddedBook makes the world book of a character from the one in its card; nil
// if it has none. A book of an unknown form stays in the card, with a warning.
func (im *importer) embeddedBook(book json.RawMessage, name string) (json.RawMessage, error) {
	if absent(book) {
		return nil, nil
	}
	f := fieldsOf(book)
	if f == nil || !absent(f["entries"]) && !startsWith(f["entries"], '[') && !startsWith(f["entries"], '{') {
		im.warn("data.character_book", "invalid_world_book", "the embedded world book is not a valid world book and is not used")
		return nil, nil
	}
	// Each entry grows to a full entry of world info: count before converting.
	if err := checkCount("entries in the world book", len(cardEntries(book)), maxViewEntries); err != nil {
		return nil, err
	}
	converted := bookFromCard(book, name)
	_, err := ParseWorldBook(converted, SillyTavern)
	return converted, err
}

// bookFromCard converts a card's book to world info; nil if there is none.
// Values of odd types are passed on as they are. A book without a name is called
// after the character, whose name is stripped as in a file name.
func bookFromCard(cardBook json.RawMessage, character string) json.RawMessage {
	f := fieldsOf(cardBook)
	if f == nil {
		return nil
	}
	entries := newObject()
	for _, e := range cardEntries(cardBook) {
		entries.set(e.id, infoEntry(e))
	}
	book := newObject()
	book.put("name", f.textOr("name", fileSafe(character)+"'s Lorebook"))
	book.put("entries", entries)
	return book.encode()
}

// cardEntries lists the entries of a card's book under the keys that they get in
// world info: the id, or the place where it is missing or taken.
func cardEntries(cardBook json.RawMessage) []bookEntry {
	members, err := bookEntries(fieldsOf(cardBook)["entries"])
	if err != nil {
		return nil
	}
	taken := make(map[string]bool, len(members))
	entries := make([]bookEntry, 0, len(members))
	next := len(members)
	for i, m := range members {
		f := fieldsOf(m.doc)
		if f == nil {
			continue
		}
		id := f.text("id", strconv.Itoa(i))
		for taken[id] {
			id = strconv.Itoa(next)
			next++
		}
		taken[id] = true
		entries = append(entries, bookEntry{id, m.doc})
	}
	return entries
}

// infoEntry converts one entry of a card's book to world info.
func infoEntry(e bookEntry) json.RawMessage {
	f := fieldsOf(e.doc)
	if f.has("key") && !f.has("keys") {
		return e.doc // it is one of world info
	}
	extensions := fieldsOf(f["extensions"])
	entry := newObject()
	entry.put("uid", numberOr(e.id, e.id))
	for _, field := range plainFields {
		entry.put(field.info, valueOr(f[field.card], field.missing))
	}
	if order := f["insertion_order"]; !absent(order) {
		entry.set("order", order)
	}
	entry.put("position", infoPosition(f, extensions))
	entry.put("disable", !f.flag("enabled", true))
	entry.put("addMemo", f.text("comment", "") != "")
	for _, field := range extensionFields {
		entry.put(field.info, valueOr(extensions[field.card], field.missing))
	}
	if index := extensions["display_index"]; !absent(index) {
		entry.set("displayIndex", index)
	}
	return entry.encode()
}

// numberOr is a key as a number, which the specification of cards asks for, or another
// value where it is none.
func numberOr(key string, other any) any {
	if rank := propertyRank(key); rank != math.MaxUint64 {
		return rank
	}
	return other
}

// valueOr returns a member, or the default where it is missing. Null counts as
// missing only where the default says more than null.
func valueOr(value json.RawMessage, missing any) json.RawMessage {
	if absent(value) {
		return encode(missing)
	}
	return value
}

// infoPosition prefers the number in the extensions; the two words of the card
// specification know only before and after.
func infoPosition(f, extensions fields) int {
	if p := extensions.optInt("position"); p != nil {
		return *p
	}
	if f.text("position", "") == "before_char" {
		return int(BeforeChar)
	}
	return int(AfterChar)
}

// cardFromBook converts a world book to the form in which cards carry it. It keeps
// the unknown fields of base, an earlier book of the same card.
func cardFromBook(worldBook, base json.RawMessage, dialect Dialect) json.RawMessage {
	book, err := parseObject(base)
	if err != nil {
		book = newObject()
	}
	earlier := make(map[string]json.RawMessage)
	for _, e := range cardEntries(base) {
		earlier[e.id] = e.doc
	}
	f, _ := worldInfo(worldBook, fieldsOf(worldBook), dialect)
	if name := f.text("name", ""); name != "" {
		book.put("name", name)
	}
	book.fill("extensions", map[string]any{})
	members, err := bookEntries(f["entries"])
	if err != nil {
		members = nil // ParseWorldBook refuses such a book before it is stored
	}
	entries := make([]json.RawMessage, 0, len(members))
	for i, m := range members {
		if fieldsOf(m.doc) != nil {
			entries = append(entries, cardEntry(m, earlier[m.id], i, dialect))
		}
	}
	book.set("entries", encodeList(entries))
	return book.encode()
}

// cardEntry converts one world-info entry, written over its earlier form.
func cardEntry(m bookEntry, earlier json.RawMessage, index int, dialect Dialect) json.RawMessage {
	f := fieldsOf(m.doc)
	view := parseEntry(m.id, f, dialect)
	entry, err := parseObject(earlier)
	if err != nil {
		entry = newObject()
		entry.put("id", numberOr(m.id, index))
	}
	for _, field := range plainFields {
		entry.put(field.card, valueOr(f[field.info], field.missing))
	}
	entry.put("constant", view.Constant)
	entry.put("insertion_order", view.Order)
	entry.put("enabled", !view.Disable)
	entry.put("position", "after_char")
	if view.Position == BeforeChar {
		entry.put("position", "before_char")
	}
	entry.put("use_regex", true)

	extensions := entry.objectOrNew("extensions")
	extensions.put("position", int(view.Position))
	extensions.set("display_index", valueOr(f["displayIndex"], index))
	for _, field := range extensionFields {
		extensions.set(field.card, valueOr(f[field.info], field.missing))
	}
	extensions.put("depth", view.Depth)
	entry.put("extensions", extensions)
	return entry.encode()
}
