package framework

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// pattern is a JavaScript regular expression. Captures are numbered as in
// JavaScript: in the order of their opening brackets, named or not.
type pattern struct {
	re     *regexp2.Regexp
	global bool // flag g: every match, else the first one
	sticky bool // flag y: a match must begin where the one before ended
	groups int
	names  map[string]int // of named groups; nil without any
	nested bool           // a repetition inside a repetition: may take very long
}

// maxPattern bounds the source of a pattern, in bytes.
const maxPattern = 16 << 10

// maxReplaced bounds what a replacement may make of a text, in bytes: $` and $'
// can square its length. Each reference counts as one more byte, so that a replacement with many
// empty references is bounded too.
const maxReplaced = 4 << 20

// maxPatterns bounds the sources of the patterns of a set of scripts together, in bytes:
// compiled and in use, they take a hundred times as much.
const maxPatterns = 512 << 10

var (
	errPatternTime = errors.New("the pattern took too long")
	errPatternSize = errors.New("the result is too long")
)

// compilePattern translates source, in the syntax of JavaScript with the flags
// given, for a backtracking engine of other syntax. limit bounds the time of one
// match, and about that of a whole replace.
//
// Known differences: text is seen as code points also without the flag u, a group
// inside a repetition keeps its last capture, and the flag v is read as u.
func compilePattern(source, flags string, limit time.Duration) (p *pattern, err error) {
	defer func() {
		if recover() != nil { // the engine gives up on some patterns this way
			p, err = nil, errors.New("invalid pattern")
		}
	}()
	if len(source) > maxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	t := translator{src: source}
	p = &pattern{}
	opts := regexp2.RegexOptions(regexp2.ECMAScript)
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
			opts |= regexp2.IgnoreCase
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
	re, err := regexp2.Compile(translated, opts)
	if err != nil {
		return nil, errors.New("invalid pattern")
	}
	re.MatchTimeout = limit
	p.re, p.groups, p.names, p.nested = re, t.total, t.names, t.nested
	return p, nil
}

// replace works like String.prototype.replace with a string, and counts the
// replacements. When it takes longer than its limit, or would make more than
// maxReplaced, it returns an error and the text as it was. It is safe for concurrent use.
func (p *pattern) replace(text, replacement string) (result string, n int, err error) {
	defer func() {
		if recover() != nil {
			result, n, err = text, 0, errors.New("the pattern failed")
		}
	}()
	started := time.Now()
	runes := []rune(text)
	b := replaced{}
	end := 0 // of the match before, in runes
	m, err := p.re.FindRunesMatch(runes)
	for m != nil && err == nil {
		if p.sticky && m.Index != end {
			break
		}
		b.WriteString(string(runes[end:m.Index]))
		p.expand(&b, replacement, runes, m)
		n++
		if end = m.Index + m.Length; b.full() {
			return text, 0, errPatternSize
		}
		if !p.global {
			break
		}
		if time.Since(started) > p.re.MatchTimeout {
			return text, 0, errPatternTime
		}
		m, err = p.re.FindNextMatch(m)
	}
	if err != nil {
		return text, 0, errPatternTime
	}
	if b.Len() == 0 && end == 0 {
		return text, n, nil
	}
	b.WriteString(string(runes[end:]))
	return b.String(), n, nil
}

// replaced is what a replacement makes of a text.
type replaced struct {
	strings.Builder
	references int
}

func (b *replaced) full() bool { return b.Len()+b.references > maxReplaced }

