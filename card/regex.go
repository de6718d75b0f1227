package card

import (
	"encoding/json"
	"strconv"

	"nodest/internal/fault"
)

// Places where a regex script applies.
const (
	PlaceUserInput    = 1
	PlaceAIOutput     = 2
	PlaceSlashCommand = 3 // NodeST has none
	PlaceWorldInfo    = 5
	PlaceReasoning    = 6
)

// SubstituteRaw and SubstituteEscaped say how macros in a pattern are replaced; 0 = not at all.
const (
	SubstituteRaw     = 1
	SubstituteEscaped = 2 // a value matches itself
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
	RunOnEdit    bool // also when a message is edited
	MinDepth     *int
	MaxDepth     *int
	TrimStrings  []string // removed from what the pattern matched, where the replacement puts it
	Substitute   int      // substituteRegex
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
// card: one without placement to replies, and in the NodeST dialect one without flags with the flag g.
func ScriptsAsOfCard(doc json.RawMessage, dialect Dialect) ([]json.RawMessage, error) {
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
			if dialect != SillyTavern {
				script.put("flags", valueOr(script.get("flags"), "g"))
			}
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
		RunOnEdit:    f.flag("runOnEdit", false),
		TrimStrings:  f.texts("trimStrings"),
	}
	if n := f.optInt("substituteRegex"); n != nil {
		script.Substitute = *n
	} else if f.flag("substituteRegex", false) { // old files
		script.Substitute = SubstituteRaw
	}
	for _, place := range f.texts("placement") {
		if n, err := strconv.Atoi(place); err == nil {
			script.Placement = append(script.Placement, n)
		}
	}
	return script
}
