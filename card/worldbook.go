package card

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"nodest/internal/fault"
)

// Position says where the text of a world-book entry goes.
type Position int

// The positions. NodeST knows those up to AtDepth; its author's-note positions are directly
// before and after the note. The others are SillyTavern's.
const (
	BeforeChar Position = iota
	AfterChar
	BeforeNote
	AfterNote
	AtDepth
	ExamplesTop
	ExamplesBottom
	Outlet
)

// WorldBook is the view of a world book. Entries are in the order of a
// JavaScript object: keys that are non-negative integers first, ascending, then
// the others as written.
type WorldBook struct {
	Entries []Entry
}

// Entry is one entry of a world book. Where the two dialects have different
// defaults, both are named: NodeST / SillyTavern. The embedded parts have no effect in the
// NodeST dialect.
type Entry struct {
	ID       string // the key in the object "entries"
	Comment  string // title; default the ID / ""
	Content  string
	Disable  bool
	Constant bool // default true unless exactly false / false
	Position Position
	// Key has no empty key, and in NodeST no blank one: without any, an entry that is not constant
	// is never used. SillyTavern finds a blank key in every text.
	Key   []string
	Order float64 // default 0 / 100
	Depth int     // default 0 / 4

	KeySecondary   []string
	Selective      bool    // KeySecondary counts; default true
	Vectorized     bool    // found by meaning
	Probability    float64 // percent, default 100
	UseProbability bool    // default true

	EntryMatch
	EntryGroup
	EntryTiming
	EntryRecursion
	EntryFilter
	EntryPlace
}

// Logic says what the secondary keys of an entry have to do.
type Logic int

// The logics of secondary keys.
const (
	AndAny Logic = iota // one of them is found
	NotAll              // one of them is not found
	NotAny              // none of them is found
	AndAll              // all of them are found
)

// EntryMatch says how the keys of an entry are looked for. Nil means as the settings say.
type EntryMatch struct {
	SelectiveLogic  Logic
	ScanDepth       *int // messages
	CaseSensitive   *bool
	MatchWholeWords *bool
	ScanTexts       ScanTexts
}

// ScanTexts are texts beside the messages in which keys are looked for.
type ScanTexts struct {
	Persona, Description, Personality, DepthPrompt, Scenario, CreatorNotes bool
}

// EntryGroup is the inclusion groups of an entry, of whose members one is used.
type EntryGroup struct {
	Group           string // names, separated by commas
	GroupOverride   bool
	GroupWeight     float64 // default 100
	UseGroupScoring *bool   // nil = as the settings say
}

// EntryTiming counts messages. Nil and values below 1 mean nothing.
type EntryTiming struct{ Sticky, Cooldown, Delay *int }

// EntryRecursion says what an entry has to do with the texts of other entries.
type EntryRecursion struct {
	ExcludeRecursion    bool // they do not bring it in
	PreventRecursion    bool // it does not bring them in
	DelayUntilRecursion int  // the level from which on it can come in; 0 = at once
}

// EntryFilter says for which characters and replies an entry is.
type EntryFilter struct {
	Filtered bool // for some characters only, by name or tag
	// CharacterNames are names of card files without their extension; Tags are ids or names.
	CharacterNames, CharacterTags []string
	Exclude                       bool     // for all but these
	Triggers                      []string // kinds of replies: normal, continue, impersonate, swipe, regenerate, quiet; none = all
}

// EntryPlace is more about the place of an entry.
type EntryPlace struct {
	Role         int    // at a depth: 0 system, 1 user, 2 assistant
	OutletName   string // the outlet, for the position Outlet
	IgnoreBudget bool
}

