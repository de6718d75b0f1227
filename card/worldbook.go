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

// The positions that NodeST knows; its author's-note positions are directly before and
// after the note. SillyTavern has 5 to 7 as well: around the examples, and an outlet.
const (
	BeforeChar Position = iota
	AfterChar
	BeforeNote
	AfterNote
	AtDepth
)

// WorldBook is the view of a world book. Entries are in the order of a
// JavaScript object: keys that are non-negative integers first, ascending, then
// the others as written.
type WorldBook struct {
	Entries []Entry
}

// Entry is one entry of a world book. Where the two dialects have different
// defaults, both are named: NodeST / SillyTavern.
type Entry struct {
	ID       string // the key in the object "entries"
	Comment  string // title; default the ID / ""
	Content  string
	Disable  bool
	Constant bool // default true unless exactly false / false
	Position Position
	Key      []string // none is blank: without any, an entry that is not constant is never used
	Order    float64  // default 0 / 100
	Depth    int      // default 0 / 4

	// What has no effect here and an import warns about.
	KeySecondary            []string
	Selective               bool // default true
	Vectorized              bool
	Probability             float64 // percent, default 100
	UseProbability          bool    // default true
	Group                   string
	Sticky, Cooldown, Delay *int // messages
	Filtered                bool // for some characters only, by name or tag
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
		Key:      keysOf(f["key"]),
		Order:    f.float("order", order),
		Depth:    depth,

		KeySecondary: keysOf(f["keysecondary"]),
		Selective:    f.flag("selective", true),
		Vectorized:   f.flag("vectorized", false),

		Probability:    f.float("probability", 100),
		UseProbability: f.flag("useProbability", true),

		Group: f.text("group", ""),

		Sticky:   f.optInt("sticky"),
		Cooldown: f.optInt("cooldown"),
		Delay:    f.optInt("delay"),

		Filtered: filtered(f),
	}
}
