package card

import (
	"encoding/json"
	"strings"
	"unicode"

	"nodest/card/foreign"
	"nodest/internal/fault"
)

// mirrored are the fields of data that are repeated at the top level; data takes
// precedence.
var mirrored = []string{"name", "description", "personality", "scenario", "first_mes", "mes_example", "tags"}

// promptFields are the fields of the first card version, all of them texts.
var promptFields = []string{"name", "description", "personality", "scenario", "first_mes", "mes_example"}

// importJSON reads a card document in any form. The order of the questions is
// that of SillyTavern.
func (im *importer) importJSON(doc json.RawMessage) (*Character, error) {
	o, err := parseObject(doc)
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedCard, "a character card must be a JSON object")
	}
	if foreign.ProgramOf(foreign.Doc(o.fields)) != foreign.None {
		if o.has("histories") || o.has("chats") {
			im.warn("", unusedField, "the chats in the file are not imported with the character")
		}
		return im.importForeign(foreign.Card(foreign.Doc(o.fields)))
	}
	if kind := kindOfObject(o); kind != KindCharacter && kind != KindUnknown {
		return nil, fault.New(fault.UnsupportedCard, "the file is a %s, not a character card", kind)
	}
	switch {
	case o.has("roleCard"):
		return im.importNodeST(o)
	case !absent(o.get("spec")) && o.object("data") != nil:
		return im.importSpec(o)
	case !absent(o.get("name")):
		return im.importOld(o)
	case !absent(o.get("char_name")):
		renameGradio(o)
		return im.importOld(o)
	}
	return nil, fault.New(fault.UnsupportedCard, "not a character card: it has no name, no roleCard, and no spec with data").
		With("path", "name")
}

func (im *importer) importSpec(card *object) (*Character, error) {
	data := card.object("data")
	im.checkSpec(card.fields)
	if nameOf(data) == "" && !absent(card.get("name")) {
		im.warn("data.name", "name_mirrored", "data has no name; the top-level name is used")
		data.set("name", card.get("name"))
	}
	if packed := takeBundle(data); packed != nil {
		return im.importBundle(card, data, packed)
	}
	return im.finishSpec(card, data)
}

// checkSpec warns about versions newer than ours, which are read anyway.
func (im *importer) checkSpec(f fields) {
	spec := f.text("spec", "")
	if spec != "chara_card_v2" && spec != "chara_card_v3" {
		im.warn("spec", "unknown_spec", "unknown card version %q; read as a V3 card", spec)
	}
	if f.float("spec_version", 0) > 3 {
		im.warn("spec_version", "newer_version", "made for card version %s; read as 3.0", f.text("spec_version", ""))
	}
}

// finishSpec turns a V2 or V3 card into the form in which it is stored: V3, with
// the mirrored fields written from data, and without what is private to the
// program that wrote it.
func (im *importer) finishSpec(card, data *object) (*Character, error) {
	name, err := im.cardName(data)
	if err != nil {
		return nil, err
	}
	writeSpec(card, data, SpecV3)
	doc := card.encode()
	ch := &Character{Name: name, Dialect: SillyTavern, RoleCard: doc}
	ch.RegexScripts = scriptsOfCard(doc)
	if ch.WorldBook, err = im.embeddedBook(data.get("character_book"), name); err != nil {
		return nil, err
	}
	return finish(ch)
}

// finish parses the views once, so that no unusable character is stored.
func finish(ch *Character) (*Character, error) {
	role, err := ParseRoleCard(ch.RoleCard)
	if err != nil {
		return nil, err
	}
	more, err := ExtraGreetings(ch.Extra)
	if err != nil {
		return nil, err
	}
	ch.Greetings = append(role.Greetings(), more...)
	_, err = ParseRegexScripts(ch.RegexScripts)
	return ch, err
}

