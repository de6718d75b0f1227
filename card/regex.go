package card

import (
	"encoding/json"
	"strconv"

	"nodest/internal/fault"
)

// Places where a regex script applies. Documents know others too: 3 slash commands,
// 5 world info, 6 reasoning.
const (
	PlaceUserInput = 1
	PlaceAIOutput  = 2
)

// RegexScript is the view of one regex script. Parsing does not look into the
// pattern.
type RegexScript struct {
	ID           string
	Name         string // scriptName
	Find         string // a pattern or /pattern/flags
	Replace      string
	Flags        string
	Placement    []int // nil when absent
	Disabled     bool
	MarkdownOnly bool // for display only
	PromptOnly   bool // for the request only
	MinDepth     *int
	MaxDepth     *int
}

// ParseRegexScripts reads one script, an array of scripts, or a NodeST script
// group ({"scripts":[…]}). A missing document has no scripts; elements that are
// no objects are left out.
//
// Errors: InvalidImport when the document is neither an object nor an array;
// TooLarge.
func ParseRegexScripts(doc json.RawMessage) ([]RegexScript, error) {
	if absent(doc) {
		return nil, nil
	}
	list, err := scriptList(doc)
	if err != nil {
		return nil, err
	}
	var scripts []RegexScript
	for _, element := range list {
		if f := fieldsOf(element); f != nil {
			scripts = append(scripts, parseScript(f))
		}
	}
	return scripts, nil
}

// ScriptsAsOfCard returns the scripts that ParseRegexScripts reads as they apply inside a
// card: one without placement or flags to replies, and with the flag g.
func ScriptsAsOfCard(doc json.RawMessage) ([]json.RawMessage, error) {
	if absent(doc) {
		return nil, nil
	}
	list, err := scriptList(doc)
	if err != nil {
		return nil, err
	}
	var scripts []json.RawMessage
	for _, element := range list {
		if script, err := parseObject(element); err == nil {
			script.put("placement", valueOr(script.get("placement"), []int{PlaceAIOutput}))
			script.put("flags", valueOr(script.get("flags"), "g"))
			scripts = append(scripts, script.encode())
		}
	}
	return scripts, nil
}

// scriptList finds the scripts in any of the three forms.
func scriptList(doc json.RawMessage) ([]json.RawMessage, error) {
	f, list := fieldsOf(doc), []json.RawMessage{doc}
	switch {
	case startsWith(doc, '['):
		list = listOf(doc)
	case f == nil:
		return nil, fault.New(fault.InvalidImport, "regex scripts must be a JSON object or array").With("path", "regexScripts")
	case startsWith(f["scripts"], '['):
		list = f.list("scripts")
	}
	return list, checkCount("regex scripts", len(list), maxViewEntries)
}

func parseScript(f fields) RegexScript {
	script := RegexScript{
		ID:           f.text("id", ""),
		Name:         f.text("scriptName", ""),
		Find:         f.text("findRegex", ""),
		Replace:      f.text("replaceString", ""),
		Flags:        f.text("flags", ""),
		Disabled:     f.flag("disabled", false),
		MarkdownOnly: f.flag("markdownOnly", false),
		PromptOnly:   f.flag("promptOnly", false),
		MinDepth:     f.optInt("minDepth"),
		MaxDepth:     f.optInt("maxDepth"),
	}
	for _, place := range f.texts("placement") {
		if n, err := strconv.Atoi(place); err == nil {
			script.Placement = append(script.Placement, n)
		}
	}
	return script
}
