package worldinfo

import (
	"context"
	"slices"
	"strings"
	"time"

	"nodest/framework/jsregex"
	"nodest/framework/keyscan"
)

// kind is how a key is looked for.
type kind uint8

const (
	plainKey   kind = iota
	blankKey        // is in every text
	patternKey      // /pattern/flags
	emptyKey        // never found; a macro that stands for nothing
)

// key is a key with its macros replaced.
type key struct {
	kind    kind
	spaced  bool   // has white space inside: never a whole word
	text    string // trimmed
	pattern *jsregex.Pattern
	traits
}

// patternLimit is the time that one pattern may take for one run, and patternsLimit that of all patterns
// of a scan together.
const (
	patternLimit  = 100 * time.Millisecond
	patternsLimit = 500 * time.Millisecond
)

// The sources of the patterns of all books of a scan and the texts of their keys are bounded, in bytes:
// compiled and in use, patterns take a hundred times as much, keys more than twenty times.
const (
	maxPatterns = 512 << 10
	maxKeys     = 4 << 20
)

// patternCost is what a pattern takes beside its source, as so many bytes of one.
const patternCost = 30

// room is what is left of these bounds.
type room struct{ patterns, keys, skipped int }

func newRoom() room { return room{patterns: maxPatterns, keys: maxKeys} }

// parse is parseKey for a key that there is room for. Any other is never found.
func (r *room) parse(s string) key {
	need, patterns := len(s)+1, 0
	if strings.HasPrefix(trim(s), "/") {
		patterns = need + patternCost
	}
	if need > r.keys || patterns > r.patterns {
		r.skipped++
		return key{kind: emptyKey}
	}
	r.keys -= need
	r.patterns -= patterns
	return parseKey(s)
}

// parseKey reads a key, in which macros are replaced. What is no valid pattern is a plain key.
func parseKey(s string) key {
	if s == "" {
		return key{kind: emptyKey}
	}
	if s = trim(s); s == "" {
		return key{kind: blankKey}
	}
	if source, flags, ok := jsregex.Key(s); ok {
		if p, err := jsregex.Compile(source, flags, patternLimit); err == nil {
			return key{kind: patternKey, text: s, pattern: p, traits: traitsOf(source, flags)}
		}
	}
	return key{text: s, spaced: strings.ContainsFunc(s, isSpace)}
}

// keyset is keys that are looked for together. It is immutable.
type keyset struct {
	keys          []key
	folded, exact *keyscan.Automaton
	inFolded      []int32   // each key's number in folded; -1 = none
	inExact       []int32   // likewise
	required      [][]int32 // each pattern's literals, by their numbers in folded
	byLiteral     lists     // by number in folded: the local patterns that have it as a literal
	bare          []int32   // the local patterns without literals
	users         users
}

// users says which entries have a key that is found in each text by itself. Nil lists are of keys with
// macros, of which that is not known.
type users struct{ folded, exact, local lists }

// lists are lists of entries by numbers, one behind the other.
type lists struct{ first, all []int32 }

func (l *lists) of(k int32) []int32 {
	if l.first == nil {
		return nil
	}
	return l.all[l.first[k]:l.first[k+1]]
}

// gather makes lists. each calls its argument for all pairs of a number below n and an entry, twice the
// same ones.
func gather(n int, each func(add func(k, entry int32))) lists {
	l := lists{first: make([]int32, n+1)}
	each(func(k, _ int32) { l.first[k+1]++ })
	for k := range n {
		l.first[k+1] += l.first[k]
	}
	l.all = make([]int32, l.first[n])
	next := slices.Clone(l.first)
	each(func(k, entry int32) {
		l.all[next[k]] = entry
		next[k]++
	})
	return l
}

// simple reports whether a key is found in each text by itself.
func (k *key) simple() bool { return k.kind == plainKey || k.kind == patternKey && k.local }

// newKeyset indexes keys. wanted says of each whether it is looked for in any case, and as it is written.
func newKeyset(keys []key, wanted func(k int) (folded, exact bool)) *keyset {
	s := &keyset{keys: keys, inFolded: make([]int32, len(keys)), inExact: make([]int32, len(keys)), required: make([][]int32, len(keys))}
	var folded, exact table
	for i := range keys {
		k := &keys[i]
		s.inFolded[i], s.inExact[i] = -1, -1
		switch k.kind {
		case plainKey:
			inFolded, inExact := wanted(i)
			if inFolded {
				s.inFolded[i] = folded.number(strings.ToLower(keyscan.Fold(k.text)))
			}
			if inExact {
				s.inExact[i] = exact.number(k.text)
			}
		case patternKey:
			for _, l := range k.literals {
				s.required[i] = append(s.required[i], folded.number(l))
			}
			if k.local && k.literals == nil {
				s.bare = append(s.bare, int32(i))
			}
		}
	}
	s.folded, s.exact = keyscan.New(folded.list), keyscan.NewExact(exact.list)
	s.byLiteral = gather(len(folded.list), func(add func(literal, pattern int32)) {
		for i, literals := range s.required {
			for _, l := range literals {
				if keys[i].local {
					add(l, int32(i))
				}
			}
		}
	})
	return s
}

