package foreign

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// you begins a line of the user in text-generation-webui, where that is the user's usual name.
var you = regexp.MustCompile(`(?m)^You:`)

func ofWebUI(d Doc) Doc {
	d.rename("context", "description", "greeting", "first_mes", "example_dialogue", "mes_example")
	if examples := d.text("mes_example"); examples != "" {
		d.put("mes_example", you.ReplaceAllString(examples, "{{user}}:"))
	}
	return d
}

// ofCAI returns the character in a file of character.ai: the file itself, the answer of its server, or what CAI
// Tools writes beside the histories. It returns nil if there is none.
func (d Doc) ofCAI() Doc {
	says := func(d Doc) bool {
		return (d.has("name") || d.has("participant__name")) &&
			(d.has("participant__name") || d.has("definition") || d.has("external_id") && (d.has("greeting") || d.has("title")))
	}
	for _, inner := range []Doc{d, d.object("character"), d.object("info"), d.object("info").object("character")} {
		if inner != nil && says(inner) {
			return inner
		}
	}
	return nil
}

// endOfDialog divides the examples in a definition.
const endOfDialog = "END_OF_DIALOG"

// ofCAI makes the card of a character.ai character. Its server sends short and long description and the definition
// alike; a definition may hold examples.
func ofCAI(file Doc) Doc {
	d := file.ofCAI()
	name := Name(file)
	d.put("name", name)
	about, examples := definition(d.text("definition"), name)
	d.put("description", joined(d.text("title"), d.text("description"), about))
	d.put("mes_example", examples)
	d.rename("greeting", "first_mes", "user__username", "creator", "participant__user__username", "creator")
	delete(d, "title")
	delete(d, "definition")
	delete(d, "participant__name")
	return d
}

// definition divides the definition of a character into what it says and its examples: parts of a dialogue in
// which the character speaks.
func definition(text, name string) (about, examples string) {
	if !strings.Contains(text, endOfDialog) {
		return text, ""
	}
	var said, spoken []string
	for part := range strings.SplitSeq(text, endOfDialog) {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
		case slices.ContainsFunc(strings.Split(part, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "{{char}}:") || strings.HasPrefix(line, name+":")
		}):
			spoken = append(spoken, "<START>\n"+part)
		default:
			said = append(said, part)
		}
	}
	return joined(said...), strings.Join(spoken, "\n")
}

func ofAgnai(d Doc) Doc {
	d.rename("greeting", "first_mes", "sampleChat", "mes_example", "alternateGreetings", "alternate_greetings",
		"systemPrompt", "system_prompt", "postHistoryInstructions", "post_history_instructions",
		"characterVersion", "character_version", "characterBook", "character_book")
	if notes := d.text("description"); notes != "" && !d.has("creator_notes") { // it is for people there
		d.put("creator_notes", notes)
	}
	persona := d.object("persona")
	d.put("description", personaText(d.text("name"), persona.text("kind"), persona.object("attributes")))
	delete(d, "persona")
	delete(d, "kind")
	if insert := d.object("insert"); insert.text("prompt") != "" {
		depth := json.RawMessage("3")
		if insert.has("depth") {
			depth = insert["depth"]
		}
		extensions := d.object("extensions")
		if extensions == nil {
			extensions = Doc{}
		}
		extensions.put("depth_prompt", map[string]any{"prompt": insert.text("prompt"), "depth": depth, "role": "system"})
		d.put("extensions", extensions)
		delete(d, "insert")
	}
	return d
}

// personaText writes the attributes of a persona as Agnai does for the model.
func personaText(name, kind string, attributes Doc) string {
	keys := slices.Sorted(maps.Keys(attributes))
	var lines []string
	quoted := func(texts []string) []string {
		all := make([]string, len(texts))
		for i, s := range texts {
			all[i] = `"` + s + `"`
		}
		return all
	}
	for _, key := range keys {
		values := attributes.texts(key)
		if len(values) == 0 {
			continue
		}
		switch kind {
		case "boostyle":
			lines = append(lines, values...)
		case "wpp":
			lines = append(lines, fmt.Sprintf("%s(%s)", key, strings.Join(quoted(values), " + ")))
		case "sbf":
			lines = append(lines, fmt.Sprintf("%s: %s", key, strings.Join(quoted(values), ", ")))
		case "text":
			lines = append(lines, strings.Join(values, "\n"))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s", key, strings.Join(values, ", ")))
		}
	}
	switch {
	case len(lines) == 0:
		return ""
	case kind == "boostyle":
		return strings.Join(append([]string{name}, lines...), " + ")
	case kind == "wpp":
		return fmt.Sprintf("[character(%q) {\n%s\n}]", name, strings.Join(lines, "\n"))
	case kind == "sbf":
		return fmt.Sprintf("[ character: %q; %s ]", name, strings.Join(lines, "; "))
	}
	return strings.Join(lines, "\n")
}

// ofRisu makes the card of a character as Risu kept it before it wrote cards. Its own lore becomes the card's book.
func ofRisu(d Doc) Doc {
	d.rename("firstMessage", "first_mes", "desc", "description", "exampleMessage", "mes_example", "creatorNotes", "creator_notes",
		"systemPrompt", "system_prompt", "alternateGreetings", "alternate_greetings", "characterVersion", "character_version",
		"postHistoryInstructions", "post_history_instructions", "replaceGlobalNote", "post_history_instructions")
	if lore := d["globalLore"]; d.has("globalLore") && !d.has("character_book") {
		d["character_book"], _ = json.Marshal(map[string]any{"type": "risu", "data": lore})
		delete(d, "globalLore")
	}
	if d.text("type") == "character" {
		delete(d, "type")
	}
	if info := d.object("additionalData"); info != nil {
		for _, key := range []string{"creator", "character_version"} {
			if !d.has(key) && info.has(key) {
				d[key] = info[key]
			}
		}
	}
	return d
}
