package jsregex

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escape translates the escape sequence at the current position, outside classes.
// isAtom reports whether it can be repeated.
func (t *translator) escape() (atom string, isAtom bool, err error) {
	rest := t.src[t.pos+1:]
	if rest == "" {
		return "", false, errors.New("the pattern ends in a backslash")
	}
	switch rest[0] {
	case 'b':
		t.pos += 2
		word := t.set(charSet{jsWordSet, false}).outside()
		return `(?:(?<=` + word + `)(?!` + word + `)|(?<!` + word + `)(?=` + word + `))`, false, nil
	case 'B':
		t.pos += 2
		word := t.set(charSet{jsWordSet, false}).outside()
		return `(?:(?<=` + word + `)(?=` + word + `)|(?<!` + word + `)(?!` + word + `))`, false, nil
	}
	if n, size := t.reference(rest); n > 0 {
		t.pos += size
		if t.ignoreCase {
			return fmt.Sprintf(`(?i:\%d)`, n), true, nil
		}
		return fmt.Sprintf(`(?:\%d)`, n), true, nil // digits behind it stay apart
	} else if n < 0 {
		return "", false, errors.New("reference to an unknown group")
	}
	if set, ok, err := t.setEscape(); ok || err != nil {
		return set.outside(), true, err
	}
	r, lone, err := t.charEscape()
	if err != nil {
		return "", false, err
	}
	if lone { // half of a surrogate pair: never found in valid text
		return `(?:(?!))`, true, nil
	}
	out := translator{ignoreCase: t.ignoreCase, unicode: t.unicode}
	out.cased(r)
	return out.out.String(), true, nil
}

// reference reads the back reference that rest, what follows the backslash, may be: the
// group, and how long it is with the backslash. It returns 0 for anything else, and -1
// for a group that does not exist.
func (t *translator) reference(rest string) (group, size int) {
	switch c := rest[0]; {
	case c == 'k' && (t.unicode || t.names != nil):
		name, ok := groupName("(?" + rest[1:])
		if n := t.names[name]; ok && n > 0 {
			return n, len(name) + len(`\k<>`)
		}
		return -1, 0
	case c >= '1' && c <= '9':
		digits := leadingDigits(rest, 3)
		if n, _ := strconv.Atoi(digits); n <= t.total {
			return n, 1 + len(digits)
		}
		if t.unicode {
			return -1, 0
		}
	}
	return 0, 0
}

func leadingDigits(s string, most int) string {
	n := 0
	for n < len(s) && n < most && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}

// charSet is what a class escape stands for: the inside of a class, or with not
// all that is not inside.
type charSet struct {
	inside string
	not    bool
}

func (s charSet) outside() string {
	if s.not {
		return "[^" + s.inside + "]"
	}
	return "[" + s.inside + "]"
}

// setEscape reads \d, \w, \s, their opposites, and \p{…} with the flag u.
func (t *translator) setEscape() (charSet, bool, error) {
	c := t.src[t.pos+1]
	sets := map[byte]charSet{
		'd': {`0-9`, false}, 'D': {`0-9`, true},
		'w': {jsWordSet, false}, 'W': {jsWordSet, true},
		's': {jsSpace, false}, 'S': {jsSpace, true},
	}
	if s, ok := sets[c]; ok {
		t.pos += 2
		return t.set(s), true, nil
	}
	if !t.unicode || c != 'p' && c != 'P' {
		return charSet{}, false, nil
	}
	body, _, ok := strings.Cut(t.src[t.pos+2:], "}")
	if !ok || !strings.HasPrefix(body, "{") {
		return charSet{}, false, errors.New(`\p needs a property in braces`)
	}
	inside, ok := property(body[1:])
	if !ok {
		return charSet{}, false, errors.New("unknown Unicode property")
	}
	t.pos += len(body) + 3
	return t.set(charSet{inside, c == 'P'}), true, nil
}

// property names a Unicode property as the engine does.
func property(name string) (string, bool) {
	if key, value, ok := strings.Cut(name, "="); ok {
		switch key {
		case "Script", "sc", "Script_Extensions", "scx":
			_, known := unicode.Scripts[value]
			return `\p{` + value + `}`, known
		case "General_Category", "gc":
			name = value
		default:
			return "", false
		}
	}
	switch name {
	case "Any":
		return `\s\S`, true
	case "ASCII":
		return `\x00-\x7f`, true
	case "Alphabetic", "Alpha":
		return `\p{L}\p{Nl}`, true
	case "Uppercase":
		name = "Lu"
	case "Lowercase":
		name = "Ll"
	case "White_Space", "space":
		return jsSpace, true
	case "Emoji", "Emoji_Presentation", "Extended_Pictographic":
		return `\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934-\u2b55\u3030\u303d\u3297\u3299` +
			"\U0001f000-\U0001faff", true
	}
	if short, ok := unicode.CategoryAliases[name]; ok {
		name = short
	}
	_, known := unicode.Categories[name]
	return `\p{` + name + `}`, known
}