// writeSpec puts data into the card under the given version and repeats the
// mirrored fields at the top. A favourite mark and the name of a chat file belong to
// the previous owner and are not exported.
func writeSpec(card, data *object, spec Spec) {
	extensions := data.objectOrNew("extensions")
	extensions.put("fav", false)
	data.put("extensions", extensions)
	if card.has("fav") {
		card.put("fav", false)
	}
	card.remove("chat")

	name, version := "chara_card_v3", "3.0"
	if spec == SpecV2 {
		name, version = "chara_card_v2", "2.0"
	}
	card.put("spec", name)
	card.put("spec_version", version)
	card.put("data", data)
	for _, key := range mirrored {
		if data.has(key) {
			card.set(key, data.get(key))
		}
	}
	if extensions.has("talkativeness") {
		card.set("talkativeness", extensions.get("talkativeness"))
	}
}

// cardName checks the name of a card and takes the characters out of it that are
// illegal in file names, as SillyTavern does.
func (im *importer) cardName(data *object) (string, error) {
	raw := data.text("name", "")
	name := fileSafe(raw)
	if name == "" {
		return "", NoName("data.name")
	}
	if name != raw {
		im.warn("data.name", "name_changed", "the name %q was changed to %q", raw, name)
		data.put("name", name)
	}
	return name, nil
}

// NoName is the error for a card without a name, which path should hold.
func NoName(path string) error {
	e := fault.New(fault.UnsupportedCard, "a character needs a name").With("path", path)
	e.Fields = []fault.Field{{Field: path, Code: "required", Detail: e.Message}}
	return e
}

// nameOf returns the name in data, without the blanks around it.
func nameOf(data *object) string { return strings.TrimSpace(data.text("name", "")) }

// fileSafe removes characters that some file system refuses.
func fileSafe(name string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune(`/\?<>:*|"`, r) {
			return -1
		}
		return r
	}, name))
}

// importOld reads a V1 card, or another flat form brought to its field names, and
// makes a V2 card of it.
func (im *importer) importOld(v1 *object) (*Character, error) {
	renameNativeTavern(v1)
	notes := v1.text("creatorcomment", v1.text("creator_notes", ""))
	v1.put("creatorcomment", strings.ReplaceAll(notes, "Creator's notes go here.", ""))
	v1.fill("creator", "")
	v1.fill("talkativeness", 0.5)
	for _, key := range promptFields {
		v1.fill(key, "")
	}
	if !startsWith(v1.get("tags"), '[') {
		v1.put("tags", append([]string{}, v1.commaTexts("tags")...))
	}
	return im.finishSpec(v1, dataOfOld(v1))
}

// dataOfOld makes the data of a V2 card. Fields of V2 at the top level of a card
// without a spec move into it.
func dataOfOld(v1 *object) *object {
	data := v1.objectOrNew("data")
	for _, key := range promptFields {
		data.set(key, v1.get(key))
	}
	v1.remove("creator_notes")
	data.set("creator_notes", v1.get("creatorcomment"))
	data.put("system_prompt", valueOr(v1.remove("system_prompt"), ""))
	data.put("post_history_instructions", valueOr(v1.remove("post_history_instructions"), ""))
	data.set("tags", v1.get("tags"))
	data.set("creator", v1.get("creator"))
	data.put("character_version", valueOr(v1.remove("character_version"), ""))
	data.put("alternate_greetings", valueOr(v1.remove("alternate_greetings"), []string{}))
	if book := v1.remove("character_book"); !absent(book) {
		data.set("character_book", book)
	}
	extensions := newObject()
	extensions.set("talkativeness", v1.get("talkativeness"))
	extensions.put("fav", false)
	extensions.put("world", valueOr(v1.get("world"), ""))
	extensions.put("depth_prompt", map[string]any{"prompt": "", "depth": 4, "role": "system"})
	if own := v1.object("extensions"); own != nil {
		copyMembers(extensions, own)
		v1.remove("extensions")
	}
	data.put("extensions", extensions)
	return data
}

func copyMembers(to, from *object) {
	if from == nil {
		return
	}
	for _, key := range from.keys {
		to.set(key, from.get(key))
	}
}

// rename moves a member to another name unless that one is taken.
func rename(o *object, from, to string) {
	if o.has(from) && !o.has(to) {
		o.set(to, o.remove(from))
	}
}

func renameGradio(o *object) {
	rename(o, "char_name", "name")
	rename(o, "char_persona", "description")
	rename(o, "char_greeting", "first_mes")
	rename(o, "world_scenario", "scenario")
	rename(o, "example_dialogue", "mes_example")
}

