package card

import "encoding/json"

// Places where a regex script applies.
const (
	PlaceUserInput    = 1
	PlaceAIOutput     = 2
	PlaceSlashCommand = 3
	PlaceWorldInfo    = 5
	PlaceReasoning    = 6
)

// RegexScript is the view of one regex script. Parsing does not look into the
// pattern.
type RegexScript struct {
	ID              string
	Name            string // scriptName
	Find            string // a pattern or /pattern/flags
	Replace         string
	Flags           string
	TrimStrings     []string
	Placement       []int // nil when absent
	Disabled        bool
	MarkdownOnly    bool // for display only
	PromptOnly      bool // for the request only
	RunOnEdit       bool
	SubstituteRegex int // 0 none, 1 raw, 2 escaped
	MinDepth        *int
	MaxDepth        *int
}

// ParseRegexScripts reads one script, an array of scripts, or a NodeST script
// group ({"scripts":[…]}). A missing document has no scripts; elements that are
// no objects are left out.
//
// Error: InvalidImport when the document is neither an object nor an array.
func ParseRegexScripts(doc json.RawMessage) ([]RegexScript, error) { return nil, nil }
