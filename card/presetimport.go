package card

import (
	"encoding/json"
	"slices"
	"strings"

	"nodest/internal/fault"
)

// privateFields of a preset tell where requests went and with which secrets.
// They are never stored.
var privateFields = []string{
	"reverse_proxy", "proxy_password", "custom_url",
	"custom_include_body", "custom_exclude_body", "custom_include_headers",
}

func isPrivate(key string) bool {
	cloud := strings.HasPrefix(key, "vertexai_") || strings.HasPrefix(key, "azure_")
	return slices.Contains(privateFields, key) || cloud && !strings.HasSuffix(key, "_model")
}

// ImportPreset reads a chat-completion preset (NodeST or SillyTavern) or a
// system-prompt template. Addresses and passwords of proxies are dropped.
//
// Errors: TooLarge; InvalidImport, also for other templates for text completion: see
// ImportTemplate.
func ImportPreset(data []byte, filename string, limits Limits) (*Resource, error) {
	im := newImporter(filename, limits)
	doc, err := im.resource(data, fault.InvalidImport)
	if err != nil {
		return nil, err
	}
	o, err := parseObject(doc)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidImport, "a preset must be a JSON object")
	}
	preset := &Resource{Name: im.name(o.text("name", "")), Dialect: SillyTavern, Format: "sillytavern"}
	switch template := templateName(o); {
	case template == templateSystemPrompt:
		o = presetOfTexts(map[string]json.RawMessage{"main": o.get("content"), "jailbreak": o.get("post_history")})
		o.put("name", preset.Name)
	case template != "":
		return nil, fault.New(fault.InvalidImport, "the file is a template for text completion (%s), not a preset for chat completion", template)
	case kindOfObject(o) != KindPreset:
		return nil, fault.New(fault.InvalidImport, "not a preset: it has no prompts and no sampler settings").With("path", "prompts")
	case writtenByNodeST(o):
		preset.Dialect, preset.Format = NodeST, "nodest"
	}
	im.dropPrivate(o)
	moveOldTexts(o)
	preset.Doc = o.encode()
	if _, err := ParsePreset(preset.Doc); err != nil {
		return nil, err
	}
	im.dialect = preset.Dialect
	im.warnPreset(preset.Doc, "")
	preset.Warnings = im.warnings
	return preset, nil
}

// writtenByNodeST tells the two forms apart: only NodeST switches prompts on and
// off in the prompt itself, and it has no list for a character id.
func writtenByNodeST(o *object) bool {
	prompts, lists := o.list("prompts"), o.list("prompt_order")
	return len(prompts) > 0 && fieldsOf(prompts[0]).has("enable") &&
		(len(lists) == 0 || !fieldsOf(lists[0]).has("character_id"))
}

func (im *importer) dropPrivate(o *object) {
	for _, key := range slices.DeleteFunc(slices.Clone(o.keys), func(key string) bool { return !isPrivate(key) }) {
		if value, _ := textOf(o.remove(key)); value != "" && value != "false" {
			im.warn(key, "private_field", "URLs and secrets of the preset's author were removed")
		}
	}
}

// oldTexts are the prompts that old files have outside the list.
var oldTexts = map[string]string{"main_prompt": "main", "nsfw_prompt": "nsfw", "jailbreak_prompt": "jailbreak"}

// moveOldTexts updates a file from before there was a list of prompts: the texts move
// into the prompts main, nsfw and jailbreak.
func moveOldTexts(o *object) {
	texts := make(map[string]json.RawMessage)
	settings := o.object("preset_settings") // files of the TavernKit library have it
	for key, identifier := range oldTexts {
		if value := o.remove(key); !absent(value) {
			texts[identifier] = value
		} else if settings != nil && !absent(settings.get(key)) {
			texts[identifier] = settings.remove(key)
			o.put("preset_settings", settings)
		}
	}
	if len(texts) == 0 {
		return
	}
	if !startsWith(o.get("prompts"), '[') {
		copyMembers(o, presetOfTexts(texts))
		return
	}
	prompts := o.list("prompts")
	for i, element := range prompts {
		prompt, err := parseObject(element)
		if err != nil {
			continue
		}
		identifier := prompt.text("identifier", "")
		if text, ok := texts[identifier]; ok && prompt.text("content", "") == "" {
			prompt.set("content", text)
			prompts[i] = prompt.encode()
			delete(texts, identifier)
		}
	}
	for _, p := range standardPrompts {
		if text, ok := texts[p.identifier]; ok {
			prompts = append(prompts, encode(map[string]any{
				"identifier": p.identifier, "name": p.name, "role": p.role, "system_prompt": true, "content": text,
			}))
		}
	}
	o.set("prompts", encodeList(prompts))
}

// standardPrompts in the order of SillyTavern; the ones without a role are
// markers whose text comes from the card or the chat.
var standardPrompts = []struct {
	identifier, name, role string
	off                    bool
}{
	{identifier: "main", name: "Main Prompt", role: "system"},
	{identifier: "worldInfoBefore", name: "World Info (before)"},
	{identifier: "personaDescription", name: "Persona Description"},
	{identifier: "charDescription", name: "Char Description"},
	{identifier: "charPersonality", name: "Char Personality"},
	{identifier: "scenario", name: "Scenario"},
	{identifier: "enhanceDefinitions", name: "Enhance Definitions", role: "system", off: true},
	{identifier: "nsfw", name: "Auxiliary Prompt", role: "system"},
	{identifier: "worldInfoAfter", name: "World Info (after)"},
	{identifier: "dialogueExamples", name: "Chat Examples"},
	{identifier: "chatHistory", name: "Chat History"},
	{identifier: "jailbreak", name: "Post-History Instructions", role: "system"},
}

// presetOfTexts makes a preset with the standard prompts and the given texts.
func presetOfTexts(texts map[string]json.RawMessage) *object {
	var prompts, order []json.RawMessage
	for _, p := range standardPrompts {
		prompt := newObject()
		prompt.put("identifier", p.identifier)
		prompt.put("name", p.name)
		prompt.put("system_prompt", true)
		if p.role == "" {
			prompt.put("marker", true)
		} else {
			prompt.put("role", p.role)
			prompt.set("content", valueOr(texts[p.identifier], ""))
		}
		prompts = append(prompts, prompt.encode())
		item := newObject()
		item.put("identifier", p.identifier)
		item.put("enabled", !p.off)
		order = append(order, item.encode())
	}
	list := newObject()
	list.put("character_id", shownOrder)
	list.set("order", encodeList(order))

	o := newObject()
	o.set("prompts", encodeList(prompts))
	o.set("prompt_order", encodeList([]json.RawMessage{list.encode()}))
	return o
}
