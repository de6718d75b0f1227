package framework

import (
	"errors"
	"fmt"
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
// can make the square of it.
const maxReplaced = 4 << 20

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
	p.re, p.groups, p.names, p.nested = re, t.groups, t.names, t.nested
	return p, nil
}

// replace works like String.prototype.replace with a string. When it takes longer
// than its limit, or would make more than maxReplaced, it returns an error and
// the text as it was. It is safe for concurrent use.
func (p *pattern) replace(text, replacement string) (result string, err error) {
	defer func() {
		if recover() != nil {
			result, err = text, errors.New("the pattern failed")
		}
	}()
	started := time.Now()
	runes := []rune(text)
	var b strings.Builder
	end := 0 // of the match before, in runes
	m, err := p.re.FindRunesMatch(runes)
	for m != nil && err == nil {
		if p.sticky && m.Index != end {
			break
		}
		b.WriteString(string(runes[end:m.Index]))
		p.expand(&b, replacement, runes, m)
		if end = m.Index + m.Length; b.Len() > maxReplaced {
			return text, errPatternSize
		}
		if !p.global {
			break
		}
		if time.Since(started) > p.re.MatchTimeout {
			return text, errPatternTime
		}
		m, err = p.re.FindNextMatch(m)
	}
	if err != nil {
		return text, errPatternTime
	}
	if b.Len() == 0 && end == 0 {
		return text, nil
	}
	b.WriteString(string(runes[end:]))
	return b.String(), nil
}

// expand appends a replacement: $$, $&, $`, $', $1 to $99 and $<name>.
func (p *pattern) expand(b *strings.Builder, replacement string, text []rune, m *regexp2.Match) {
	for i := 0; i < len(replacement) && b.Len() <= maxReplaced; i++ {
		c := replacement[i]
		if c != '$' || i+1 == len(replacement) {
			b.WriteByte(c)
			continue
		}
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
		case next == '<' && p.names != nil:
			name, _, ok := strings.Cut(replacement[i+2:], ">")
			if !ok {
				b.WriteByte(c)
				continue
			}
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
func (p *pattern) expandNumber(b *strings.Builder, digits string, m *regexp2.Match) int {
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

func writeGroup(b *strings.Builder, m *regexp2.Match, n int) {
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
	groups int
	names  map[string]int
	nested bool
}

// bracket is an open bracket of the pattern, and what is known of the alternative
// at hand in it.
type bracket struct {
	look, behind bool // lookaround

	loose   bool // of an alternative before: repeats, and nothing in it is fixed
	repeats bool // something is repeated without bound
	fixed   bool // something must occur exactly once
	pending atom // the atom before, until it is known whether a quantifier follows
}

// settle notes that no quantifier followed the atom before.
func (f *bracket) settle() {
	if f.pending.repeatable {
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
}

func (t *translator) translate() (string, error) {
	if !utf8.ValidString(t.src) {
		return "", errors.New("the pattern is not valid UTF-8")
	}
	total, err := t.scanGroups()
	if err != nil {
		return "", err
	}
	stack := []bracket{{}}
	var before atom
	for t.pos < len(t.src) {
		top := &stack[len(stack)-1]
		c := t.src[t.pos]
		if !strings.ContainsRune("*+?{", rune(c)) {
			top.settle()
		}
		switch c {
		case '(':
			f, err := t.open()
			if err != nil {
				return "", err
			}
			if stack = append(stack, f); len(stack) > 200 {
				return "", errors.New("groups are nested too deeply")
			}
			before = atom{}
		case ')':
			if len(stack) == 1 {
				return "", errors.New("unmatched closing parenthesis")
			}
			before = t.close(top)
			if !top.look {
				stack[len(stack)-2].pending = before
			}
			stack = stack[:len(stack)-1]
		case '|':
			t.pos++
			t.out.WriteByte('|')
			top.endAlternative()
			before = atom{}
		case '*', '+', '?', '{':
			if before, err = t.repeat(top, before); err != nil {
				return "", err
			}
		default:
			if before, err = t.atom(total); err != nil {
				return "", err
			}
			top.pending = before
		}
	}
	if len(stack) > 1 {
		return "", errors.New("unterminated group")
	}
	return t.out.String(), nil
}

// close writes a closing bracket.
func (t *translator) close(f *bracket) atom {
	t.pos++
	t.out.WriteByte(')')
	f.endAlternative()
	return atom{repeatable: !f.behind && (!f.look || !t.unicode), loose: f.loose}
}

// repeat writes a quantifier, or a brace that is none.
func (t *translator) repeat(f *bracket, before atom) (atom, error) {
	quantifier, least, unbounded := t.quantifier()
	if quantifier == "" {
		if t.unicode {
			return atom{}, errors.New("a brace must be escaped")
		}
		f.settle()
		f.pending = atom{repeatable: true}
		t.pos++
		t.out.WriteString(`\{`)
		return atom{repeatable: true}, nil
	}
	if !before.repeatable {
		return atom{}, errors.New("nothing to repeat")
	}
	t.out.WriteString(quantifier)
	t.nested = t.nested || unbounded && before.loose
	f.repeats = f.repeats || unbounded
	f.fixed = f.fixed || !unbounded && least > 0
	f.pending = atom{}
	return atom{}, nil
}

// atom writes a class, an escape or a single character.
func (t *translator) atom(total int) (atom, error) {
	switch t.src[t.pos] {
	case '[':
		return atom{repeatable: true}, t.class()
	case '\\':
		text, repeatable, err := t.escape(total)
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

// open writes an opening bracket.
func (t *translator) open() (bracket, error) {
	rest := t.src[t.pos:]
	for _, head := range []string{"(?:", "(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(rest, head) {
			t.pos += len(head)
			t.out.WriteString(head)
			return bracket{behind: len(head) == 4, look: head != "(?:"}, nil
		}
	}
	if name, ok := groupName(rest); ok {
		t.pos += len("(?<>") + len(name)
	} else if strings.HasPrefix(rest, "(?") {
		return bracket{}, errors.New("unknown kind of group")
	} else {
		t.pos++
	}
	t.out.WriteByte('(')
	return bracket{}, nil
}

// quantifier reads a quantifier and returns it as the engine writes it, "" if
// the brace at hand is none.
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

// readBraces reads {n}, {n,} or {n,m}; size is 0 when s begins with none.
func readBraces(s string) (size, least, most int, open bool) {
	body, _, ok := strings.Cut(s[1:], "}")
	if !ok || body == "" {
		return 0, 0, 0, false
	}
	low, high, comma := strings.Cut(body, ",")
	least, ok = readCount(low)
	if !ok {
		return 0, 0, 0, false
	}
	most = least
	if comma && high == "" {
		open = true
	} else if comma {
		if most, ok = readCount(high); !ok {
			return 0, 0, 0, false
		}
	}
	return len(body) + 2, least, most, open
}

func readCount(s string) (int, bool) {
	if s == "" {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), maxRepeat)
	}
	return n, true
}

// scanGroups counts the captures and learns their names before the translation,
// because references may come before their group.
func (t *translator) scanGroups() (total int, err error) {
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
				total++
				if t.names == nil {
					t.names = map[string]int{}
				}
				if _, twice := t.names[name]; twice {
					return 0, errors.New("duplicate group name")
				}
				t.names[name] = total
			} else if !strings.HasPrefix(t.src[i:], "(?") {
				total++
			}
		}
	}
	t.groups = total
	return total, nil
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
