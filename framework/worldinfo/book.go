package worldinfo

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"sync"

	"nodest/card"
	"nodest/framework/macro"
	"nodest/internal/lru"
)

// Book is books made ready for scans. It is safe for concurrent use.
type Book struct {
	entries []entry
	orders  [3][]int32       // by strategy: the entries as they are looked at
	byID    map[string]int32 // the first one of each id
	levels  []int            // levels of recursion that entries wait for, ascending
	wanted  card.ScanTexts   // some entry asks for them

	// always are entries with a key that is not found in each text by itself, so that any text may bring them in.
	always []bool

	keys    []key    // those without macros
	dynamic []string // those with macros, as they are written
	used    []keyUse // uses of keys, then of dynamic

	// Skipped is how many keys are not looked for, because there are too many.
	Skipped int

	sets   [2]func() *keyset // sets of keys, without and with Settings.CaseSensitive
	lately *lru.Cache[setName, *keyset]

	vectorized func() *Vectorized
}

// keyUse says in which case a key is looked for: by entries that say so, and by those that leave it to
// the settings.
type keyUse struct{ folded, exact, either bool }

func (u keyUse) wanted(caseSensitive bool) (folded, exact bool) {
	return u.folded || u.either && !caseSensitive, u.exact || u.either && caseSensitive
}

// entry is an entry of a book. A key is its number in Book.keys, or of a dynamic one its number
// in Book.dynamic below zero: -1 is the first.
type entry struct {
	*card.Entry
	id         string
	text       string      // without decorators
	hash       string      // hash of an entry that timed effects can be about
	deco       *decorators // nil = none
	keys       []int32
	secondary  []int32
	additional []int32 // keys from decorators
	except     []int32
	groups     []string
}

// Entry returns the entry of an id ("book.uid"), which must not be changed; nil = there is none.
func (b *Book) Entry(id string) *card.Entry {
	if at, ok := b.byID[id]; ok {
		return b.entries[at].Entry
	}
	return nil
}

func (e *entry) name() string { return cmp.Or(e.Comment, e.ID) }

// all returns the keys of every kind.
func (e *entry) all() []int32 { return slices.Concat(e.keys, e.secondary, e.additional, e.except) }

// position is that of the entry, unless decorators have another.
func (e *entry) position() card.Position {
	d := e.deco
	switch {
	case d == nil:
	case d.position != nil:
		return card.Position(*d.position)
	case d.depth != nil || d.role != nil:
		return card.AtDepth
	}
	return e.Position
}

func (e *entry) depth() int {
	if e.deco != nil && e.deco.depth != nil {
		return *e.deco.depth
	}
	return e.Depth
}

func (e *entry) role() int {
	if e.deco != nil && e.deco.role != nil {
		return *e.deco.role
	}
	return e.Role
}

func (e *entry) scanDepth() *int {
	if e.deco != nil && e.deco.scanDepth != nil {
		return e.deco.scanDepth
	}
	return e.ScanDepth
}

// maxLevels is how many levels of recursion follow each other: each is a pass over the entries. Those
// beyond come together.
const maxLevels = 100

// dynamicSets is how many sets of keys with replaced macros a book keeps.
const dynamicSets = 16

// Compile makes books ready. It never fails: Lint says what will not work.
func Compile(sources ...Source) *Book {
	b := &Book{byID: map[string]int32{}, lately: lru.New[setName, *keyset](dynamicSets)}
	c := compiler{Book: b, room: newRoom()}
	var groups [4][]int32
	for _, s := range distinct(sources) {
		for i := range s.Entries {
			groups[s.Origin] = append(groups[s.Origin], c.add(s.Name, &s.Entries[i]))
		}
	}
	for _, g := range groups {
		b.sort(g)
	}
	evenly := slices.Concat(groups[Global], groups[OfCharacter])
	b.sort(evenly)
	first := slices.Concat(groups[OfChat], groups[OfPersona])
	b.orders = [3][]int32{
		Evenly:         slices.Concat(first, evenly),
		CharacterFirst: slices.Concat(first, groups[OfCharacter], groups[Global]),
		GlobalFirst:    slices.Concat(first, groups[Global], groups[OfCharacter]),
	}
	b.Skipped = c.room.skipped
	slices.Sort(b.levels)
	if b.levels = slices.Compact(b.levels); len(b.levels) > maxLevels {
		b.levels = append(b.levels[:maxLevels-1], b.levels[len(b.levels)-1])
	}
	b.used = slices.Concat(c.keyUse, c.dynamicUse)
	b.vectorized = sync.OnceValue(b.listVectorized)
	for i := range b.sets {
		b.sets[i] = sync.OnceValue(func() *keyset {
			s := newKeyset(b.keys, func(k int) (folded, exact bool) { return b.used[k].wanted(i == 1) })
			s.users = users{
				b.usersOf(len(s.folded.Keys()), func(k int32) int32 { return s.inFolded[k] }),
				b.usersOf(len(s.exact.Keys()), func(k int32) int32 { return s.inExact[k] }),
				b.usersOf(len(s.keys), s.localPattern),
			}
			return s
		})
	}
	return b
}

// usersOf lists the entries by the numbers, below n, that their keys have; below zero is none.
func (b *Book) usersOf(n int, number func(k int32) int32) lists {
	return gather(n, func(add func(k, entry int32)) {
		for i := range b.entries {
			for _, k := range b.entries[i].all() {
				if k >= 0 && number(k) >= 0 {
					add(number(k), int32(i))
				}
			}
		}
	})
}

