package card

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The members of each kind of object. A member that has an effect, or of which nobody expects
// one, is in the list of names; those that are known to have none say why.

// kindOf makes a kind of the names without a warning and of the others.
func kindOf(names string, others kind) kind {
	k := kind{}
	for name := range strings.FieldsSeq(names) {
		k[name] = member{}
	}
	for name, m := range others {
		k[name] = m
	}
	return k
}

// unless is a member that asks for nothing where it has one of these values.
func unless(why string, values ...string) member {
	return member{why: why, asks: func(value json.RawMessage, _ fields) bool {
		s, ok := textOf(value)
		return !ok || !slices.Contains(values, strings.TrimSpace(s))
	}}
}

// above0 is a member that asks for something where it is a number above 0.
func above0(why string) member {
	return member{why: why, asks: func(value json.RawMessage, _ fields) bool {
		n, ok := fields{"": value}.looseNumber("")
		return ok && n > 0
	}}
}

// where is a member that asks for something where another one does.
func where(why string, asks func(of fields) bool) member {
	return member{why: why, asks: func(_ json.RawMessage, of fields) bool { return asks(of) }}
}

var (
	// sentFields are the texts of a card that are sent or begin a chat.
	sentFields = []string{
		"description", "personality", "scenario", "first_mes", "mes_example", "system_prompt", "post_history_instructions",
	}

	originalMacro = regexp.MustCompile(`(?i)\{\{original\}\}`)
	matchMacro    = regexp.MustCompile(`(?i)\{\{match\}\}`)
)

const (
	usedInCard = "name description personality scenario first_mes mes_example system_prompt post_history_instructions " +
		"nickname alternate_greetings data extensions character_book"
	aboutCard = "creator_notes creatorcomment creator character_version tags source creator_notes_multilingual create_date " +
		"creation_date modification_date spec spec_version avatar chat id category world createdAt modifiedAt fav " +
		"talkativeness json_data shallow"
)

const noGroups = "group chats are not supported"

var topKind = kindOf(usedInCard+" "+aboutCard+" group_only_greetings", nil)

var dataKind = kindOf(usedInCard+" "+aboutCard, kind{
	"group_only_greetings": {why: noGroups + "; these greetings are not used"},
	"assets": {why: "only the icon of a card is used; other pictures and sounds are kept for export", asks: func(value json.RawMessage, _ fields) bool {
		return slices.ContainsFunc(listOf(value), func(a json.RawMessage) bool { return fieldsOf(a).text("type", "icon") != "icon" })
	}},
})

const otherProgram = "belongs to another program; has no effect here, kept for export only"

var extensionKind = kindOf("fav world depth_prompt regex_scripts "+bundleKey, kind{
	"talkativeness":        unless(noGroups+", so nothing depends on it", "0.5"),
	"TavernHelper_scripts": {why: otherProgram}, "tavern_helper": {why: otherProgram},
	"risuai": {why: otherProgram}, "agnai": {why: otherProgram}, "chub": {why: otherProgram},
})

var depthPromptKind = kindOf("prompt depth role", nil)

// extraKind are the other members of a file of the NodeST app.
var extraKind = kindOf("name extraGreetings chatHistory id avatar conversationId createdAt updatedAt dialect", kind{
	"customUserName":    {why: "kept for export only; set it in the character's settings instead"},
	"customUserSetting": {why: "kept for export only; set it in the character's settings instead"},
})

var bookKind = kindOf("name description entries originalData", kind{
	"scan_depth":         {why: "how many messages are searched for keys is a setting of the character"},
	"token_budget":       {why: "world books have no budget of their own"},
	"recursive_scanning": {why: noRecursion},
	"scanDepth":          {why: "how many messages are searched for keys is a setting of the character"},
	"tokenBudget":        {why: "world books have no budget of their own"},
	"recursiveScanning":  {why: noRecursion},
})

var cardBookKind = kindOf("name description entries extensions", bookKind)

const noRecursion = "the text of an entry never triggers other entries"

