package card

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"nodest/internal/fault"
)

// Preset is the view of a prompt preset.
type Preset struct {
	Name    string
	Prompts []Prompt
	Order   []OrderItem // the order list in use, completed as ParsePreset says
	BuiltIn bool        // the document had no prompts: these are the built-in ones

	// TavernOrder is the order list in SillyTavern: that of character 100001, else that of
	// 100000, and that of the prompts for a file of the NodeST app. Nil = SillyTavern's
	// built-in order.
	TavernOrder []OrderItem

	Sampling  Sampling
	Utility   Utility
	Behaviour Behaviour
	Scripts   []RegexScript // extensions.regex_scripts; they are the author's, and wait for the user's consent
}

// Utility are the texts with which the SillyTavern dialect surrounds the chat. Parsing fills in
// the defaults for those that are missing; an empty one is left out of prompts.
type Utility struct {
	Impersonation string // asks for the user's next message
	NewChat       string // announces the chat
	NewExample    string // announces a block of the example dialogue
	ContinueNudge string // asks to go on; {{lastChatMessage}} is the message to lengthen
	SendIfEmpty   string // the user's message behind one of the character

	WorldInfoFormat   string // {0} is the text of the entries; blank = the text alone
	ScenarioFormat    string // blank = the scenario alone
	PersonalityFormat string // blank = the personality alone

	AssistantPrefill       string // the reply begins with it
	AssistantImpersonation string // the same, for the user's next message
}

// Behaviour is how the SillyTavern dialect treats the messages of a preset.
type Behaviour struct {
	Names           NamesBehaviour
	Squash          bool   // neighbouring system messages become one
	ContinuePrefill bool   // the message to lengthen is the last one, without ContinueNudge
	ContinuePostfix string // between the message that is lengthened and what the model adds; default " "
	PostProcessing  string // custom_prompt_post_processing: merge, semi, strict, single, merge_tools …; "" = none
}

// NamesBehaviour says how the names of speakers are sent.
type NamesBehaviour int

// The behaviours, by SillyTavern's numbers.
const (
	NamesNone       NamesBehaviour = -1
	NamesDefault    NamesBehaviour = 0 // before messages of others than the user and the character
	NamesCompletion NamesBehaviour = 1 // as a property of the message
	NamesContent    NamesBehaviour = 2 // before each message
)

// Prompt is one prompt of a preset.
type Prompt struct {
	Name       string // default "Unnamed Prompt"
	Content    string
	Enable     bool   // default true
	Identifier string // generated from the place in the list when missing; the same on each call
	Role       string // as written: user, model, assistant, system; see missingRole
	NoRole     bool   // the document names none

	InjectionPosition *int     // 0 relative, 1 in the chat; nil when absent
	InjectionDepth    *int     // nil when absent
	InjectionOrder    int      // among prompts of one depth, high before low from the end of the chat; default 100
	Triggers          []string // injection_trigger: the kinds of replies that it is for, in lower case; none = all
	ForbidOverrides   bool
}

// OrderItem is one place of the order list.
type OrderItem struct {
	Identifier string
	Enabled    bool // default true
}

// ParsePreset reads a preset. A missing document and a preset without prompts
// are the built-in preset.
//
// Of several order lists the one of character 100001 is used, else the
// first. Without a list the order is that of the prompts, on as they are
// enabled.
//
// Errors: InvalidImport when the document is no JSON object; TooLarge.
func ParsePreset(doc json.RawMessage) (Preset, error) {
	f := fieldsOf(doc)
	if f == nil && !absent(doc) {
		return Preset{}, fault.New(fault.InvalidImport, "a preset must be a JSON object").With("path", "preset")
	}
	from, builtIn := f, !startsWith(f["prompts"], '[')
	if builtIn {
		from = fieldsOf(builtInPreset)
	}
	prompts, order := from.list("prompts"), orderInForce(from.list("prompt_order"))
	if err := checkCount("prompts in the preset", max(len(prompts), len(order)), maxViewEntries); err != nil {
		return Preset{}, err
	}
	preset := Preset{
		Name: f.text("name", ""), Prompts: parsePrompts(prompts), Order: parseOrder(order), BuiltIn: builtIn,
		Sampling: parseSampling(f), Utility: parseUtility(f), Behaviour: parseBehaviour(f),
	}
	preset.Scripts, _ = ParseRegexScripts(fieldsOf(f["extensions"])["regex_scripts"])
	if len(preset.Order) == 0 {
		for _, p := range preset.Prompts {
			preset.Order = append(preset.Order, OrderItem{Identifier: p.Identifier, Enabled: p.Enable})
		}
	}
	preset.TavernOrder = preset.tavernOrder(from)
	return preset, nil
}

// tavernOrder chooses the order list as SillyTavern does.
func (p *Preset) tavernOrder(f fields) []OrderItem {
	lists := f.list("prompt_order")
	for _, id := range []float64{shownOrder, oldOrder} {
		if at := orderOf(lists, id); at >= 0 {
			return parseOrder(fieldsOf(lists[at]).list("order"))
		}
	}
	if prompts := f.list("prompts"); p.BuiltIn || len(prompts) > 0 && fieldsOf(prompts[0]).has("enable") {
		return p.Order
	}
	return nil
}

