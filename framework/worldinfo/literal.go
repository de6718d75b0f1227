package worldinfo

import (
	"regexp/syntax"
	"strings"
	"unicode"

	"nodest/framework/keyscan"
)

// traits are what is known of a pattern without running it.
type traits struct {
	// literals are texts in lower case of which any text with a match has one; nil = not known.
	literals []string
	// local: a match never reaches over a line, and depends on nothing beyond the ends of one. So the
	// pattern can be looked for in each text by itself.
	local bool
}

// maxLiterals bounds the literals of a pattern.
const maxLiterals = 64

// traitsOf examines a JavaScript pattern. It knows only what Go and JavaScript read alike; of any other
// pattern, nothing.
func traitsOf(source, flags string) traits {
	if !readAlike(source) {
		return traits{}
	}
	mode := syntax.Perl
	fold, wide := strings.Contains(flags, "i"), strings.Contains(flags, "u")
	if fold {
		mode |= syntax.FoldCase
	}
	if strings.Contains(flags, "m") {
		mode &^= syntax.OneLine
	}
	if strings.Contains(flags, "s") {
		mode |= syntax.DotNL
	}
	re, err := syntax.Parse(source, mode)
	if err != nil {
		return traits{}
	}
	l := literals{fold, wide}
	return traits{literals: l.of(re), local: !strings.Contains(flags, "y") && isLocal(re)}
}

// readAlike reports whether a pattern is made only of what both syntaxes have.
func readAlike(source string) bool {
	for i := 0; i < len(source); i++ {
		rest := source[i:]
		switch {
		case rest[0] == '\\':
			if len(rest) == 1 || !strings.ContainsRune(`wWdDsSbBtnrfv.*+?()[]{}|^$/-,:;!'"@#%&=<>~ `, rune(rest[1])) {
				return false
			}
			i++
		case strings.HasPrefix(rest, "(?:"):
		case strings.HasPrefix(rest, "(?<") && len(rest) > 3 && rest[3] != '=' && rest[3] != '!':
		case strings.HasPrefix(rest, "(?"), strings.HasPrefix(rest, "[]"), strings.HasPrefix(rest, "[^]"), strings.HasPrefix(rest, "[:"):
			return false
		}
	}
	return true
}

// isLocal reports whether an expression takes no line break and has no anchor.
func isLocal(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpAnyChar:
		return false
	case syntax.OpLiteral:
		return !strings.ContainsRune(string(re.Rune), '\n')
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return false
			}
		}
	}
	for _, sub := range re.Sub {
		if !isLocal(sub) {
			return false
		}
	}
	return true
}

// literals finds what a match must have.
type literals struct{ fold, wide bool }

func (l literals) of(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if s := l.longest(re.Rune); s != "" {
			return []string{s}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return l.of(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return l.of(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if s := l.of(sub); better(s, best) {
				best = s
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			s := l.of(sub)
			if s == nil || len(all)+len(s) > maxLiterals {
				return nil
			}
			all = append(all, s...)
		}
		return all
	}
	return nil
}

// better reports whether a tells more than b: its shortest literal is longer.
func better(a, b []string) bool { return shortest(a) > shortest(b) }

func shortest(list []string) int {
	if len(list) == 0 {
		return 0
	}
	n := len(list[0])
	for _, s := range list {
		n = min(n, len(s))
	}
	return n
}

// longest returns the longest part of a literal that every match has in lower case, within one text.
func (l literals) longest(runes []rune) string {
	best, from := "", 0
	for i := 0; i <= len(runes); i++ {
		if i < len(runes) && l.plain(runes[i]) {
			continue
		}
		if s := strings.ToLower(string(runes[from:i])); len(s) > len(best) {
			best = s
		}
		from = i + 1
	}
	return best
}

// plain reports whether whatever a character matches is the same in lower case.
func (l literals) plain(r rune) bool {
	if r == 1 || r == '\n' || r == unicode.ReplacementChar || r == 'Σ' || r == 'İ' {
		return false
	}
	if !l.fold {
		return true
	}
	want := strings.ToLower(keyscan.Fold(string(r)))
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if r < unicode.MaxASCII && other > unicode.MaxASCII && !l.wide {
			continue // JavaScript keeps ASCII and the rest apart
		}
		if strings.ToLower(keyscan.Fold(string(other))) != want {
			return false
		}
	}
	return true
}