// entryKind are the members of an entry in the form of world info.
var entryKind = kindOf("uid comment content disable constant key order depth selective useProbability addMemo displayIndex id name position", kind{
	"keysecondary": where("secondary keys are ignored; only the primary keys are checked", hasSecondary),
	"selectiveLogic": {why: "the logic of secondary keys is ignored", asks: func(_ json.RawMessage, of fields) bool {
		return hasSecondary(of)
	}},
	"role": {why: "the role of an entry in the chat is ignored; it is sent as the user's", asks: func(value json.RawMessage, of fields) bool {
		s, _ := textOf(value)
		return of.int("position", 0) == int(AtDepth) && s != "1" && s != "user"
	}, zero: true},
	"probability": {why: "probabilities are ignored; a matching key always triggers the entry", asks: func(_ json.RawMessage, of fields) bool {
		return of.flag("useProbability", true) && of.float("probability", 100) < 100
	}, zero: true},
	"group":               {why: "groups are ignored; every matching entry is used"},
	"groupOverride":       where("priority within a group is ignored", hasGroup),
	"useGroupScoring":     where("group scoring is ignored", hasGroup),
	"groupWeight":         {why: "weights within a group are ignored", asks: func(value json.RawMessage, of fields) bool { return hasGroup(of) && string(value) != "100" }, zero: true},
	"sticky":              above0("the entry does not stay after its key is gone"),
	"cooldown":            above0("the entry has no cooldown"),
	"delay":               above0("the entry is not delayed"),
	"vectorized":          {why: "entries are found by their keys alone, not by meaning"},
	"caseSensitive":       {why: "keys are found in upper and lower case alike"},
	"matchWholeWords":     {why: "keys are found inside of longer words too"},
	"scanDepth":           {why: "how many messages are searched for keys is a setting of the character"},
	"excludeRecursion":    {why: noRecursion},
	"preventRecursion":    {why: noRecursion},
	"delayUntilRecursion": {why: noRecursion + "; a matching key triggers it at once"},
	"ignoreBudget":        {why: "world books have no budget of their own"},
	"outletName":          {why: "outlets are not supported"},
	"automationId":        {why: "automations are not supported"},
	"triggers":            {why: "the entry is used whatever the reply is for"},
	"characterFilter": where("character filters are ignored", func(of fields) bool {
		filter := fieldsOf(of["characterFilter"])
		return len(filter.texts("names"))+len(filter.texts("tags")) > 0
	}),
	"matchPersonaDescription": {why: onlyMessages}, "matchCharacterDescription": {why: onlyMessages},
	"matchCharacterPersonality": {why: onlyMessages}, "matchCharacterDepthPrompt": {why: onlyMessages},
	"matchScenario": {why: onlyMessages}, "matchCreatorNotes": {why: onlyMessages},
	"extensions": {why: "kept, not used"},
})

const onlyMessages = "keys are looked for in messages alone"

func hasSecondary(of fields) bool {
	return !of.flag("constant", false) && of.flag("selective", true) && len(keysOf(of["keysecondary"])) > 0
}

func hasGroup(of fields) bool { return of.text("group", "") != "" }

// cardEntryKind are the members of an entry of a card's book. Those that its form of world
// info has are looked at there.
var cardEntryKind = kindOf("id keys secondary_keys key keysecondary content comment name constant selective insertion_order enabled position extensions use_regex uid", kind{
	"case_sensitive": {why: "keys are found in upper and lower case alike"},
	"priority":       {why: "the order of entries is their insertion_order alone"},
})

var entryExtensionKind = func() kind {
	names := []string{"position", "display_index"}
	for _, f := range extensionFields {
		names = append(names, f.card)
	}
	return kindOf(strings.Join(names, " "), nil)
}()

