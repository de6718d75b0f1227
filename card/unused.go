package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An import names the members of a file that have no effect. A table (members.json) lists the
// members of each kind of object that have one, and those of which it is known what would be
// missed. Any other member that says something is named as well.

// Codes of warnings about what has no effect.
const (
	unusedField  = "unused_field"  // is known, and has no effect here
	unknownField = "unknown_field" // is not known: kept, not used
	unknownMacro = "unknown_macro" // stays in the text as it is
	unusedMacro  = "unused_macro"  // is known, and says nothing here
	unreachable  = "unreachable"   // can never be in a prompt
	regexKeyCode = "regex_key"     // a pattern, but keys are plain text
	oddKeys      = "odd_keys"      // keys in another form than a list of texts
)

// Bounds of what one warning quotes.
const (
	maxLabel  = 40 // code points of a name
	maxLabels = 3  // objects of many that have the same
	maxNames  = 8  // unknown members
	maxMacros = 12 // macros of one document that get a warning of their own
)

// labelled is an object and the name that people know it by.
type labelled struct {
	label string
	fields
}

// members are those of objects of one kind that have no effect.
type members struct {
	known kind
	at    map[string]*having
	all   int // objects
}

// having are the objects that have a member.
type having struct {
	count int
	named []string // the labels of those that have one
}

func (h *having) add(label string) {
	if h.count++; label != "" {
		h.named = append(h.named, label)
	}
}

func newMembers(of string) *members { return &members{known: kinds[of], at: map[string]*having{}} }

func (n *members) add(dialect Dialect, o labelled) {
	n.all++
	for key, value := range o.fields {
		m, known := n.known[key]
		switch {
		case m.Tavern && dialect == SillyTavern:
		case saysNothing(value) && (!m.Zero || string(value) != "0"), known && m.Why == "", !m.asks(value, o.fields):
		default:
			h := n.at[key]
			if h == nil {
				h = &having{}
				n.at[key] = h
			}
			h.add(o.label)
		}
	}
}

// unused warns about the members of objects of one kind. what names many of them: "entries".
func (im *importer) unused(path, of, what string, objects ...labelled) {
	n := newMembers(of)
	for _, o := range objects {
		n.add(im.dialect, o)
	}
	im.warnMembers(path, what, n)
}

func (im *importer) warnMembers(path, what string, n *members) {
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(n.at)) {
		if m, known := n.known[key]; known {
			im.warn(path+key, unusedField, "%s%s", m.Why, n.at[key].amongst(n.all, what))
		} else {
			unknown = append(unknown, clip(key, maxLabel))
		}
	}
	if len(unknown) > 0 {
		im.warn(path+unknown[0], unknownField, "kept, not used: %s", some(unknown, maxNames))
	}
}

