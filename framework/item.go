package framework

import (
	"cmp"
	"strings"

	"nodest/framework/keyscan"
	"nodest/llm"
)

// item is a text of the documents that can become part of a prompt. Items are
// shared between builds and never changed after they are compiled.
type item struct {
	source Source
	id     string // identifier of a prompt, key of a world-book entry
	name   string
	text   string
	role   string // as the document has it

	position int     // position of a world-book entry or a setting; noPosition for others
	order    float64 // order of a world-book entry or a setting
	depth    int     // depth of an item that is inserted into the chat
	constant bool
	filter   bool // its book asks for FilterKeyed
	keys     []string
	keyIDs   []int32 // numbers of keys in Compiled.keys; nil when constant

	why     string // it is in the prompt; "" = the other fields say so
	persona bool   // the place where a preset wants the persona's description
	disable bool   // an entry that its book has switched off
}

// placeOfChat is where the chat goes among the items of a preset.
var placeOfChat = &item{}

const (
	noPosition = -1
	beforeChar = 0
	afterChar  = 1
	beforeNote = 2
	afterNote  = 3
	atDepth    = 4
)

// roleOf reads a role of the documents. A summary has no higher rank than the chat
// that it was made from.
func roleOf(role string) llm.Role {
	switch strings.ToLower(role) {
	case "assistant", "model":
		return llm.Assistant
	case "system", RoleNarrator:
		return llm.System
	}
	return llm.User
}

// active reports whether an item is in, why, and the key that fired. Only items
// that are not constant depend on keys.
func (it *item) active(hits keyscan.Set) (why, key string, ok bool) {
	if it.constant {
		return cmp.Or(it.why, WhyConstant), "", true
	}
	for i, k := range it.keyIDs {
		if hits.Has(k) {
			return WhyKey, it.keys[i], true
		}
	}
	return "", "", false
}

func (it *item) dropped(reason string) Dropped {
	return Dropped{Source: it.source, ID: it.id, Name: it.name, Reason: reason}
}
