package framework

import (
	"context"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// automaton finds many keys in a text at once (Aho and Corasick), in time that is
// linear in the text and the keys. Keys and texts are compared in lower case. We have
// our own because it can go on from one text to the next: keys also match across the
// boundary between two messages.
//
// It is immutable after newAutomaton and safe for concurrent use.
type automaton struct {
	id     uint64
	keys   []string // distinct, in lower case
	states []state  // by depth; children of one parent are adjacent; one extra state at the end
	labels []byte   // the byte that leads to each state
	root   [256]int32
	empty  int32 // the key "", which every text holds; -1 = none
}

// state is a prefix of some key.
type state struct {
	first int32 // of its child states, which end where those of the next state begin
	fail  int32 // its longest proper suffix that is a state too
	key   int32 // the key that it is; -1 = none
	out   int32 // its longest proper suffix that is a key; 0 = none
	depth int32 // its length in bytes
}

// stateBytes is the size of a state with its label, in bytes.
const stateBytes = 21

// newAutomaton indexes keys, which must be in lower case and distinct.
func newAutomaton(keys []string) *automaton {
	a := &automaton{id: compiledIDs.Add(1), keys: keys, empty: -1}
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
func (a *automaton) grow(sorted []int32) {
	size, before := 1, ""
	for _, k := range sorted {
		key := a.keys[k]
		size += len(key) - commonPrefix(before, key)
		before = key
	}
	a.states, a.labels = make([]state, 1, size+1), make([]byte, 1, size)
	a.states[0].key = -1
	spans := make([][2]int32, 1, size) // of sorted: the keys that begin with each state
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
func (a *automaton) link() {
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

// size estimates the memory of the automaton, in bytes, without the texts of its keys.
func (a *automaton) size() int {
	return len(a.states)*stateBytes + len(a.keys)*stringBytes
}

// step goes on from a state by one byte.
func (a *automaton) step(at int32, c byte) int32 {
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
func (a *automaton) scan(at int32, text string, hits keySet) int32 {
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
			if hits.has(k) {
				break
			}
			hits.add(k)
		}
	}
	return at
}

// scanned is the result of scanning one text.
type scanned struct {
	keys []int32 // ascending; not the empty key
	end  int32   // the state after the text
}

func (a *automaton) find(text string) scanned {
	hits := a.newSet()
	end := a.scan(0, lower(text), hits)
	return scanned{hits.list(), end}
}

// search returns the keys that occur in texts joined by one space each. A text that the
// cache knows is not scanned again, except for what continues the text before.
//
// It fails only when ctx ends.
func (a *automaton) search(ctx context.Context, texts []string, cache *Cache) (keySet, error) {
	hits := a.newSet()
	if len(texts) > 0 && a.empty >= 0 {
		hits.add(a.empty)
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
		if cache == nil {
			at = a.scan(at, lower(t), hits)
			continue
		}
		known := cache.keys(a, t)
		for _, k := range known.keys {
			hits.add(k)
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
func (a *automaton) goOn(at int32, text string, hits keySet) (end int32, within bool) {
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
	for i := 0; i < len(s); {
		switch {
		case s[i] < utf8.RuneSelf:
			i++
		case caseless(s[i:]):
			i += 3
		default:
			return strings.ToLower(s)
		}
	}
	return s
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

// keySet is a set of key ids.
type keySet []uint64

func (a *automaton) newSet() keySet { return make(keySet, (len(a.keys)+63)/64) }

func (s keySet) add(k int32)      { s[k/64] |= 1 << (k % 64) }
func (s keySet) has(k int32) bool { return s[k/64]&(1<<(k%64)) != 0 }

func (s keySet) list() []int32 {
	var all []int32
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			all = append(all, int32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return all
}
