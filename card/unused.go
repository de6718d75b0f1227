package card

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What becomes of the fields of a card:
//
//   - in prompts: name or nickname as {{char}}, description, personality, scenario,
//     mes_example, system_prompt, post_history_instructions, extensions.depth_prompt,
//     the embedded world book;
//   - in the chat: first_mes, alternate_greetings, extensions.regex_scripts;
//   - for people, kept for export: creator_notes, tags, creator, character_version,
//     source, dates, assets and the like.
//
// warnUnused reports everything else that someone who plays the character would
// expect to have an effect.

// aboutCard are fields with texts that nobody expects in a chat.
var aboutCard = map[string]bool{
	"creator_notes": true, "creatorcomment": true, "creator": true, "character_version": true, "tags": true,
	"source": true, "creator_notes_multilingual": true, "create_date": true, "creation_date": true, "modification_date": true,
	"spec": true, "spec_version": true, "avatar": true, "chat": true, "id": true, "category": true, "world": true,
	"createdAt": true, "modifiedAt": true,
}

// usedFields are the texts of a card that prompts and greetings are made of.
var usedFields = map[string]bool{
	"name": true, "description": true, "personality": true, "scenario": true, "first_mes": true, "mes_example": true,
	"system_prompt": true, "post_history_instructions": true, "nickname": true, "alternate_greetings": true,
	"data": true, "extensions": true, "character_book": true,
}

// foreignScripts are extensions of cards that change a chat in other programs.
var foreignScripts = []string{"TavernHelper_scripts", "tavern_helper", "risuai", "agnai"}

const unusedField = "unused_field"

func (im *importer) warnUnused(ch *Character) error {
	top := fieldsOf(ch.RoleCard)
	joined := cardFields(top)
	data := fieldsOf(top["data"])
	path := func(key string) string {
		if data.has(key) {
			return "data." + key
		}
		return key
	}
	for _, key := range slices.Sorted(maps.Keys(joined)) {
		if text := joined.text(key, ""); !usedFields[key] && !aboutCard[key] && isProse(text) {
			im.warn(path(key), unusedField, "not used in prompts; kept for export only")
		}
	}
	if n := len(nonEmpty(joined.texts("group_only_greetings"))); n > 0 {
		im.warn(path("group_only_greetings"), unusedField, "group chats are not supported; %d group greetings are not used", n)
	}
	extensions := fieldsOf(joined["extensions"])
	for _, key := range foreignScripts {
		if !isEmptyDoc(extensions[key]) {
			im.warn(path("extensions")+"."+key, unusedField, "belongs to another program; has no effect here, kept for export only")
		}
	}
	if world := extensions.text("world", ""); world != "" && absent(ch.WorldBook) {
		im.warn(path("extensions")+".world", "missing_book", "the card uses the world book %q, which is not in the file; import it and bind it to the character", world)
	}
	im.warnUnusedExtra(fieldsOf(ch.Extra))
	book, err := ParseWorldBook(ch.WorldBook, ch.Dialect)
	im.warnUnusedInBook(book, "worldBook.")
	return err
}

// warnUnusedExtra is about the other members of a file of the NodeST app.
func (im *importer) warnUnusedExtra(extra fields) {
	if n := len(fieldsOf(extra["chatHistory"]).list("parts")); n > 1 {
		im.warn("chatHistory", unusedField, "the chat in the file is not imported with the character (%d messages)", n)
	}
	for _, key := range []string{"customUserName", "customUserSetting"} {
		if !isEmptyDoc(extra[key]) {
			im.warn(key, unusedField, "kept for export only; set it in the character's settings instead")
		}
	}
}

// warnUnusedInBook names the features of world-book entries that have no effect.
func (im *importer) warnUnusedInBook(b WorldBook, prefix string) {
	for _, f := range []struct {
		field, detail string
		asks          func(*Entry) bool
	}{
		{"position", "entries at this position are not used", func(e *Entry) bool { return e.Position < BeforeChar || e.Position > AtDepth }},
		{"keysecondary", "secondary keys are ignored; only the primary keys are checked", func(e *Entry) bool {
			return !e.Constant && e.Selective && len(e.KeySecondary) > 0
		}},
		{"probability", "probabilities are ignored; a matching key always triggers the entry", func(e *Entry) bool { return e.UseProbability && e.Probability < 100 }},
		{"group", "groups are ignored; every matching entry is used", func(e *Entry) bool { return e.Group != "" }},
		{"sticky", "sticky, cooldown and delay are ignored", func(e *Entry) bool {
			return above0(e.Sticky) || above0(e.Cooldown) || above0(e.Delay)
		}},
		{"vectorized", "vector matching is not supported; entries without keys are never used", func(e *Entry) bool {
			return e.Vectorized && !e.Constant && len(e.Key) == 0
		}},
		{"characterFilter", "character filters are ignored", func(e *Entry) bool { return e.Filtered }},
	} {
		n := 0
		for i := range b.Entries {
			if e := &b.Entries[i]; !e.Disable && f.asks(e) {
				n++
			}
		}
		if n > 0 {
			im.warn(prefix+"entries."+f.field, unusedField, "%s (%d of %d entries)", f.detail, n, len(b.Entries))
		}
	}
}

func above0(n *int) bool { return n != nil && *n > 0 }

// isProse tells a text for readers from an id, a date or an address.
func isProse(s string) bool {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) < 8 || strings.HasPrefix(s, "data:") || strings.Contains(s, "://") && !strings.ContainsFunc(s, unicode.IsSpace) {
		return false
	}
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
	})
}

// isEmptyDoc reports whether a document says nothing.
func isEmptyDoc(doc json.RawMessage) bool {
	switch string(bytes.TrimSpace(doc)) {
	case "", "null", "{}", "[]", `""`, "false", "0":
		return true
	}
	return false
}