// parseUtility reads the texts by the names that SillyTavern gives them.
func parseUtility(f fields) Utility {
	return Utility{
		Impersonation: f.text("impersonation_prompt", "[Write your next reply from the point of view of {{user}}, using the chat history so far "+
			"as a guideline for the writing style of {{user}}. Don't write as {{char}} or system. Don't describe actions of {{char}}.]"),
		NewChat:       f.text("new_chat_prompt", "[Start a new Chat]"),
		NewExample:    f.text("new_example_chat_prompt", "[Example Chat]"),
		ContinueNudge: f.text("continue_nudge_prompt", "[Continue your last message without repeating its original content.]"),
		SendIfEmpty:   f.text("send_if_empty", ""),

		WorldInfoFormat:   f.text("wi_format", "{0}"),
		ScenarioFormat:    f.text("scenario_format", "{{scenario}}"),
		PersonalityFormat: f.text("personality_format", "{{personality}}"),

		AssistantPrefill: f.text("assistant_prefill", ""), AssistantImpersonation: f.text("assistant_impersonation", ""),
	}
}

func parseBehaviour(f fields) Behaviour {
	b := Behaviour{
		Squash: f.flag("squash_system_messages", false), ContinuePrefill: f.flag("continue_prefill", false),
		ContinuePostfix: f.text("continue_postfix", " "), PostProcessing: f.text("custom_prompt_post_processing", ""),
	}
	if n := NamesBehaviour(f.int("names_behavior", 0)); n >= NamesNone && n <= NamesContent {
		b.Names = n
	}
	return b
}

// parsePrompts reads the prompts; elements that are no objects are left out.
func parsePrompts(list []json.RawMessage) []Prompt {
	var prompts []Prompt
	taken := map[string]bool{}
	for _, element := range list {
		if f := fieldsOf(element); f != nil {
			p := parsePrompt(f)
			taken[p.Identifier] = true
			prompts = append(prompts, p)
		}
	}
	for i := range prompts {
		if prompts[i].Identifier == "" {
			prompts[i].Identifier = freeIdentifier(i+1, taken)
		}
	}
	return prompts
}

// freeIdentifier names the nth prompt of a preset.
func freeIdentifier(n int, taken map[string]bool) string {
	id := "prompt-" + strconv.Itoa(n)
	for taken[id] {
		id += "-x"
	}
	taken[id] = true
	return id
}

func parsePrompt(f fields) Prompt {
	return Prompt{
		Name:       f.textOr("name", "Unnamed Prompt"),
		Content:    f.text("content", ""),
		Enable:     f.flag("enable", true),
		Identifier: f.text("identifier", ""),
		Role:       f.textOr("role", missingRole(f)),
		NoRole:     f.text("role", "") == "",

		InjectionPosition: f.optInt("injection_position"),
		InjectionDepth:    f.optInt("injection_depth"),
		InjectionOrder:    f.int("injection_order", defaultInjectionOrder),
		Triggers:          lower(f.texts("injection_trigger")),
		ForbidOverrides:   f.flag("forbid_overrides", false),
	}
}

// defaultInjectionOrder is SillyTavern's, and that of everything that is inserted besides prompts.
const defaultInjectionOrder = 100

func lower(texts []string) []string {
	for i, text := range texts {
		texts[i] = strings.ToLower(strings.TrimSpace(text))
	}
	return texts
}

// missingRole is the role of a prompt that names none. The places that SillyTavern
// itself puts into a preset are part of its system prompt.
func missingRole(f fields) string {
	chat := strings.Contains(strings.ToLower(f.text("identifier", "")), "chathistory")
	if f.flag("marker", false) && f.flag("system_prompt", false) && !chat {
		return "system"
	}
	return "user"
}

// The character ids of the order list that current SillyTavern versions use, and of an older one
// that many files have alone.
const (
	shownOrder = 100001
	oldOrder   = 100000
)

func orderInForce(lists []json.RawMessage) []json.RawMessage {
	if len(lists) == 0 {
		return nil
	}
	return fieldsOf(lists[max(orderOf(lists, shownOrder), 0)]).list("order")
}

// orderOf returns the index of the order list of a character id, -1 if there is none.
func orderOf(lists []json.RawMessage, character float64) int {
	return slices.IndexFunc(lists, func(list json.RawMessage) bool {
		id, ok := fieldsOf(list).looseNumber("character_id")
		return ok && id == character
	})
}

func parseOrder(items []json.RawMessage) []OrderItem {
	var order []OrderItem
	for _, element := range items {
		if f := fieldsOf(element); f != nil {
			order = append(order, OrderItem{Identifier: f.text("identifier", ""), Enabled: f.flag("enabled", true)})
		}
	}
	return order
}

// builtInPreset serves where no preset is given. It is that of the NodeST app, whose
// users expect its texts.
//
//go:embed builtin_preset.json
var builtInPreset []byte