// amongst says how many of all objects have something, and which; "" without a word for many.
func (h *having) amongst(all int, what string) string {
	if what == "" {
		return ""
	}
	return fmt.Sprintf(" (%d of %d %s%s)", h.count, all, what, prefixed(": ", some(h.named, maxLabels)))
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func some(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// clip bounds a text that is quoted, in code points, and keeps it on one line.
func clip(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// saysNothing reports whether a value asks for nothing.
func saysNothing(doc json.RawMessage) bool {
	switch string(bytes.TrimSpace(doc)) {
	case "", "null", "{}", "[]", `""`, "false", "0":
		return true
	}
	return false
}

type textAt struct{ path, text string }

// warnUnused warns about a character: its card, its other documents, and the rest of its file.
func (im *importer) warnUnused(ch *Character) error {
	im.dialect = ch.Dialect
	top := fieldsOf(ch.RoleCard)
	joined := cardFields(top)
	data := fieldsOf(top["data"])
	path := func(key string) string {
		if data.has(key) {
			return "data." + key
		}
		return key
	}
	im.unused("", "card", "", labelled{"", top})
	if data != nil {
		im.unused("data.", "data", "", labelled{"", data})
	}
	extensions := fieldsOf(joined["extensions"])
	im.unused(path("extensions")+".", "extensions", "", labelled{"", extensions})
	im.unused(path("extensions")+".depth_prompt.", "depthPrompt", "", labelled{"", fieldsOf(extensions["depth_prompt"])})
	var texts []textAt
	for _, key := range sentFields {
		texts = append(texts, textAt{path(key), withoutOriginal(key, joined.text(key, ""))})
	}
	for i, greeting := range joined.texts("alternate_greetings") {
		texts = append(texts, textAt{fmt.Sprintf("%s[%d]", path("alternate_greetings"), i), greeting})
	}
	depth := fieldsOf(extensions["depth_prompt"]).text("prompt", "")
	im.macros(append(texts, textAt{path("extensions") + ".depth_prompt.prompt", depth}))
	if world := extensions.text("world", ""); world != "" && absent(ch.WorldBook) {
		im.warn(path("extensions")+".world", "missing_book", "the card uses the world book %q, which is not in the file; import it and bind it to the character", clip(world, maxLabel))
	}
	im.warnUnusedExtra(fieldsOf(ch.Extra))
	im.warnCardBook(data["character_book"])
	im.warnNote(ch.AuthorNote, "authorNote.")
	if !absent(ch.Preset) {
		im.warnPreset(ch.Preset, "preset.")
	}
	im.warnScripts(ch.RegexScripts, "regexScripts.", true)
	return im.warnBook(ch.WorldBook, ch.Dialect, "worldBook.")
}

// withoutOriginal removes the macro that stands for the prompt of the preset in those of a card.
func withoutOriginal(key, text string) string {
	if key != "system_prompt" && key != "post_history_instructions" {
		return text
	}
	return originalMacro.ReplaceAllString(text, "")
}

// warnUnusedExtra is about the other members of a file of the NodeST app.
func (im *importer) warnUnusedExtra(extra fields) {
	if n := len(fieldsOf(extra["chatHistory"]).list("parts")); n > 1 {
		im.warn("chatHistory", unusedField, "the chat in the file is not imported with the character (%d messages)", n)
	}
	im.unused("", "file", "", labelled{"", extra})
}

// warnCardBook is about members of a card's own book that its working copy does not have.
func (im *importer) warnCardBook(doc json.RawMessage) {
	book := fieldsOf(doc)
	if book == nil {
		return
	}
	const path = "data.character_book."
	im.unused(path, "cardBook", "", labelled{"", book})
	im.unused(path+"extensions.", "", "", labelled{"", fieldsOf(book["extensions"])})
	var entries, extensions []labelled
	for _, e := range cardEntries(doc) {
		f := fieldsOf(e.doc)
		label := labelOf(e.id, f, "keys")
		entries = append(entries, labelled{label, f})
		extensions = append(extensions, labelled{label, fieldsOf(f["extensions"])})
	}
	im.unused(path+"entries.", "cardEntry", "entries", entries...)
	im.unused(path+"entries.extensions.", "entryExtension", "entries", extensions...)
}

// labelOf is the title of an entry, or its first key, or its place.
func labelOf(id string, f fields, keys string) string {
	label := f.text("comment", "")
	if list := keysOf(f[keys]); strings.TrimSpace(label) == "" && len(list) > 0 {
		label = list[0]
	}
	if label = clip(label, maxLabel); label == "" {
		return id
	}
	return label
}

func (im *importer) warnBook(doc json.RawMessage, dialect Dialect, path string) error {
	view, err := ParseWorldBook(doc, dialect)
	if err != nil || absent(doc) {
		return err
	}
	book, dialect := worldInfo(doc, fieldsOf(doc), dialect)
	im.dialect = dialect
	im.unused(path, "book", "", labelled{"", book})
	members, err := bookEntries(book["entries"])
	if err != nil {
		return err
	}
	byID := map[string]fields{}
	for _, m := range members {
		if byID[m.id] = fieldsOf(m.doc); isCardEntry(byID[m.id]) {
			byID[m.id] = fieldsOf(infoEntry(m))
		}
	}
	var on []labelled
	var texts []textAt
	for i := range view.Entries {
		e := &view.Entries[i]
		if !e.Disable {
			f := byID[e.ID]
			on = append(on, labelled{labelOf(e.ID, f, "key"), f})
			texts = append(texts, textAt{path + "entries." + e.ID + ".content", e.Content})
		}
	}
	im.unused(path+"entries.", "entry", "entries", on...)
	im.warnEntries(view, on, dialect, path+"entries.")
	im.macros(texts)
	return nil
}

// warnEntries is about entries that say something that is not in one member alone.
func (im *importer) warnEntries(view WorldBook, on []labelled, dialect Dialect, path string) {
	for _, c := range entryChecks {
		found, n := &having{}, 0
		for i := range view.Entries {
			if e := &view.Entries[i]; !e.Disable {
				if c.asks(e, on[n].fields, dialect) {
					found.add(on[n].label)
				}
				n++
			}
		}
		if found.count > 0 {
			im.warn(path+c.key, c.code, "%s%s", c.why, found.amongst(len(on), "entries"))
		}
	}
}

func (im *importer) warnNote(doc json.RawMessage, path string) {
	f := fieldsOf(doc)
	im.unused(path, "note", "", labelled{"", f})
	im.macros([]textAt{{path + "content", f.text("content", "")}})
}

func (im *importer) warnPreset(doc json.RawMessage, path string) {
	f := fieldsOf(doc)
	said := withoutModels(f)
	if extensions := fieldsOf(f["extensions"]); im.dialect == SillyTavern && extensions.has("regex_scripts") { // they run
		delete(extensions, "regex_scripts")
		said["extensions"] = encode(extensions)
	}
	im.unused(path, "preset", "", labelled{"", said})
	source := f.text("chat_completion_source", "openai")
	if model := f.text(source+"_model", ""); model != "" {
		im.warn(path+source+"_model", unusedField, "the model (%s) is a setting of the server, the user or the chat", clip(model, maxLabel))
	}
	im.unused(path+"generation_settings.", "preset", "", labelled{"", fieldsOf(f["generation_settings"])})
	im.unused(path+"preset_settings.", "preset", "", labelled{"", fieldsOf(f["preset_settings"])})
	var prompts []labelled
	var texts []textAt
	for i, element := range f.list("prompts") {
		p := fieldsOf(element)
		prompts = append(prompts, labelled{clip(p.text("name", p.text("identifier", "")), maxLabel), p})
		texts = append(texts, textAt{fmt.Sprintf("%sprompts[%d].content", path, i), p.text("content", "")})
	}
	im.unused(path+"prompts.", "prompt", "prompts", prompts...)
	im.macros(texts)
}

// withoutModels leaves out which model of each provider was chosen last.
func withoutModels(preset fields) fields {
	rest := maps.Clone(preset)
	maps.DeleteFunc(rest, func(key string, _ json.RawMessage) bool { return strings.HasSuffix(key, "_model") })
	return rest
}

// warnScripts is about regex scripts; ofCard are those that a card carries.
func (im *importer) warnScripts(doc json.RawMessage, path string, ofCard bool) {
	if absent(doc) {
		return
	}
	list, err := scriptList(doc)
	if err != nil {
		return
	}
	var on []labelled
	var texts []textAt
	for i, element := range list {
		f := fieldsOf(element)
		if f == nil || f.flag("disabled", false) {
			continue
		}
		if ofCard && absent(f["placement"]) {
			f["placement"] = encode([]int{PlaceAIOutput})
		}
		on = append(on, labelled{clip(f.text("scriptName", ""), maxLabel), f})
		replaced := matchMacro.ReplaceAllString(f.text("replaceString", ""), "") // no macro, or one with a warning of its own
		texts = append(texts, textAt{fmt.Sprintf("%s[%d].replaceString", strings.TrimSuffix(path, "."), i), replaced})
	}
	im.unused(path, "script", "scripts", on...)
	im.macros(texts)
}