// distinct leaves out books that take part in another role already (spec 3.1).
func distinct(sources []Source) []Source {
	has := func(name string, origins ...Origin) bool {
		return slices.ContainsFunc(sources, func(s Source) bool { return s.Name == name && slices.Contains(origins, s.Origin) })
	}
	var kept []Source
	for i, s := range sources {
		twice := slices.ContainsFunc(sources[:i], func(o Source) bool { return o.Name == s.Name && o.Origin == s.Origin })
		switch s.Origin {
		case OfCharacter:
			twice = twice || has(s.Name, Global, OfChat, OfPersona)
		case OfChat:
			twice = twice || has(s.Name, Global)
		case OfPersona:
			twice = twice || has(s.Name, Global, OfChat)
		}
		if !twice {
			kept = append(kept, s)
		}
	}
	return kept
}

func (b *Book) sort(list []int32) {
	slices.SortStableFunc(list, func(x, y int32) int { return cmp.Compare(b.entries[y].Order, b.entries[x].Order) })
}

// compiler gives keys numbers.
type compiler struct {
	*Book
	static, macros     table
	room               room
	keyUse, dynamicUse []keyUse
}

func (c *compiler) add(book string, e *card.Entry) int32 {
	n := int32(len(c.entries))
	en := entry{Entry: e, id: book + "." + e.ID}
	en.deco, en.text = parseDecorators(e.Content)
	if !e.Disable {
		en.keys, en.secondary = c.numbers(e, e.Key), c.numbers(e, e.KeySecondary)
		if en.deco != nil {
			en.additional, en.except = c.numbers(e, en.deco.additional), c.numbers(e, en.deco.except)
		}
		c.want(e.ScanTexts)
	}
	en.groups = groupsIn(e.Group)
	c.always = append(c.always, slices.ContainsFunc(en.all(), func(k int32) bool { return k < 0 || !c.Book.keys[k].simple() }))
	if e.DelayUntilRecursion > 0 {
		c.levels = append(c.levels, e.DelayUntilRecursion)
	}
	if e.Sticky != nil || e.Cooldown != nil {
		en.hash = hashOf(e)
	}
	c.entries = append(c.entries, en)
	if _, known := c.byID[en.id]; !known {
		c.byID[en.id] = n
	}
	return n
}

// groupsIn are the groups that a list names, each once.
func groupsIn(names string) []string {
	var t table
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimLeftFunc(name, isSpace); name != "" {
			t.number(name)
		}
	}
	return t.list
}

func (c *compiler) want(t card.ScanTexts) {
	w := &c.wanted
	w.Persona, w.Description, w.Personality = w.Persona || t.Persona, w.Description || t.Description, w.Personality || t.Personality
	w.DepthPrompt, w.Scenario, w.CreatorNotes = w.DepthPrompt || t.DepthPrompt, w.Scenario || t.Scenario, w.CreatorNotes || t.CreatorNotes
}

func (c *compiler) numbers(e *card.Entry, keys []string) []int32 {
	list := make([]int32, len(keys))
	for i, k := range keys {
		uses := &c.dynamicUse
		var n int32
		if !macro.Fixed(k) {
			n = c.macros.number(k)
			c.dynamic = c.macros.list
			list[i] = -1 - n
		} else {
			n = c.static.number(k)
			list[i] = n
			uses = &c.keyUse
			if int(n) == len(c.keys) {
				c.keys = append(c.keys, c.room.parse(k))
			}
		}
		if int(n) == len(*uses) {
			*uses = append(*uses, keyUse{})
		}
		switch u := &(*uses)[n]; {
		case e.CaseSensitive == nil:
			u.either = true
		case *e.CaseSensitive:
			u.exact = true
		default:
			u.folded = true
		}
	}
	return list
}

// hashOf names the version of an entry, as far as a scan reads it.
func hashOf(e *card.Entry) string {
	h := fnv.New64a()
	doc, _ := json.Marshal(e) // it always encodes
	_, _ = h.Write(doc)
	return "h" + formatHash(h.Sum64())
}

// set returns the keys without macros.
func (b *Book) set(caseSensitive bool) *keyset {
	if caseSensitive {
		return b.sets[1]()
	}
	return b.sets[0]()
}

// dynamicSet returns the keys with macros, which expand replaces; nil if there are none.
func (b *Book) dynamicSet(caseSensitive bool, expand func(string) string) *keyset {
	if len(b.dynamic) == 0 {
		return nil
	}
	texts := make([]string, len(b.dynamic))
	for i, k := range b.dynamic {
		texts[i] = expand(k)
	}
	name := nameOf(caseSensitive, texts)
	if s, ok := b.lately.Get(name); ok {
		return s
	}
	keys, r := make([]key, len(texts)), newRoom()
	for i, t := range texts {
		keys[i] = r.parse(t)
	}
	uses := b.used[len(b.keys):]
	s := newKeyset(keys, func(k int) (folded, exact bool) { return uses[k].wanted(caseSensitive) })
	b.lately.Put(name, s, 1)
	return s
}

// setName tells sets of keys apart.
type setName [sha256.Size]byte

func nameOf(caseSensitive bool, keys []string) (name setName) {
	h := sha256.New()
	head := make([]byte, 8)
	for _, k := range keys {
		binary.LittleEndian.PutUint64(head, uint64(len(k)))
		_, _ = h.Write(head)
		_, _ = io.WriteString(h, k)
	}
	if caseSensitive {
		_, _ = h.Write([]byte{1})
	}
	h.Sum(name[:0])
	return name
}

// entryBytes is about what an entry takes beside its texts and keys.
const entryBytes = 310

// Size estimates the memory of b, in bytes, without the texts of the entries.
func (b *Book) Size() int {
	size := len(b.entries)*(entryBytes+3*4) + b.set(false).size()
	for i := range b.entries {
		e := &b.entries[i]
		size += 4*(len(e.keys)+len(e.secondary)) + len(e.id) + len(e.hash)
	}
	return size
}
