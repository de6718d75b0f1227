package framework

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"nodest/card"
	"nodest/framework/keyscan"
)

// Compiled are documents made ready for building. It is immutable and safe for
// concurrent use.
type Compiled struct {
	name    string // {{char}}: the nickname of the character, or its name
	frame   frame
	chat    layout
	books   []*item // every entry of the books, also those that are never used
	keys    *keyscan.Automaton
	dropped []Dropped // whatever the request
	// unread are entries whose keys are not looked for: they are over maxKeys.
	unread  int
	persona bool // the frame has a place for the persona's description
}

// maxKeys bounds the keys of all books of a prompt, in bytes, with one more for each key.
// Keys beyond it, in the order of the entries, are not looked for.
const maxKeys = 4 << 20

// Compile prepares documents. It never fails: what cannot be used is reported by
// Build as a dropped candidate.
func Compile(s Sources) *Compiled {
	preset := resolvePreset(s)
	book, all, dropped := resolveBooks(s)
	by := overridesOf(&s, preset)
	c := &Compiled{name: cmp.Or(strings.TrimSpace(s.Card.Nickname), s.Card.Name), frame: buildFrame(&s, preset, by), books: all}
	c.index(book)
	c.frame.place(book)
	c.chat = arrange(injections(preset, by), book)
	c.dropped = slices.Concat(c.frame.unlisted, by.dropped, dropped)
	c.persona = slices.ContainsFunc(c.frame.slots, func(it *item) bool { return it.persona })
	return c
}

// index gives the keys of the entries numbers and builds the automaton.
func (c *Compiled) index(book []*item) {
	numbers := map[string]int32{}
	var keys []string
	room := maxKeys
	for _, it := range book {
		if it.constant {
			continue
		}
		need := 0
		for _, k := range it.keys {
			need += len(k) + 1
		}
		if need > room {
			c.unread++
			continue
		}
		room -= need
		for _, k := range it.keys {
			k = strings.ToLower(k)
			n, ok := numbers[k]
			if !ok {
				n = int32(len(keys))
				numbers[k] = n
				keys = append(keys, k)
			}
			it.keyIDs = append(it.keyIDs, n)
		}
	}
	c.keys = keyscan.New(keys)
}

// resolvePreset chooses between the global preset and the character's own.
func resolvePreset(s Sources) card.Preset {
	p := s.GlobalPreset
	if p == nil {
		p = s.Preset
	}
	if p == nil {
		builtIn := BuiltInPreset(s.Language, false)
		p = &builtIn
	}
	return *p
}

// resolveBooks puts the books of a character together. Where the character's and
// the global book have an entry of the same key, the later one takes the earlier
// one's place. items are those that can be used, and all are all.
func resolveBooks(s Sources) (items, all []*item, dropped []Dropped) {
	own := bookItems(SourceBook, "", s.Book, false)
	all = own
	if s.GlobalBook != nil {
		global := bookItems(SourceGlobalBook, "", *s.GlobalBook, s.GlobalFilterKeyed)
		all = slices.Concat(own, global)
		if s.GlobalPriority == CharacterLater {
			own, dropped = mergeBooks(global, own)
		} else {
			own, dropped = mergeBooks(own, global)
		}
	}
	for _, b := range s.MoreBooks {
		more := bookItems(SourceBook, b.ID+"/", b.Book, b.FilterKeyed)
		own, all = slices.Concat(own, more), slices.Concat(all, more)
	}
	for _, it := range own {
		switch {
		case it.disable:
			dropped = append(dropped, it.dropped(DropDisabled))
		case it.position < beforeChar || it.position > atDepth:
			dropped = append(dropped, it.dropped(dropPlace))
		default:
			items = append(items, it)
		}
	}
	return items, all, dropped
}

func bookItems(source Source, prefix string, b card.WorldBook, filter bool) []*item {
	items := make([]*item, len(b.Entries))
	for i := range b.Entries {
		e := &b.Entries[i]
		name := cmp.Or(e.Comment, e.ID)
		items[i] = &item{
			source: source, id: prefix + e.ID, name: name, text: e.Content, role: "user",
			position: int(e.Position), order: e.Order, depth: e.Depth,
			constant: e.Constant, disable: e.Disable, filter: filter, keys: usable(e.Key),
		}
	}
	return items
}

// usable leaves out blank keys, which the SillyTavern dialect has.
func usable(keys []string) []string {
	if !slices.ContainsFunc(keys, isBlank) {
		return keys
	}
	return slices.DeleteFunc(slices.Clone(keys), isBlank)
}

// mergeBooks works like the spread of two JavaScript objects.
func mergeBooks(first, second []*item) (merged []*item, dropped []Dropped) {
	at := map[string]int{}
	for _, it := range first {
		at[it.id] = len(merged)
		merged = append(merged, it)
	}
	for _, it := range second {
		if i, same := at[it.id]; same {
			dropped = append(dropped, merged[i].dropped(DropReplaced))
			merged[i] = it
			continue
		}
		merged = append(merged, it)
	}
	return merged, dropped
}

// Estimated sizes without the texts, in bytes.
const (
	itemBytes   = 400 // an entry of a book
	stringBytes = 16
)

// Size estimates the memory of c, in bytes, without the texts of the documents.
func (c *Compiled) Size() int {
	size := c.keys.Size()
	for _, it := range c.books {
		size += itemBytes + len(it.keys)*stringBytes + len(it.keyIDs)*4
	}
	return size
}

// Matches returns the keys of the books that occur in a chat of these messages,
// in lower case, in the order of the entries. Messages are joined by a space;
// cache may be nil. It fails only when ctx ends.
func (c *Compiled) Matches(ctx context.Context, messages []string, cache *Cache) ([]string, error) {
	hits, err := c.keys.Search(ctx, messages, cache.Memo())
	var keys []string
	for _, k := range hits.List() {
		keys = append(keys, c.keys.Keys()[k])
	}
	return keys, err
}
