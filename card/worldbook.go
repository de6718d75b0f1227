package card

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"nodest/fault"
)

// Position says where the text of a world-book entry goes.
type Position int

// The positions that NodeST knows; its author's-note positions are directly before and
// after the note. SillyTavern has 5 to 7 as well: around the examples, and an outlet.
const (
	BeforeChar Position = iota
	AfterChar
	BeforeNote
	AfterNote
	AtDepth
)

// Logic says how the secondary keys of an entry count: 0 AND ANY, 1 NOT ALL,
// 2 NOT ANY, 3 AND ALL.
type Logic int

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
// also be an array. The dialect decides the defaults. A missing document, or one
// without entries, is an empty book; an entry that is no object is left out.
//
// Errors: InvalidWorldBook when the document or its entries are of another type;
// TooLarge.
func ParseWorldBook(doc json.RawMessage, dialect Dialect) (WorldBook, error) {
	if absent(doc) {
		return WorldBook{}, nil
	}
	book := fieldsOf(doc)
	if book == nil {
		return WorldBook{}, invalidBook("worldBook", "a world book must be a JSON object")
	}
	members, err := bookEntries(book["entries"])
	if err == nil {
		err = checkCount("entries in the world book", len(members))
	}
	if err != nil {
		return WorldBook{}, err
	}
	view := WorldBook{Name: book.text("name", "")}
	for _, m := range members {
		if f := fieldsOf(m.doc); f != nil {
			view.Entries = append(view.Entries, parseEntry(m.id, f, dialect))
		}
	}
	return view, nil
}

func invalidBook(path, reason string) error {
	return fault.New(fault.InvalidWorldBook, "%s: %s", path, reason).With("path", path)
}

// bookEntry is one member of "entries".
type bookEntry struct {
	id  string
	doc json.RawMessage
}

// bookEntries lists the entries in JavaScript's property order.
func bookEntries(entries json.RawMessage) ([]bookEntry, error) {
	switch {
	case absent(entries):
		return nil, nil
	case startsWith(entries, '['):
		var all []bookEntry
		for i, doc := range listOf(entries) {
			all = append(all, bookEntry{strconv.Itoa(i), doc})
		}
		return all, nil
	}
	o, err := parseObject(entries)
	if err != nil {
		return nil, invalidBook("worldBook.entries", "must be an object or an array")
	}
	all := make([]bookEntry, len(o.keys))
	for i, key := range o.keys {
		all[i] = bookEntry{key, o.get(key)}
	}
	slices.SortStableFunc(all, func(a, b bookEntry) int { return cmp.Compare(propertyRank(a.id), propertyRank(b.id)) })
	return all, nil
}

// propertyRank is the place of a key in JavaScript's property order: array
// indexes (canonical decimals up to 2³²-2) by value, all others behind them.
func propertyRank(key string) uint64 {
	n, err := strconv.ParseUint(key, 10, 32)
	if err != nil || n == math.MaxUint32 || strconv.FormatUint(n, 10) != key {
		return math.MaxUint64
	}
	return n
}

// entryDefaults are the values of missing fields in which the dialects differ.
type entryDefaults struct {
	order float64
	depth int
}

func (d Dialect) entryDefaults() entryDefaults {
	if d == NodeST {
		return entryDefaults{}
	}
	return entryDefaults{order: 100, depth: 4}
}

func parseEntry(id string, f fields, dialect Dialect) Entry {
	missing := dialect.entryDefaults()
	comment, constant := "", f.flag("constant", false)
	if dialect == NodeST {
		comment, constant = id, string(f["constant"]) != "false"
	}
	return Entry{
		ID:       id,
		UID:      f.int("uid", -1),
		Comment:  f.textOr("comment", comment),
		Content:  f.text("content", ""),
		Disable:  f.flag("disable", false),
		Constant: constant,
		Position: Position(f.int("position", 0)),
		Key:      f.texts("key"),
		Order:    f.float("order", missing.order),
		Depth:    f.entryDepth(dialect, missing.depth),
		Role:     f.role("role", "system"),

		KeySecondary:   f.texts("keysecondary"),
		Selective:      f.flag("selective", true),
		SelectiveLogic: Logic(f.int("selectiveLogic", 0)),
		Vectorized:     f.flag("vectorized", false),

		Probability:         f.float("probability", 100),
		UseProbability:      f.flag("useProbability", true),
		IgnoreBudget:        f.flag("ignoreBudget", false),
		ExcludeRecursion:    f.flag("excludeRecursion", false),
		PreventRecursion:    f.flag("preventRecursion", false),
		DelayUntilRecursion: f.level("delayUntilRecursion"),

		Group:           f.text("group", ""),
		GroupOverride:   f.flag("groupOverride", false),
		GroupWeight:     f.float("groupWeight", 100),
		UseGroupScoring: f.optFlag("useGroupScoring"),

		ScanDepth:       f.optInt("scanDepth"),
		CaseSensitive:   f.optFlag("caseSensitive"),
		MatchWholeWords: f.optFlag("matchWholeWords"),

		Sticky:   f.optInt("sticky"),
		Cooldown: f.optInt("cooldown"),
		Delay:    f.optInt("delay"),

		MatchPersonaDescription:   f.flag("matchPersonaDescription", false),
		MatchCharacterDescription: f.flag("matchCharacterDescription", false),
		MatchCharacterPersonality: f.flag("matchCharacterPersonality", false),
		MatchCharacterDepthPrompt: f.flag("matchCharacterDepthPrompt", false),
		MatchScenario:             f.flag("matchScenario", false),
		MatchCreatorNotes:         f.flag("matchCreatorNotes", false),

		OutletName:   f.text("outletName", ""),
		AutomationID: f.text("automationId", ""),
		Triggers:     f.texts("triggers"),
		Filter:       parseFilter(fieldsOf(f["characterFilter"])),
	}
}

// entryDepth reads the depth; NodeST counts anything but a number as 0.
func (f fields) entryDepth(dialect Dialect, missing int) int {
	if dialect == NodeST && startsWith(f["depth"], '"') {
		return 0
	}
	return f.int("depth", missing)
}

// level reads a number that may also be a bool: true is 1.
func (f fields) level(key string) int {
	if string(f[key]) == "true" {
		return 1
	}
	return f.int(key, 0)
}

func parseFilter(f fields) CharacterFilter {
	return CharacterFilter{Exclude: f.flag("isExclude", false), Names: f.texts("names"), Tags: f.texts("tags")}
}
