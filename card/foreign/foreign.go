// Package foreign brings characters of other programs to the names of a V1 card: text-generation-webui,
// character.ai, Agnai and Risu. It must not check or store a card: package card does.
package foreign

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Program is the program that a character was made for.
type Program string

// The programs. Files of Pygmalion have names of their own for the fields of a V1 card, which package card knows.
const (
	None        Program = ""
	WebUI       Program = "text-generation-webui"
	CharacterAI Program = "character.ai"
	Agnai       Program = "Agnai"
	Risu        Program = "Risu"
)

// Doc are the members of a JSON object. A member of an odd type counts as missing.
type Doc map[string]json.RawMessage

// ProgramOf tells whose character a document is; None for one that is no character, and for a card.
func ProgramOf(d Doc) Program {
	named := d.has("name")
	switch {
	case d.hasAny("roleCard", "first_mes", "char_name"), d.has("spec") && d.has("data"):
		return None
	case named && d.text("kind") == "character" && d.hasAny("persona", "greeting", "sampleChat"):
		return Agnai
	case named && d.has("firstMessage") && d.hasAny("desc", "globalLore"):
		return Risu
	case d.ofCAI() != nil:
		return CharacterAI
	case named && d.hasAny("greeting", "context"):
		return WebUI
	}
	return None
}

// Name is the name of the character in a document; "" if it has none.
func Name(d Doc) string {
	if inner := d.ofCAI(); inner != nil {
		d = inner
	}
	if name := strings.TrimSpace(d.text("name")); name != "" {
		return name
	}
	return strings.TrimSpace(d.text("participant__name"))
}

// Card gives the members of a character the names of a V1 card, with those of V2 that have no place in it beside
// them. Members that have no counterpart stay. d is not used any more.
func Card(d Doc) Doc {
	switch ProgramOf(d) {
	case WebUI:
		return ofWebUI(d)
	case CharacterAI:
		return ofCAI(d)
	case Agnai:
		return ofAgnai(d)
	case Risu:
		return ofRisu(d)
	}
	return d
}

func (d Doc) has(key string) bool { return len(d[key]) > 0 && string(d[key]) != "null" }

func (d Doc) hasAny(keys ...string) bool { return slices.ContainsFunc(keys, d.has) }

// text returns a text; "" for anything else.
func (d Doc) text(key string) string {
	var s string
	if doc := bytes.TrimSpace(d[key]); len(doc) == 0 || doc[0] != '"' || json.Unmarshal(doc, &s) != nil {
		return ""
	}
	return s
}

// object returns the members of an object; nil for anything else.
func (d Doc) object(key string) Doc {
	var inner Doc
	if doc := bytes.TrimSpace(d[key]); len(doc) == 0 || doc[0] != '{' || json.Unmarshal(doc, &inner) != nil {
		return nil
	}
	return inner
}

// texts returns the texts of a list.
func (d Doc) texts(key string) (all []string) {
	var list []json.RawMessage
	if doc := bytes.TrimSpace(d[key]); len(doc) == 0 || doc[0] != '[' || json.Unmarshal(doc, &list) != nil {
		return nil
	}
	for _, element := range list {
		if s := (Doc{"": element}).text(""); s != "" {
			all = append(all, s)
		}
	}
	return all
}

func (d Doc) put(key string, value any) {
	doc, err := json.Marshal(value)
	if err != nil {
		panic(err) // texts and numbers encode
	}
	d[key] = doc
}

// rename moves members to other names, unless these are taken. pairs are old and new names.
func (d Doc) rename(pairs ...string) Doc {
	for i := 0; i+1 < len(pairs); i += 2 {
		old, new := pairs[i], pairs[i+1]
		if d.has(old) && !d.has(new) {
			d[new] = d[old]
			delete(d, old)
		}
	}
	return d
}

// joined are the texts that say something, as paragraphs.
func joined(texts ...string) string {
	var all []string
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n\n")
}
