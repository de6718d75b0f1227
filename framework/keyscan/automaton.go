// Package keyscan finds many keys in texts at once. It knows nothing of what the keys are for.
package keyscan

import (
	"context"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// Automaton finds many keys in a text at once (Aho and Corasick), in time that is
// linear in the text and the keys. We have our own because it can go on from one text to the
// next: keys also match across the boundary between two messages.
//
// It is immutable and safe for concurrent use.
type Automaton struct {
	id     uint64
	exact  bool     // texts are compared as they are, else in lower case
	keys   []string // distinct
	states []state  // by depth; children of one parent are adjacent; one extra state at the end
	labels []byte   // the byte that leads to each state
	root   [256]int32
	empty  int32 // the key "", which every text holds; -1 = none
}

// state is a prefix of some key.
type state struct {
	first int32 // first of its child states, which end where those of the next state begin
	fail  int32 // its longest proper suffix that is a state too
	key   int32 // the key that it is; -1 = none
	out   int32 // its longest proper suffix that is a key; 0 = none
	depth int32 // its length in bytes
}

// stateBytes is the size of a state with its label, in bytes.
const stateBytes = 21

// stringBytes is the size of a string without its text, in bytes.
const stringBytes = 16

var ids atomic.Uint64

// New indexes keys, which must be in lower case and distinct. Texts are compared in lower case.
func New(keys []string) *Automaton { return build(keys, false) }

// NewExact indexes distinct keys, which are looked for as they are written.
func NewExact(keys []string) *Automaton { return build(keys, true) }

func build(keys []string, exact bool) *Automaton {
	a := &Automaton{id: ids.Add(1), exact: exact, keys: keys, empty: -1}
	sorted := make([]int32, len(keys))
	for i := range sorted {
		sorted[i] = int32(i)
	}
	slices.SortFunc(sorted, func(i, j int32) int { return strings.Compare(keys[i], keys[j]) })
	if len(keys) > 0 && keys[sorted[0]] == "" {
		a.empty, sorted = sorted[0], sorted[1:]
	}
	a.grow(sorted)
	a.link()
	return a
}

// grow makes the states of the sorted keys, the shortest first.
func (a *Automaton) grow(sorted []int32) {
	size, before := 1, ""
	for _, k := range sorted {
		key := a.keys[k]
		size += len(key) - commonPrefix(before, key)
		before = key
	}
	a.states, a.labels = make([]state, 1, size+1), make([]byte, 1, size)
	a.states[0].key = -1
	spans := make([][2]int32, 1, size) // ranges in sorted: the keys that begin with each state
	spans[0][1] = int32(len(sorted))
	for at := 0; at < len(a.states); at++ {
		s, from, to := &a.states[at], spans[at][0], spans[at][1]
		s.first = int32(len(a.states))
		if from < to && len(a.keys[sorted[from]]) == int(s.depth) && at > 0 {
			s.key = sorted[from]
			from++
		}
		for from < to {
			c := a.keys[sorted[from]][s.depth]
			end := from + 1
			for end < to && a.keys[sorted[end]][s.depth] == c {
				end++
			}
			a.states = append(a.states, state{key: -1, depth: s.depth + 1})
			a.labels, spans = append(a.labels, c), append(spans, [2]int32{from, end})
			from = end
		}
	}
	a.states = append(a.states, state{first: int32(len(a.states))})
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// link finds the fail and out links of all states, shortest first.
func (a *Automaton) link() {
	for at := range a.states[:len(a.states)-1] {
		s := &a.states[at]
		for to := s.first; to < a.states[at+1].first; to++ {
			if at == 0 {
				a.root[a.labels[to]] = to
				continue
			}
			child := &a.states[to]
			child.fail = a.step(s.fail, a.labels[to])
			end := &a.states[child.fail]
			if child.out = end.out; end.key >= 0 {
				child.out = child.fail
			}
		}
	}
}

// Keys returns the keys, by their numbers.
func (a *Automaton) Keys() []string { return a.keys }

// Size estimates the memory of the automaton, in bytes, without the texts of its keys.
func (a *Automaton) Size() int {
	return len(a.states)*stateBytes + len(a.keys)*stringBytes
}

// step goes on from a state by one byte.
func (a *Automaton) step(at int32, c byte) int32 {
	for at != 0 {
		for to := a.states[at].first; to < a.states[at+1].first && a.labels[to] <= c; to++ {
			if a.labels[to] == c {
				return to
			}
		}
		at = a.states[at].fail
	}
	return a.root[c]
}

// scan marks the keys that end in text, going on from a state, and returns the
// state to go on from. text has passed lower.
func (a *Automaton) scan(at int32, text string, hits Set) int32 {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		if at == 0 {
			at = a.root[c]
		} else {
			at = a.step(at, c)
		}
		// Where a key is marked, all keys that it ends in are.
		for end := at; end != 0; end = a.states[end].out {
			k := a.states[end].key
			if k < 0 {
				continue
			}
			if hits.Has(k) {
				break
			}
			hits.Add(k)
		}
	}
	return at
}

// scanned is the result of scanning one text.
type scanned struct {
	keys []int32 // ascending; not the empty key
	end  int32   // the state after the text
}

func (a *Automaton) find(text string) scanned {
	hits := a.newSet()
	end := a.scan(0, lower(text), hits)
	return scanned{hits.List(), end}
}

// Memo keeps what was found in a text, by the id of an automaton and the text. size is about what
// the value takes beside the text, in bytes.
type Memo interface {
	Get(id uint64, text string) (any, bool)
	Put(id uint64, text string, value any, size int)
}

// known is find for a text that memo may know.
func (a *Automaton) known(memo Memo, text string) scanned {
	if v, ok := memo.Get(a.id, text); ok {
		return v.(scanned)
	}
	found := a.find(text)
	memo.Put(a.id, text, found, 4*len(found.keys))
	return found
}

// Search returns the keys that occur in texts joined by one space each. A text that memo
// knows is not scanned again, except for what continues the text before; memo may be nil.
//
// It fails only when ctx ends.
func (a *Automaton) Search(ctx context.Context, texts []string, memo Memo) (Set, error) {
	hits := a.newSet()
	if len(texts) > 0 && a.empty >= 0 {
		hits.Add(a.empty)
	}
	if len(a.labels) == 1 {
		return hits, nil
	}
	at := int32(0)
	for i, t := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if i > 0 {
			at = a.scan(at, " ", hits)
		}
		if memo == nil {
			at = a.scan(at, lower(t), hits)
			continue
		}
		known := a.known(memo, t)
		for _, k := range known.keys {
			hits.Add(k)
		}
		var within bool
		if at, within = a.goOn(at, t, hits); within {
			at = known.end
		}
	}
	return hits, nil
}