// size estimates the memory of the set, in bytes.
func (s *keyset) size() int {
	size := s.folded.Size() + s.exact.Size() + len(s.keys)*(48+2*4+24)
	for i := range s.keys {
		if k := &s.keys[i]; k.pattern != nil {
			size += 3000 + 100*len(k.text)
		}
		size += 4 * len(s.required[i])
	}
	for _, l := range []*lists{&s.users.folded, &s.users.exact, &s.users.local} {
		size += 4 * (len(l.first) + len(l.all))
	}
	return size
}

// table gives texts numbers.
type table struct {
	list []string
	of   map[string]int32
}

func (t *table) number(s string) int32 {
	n, ok := t.of[s]
	if !ok {
		if t.of == nil {
			t.of = map[string]int32{}
		}
		n = int32(len(t.list))
		t.of[s] = n
		t.list = append(t.list, s)
	}
	return n
}

// unit is what was found in one text.
type unit struct {
	folded, exact []keyscan.Hit
	patterns      []int32 // local ones
}

// finder looks for the keys of a set in texts.
type finder struct {
	set           *keyset
	folded, exact *keyscan.Finder
	cache         keyscan.Memo
	patterns      *patterns

	text  int     // counts the texts that were looked at for patterns
	tried []int   // by keys: the text that they were looked for in last
	try   []int32 // patterns to look for, in the text of now
}

func newFinder(s *keyset, cache keyscan.Memo, p *patterns) *finder {
	return &finder{set: s, folded: s.folded.Finder(), exact: s.exact.Finder(), cache: cache, patterns: p, tried: make([]int, len(s.keys))}
}

// find returns what is in a text.
func (f *finder) find(text string) unit {
	if f.cache != nil {
		if v, ok := f.cache.Get(f.set.folded.ID(), text); ok {
			return v.(unit)
		}
	}
	u := unit{folded: f.folded.Find(text), exact: f.exact.Find(text)}
	whole := f.findPatterns(text, &u)
	if f.cache != nil && whole {
		f.cache.Put(f.set.folded.ID(), text, u, 4*(len(u.folded)+len(u.exact)+len(u.patterns))+72)
	}
	return u
}

// findPatterns looks for the local patterns whose literals are in a text. It reports whether all could
// be run.
func (f *finder) findPatterns(text string, u *unit) bool {
	f.try = append(f.try[:0], f.set.bare...)
	f.text++
	for _, h := range u.folded {
		for _, k := range f.set.byLiteral.of(h.Key()) {
			if f.tried[k] != f.text {
				f.tried[k] = f.text
				f.try = append(f.try, k)
			}
		}
	}
	if len(f.try) == 0 {
		return true
	}
	runes, whole := []rune(text), true
	for _, k := range f.try {
		found, ok := f.patterns.run(&f.set.keys[k], func() []rune { return runes })
		whole = whole && ok
		if found {
			u.patterns = append(u.patterns, k)
		}
	}
	return whole
}

// patterns runs patterns within the time of a scan.
type patterns struct {
	ctx       context.Context
	allowance *jsregex.Allowance
	slow      []string
	told      map[string]bool
}

// over reports that there is no time for a pattern any more.
func (p *patterns) over(k *key) bool {
	if p.ctx.Err() != nil {
		return true
	}
	over := k.pattern.Off() || p.allowance.Spent(k.pattern)
	if over {
		p.tell(k)
	}
	return over
}

// tell notes a pattern that ran out of time.
func (p *patterns) tell(k *key) {
	if !p.told[k.text] {
		p.told[k.text] = true
		p.slow = append(p.slow, k.text)
	}
}

// run reports whether a pattern occurs in a text; ok is false if there was no time to see. The time that
// text takes to be made counts.
func (p *patterns) run(k *key, text func() []rune) (found, ok bool) {
	if p.over(k) {
		return false, false
	}
	err := p.allowance.Try(k.pattern, func() (err error) {
		found, err = k.pattern.Matches(text())
		return err
	})
	if err != nil {
		p.tell(k)
	}
	return found && err == nil, err == nil
}

// localPattern returns a key that is a local pattern as it is, and -1 for any other.
func (s *keyset) localPattern(k int32) int32 {
	if s.keys[k].kind == patternKey && s.keys[k].local {
		return k
	}
	return -1
}