// expand appends a replacement: $$, $&, $`, $', $1 to $99 and $<name>.
func (p *pattern) expand(b *replaced, replacement string, text []rune, m *regexp2.Match) {
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
			b.WriteString(m.String())
			i++
		case next == '`':
			b.WriteString(string(text[:m.Index]))
			i++
		case next == '\'':
			b.WriteString(string(text[m.Index+m.Length:]))
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
func (p *pattern) expandNumber(b *replaced, digits string, m *regexp2.Match) int {
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

func writeGroup(b *replaced, m *regexp2.Match, n int) {
	if g := m.GroupByNumber(n); g != nil && len(g.Captures) > 0 {
		b.WriteString(g.String())
	}
}

// splitPattern takes a pattern of the form /source/flags apart; any other is
// its own source.
func splitPattern(find string) (source, flags string) {
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

// What the classes and anchors of JavaScript stand for.
const (
	jsSpace   = `\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff`
	jsWord    = `[a-zA-Z0-9_]`
	jsNewline = `\n\r\u2028\u2029`
)

// translator rewrites a JavaScript pattern. It accepts what JavaScript accepts
// (with the leniency of Annex B unless the flag u is set) and nothing else.
type translator struct {
	src                        string
	multiline, dotAll, unicode bool

	pos    int
	out    strings.Builder
	stack  []bracket // the open ones; the first is the pattern itself
	total  int       // captures in the whole pattern
	names  map[string]int
	nested bool
}

// bracket is an open bracket of the pattern, and what is known of its current
// alternative.
type bracket struct {
	look, behind bool // lookaround

	loose   bool // of an alternative before: repeats, and nothing in it is fixed
	repeats bool // something is repeated without bound
	fixed   bool // something must occur exactly once
	pending atom // the atom before, until it is known whether a quantifier follows
}

// settle notes that no quantifier followed the atom before.
func (f *bracket) settle() {
	if f.pending.repeatable && !f.pending.look {
		f.repeats = f.repeats || f.pending.loose
		f.fixed = f.fixed || !f.pending.loose
	}
	f.pending = atom{}
}

// endAlternative is reached at | and at the closing bracket.
func (f *bracket) endAlternative() {
	f.settle()
	f.loose = f.loose || f.repeats && !f.fixed
	f.repeats, f.fixed = false, false
}

// atom is what the last token was, for a quantifier that may follow.
type atom struct {
	repeatable bool
	loose      bool // a group that repeats and has nothing fixed: repeating it is slow
	look       bool // it takes no text
}

func (t *translator) translate() (string, error) {
	if !utf8.ValidString(t.src) {
		return "", errors.New("the pattern is not valid UTF-8")
	}
	if err := t.scanGroups(); err != nil {
		return "", err
	}
	t.stack = []bracket{{}}
	for t.pos < len(t.src) {
		var err error
		top := t.top()
		switch t.src[t.pos] {
		case '(':
			top.settle()
			err = t.open()
		case ')':
			err = t.close()
		case '|':
			t.pos++
			t.out.WriteByte('|')
			top.endAlternative()
		case '*', '+', '?', '{':
			err = t.repeat()
		default:
			top.settle()
			top.pending, err = t.atom()
		}
		if err != nil {
			return "", err
		}
	}
	if len(t.stack) > 1 {
		return "", errors.New("unterminated group")
	}
	return t.out.String(), nil
}

func (t *translator) top() *bracket { return &t.stack[len(t.stack)-1] }

func (t *translator) close() error {
	if len(t.stack) == 1 {
		return errors.New("unmatched closing parenthesis")
	}
	f := t.top()
	f.endAlternative()
	t.pos++
	t.out.WriteByte(')')
	t.stack = t.stack[:len(t.stack)-1]
	t.top().pending = atom{repeatable: !f.behind && (!f.look || !t.unicode), loose: f.loose, look: f.look}
	return nil
}

// repeat writes a quantifier, or a brace that is none.
func (t *translator) repeat() error {
	f := t.top()
	quantifier, least, unbounded := t.quantifier()
	if quantifier == "" {
		if t.unicode {
			return errors.New("a brace must be escaped")
		}
		f.settle()
		f.pending = atom{repeatable: true}
		t.pos++
		t.out.WriteString(`\{`)
		return nil
	}
	if !f.pending.repeatable {
		return errors.New("nothing to repeat")
	}
	t.out.WriteString(quantifier)
	t.nested = t.nested || unbounded && f.pending.loose
	f.repeats = f.repeats || unbounded
	f.fixed = f.fixed || !unbounded && least > 0
	f.pending = atom{}
	return nil
}

// atom writes a class, an escape or a single character.
func (t *translator) atom() (atom, error) {
	switch t.src[t.pos] {
	case '[':
		return atom{repeatable: true}, t.class()
	case '\\':
		text, repeatable, err := t.escape()
		t.out.WriteString(text)
		return atom{repeatable: repeatable}, err
	}
	r, size := utf8.DecodeRuneInString(t.src[t.pos:])
	if t.unicode && (r == '}' || r == ']') {
		return atom{}, errors.New("a closing bracket must be escaped")
	}
	t.pos += size
	return atom{repeatable: t.plain(r)}, nil
}

// plain writes a character outside classes and reports whether it can be
// repeated.
func (t *translator) plain(r rune) bool {
	switch r {
	case '^':
		if t.multiline {
			t.out.WriteString(`(?<=[` + jsNewline + `]|(?<![\s\S]))`)
		} else {
			t.out.WriteString(`(?<![\s\S])`)
		}
		return false
	case '$':
		if t.multiline {
			t.out.WriteString(`(?=[` + jsNewline + `]|\z)`)
		} else {
			t.out.WriteString(`\z`)
		}
		return false
	case '.':
		if t.dotAll {
			t.out.WriteString(`[\s\S]`)
		} else {
			t.out.WriteString(`[^` + jsNewline + `]`)
		}
	default:
		t.literal(r)
	}
	return true
}

// literal writes a character that stands for itself, in a class or outside.
func (t *translator) literal(r rune) {
	if strings.ContainsRune(`\[](){}*+?.|^$-#/ `, r) {
		t.out.WriteByte('\\')
	}
	t.out.WriteRune(r)
}

func (t *translator) open() error {
	if len(t.stack) == 200 {
		return errors.New("groups are nested too deeply")
	}
	rest := t.src[t.pos:]
	for _, head := range []string{"(?:", "(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(rest, head) {
			t.pos += len(head)
			t.out.WriteString(head)
			t.stack = append(t.stack, bracket{behind: len(head) == 4, look: head != "(?:"})
			return nil
		}
	}
	if name, ok := groupName(rest); ok {
		t.pos += len("(?<>") + len(name)
	} else if strings.HasPrefix(rest, "(?") {
		return errors.New("unknown kind of group")
	} else {
		t.pos++
	}
	t.out.WriteByte('(')
	t.stack = append(t.stack, bracket{})
	return nil
}

// quantifier reads a quantifier and returns it as the engine writes it, "" if
// the brace there does not begin one.
func (t *translator) quantifier() (quantifier string, least int, unbounded bool) {
	rest := t.src[t.pos:]
	n := 1
	switch rest[0] {
	case '{':
		var most int
		n, least, most, unbounded = readBraces(rest)
		switch {
		case n == 0:
			return "", 0, false
		case unbounded:
			quantifier = fmt.Sprintf("{%d,}", least)
		default:
			quantifier, unbounded = fmt.Sprintf("{%d,%d}", least, most), most >= 50
		}
	case '+':
		quantifier, least, unbounded = "+", 1, true
	default:
		quantifier, unbounded = rest[:1], rest[0] == '*'
	}
	if len(rest) > n && rest[n] == '?' {
		quantifier += "?"
		n++
	}
	t.pos += n
	return quantifier, least, unbounded
}

// maxRepeat bounds the counts of a quantifier: the engine unrolls them.
const maxRepeat = 100_000

var braces = regexp.MustCompile(`^\{(\d+)(?:(,)(\d*))?\}`)

// readBraces reads {n}, {n,} or {n,m}; size is 0 when s begins with none.
func readBraces(s string) (size, least, most int, open bool) {
	m := braces.FindStringSubmatch(s)
	if m == nil {
		return 0, 0, 0, false
	}
	return len(m[0]), readCount(m[1]), readCount(cmp.Or(m[3], m[1])), m[2] != "" && m[3] == ""
}

func readCount(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil { // it is larger than any number
		return maxRepeat
	}
	return min(n, maxRepeat)
}

// scanGroups counts the captures and learns their names before the translation,
// because references may come before their group.
func (t *translator) scanGroups() error {
	inClass := false
	for i := 0; i < len(t.src); i++ {
		switch c := t.src[i]; {
		case c == '\\':
			i++
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case c == '(' && !inClass:
			if name, ok := groupName(t.src[i:]); ok {
				t.total++
				if t.names == nil {
					t.names = map[string]int{}
				}
				if _, twice := t.names[name]; twice {
					return errors.New("duplicate group name")
				}
				t.names[name] = t.total
			} else if !strings.HasPrefix(t.src[i:], "(?") {
				t.total++
			}
		}
	}
	return nil
}

// groupName reads the name in "(?<name>".
func groupName(s string) (string, bool) {
	rest, ok := strings.CutPrefix(s, "(?<")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, ">")
	return name, ok && isIdentifier(name)
}

func isIdentifier(s string) bool {
	for i, r := range s {
		letter := r == '_' || r == '$' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