// entryChecks are about what several members of an entry say together.
var entryChecks = []struct {
	key, code, why string
	asks           func(e *Entry, f fields, d Dialect) bool
}{
	{"position", unusedField, "entries at this position are not used", func(e *Entry, _ fields, _ Dialect) bool {
		return e.Position < BeforeChar || e.Position > AtDepth
	}},
	{"key", unreachable, "entries that are not constant and have no keys are never used", func(e *Entry, _ fields, _ Dialect) bool {
		return !e.Constant && len(e.Key) == 0
	}},
	{"key", regexKeyCode, "keys are plain text; these patterns are matched literally", func(e *Entry, _ fields, _ Dialect) bool {
		return !e.Constant && slices.ContainsFunc(e.Key, isRegexKey)
	}},
	{"key", unknownMacro, "macros in keys are not replaced", func(e *Entry, _ fields, _ Dialect) bool {
		return !e.Constant && slices.ContainsFunc(e.Key, func(k string) bool { return strings.Contains(k, "{{") })
	}},
	{"key", oddKeys, "keys in one text, or that are numbers, were read as a list of texts", func(e *Entry, f fields, _ Dialect) bool {
		_, oneText := textOf(f["key"])
		number := func(k json.RawMessage) bool { _, ok := textOf(k); return ok && !startsWith(k, '"') }
		return len(e.Key) > 0 && (oneText || slices.ContainsFunc(f.list("key"), number))
	}},
	{"key", unusedField, "keys of entries at positions 0 and 1 matter only while the setting filterKeyed is on", func(e *Entry, _ fields, d Dialect) bool {
		return d == NodeST && !e.Constant && len(e.Key) > 0 && (e.Position == BeforeChar || e.Position == AfterChar)
	}},
	{"content", unusedField, "decorators (@@…) are sent as a part of the text", func(e *Entry, _ fields, _ Dialect) bool {
		return strings.HasPrefix(strings.TrimSpace(e.Content), "@@")
	}},
}

var noteKind = kindOf("charname username name content role injection_depth", nil)

const (
	ownTexts    = "the built-in text is used"
	notSent     = "is not sent to the model"
	notNames    = "names are not put before messages"
	notPrefill  = "replies are not begun for the model"
	otherPreset = "has no effect here"
)

// presetKind are the members of a preset. Their values where SillyTavern leaves them alone ask
// for nothing.
var presetKind = kindOf("name description prompts prompt_order temperature top_p openai_max_tokens openai_max_context "+
	"generation_settings preset_settings tavernkit_preset_version max_context_unlocked stream_openai show_external_models "+
	"bypass_status_check bias_preset_selected openrouter_use_fallback openrouter_group_models openrouter_sort_models "+
	"chutes_sort_models electronhub_sort_models electronhub_group_models minimax_endpoint chat_completion_source "+
	"media_inlining image_inlining inline_image_quality id autoCreated settings", kind{
	"frequency_penalty": {why: notSent}, "presence_penalty": {why: notSent}, "top_k": {why: notSent}, "top_a": {why: notSent}, "min_p": {why: notSent},
	"repetition_penalty": unless(notSent, "1"), "seed": unless(notSent, "-1"), "n": unless("one reply is asked for at a time", "1"),
	"reasoning_effort": unless(notSent, "auto"), "show_thoughts": unless(otherPreset, "true"),
	"function_calling": {why: "tools are a setting of the chat"}, "enable_web_search": {why: "web search is a setting of the chat"},
	"request_images": {why: otherPreset}, "custom_prompt_post_processing": {why: otherPreset},
	"names_behavior": unless(notNames, "-1"), "wrap_in_quotes": {why: otherPreset},
	"send_if_empty": {why: "an empty message is not replaced"}, "assistant_prefill": {why: notPrefill}, "assistant_impersonation": {why: notPrefill},
	"continue_prefill": {why: notPrefill}, "continue_postfix": unless(otherPreset, ""), "use_sysprompt": {why: "system messages are sent as such where the model takes them"},
	"squash_system_messages":  {why: "system messages are not joined"},
	"impersonation_prompt":    ownText("[Write your next reply from the point of view of {{user}}"),
	"new_chat_prompt":         {why: "no line announces the chat", asks: differsFrom("[Start a new Chat]")},
	"new_group_chat_prompt":   ownText("[Start a new group chat."),
	"new_example_chat_prompt": {why: "no line announces examples", asks: differsFrom("[Example Chat]")},
	"continue_nudge_prompt":   ownText("[Continue"), "group_nudge_prompt": ownText("[Write the next reply only as {{char}}.]"),
	"wi_format":          {why: "texts of world books have no frame", asks: differsFrom("{0}")},
	"scenario_format":    {why: "the scenario has no frame", asks: differsFrom("{{scenario}}")},
	"personality_format": {why: "the personality has no frame", asks: differsFrom("{{personality}}")},
	"extensions":         {why: "scripts and other extensions of a preset are not used"},
})

