package card

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Kind says what a file holds.
type Kind string

// The kinds.
const (
	KindCharacter Kind = "character"
	KindWorldBook Kind = "worldbook"
	KindPreset    Kind = "preset"
	KindRegex     Kind = "regexscript"
	KindChat      Kind = "chat"
	KindUnknown   Kind = ""
)

// Detect guesses what a file holds from its content, without checking it.
func Detect(data []byte) Kind {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case bytes.HasPrefix(data, []byte(pngSignature)), bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return KindCharacter
	case startsWith(data, '['):
		if list := listOf(data); len(list) > 0 && fieldsOf(list[0]).has("findRegex") {
			return KindRegex
		}
		return KindUnknown
	}
	if o, err := parseObject(data); err == nil {
		var rest json.RawMessage
		if err := json.Unmarshal(data, &rest); err != nil {
			return KindChat // more than one document: lines
		}
		return kindOfObject(o)
	}
	return KindUnknown
}

// Members that tell what an object is.
var (
	cardMembers = []string{"roleCard", "char_name", "first_mes", "firstMessage", "personality", "mes_example"}
	chatMembers = []string{"chat_metadata", "data_visible", "histories", "savedsettings", "mes"}

	presetMembers = []string{"prompts", "prompt_order", "main_prompt", "jailbreak_prompt", "openai_max_context", "preset_settings"}
)

// kindOfObject tells the kinds of JSON objects apart.
func kindOfObject(o *object) Kind {
	spec := o.text("spec", "")
	hasAny := func(keys []string) bool { return slices.ContainsFunc(keys, o.has) }
	switch {
	case strings.HasPrefix(spec, "lorebook"):
		return KindWorldBook
	case spec != "" && o.has("data"), hasAny(cardMembers):
		return KindCharacter
	case bookFormat(o) != "":
		return KindWorldBook
	case o.has("findRegex"), startsWith(o.get("scripts"), '['):
		return KindRegex
	case hasAny(chatMembers), foreignChat(o) != nil:
		return KindChat
	case hasAny(presetMembers), templateName(o) != "":
		return KindPreset
	case o.has("name"):
		return KindCharacter
	}
	return KindUnknown
}
