package card

import "encoding/json"

// Position says where the text of a world-book entry goes.
type Position int

// The positions. NodeST knows the first five; its author's-note positions are
// directly before and after the note.
const (
	BeforeChar Position = iota
	AfterChar
	BeforeNote
	AfterNote
	AtDepth
	BeforeExamples
	AfterExamples
	Outlet
)

// Logic says how the secondary keys of an entry count.
type Logic int

// The kinds of logic.
const (
	AndAny Logic = iota
	NotAll
	NotAny
	AndAll
)

// WorldBook is the view of a world book. Entries stand in the order of a
// JavaScript object: keys that are non-negative integers first, ascending, then
// the others as written.
type WorldBook struct {
	Name    string
	Entries []Entry
}

// Entry is one entry of a world book. Where the two dialects have different
// defaults, both are named: NodeST / SillyTavern.
type Entry struct {
	ID       string // the key in the object "entries"
	UID      int    // of SillyTavern; -1 if there is none
	Comment  string // title; default the ID / ""
	Content  string
	Disable  bool
	Constant bool // default true unless exactly false / false
	Position Position
	Key      []string
	Order    float64 // default 0 / 100
	Depth    int     // default 0 / 4
	Role     string  // "system", "user" or "assistant"; default "system"

	KeySecondary   []string
	Selective      bool // default true
	SelectiveLogic Logic
	Vectorized     bool

	Probability    float64 // percent, default 100
	UseProbability bool    // default true
	IgnoreBudget   bool

	ExcludeRecursion    bool
	PreventRecursion    bool
	DelayUntilRecursion int // 0 off, else the level

	Group           string
	GroupOverride   bool
	GroupWeight     float64 // default 100
	UseGroupScoring *bool   // nil: the global setting; so below

	ScanDepth       *int
	CaseSensitive   *bool
	MatchWholeWords *bool

	Sticky, Cooldown, Delay *int // messages

	MatchPersonaDescription   bool
	MatchCharacterDescription bool
	MatchCharacterPersonality bool
	MatchCharacterDepthPrompt bool
	MatchScenario             bool
	MatchCreatorNotes         bool

	OutletName   string
	AutomationID string
	Triggers     []string // generation types; empty = all
	Filter       CharacterFilter
}

// CharacterFilter limits an entry to characters by name or tag.
type CharacterFilter struct {
	Exclude     bool
	Names, Tags []string
}

// ParseWorldBook reads a world book in world info form; the object "entries" may
// also be an array. The dialect decides the defaults. A missing document is an
// empty book.
//
// Error: InvalidWorldBook when the document or its entries are of another type.
func ParseWorldBook(doc json.RawMessage, dialect Dialect) (WorldBook, error) { return WorldBook{}, nil }
