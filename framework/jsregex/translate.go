package jsregex

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The characters that the classes and anchors of JavaScript stand for.
const (
	jsSpace   = `\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff`
	jsWordSet = `a-zA-Z0-9_`
	jsNewline = `\n\r\u2028\u2029`
)

// maxTranslated bounds a pattern for the engine, in bytes.
const maxTranslated = 16 * MaxPattern

// translator rewrites a JavaScript pattern. It accepts what JavaScript accepts
// (with the leniency of Annex B unless the flag u is set) and nothing else.
type translator struct {
	src                        string
	multiline, dotAll, unicode bool
	ignoreCase                 bool

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

	loose   bool // an alternative before repeats, and nothing in it is fixed
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
		if err == nil && t.out.Len() > maxTranslated {
			err = errors.New("the pattern is too long")
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
		t.cased(r)
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
