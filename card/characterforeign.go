package card

import (
	"maps"
	"slices"

	"nodest/card/foreign"
	"nodest/internal/fault"
)

// importYAML reads a character of text-generation-webui.
func (im *importer) importYAML(data []byte) (*Character, error) {
	doc, err := foreign.FromYAML(data)
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedCard, "the YAML of the character cannot be read")
	}
	if doc, err = im.document(doc, fault.UnsupportedCard); err != nil {
		return nil, err
	}
	return im.importJSON(doc)
}

// importForeign reads the character of another program, in the names of a V1 card. Its book gets the form of a
// card's.
func (im *importer) importForeign(d foreign.Doc) (*Character, error) {
	card := newObject()
	for _, key := range slices.Sorted(maps.Keys(d)) {
		card.set(key, d[key])
	}
	if book := card.object("character_book"); book != nil && foreignEntries[bookFormat(book)] != nil {
		ofCard, err := cardBookOf(book, bookFormat(book), book.text("name", ""))
		if err != nil {
			return nil, err
		}
		card.put("character_book", ofCard)
	}
	return im.importOld(card)
}