// goOn marks the keys that begin before a text and end in it, going on from the state
// before it. within reports whether it reached a state that begins within the text: find has
// found the rest. Otherwise end is the state after the text.
func (a *Automaton) goOn(at int32, text string, hits Set) (end int32, within bool) {
	read := int32(0)
	for _, r := range text {
		if a.states[at].depth <= read {
			return 0, true
		}
		c := string(unicode.ToLower(r))
		at = a.scan(at, c, hits)
		read += int32(len(c))
	}
	return at, a.states[at].depth <= read
}

// lower returns s in lower case, capitals of ASCII excepted: scan sees to those.
// That is s itself for ASCII, Chinese and Japanese.
func lower(s string) string {
	if isLower(s) {
		return s
	}
	return strings.ToLower(s)
}

// isLower reports whether s is known to have no capitals but those of ASCII.
func isLower(s string) bool {
	for i := 0; i < len(s); {
		switch {
		case s[i] < utf8.RuneSelf:
			i++
		case caseless(s[i:]):
			i += 3
		default:
			return false
		}
	}
	return true
}

// caseless reports whether s begins with a code point of three bytes that is
// known to have no case: general punctuation, U+3000 to U+9FFF, and the
// full-width forms without their capitals.
func caseless(s string) bool {
	if len(s) < 3 {
		return false
	}
	switch c := s[0]; {
	case c >= 0xe3 && c <= 0xe9:
		return true
	case c == 0xe2:
		return s[1] == 0x80
	case c == 0xef:
		return s[1] == 0xbc && (s[2] < 0xa1 || s[2] > 0xba)
	}
	return false
}

// Set is a set of numbers of keys.
type Set []uint64

func (a *Automaton) newSet() Set { return make(Set, (len(a.keys)+63)/64) }

// Add puts a key in.
func (s Set) Add(k int32) { s[k/64] |= 1 << (k % 64) }

// Has reports whether a key is in.
func (s Set) Has(k int32) bool { return s[k/64]&(1<<(k%64)) != 0 }

// List returns the keys, ascending.
func (s Set) List() []int32 {
	var all []int32
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			all = append(all, int32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return all
}
