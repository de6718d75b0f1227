package worldinfo

import (
	"context"
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

// isDynamic reports whether a key may have macros.
func isDynamic(s string) bool {
	return strings.Contains(s, "{{") || strings.Contains(s, "<") || strings.Contains(s, `\{`) || strings.Contains(s, `\}`)
}

// keyset is keys that are looked for together. It is immutable.
type keyset struct {
	keys          []key
	folded, exact *keyscan.Automaton
	inFolded      []int32   // of each key: its number in folded; -1 = none
	inExact       []int32   // likewise
	required      [][]int32 // of each pattern: the numbers of its literals in folded
	local         []int32   // the patterns to be looked for in each text
}

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
			if k.local {
				s.local = append(s.local, int32(i))
			}
		}
	}
	s.folded, s.exact = keyscan.New(folded.list), keyscan.NewExact(exact.list)
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
}

func newFinder(s *keyset, cache keyscan.Memo, p *patterns) *finder {
	return &finder{set: s, folded: s.folded.Finder(), exact: s.exact.Finder(), cache: cache, patterns: p}
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

// findPatterns looks for the local patterns. It reports whether all could be run.
func (f *finder) findPatterns(text string, u *unit) bool {
	if len(f.set.local) == 0 {
		return true
	}
	has := make(map[int32]bool, len(u.folded))
	for _, h := range u.folded {
		has[h.Key()] = true
	}
	var runes []rune
	whole := true
	for _, k := range f.set.local {
		if need := f.set.required[k]; need != nil && !anyOf(need, has) {
			continue
		}
		if runes == nil {
			runes = []rune(text)
		}
		found, ok := f.patterns.run(&f.set.keys[k], runes)
		whole = whole && ok
		if found {
			u.patterns = append(u.patterns, k)
		}
	}
	return whole
}

func anyOf(list []int32, has map[int32]bool) bool {
	for _, k := range list {
		if has[k] {
			return true
		}
	}
	return false
}

// patterns runs patterns within the time of a scan.
type patterns struct {
	ctx       context.Context
	allowance *jsregex.Allowance
	slow      []string
	told      map[string]bool
}

// run reports whether a pattern occurs in a text; ok is false if there was no time to see.
func (p *patterns) run(k *key, text []rune) (found, ok bool) {
	if p.ctx.Err() != nil {
		return false, false
	}
	err := p.allowance.Try(k.pattern, func() (err error) {
		found, err = k.pattern.Matches(text)
		return err
	})
	if err != nil && !p.told[k.text] {
		p.told[k.text] = true
		p.slow = append(p.slow, k.text)
	}
	return found && err == nil, err == nil
}