// charEscape reads an escape that stands for one character. lone marks half of a
// surrogate pair.
func (t *translator) charEscape() (r rune, lone bool, err error) {
	rest := t.src[t.pos+1:]
	c, size := utf8.DecodeRuneInString(rest)
	simple := map[rune]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r'}
	if s, ok := simple[c]; ok {
		t.pos += 2
		return s, false, nil
	}
	switch c {
	case 'c':
		if len(rest) > 1 && isLetter(rest[1]) {
			t.pos += 3
			return rune(rest[1] & 31), false, nil
		}
		if t.unicode {
			return 0, false, errors.New(`\c needs a letter`)
		}
		t.pos++ // the backslash stands for itself
		return '\\', false, nil
	case 'x', 'u':
		if r, lone, ok := t.hexEscape(c, rest[1:]); ok {
			return r, lone, nil
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		if t.unicode && (c != '0' || leadingDigits(rest[1:], 1) != "") {
			return 0, false, errors.New("octal escapes are not supported")
		}
		n, used := readOctal(rest)
		t.pos += 1 + used
		return n, false, nil
	}
	if t.unicode && !strings.ContainsRune(`^$\.*+?()[]{}|/-`, c) {
		return 0, false, fmt.Errorf("unknown escape \\%c", c)
	}
	t.pos += 1 + size
	return c, false, nil
}

// hexEscape reads what follows \x, two hexadecimal digits, or \u: four of them, two
// such escapes that make a pair, or with the flag u a number in braces.
func (t *translator) hexEscape(c rune, s string) (r rune, lone, ok bool) {
	if c == 'x' {
		if r, ok = readHex(s, 2); ok {
			t.pos += 4
		}
		return r, false, ok
	}
	if body, _, closed := strings.Cut(s, "}"); t.unicode && closed && strings.HasPrefix(body, "{") {
		n, err := strconv.ParseUint(body[1:], 16, 32)
		if err != nil || n > unicode.MaxRune {
			return 0, false, false
		}
		t.pos += 3 + len(body)
		return rune(n), utf16.IsSurrogate(rune(n)), true
	}
	first, ok := readHex(s, 4)
	if !ok {
		return 0, false, false
	}
	t.pos += 6
	if !utf16.IsSurrogate(first) {
		return first, false, true
	}
	if tail, paired := strings.CutPrefix(s[4:], `\u`); paired {
		if second, ok := readHex(tail, 4); ok {
			if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
				t.pos += 6
				return pair, false, true
			}
		}
	}
	return 0, true, true
}

func readHex(s string, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:digits], 16, 32)
	return rune(n), err == nil
}

func readOctal(s string) (r rune, used int) {
	for used < len(s) && used < 3 && s[used] >= '0' && s[used] <= '7' && r*8+rune(s[used]-'0') <= 0xff {
		r = r*8 + rune(s[used]-'0')
		used++
	}
	return r, used
}

func isLetter(c byte) bool { return c|32 >= 'a' && c|32 <= 'z' }

func (t *translator) class() error {
	t.pos++
	not := strings.HasPrefix(t.src[t.pos:], "^")
	if not {
		t.pos++
	}
	inside := translator{ignoreCase: t.ignoreCase, unicode: t.unicode}
	empty := true
	var sets []charSet // opposites, which have no place inside a class
	for {
		if t.pos >= len(t.src) {
			return errors.New("unterminated character class")
		}
		if t.src[t.pos] == ']' {
			t.pos++
			break
		}
		lo, loSet, lone, err := t.classAtom()
		if err != nil {
			return err
		}
		if lone {
			continue
		}
		empty = false
		if loSet != nil {
			if loSet.not {
				sets = append(sets, *loSet)
			} else {
				inside.out.WriteString(loSet.inside)
			}
			continue
		}
		hi, isRange, err := t.rangeEnd(lo)
		if err != nil {
			return err
		}
		if !isRange {
			hi = lo
		}
		inside.casedRange(lo, hi)
	}
	t.out.WriteString(assembleClass(inside.out.String(), sets, not, empty))
	return nil
}

// assembleClass writes a class; opposites such as \S become alternatives.
func assembleClass(inside string, opposites []charSet, not, empty bool) string {
	switch {
	case empty && not:
		return `[\s\S]`
	case empty:
		return `(?:(?!))`
	case len(opposites) == 0 && not:
		return "[^" + inside + "]"
	case len(opposites) == 0:
		return "[" + inside + "]"
	}
	var options []string
	if inside != "" {
		options = append(options, "["+inside+"]")
	}
	for _, s := range opposites {
		options = append(options, s.outside())
	}
	union := strings.Join(options, "|")
	if not {
		return `(?:(?!` + union + `)[\s\S])`
	}
	return "(?:" + union + ")"
}

func (t *translator) classAtom() (r rune, set *charSet, lone bool, err error) {
	if t.src[t.pos] != '\\' {
		r, size := utf8.DecodeRuneInString(t.src[t.pos:])
		t.pos += size
		return r, nil, false, nil
	}
	if t.pos+1 >= len(t.src) {
		return 0, nil, false, errors.New("the pattern ends in a backslash")
	}
	switch t.src[t.pos+1] {
	case 'b':
		t.pos += 2
		return '\b', nil, false, nil
	case '-':
		t.pos += 2
		return '-', nil, false, nil
	}
	if s, ok, err := t.setEscape(); ok || err != nil {
		return 0, &s, false, err
	}
	r, lone, err = t.charEscape()
	return r, nil, lone, err
}

// rangeEnd reads the end of a range that begins with lo, if there is one.
func (t *translator) rangeEnd(lo rune) (hi rune, isRange bool, err error) {
	rest := t.src[t.pos:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		return 0, false, nil
	}
	before := t.pos
	t.pos++
	hi, set, lone, err := t.classAtom()
	switch {
	case err != nil:
		return 0, false, err
	case set != nil || lone: // [a-\d]: the hyphen stands for itself
		if t.unicode {
			return 0, false, errors.New("a range cannot end in a character class")
		}
		t.pos = before
		return 0, false, nil
	case hi < lo:
		return 0, false, errors.New("range out of order in a character class")
	}
	return hi, true, nil
}
