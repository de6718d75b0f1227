package card

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"nodest/card/foreign"
	"nodest/card/pngfile"
)

// Kind says what a file holds.
type Kind string

// The kinds.
const (
	KindCharacter Kind = "character"
	KindWorldBook Kind = "worldbook"
	KindPreset    Kind = "preset"
	KindRegex     Kind = "regexscript"
	KindPersona   Kind = "persona"
	KindTemplate  Kind = "template"     // for text completion; kept, not used
	KindChat      Kind = "conversation" // a chat log, or an archive of a conversation
	KindSave      Kind = "save"         // a save point
	KindMemories  Kind = "memories"
	KindUnknown   Kind = ""
)

// Kinds lists the kinds that Detect tells apart.
var Kinds = []Kind{
	KindCharacter, KindWorldBook, KindPreset, KindRegex, KindPersona, KindTemplate, KindChat, KindSave, KindMemories,
}

// Formats of files, as their member format says.
const (
	FormatArchive  = "nodest.conversation"
	FormatSave     = "nodest.save"
	FormatMemories = "memory-export"
)

// Detect guesses what a file holds from its content, without checking it.
func Detect(data []byte) Kind {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch format, _, history := FormatOf(data); {
	case format == FormatArchive:
		return KindChat
	case format == FormatMemories:
		return KindMemories
	case format == FormatSave, format == "" && history:
		return KindSave
	}
	switch {
	case bytes.HasPrefix(data, []byte(pngfile.Signature)):
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
		if isPersona(o) {
			return KindPersona
		}
		return kindOfObject(o)
	}
	if isArchive(data) || foreign.IsYAML(data) {
		return KindCharacter
	}
	return KindUnknown
}

// FormatOf reads the members format and formatVersion of a JSON object, wherever they are
// in it. history reports whether it has a nodestChatHistory, as save points of the NodeST
// app do. It stops at the first damage.
func FormatOf(data []byte) (format string, version int64, history bool) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "", 0, false
	}
	for dec.More() && (format == "" || version == 0) {
		name, err := dec.Token()
		var into any = &discard{}
		switch name {
		case "format":
			into = &format
		case "formatVersion":
			into = &version
		case "nodestChatHistory":
			history = true
		}
		if err == nil {
			err = dec.Decode(into)
		}
		var wrong *json.UnmarshalTypeError // a member of another type counts as absent
		if err != nil && !errors.As(err, &wrong) {
			break
		}
	}
	return format, version, history
}

// discard reads any JSON value and keeps nothing of it.
type discard struct{}

func (discard) UnmarshalJSON([]byte) error { return nil }

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
	case foreign.ProgramOf(foreign.Doc(o.fields)) != foreign.None:
		return KindCharacter
	case hasAny(presetMembers), templateName(o) == templateSystemPrompt:
		return KindPreset
	case templateName(o) != "":
		return KindTemplate
	case o.has("name"):
		return KindCharacter
	}
	return KindUnknown
}

// isPersona reports whether o says no more than a persona does: a card has more.
func isPersona(o *object) bool {
	others := slices.ContainsFunc(o.keys, func(key string) bool {
		return !slices.Contains([]string{"name", "description", "position", "depth", "role"}, key)
	})
	return o.has("name") && o.has("description") && !others
}
