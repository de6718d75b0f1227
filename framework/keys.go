package framework

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// automaton finds many keys in a text at once (Aho and Corasick). Keys and texts
// are compared in lower case. We have our own because it can go on from one text
// to the next: keys also match across the joint of two messages.
//
// It is immutable after newAutomaton and safe for concurrent use.
type automaton struct {
	id     uint64
	keys   []string // distinct, in lower case
	states []state
	root   [256]int32 // the first step, for every byte
	// spaced is the longest key with a space in it, in bytes: messages are joined
	// by a space, so only such keys can match across the joint.
	spaced int
	empty  int32 // the key "", which every text holds; -1 = none
}

// state is a beginning of some key.
type state struct {
	labels string  // the bytes that lead on, ascending
	next   []int32 // where they lead
	fail   int32   // the longest proper end of it that is a beginning too
	key    int32   // the key that it is; -1 = none
	out    int32   // the longest proper end of it that is a key; 0 = none
}

// newAutomaton indexes keys, which must be in lower case and distinct.
func newAutomaton(keys []string) *automaton {
	a := &automaton{id: compiledIDs.Add(1), keys: keys, empty: -1}
	edges := []map[byte]int32{{}}
	a.states = []state{{key: -1}}
	for i, key := range keys {
		if key == "" {
			a.empty = int32(i)
			continue
		}
		if strings.Contains(key, " ") {
			a.spaced = max(a.spaced, len(key))
		}
		at := int32(0)
		for _, c := range []byte(key) {
			to, ok := edges[at][c]
			if !ok {
				to = int32(len(a.states))
				a.states = append(a.states, state{key: -1})
				edges = append(edges, map[byte]int32{})
				edges[at][c] = to
			}
			at = to
		}
		a.states[at].key = int32(i)
	}
	a.link(edges)
	return a
}

// link writes the edges of the trie into the states and finds, shortest first,
// where to go on when none fits.
func (a *automaton) link(edges []map[byte]int32) {
	for at, e := range edges {
		s := &a.states[at]
		labels := make([]byte, 0, len(e))
		for c := range e {
			labels = append(labels, c)
		}
		slices.Sort(labels)
		s.labels = string(labels)
		for _, c := range labels {
			s.next = append(s.next, e[c])
		}
	}
	for c, to := range edges[0] {
		a.root[c] = to
	}
	queue := slices.Clone(a.states[0].next)
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		s := a.states[at]
		for i, c := range []byte(s.labels) {
			to := s.next[i]
			fail := a.step(s.fail, c)
			a.states[to].fail = fail
			a.states[to].out = a.states[fail].out
			if a.states[fail].key >= 0 {
				a.states[to].out = fail
			}
			queue = append(queue, to)
		}
	}
}

// step goes on from a state by one byte.
func (a *automaton) step(at int32, c byte) int32 {
	for at != 0 {
		s := &a.states[at]
		if i := strings.IndexByte(s.labels, c); i >= 0 {
			return s.next[i]
		}
		at = s.fail
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
		if at == 0 {
			continue
		}
		if k := a.states[at].key; k >= 0 {
			hits.add(k)
		}
		for o := a.states[at].out; o != 0; o = a.states[o].out {
			hits.add(a.states[o].key)
		}
	}
	return at
}

// find returns the keys in one text, ascending; not the empty key.
func (a *automaton) find(text string) []int32 {
	hits := a.newSet()
	a.scan(0, lower(text), hits)
	return hits.list()
}

// search returns the keys that occur in texts joined by one space each. It searches
// each text by itself, unless the cache knows it, and then the joints.
func (a *automaton) search(texts []string, cache *Cache) keySet {
	hits := a.newSet()
	if len(texts) > 0 && a.empty >= 0 {
		hits.add(a.empty)
	}
	if len(a.states) == 1 {
		return hits
	}
	for _, t := range texts {
		if cache == nil {
			a.scan(0, lower(t), hits)
			continue
		}
		for _, k := range cache.keys(a, t) {
			hits.add(k)
		}
	}
	if a.spaced > 0 {
		a.searchJoints(texts, hits)
	}
	return hits
}

// searchJoints marks the keys that begin in one text and end in a later one. It
// looks at as much of both as the longest such key can cover.
func (a *automaton) searchJoints(texts []string, hits keySet) {
	reach := a.spaced - 1
	before := "" // the end of what was joined so far
	for i, t := range texts {
		head, tail := lowerEnds(t, reach)
		if i > 0 {
			at := a.scan(0, before, hits)
			at = a.scan(at, " ", hits)
			a.scan(at, head[:min(len(head), reach)], hits)
		}
		switch {
		case len(tail) >= reach:
			before = tail[len(tail)-reach:]
		case i == 0:
			before = tail
		default:
			before += " " + tail
			before = before[max(0, len(before)-reach):]
		}
	}
}

// lowerEnds returns the beginning and the end of a text as lower has them, each
// of at least n bytes or the whole text.
func lowerEnds(text string, n int) (head, tail string) {
	// Lower case can make a code point shorter, of three bytes two.
	margin := 2*n + 8
	if len(text) <= 2*margin {
		whole := lower(text)
		return whole, whole
	}
	first, last := margin, len(text)-margin
	for !utf8.RuneStart(text[first]) && first < margin+utf8.UTFMax {
		first++
	}
	for !utf8.RuneStart(text[last]) && last > len(text)-margin-utf8.UTFMax {
		last--
	}
	return lower(text[:first]), lower(text[last:])
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
