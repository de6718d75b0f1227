package card

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// bundleKey is our place in the extensions of a card. It carries what the card
// formats have no field for: the preset, the author's note, and documents that
// would not come back the same from their card form.
const bundleKey = "nodest"

// Members of the bundle.
const (
	bundleDialect  = "dialect"
	bundleRole     = "roleCard"  // role card of a NodeST character, as it is
	bundleBook     = "worldBook" // as it is, where its card form is not exact
	bundleBookHash = "bookHash"  // hash of the card form that belongs to worldBook
	bundlePreset   = "preset"
	bundleNote     = "authorNote"
	bundleExtra    = "extra"
	bundleFilled   = "filled" // how the card was made valid
)

// addBundle puts into data what would be lost otherwise. A character that a card
// can hold in full gets no bundle. cardBook is the book of the card before changes were made.
func addBundle(data *object, cardBook json.RawMessage, ch *Character, nodestRole bool, changes *filled) {
	b := newObject()
	if nodestRole && !absent(ch.RoleCard) {
		b.put(bundleRole, ch.RoleCard)
	}
	if !absent(ch.WorldBook) && !sameJSON(bookFromCard(cardBook, nameOf(data)), ch.WorldBook) {
		b.set(bundleBook, ch.WorldBook)
		b.put(bundleBookHash, hashJSON(cardBook))
	}
	for _, member := range []struct {
		key string
		doc json.RawMessage
	}{{bundlePreset, ch.Preset}, {bundleNote, ch.AuthorNote}, {bundleExtra, ch.Extra}} {
		if !absent(member.doc) {
			b.set(member.key, member.doc)
		}
	}
	if !changes.empty() {
		b.put(bundleFilled, changes)
	}
	if len(b.keys) == 0 && ch.Dialect == SillyTavern {
		return
	}
	b.put(bundleDialect, ch.Dialect)
	extensions := data.objectOrNew("extensions")
	extensions.put(bundleKey, b)
	data.put("extensions", extensions)
}

// takeBundle removes our bundle from data; nil if there is none.
func takeBundle(data *object) *object {
	extensions := data.object("extensions")
	if extensions == nil {
		return nil
	}
	b := extensions.object(bundleKey)
	if b == nil || !b.has(bundleDialect) {
		return nil
	}
	extensions.remove(bundleKey)
	data.put("extensions", extensions)
	var changes filled
	if json.Unmarshal(b.get(bundleFilled), &changes) == nil {
		changes.undo(data)
	}
	return b
}

// importBundle reads a card that we have written. What another program has
// changed in the card since then wins over the bundle.
func (im *importer) importBundle(card, data, b *object) (*Character, error) {
	bookUnchanged := b.has(bundleBook) && b.text(bundleBookHash, "") == hashJSON(data.get("character_book"))

	ch, err := im.bundledRole(card, data, b)
	if err != nil {
		return nil, err
	}
	ch.Dialect = SillyTavern
	if b.text(bundleDialect, "") == string(NodeST) {
		ch.Dialect = NodeST
	}
	if bookUnchanged {
		ch.WorldBook = b.get(bundleBook)
	}
	ch.Preset = present(b.get(bundlePreset))
	ch.AuthorNote = present(b.get(bundleNote))
	ch.Extra = present(b.get(bundleExtra))
	if err := checkDocuments(ch); err != nil {
		return nil, err
	}
	return finish(ch)
}

// bundledRole reads the card itself: the NodeST role card where the bundle has
// one, else the card around it.
func (im *importer) bundledRole(card, data, b *object) (*Character, error) {
	role := b.object(bundleRole)
	if role == nil {
		return im.finishSpec(card, data)
	}
	overlay(role, data)
	name := nameOf(data)
	if name == "" {
		return nil, NoName("data.name")
	}
	ch := &Character{Name: name, RoleCard: role.encode(), RegexScripts: scriptsOfCard(card.encode())}
	var err error
	ch.WorldBook, err = im.embeddedBook(data.get("character_book"), name)
	return ch, err
}

// overlay takes the prompt fields from data where they differ from those that
// the role card was exported with.
func overlay(role, data *object) {
	for _, key := range promptFields {
		if key == "name" && absent(role.get(key)) {
			continue // the card had to have one, the role card has not
		}
		if value := data.get(key); value != nil && !sameJSON(value, valueOr(role.get(key), "")) {
			role.set(key, value)
		}
	}
}

// hashJSON identifies the meaning of a document.
func hashJSON(doc json.RawMessage) string {
	text, err := canonical(doc)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
