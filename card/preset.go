package card

import (
	_ "embed"
	"encoding/json"
	"maps"
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

	Sampling Sampling
}

// Sampling is what a preset sets of the request besides the prompts; nil where it
// sets nothing that can be used.
type Sampling struct {
	Temperature   *float64 // 0–2
	TopP          *float64 // 0–1
	MaxTokens     *int     // of the reply
	ContextTokens *int     // of the request and the reply
}

// Prompt is one prompt of a preset.
type Prompt struct {
	Name       string // default "Unnamed Prompt"
	Content    string
	Enable     bool   // default true
	Identifier string // generated from the place in the list when missing; the same on each call
	Role       string // as written: user, model, assistant, system; see missingRole

	InjectionPosition *int // 0 relative, 1 in the chat; nil when absent
	InjectionDepth    *int // nil when absent
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
		Name: f.text("name", ""), Prompts: parsePrompts(prompts), Order: parseOrder(order), BuiltIn: builtIn, Sampling: parseSampling(f),
	}
	if len(preset.Order) == 0 {
		for _, p := range preset.Prompts {
			preset.Order = append(preset.Order, OrderItem{Identifier: p.Identifier, Enabled: p.Enable})
		}
	}
	return preset, nil
}

// The least context and the largest numbers of tokens that make sense in a preset.
const (
	leastContext = 512
	mostContext  = 10_000_000
	mostTokens   = 1_000_000
)

// parseSampling reads the settings by the names that SillyTavern gives them. The
// TavernKit library keeps them in an object of their own.
func parseSampling(f fields) Sampling {
	if own := fieldsOf(f["generation_settings"]); own != nil {
		maps.Copy(own, f)
		f = own
	}
	return Sampling{
		Temperature: f.floatWithin("temperature", 0, 2), TopP: f.floatWithin("top_p", 0, 1),
		MaxTokens:     f.intWithin("openai_max_tokens", 1, mostTokens),
		ContextTokens: f.intWithin("openai_max_context", leastContext, mostContext),
	}
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

		InjectionPosition: f.optInt("injection_position"),
		InjectionDepth:    f.optInt("injection_depth"),
		ForbidOverrides:   f.flag("forbid_overrides", false),
	}
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

// shownOrder is the character id of the order list that current SillyTavern
// versions use; 100000 is an older one.
const shownOrder = 100001

func orderInForce(lists []json.RawMessage) []json.RawMessage {
	at := slices.IndexFunc(lists, func(list json.RawMessage) bool {
		id, ok := fieldsOf(list).looseNumber("character_id")
		return ok && id == shownOrder
	})
	if len(lists) == 0 {
		return nil
	}
	return fieldsOf(lists[max(at, 0)]).list("order")
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