// differsFrom asks for something where a text does not begin as SillyTavern's own does.
func differsFrom(begin string) func(json.RawMessage, fields) bool {
	return func(value json.RawMessage, _ fields) bool {
		s, _ := textOf(value)
		return !strings.HasPrefix(s, begin)
	}
}

func ownText(begin string) member { return member{why: ownTexts, asks: differsFrom(begin)} }

var promptKind = kindOf("name content enable enabled identifier role injection_position injection_depth forbid_overrides system_prompt marker", kind{
	"injection_order":   unless("prompts at one depth are in the order of the preset", "100"),
	"injection_trigger": {why: "the prompt is used whatever the reply is for"},
})

// scriptKind are the members of a regex script.
var scriptKind = kindOf("id scriptName findRegex flags disabled promptOnly minDepth maxDepth group", kind{
	"replaceString": {why: "{{match}} and $0 are put into the text as written; $& is the whole match", asks: func(value json.RawMessage, _ fields) bool {
		s, _ := textOf(value)
		return matchMacro.MatchString(s) || zeroGroup.MatchString(s)
	}},
	"trimStrings": {why: "nothing is taken out of a match", asks: func(value json.RawMessage, of fields) bool {
		return len(nonEmpty(textsOf(listOf(value)))) > 0
	}},
	"placement": {why: "scripts apply to the user's messages (1) and to replies (2) alone", asks: func(value json.RawMessage, _ fields) bool {
		return slices.ContainsFunc(textsOf(listOf(value)), func(s string) bool {
			n, err := strconv.Atoi(s)
			return err == nil && n != PlaceUserInput && n != PlaceAIOutput
		})
	}},
	"markdownOnly":    {why: "texts are displayed as they are; a script for the display alone does nothing"},
	"runOnEdit":       unless("scripts do not run when a message is edited"),
	"substituteRegex": {why: "macros in a pattern are not replaced"},
})

var zeroGroup = regexp.MustCompile(`\$0\b`)

// metadataKind are the members of chat_metadata.
var metadataKind = kindOf("note_prompt note_depth note_role integrity chat_id_hash tainted main_chat lastInContextMessageId create_date", kind{
	"note_interval":      ofNote("the author's note is in every prompt"),
	"note_position":      ofNote("the author's note is in the chat, at depth 4"),
	"scenario":           {why: "a chat has no scenario of its own; that of the card is used"},
	"system_prompt":      {why: "a chat has no system prompt of its own; that of the card is used"},
	"mes_example":        {why: "a chat has no examples of its own; those of the card are used"},
	"variables":          {why: "variables are not supported"},
	"world_info":         {why: "a chat has no world book of its own; bind the book to the character"},
	"persona":            {why: "choose the persona in the chat's settings"},
	"timedWorldInfo":     {why: "entries of world books have no sticky, cooldown or delay"},
	"note_char_position": {why: otherPreset},
})

// ofNote is a member of an author's note that is 1 by itself.
func ofNote(why string) member {
	return member{why: why, zero: true, asks: func(value json.RawMessage, of fields) bool {
		return strings.TrimSpace(of.text("note_prompt", "")) != "" && string(value) != "1"
	}}
}

var messageKind = kindOf("name is_user is_system is_name send_date mes swipes swipe_id swipe_info extra gen_started gen_finished "+
	"force_avatar original_avatar title chat_metadata user_name character_name create_date", nil)

const notImported = "files of a message are not imported; they are named in the exported log"

var messageExtraKind = kindOf("type reasoning reasoning_duration reasoning_type reasoning_signature api model token_count gen_id isSmallSys "+
	"bookmark_link branches title time_to_first_token", kind{
	"image": {why: notImported}, "images": {why: notImported}, "image_swipes": {why: notImported}, "media": {why: notImported},
	"file": {why: notImported}, "files": {why: notImported}, "video": {why: notImported}, "inline_image": {why: notImported}, "fileLength": {why: notImported},
	"bias": {why: otherPreset}, "memory": {why: "summaries of other programs are not used"},
	"display_text":     {why: "texts are displayed as they are"},
	"tool_invocations": {why: "calls of tools are not imported"},
})

var personaKind = kindOf("name description", nil)