// renameNativeTavern gives the fields of a card of the NativeTavern app, which has a
// firstMessage, their usual names.
func renameNativeTavern(o *object) {
	if !o.has("firstMessage") {
		return
	}
	rename(o, "firstMessage", "first_mes")
	rename(o, "exampleMessages", "mes_example")
	rename(o, "exampleDialogue", "mes_example")
	rename(o, "alternateGreetings", "alternate_greetings")
	rename(o, "systemPrompt", "system_prompt")
	rename(o, "postHistoryInstructions", "post_history_instructions")
	rename(o, "version", "character_version")
	rename(o, "characterVersion", "character_version")
}

// importNodeST reads a character of the NodeST app: roleCard, worldBook, preset
// and authorNote, each kept as it is. The role card may be a V2 or V3 card.
func (im *importer) importNodeST(o *object) (*Character, error) {
	ch, err := im.nodestRole(o.remove("roleCard"), o.get("name"))
	if err != nil {
		return nil, err
	}
	ch.Dialect = NodeST
	if o.text("dialect", "") == string(SillyTavern) {
		ch.Dialect = SillyTavern
		o.remove("dialect")
	}
	for _, member := range []struct {
		key string
		doc *json.RawMessage
	}{{"worldBook", &ch.WorldBook}, {"preset", &ch.Preset}, {"authorNote", &ch.AuthorNote}} {
		if doc := o.remove(member.key); !absent(doc) {
			*member.doc = doc
		}
	}
	if scripts := o.remove("regexScripts"); startsWith(scripts, '[') {
		ch.RegexScripts = scripts
	}
	if len(o.keys) > 0 {
		ch.Extra = o.encode()
	}
	if err := checkDocuments(ch); err != nil {
		return nil, err
	}
	return finish(ch)
}

// nodestRole reads the role card of a NodeST file. The name may be next to it.
func (im *importer) nodestRole(role, nameBeside json.RawMessage) (*Character, error) {
	card, err := parseObject(role)
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedCard, "roleCard is not a JSON object").With("path", "roleCard")
	}
	if !absent(card.get("spec")) && card.object("data") != nil {
		return im.importSpec(card)
	}
	name := nameOf(card)
	if name == "" {
		name, _ = textOf(nameBeside)
	}
	if name = strings.TrimSpace(name); name == "" {
		return nil, NoName("roleCard.name")
	}
	return &Character{Name: name, RoleCard: role, RegexScripts: scriptsOfCard(role)}, nil
}

// checkDocuments refuses a character whose other documents no view can read.
func checkDocuments(ch *Character) error {
	if _, err := ParseWorldBook(ch.WorldBook, ch.Dialect); err != nil {
		return err
	}
	if _, err := ParsePreset(ch.Preset); err != nil {
		return err
	}
	_, err := ParseAuthorNote(ch.AuthorNote)
	return err
}

// present turns a JSON null into no document.
func present(doc json.RawMessage) json.RawMessage {
	if absent(doc) {
		return nil
	}
	return doc
}

// Embedded returns the world book and the regex scripts that a role card carries; nil
// for what it does not have. Only a card with a spec can carry a book.
//
// Errors: those of Import.
func Embedded(roleCard json.RawMessage) (book, scripts json.RawMessage, err error) {
	if absent(fieldsOf(roleCard)["spec"]) {
		return nil, scriptsOfCard(roleCard), nil
	}
	ch, err := Import(roleCard, "roleCard", Limits{})
	if err != nil {
		return nil, nil, err
	}
	return ch.WorldBook, ch.RegexScripts, nil
}

// scriptsOfCard returns the regex scripts that a card carries, as an array; nil
// if it has none.
func scriptsOfCard(doc json.RawMessage) json.RawMessage {
	data := fieldsOf(fieldsOf(doc)["data"])
	for _, extensions := range []json.RawMessage{
		data["extensions"],
		fieldsOf(fieldsOf(data["chara"])["data"])["extensions"], // older files of the NodeST app
	} {
		if scripts := fieldsOf(extensions)["regex_scripts"]; len(listOf(scripts)) > 0 {
			return scripts
		}
	}
	return nil
}