// ParseWorldBook reads a world book in world info form; the object "entries" may
// also be an array. The dialect decides the defaults. Any other form that ImportWorldBook
// takes is read as SillyTavern. A missing document, or one without entries, is an empty
// book; an entry that is no object is left out.
//
// Errors: InvalidWorldBook when the document or its entries are of another type;
// TooLarge for more than 20,000 entries, 1,000 keys of one, or 2 MiB of keys.
func ParseWorldBook(doc json.RawMessage, dialect Dialect) (WorldBook, error) {
	if absent(doc) {
		return WorldBook{}, nil
	}
	book := fieldsOf(doc)
	if book == nil {
		return WorldBook{}, invalidBook("worldBook", "a world book must be a JSON object")
	}
	book, dialect = worldInfo(doc, book, dialect)
	members, err := bookEntries(book["entries"])
	if err == nil {
		err = checkCount("entries in the world book", len(members), maxViewEntries)
	}
	if err != nil {
		return WorldBook{}, err
	}
	view := WorldBook{}
	keys := 0
	for _, m := range members {
		f := fieldsOf(m.doc)
		if f == nil {
			continue
		}
		of := dialect
		if isCardEntry(f) {
			f, of = fieldsOf(infoEntry(m)), SillyTavern
		}
		e := parseEntry(m.id, f, of)
		if err := checkCount("keys in an entry of the world book", max(len(e.Key), len(e.KeySecondary)), maxKeys); err != nil {
			return WorldBook{}, err
		}
		for _, k := range slices.Concat(e.Key, e.KeySecondary) {
			keys += len(k) + 1
		}
		if keys > maxBookKeys {
			return WorldBook{}, fault.New(fault.TooLarge, "the keys up to entry %s have more than %d bytes", m.id, maxBookKeys).
				With("path", "worldBook.entries."+m.id+".key").With("limit", maxBookKeys)
		}
		view.Entries = append(view.Entries, e)
	}
	return view, nil
}

// maxBookKeys bounds the keys of a world book together, in bytes, with one more for each
// key: the search index takes more than twenty times as much memory.
const maxBookKeys = 2 << 20

func invalidBook(path, reason string) error {
	return fault.New(fault.InvalidWorldBook, "%s: %s", path, reason).With("path", path)
}

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

func parseEntry(id string, f fields, dialect Dialect) Entry {
	comment, constant, order, depth := "", f.flag("constant", false), 100.0, f.int("depth", 4)
	if dialect == NodeST {
		comment, constant, order, depth = id, string(f["constant"]) != "false", 0, f.int("depth", 0)
		if startsWith(f["depth"], '"') { // only a number counts
			depth = 0
		}
	}
	return Entry{
		ID:       id,
		Comment:  f.textOr("comment", comment),
		Content:  f.text("content", ""),
		Disable:  f.flag("disable", false),
		Constant: constant,
		Position: Position(f.int("position", 0)),
		Key:      primaryKeys(dialect, f["key"]),
		Order:    f.float("order", order),
		Depth:    depth,

		KeySecondary: secondaryKeys(dialect, f["keysecondary"]),
		Selective:    f.flag("selective", true),
		Vectorized:   f.flag("vectorized", false),

		Probability:    f.float("probability", 100),
		UseProbability: f.flag("useProbability", true),

		EntryMatch: EntryMatch{
			SelectiveLogic: Logic(f.int("selectiveLogic", 0)), ScanDepth: f.optInt("scanDepth"),
			CaseSensitive: f.optFlag("caseSensitive"), MatchWholeWords: f.optFlag("matchWholeWords"),
			ScanTexts: ScanTexts{
				Persona: f.flag("matchPersonaDescription", false), Description: f.flag("matchCharacterDescription", false),
				Personality: f.flag("matchCharacterPersonality", false), DepthPrompt: f.flag("matchCharacterDepthPrompt", false),
				Scenario: f.flag("matchScenario", false), CreatorNotes: f.flag("matchCreatorNotes", false),
			},
		},
		EntryGroup: EntryGroup{
			Group: f.text("group", ""), GroupOverride: f.flag("groupOverride", false),
			GroupWeight: f.float("groupWeight", 100), UseGroupScoring: f.optFlag("useGroupScoring"),
		},
		EntryTiming: EntryTiming{Sticky: f.optInt("sticky"), Cooldown: f.optInt("cooldown"), Delay: f.optInt("delay")},
		EntryRecursion: EntryRecursion{
			ExcludeRecursion: f.flag("excludeRecursion", false), PreventRecursion: f.flag("preventRecursion", false),
			DelayUntilRecursion: delayLevel(f),
		},
		EntryFilter: filterOf(f),
		EntryPlace: EntryPlace{
			Role: f.int("role", 0), OutletName: f.text("outletName", ""), IgnoreBudget: f.flag("ignoreBudget", false),
		},
	}
}

// delayLevel reads the level of recursion that an entry waits for: true is the first one.
func delayLevel(f fields) int {
	if n := f.optInt("delayUntilRecursion"); n != nil {
		return max(*n, 0)
	}
	if f.flag("delayUntilRecursion", false) {
		return 1
	}
	return 0
}

func filterOf(f fields) EntryFilter {
	filter := fieldsOf(f["characterFilter"])
	return EntryFilter{
		Filtered: filtered(f), Exclude: filter.flag("isExclude", false),
		CharacterNames: filter.texts("names"), CharacterTags: filter.texts("tags"), Triggers: f.texts("triggers"),
	}
}
