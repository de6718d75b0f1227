package framework

import (
	"cmp"
	"strconv"
	"strings"
	"sync/atomic"

	"nodest/card"
	"nodest/framework/jsregex"
	"nodest/framework/macro"
)

// tavernParts is what a script of the SillyTavern dialect has beside its pattern.
type tavernParts struct {
	replacement []reference
	trims       []string

	macros  bool // the pattern has some
	current atomic.Pointer[expandedPattern]
}

// reference is a part of a replacement: a group of the pattern, or a text.
type reference struct {
	text  string
	group int    // -1 = none
	name  string // of a group
}

// expandedPattern is a pattern after its macros were replaced.
type expandedPattern struct {
	source  string
	pattern *jsregex.Pattern
	err     error
}

// invalidPattern is the error of a pattern that is no regular expression with the present
// values of its macros.
type invalidPattern struct{ error }

func newTavernParts(sc card.RegexScript) *tavernParts {
	return &tavernParts{
		replacement: replacementPieces(sc.Replace), macros: hasMacros(sc),
		trims: sc.TrimStrings,
	}
}

// hasMacros reports that macros in a script's pattern are replaced.
func hasMacros(sc card.RegexScript) bool {
	return (sc.Substitute == card.SubstituteRaw || sc.Substitute == card.SubstituteEscaped) && strings.Contains(sc.Find, "{{")
}

// tavernPattern reads a pattern as SillyTavern does: flags that are unknown or stand twice make the
// whole a bare pattern, and one without flags is replaced once.
func tavernPattern(find, own string) (source, flags string) {
	source, flags = jsregex.Split(find)
	for i, f := range flags {
		if !strings.ContainsRune("dgimsuvy", f) || strings.ContainsRune(flags[:i], f) {
			return find, own
		}
	}
	return source, cmp.Or(flags, own)
}

// replacementPieces cuts a replacement: {{match}} and $0 are the whole match, $1 and $<name> groups.
// Nothing else is special.
func replacementPieces(s string) []reference {
	var pieces []reference
	done := 0
	for i := 0; i < len(s); {
		p, size := readReference(s[i:])
		if size == 0 {
			i++
			continue
		}
		if i > done {
			pieces = append(pieces, reference{text: s[done:i], group: -1})
		}
		pieces = append(pieces, p)
		i += size
		done = i
	}
	if done < len(s) {
		pieces = append(pieces, reference{text: s[done:], group: -1})
	}
	return pieces
}

// readReference reads what s begins with; size is 0 for no reference.
func readReference(s string) (p reference, size int) {
	const match = "{{match}}"
	switch {
	case len(s) >= len(match) && strings.EqualFold(s[:len(match)], match):
		return reference{}, len(match)
	case s[0] != '$' || len(s) == 1:
		return reference{}, 0
	case s[1] == '<':
		if name, _, closed := strings.Cut(s[2:], ">"); closed && name != "" {
			return reference{group: -1, name: name}, len(name) + len("$<>")
		}
		return reference{}, 0
	}
	digits := 1
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	if digits == 1 {
		return reference{}, 0
	}
	n, err := strconv.Atoi(s[1:digits])
	if err != nil { // there is no such group
		n = 1 << 30
	}
	return reference{group: n}, digits
}

// pattern is that of a script, with the present values of its macros.
func (r *ScriptRun) pattern(sc *script) (*jsregex.Pattern, error) {
	if sc.tavern == nil || !sc.tavern.macros || r.macros == nil {
		return sc.pattern, nil
	}
	r.varies = true
	var escape func(string) string
	if sc.Substitute == card.SubstituteEscaped {
		escape = escapePattern
	}
	find := r.macros.ExpandPattern(sc.Find, escape)
	now := sc.tavern.current.Load()
	if now == nil || now.source != find {
		source, flags := tavernPattern(find, sc.Flags)
		now = &expandedPattern{source: find}
		if now.pattern, now.err = jsregex.Compile(source, flags, r.scripts.limit); now.err != nil {
			now.err = &invalidPattern{now.err}
		}
		sc.tavern.current.Store(now)
	}
	return now.pattern, now.err
}

// off reports that a script ran out of time, and is not tried again.
func (sc *script) off() bool {
	if sc.tavern != nil {
		if now := sc.tavern.current.Load(); now != nil && now.pattern != nil {
			return now.pattern.Off()
		}
	}
	return sc.pattern.Off()
}

// tavern replaces the matches of a script in a text. Macros are expanded in each replacement, also
// those in what was matched.
func (r *ScriptRun) tavern(sc *script, pattern *jsregex.Pattern, text string) (string, int, error) {
	var trims []string
	return pattern.ReplaceFunc(text, func(m jsregex.Match) string {
		if trims == nil && sc.tavern.trims != nil {
			trims = r.trims(sc)
		}
		var b strings.Builder
		for _, p := range sc.tavern.replacement {
			part := p.text
			switch {
			case p.name != "":
				part, _ = m.Named(p.name)
				part = without(part, trims)
			case p.group >= 0:
				part, _ = m.Group(p.group)
				part = without(part, trims)
			}
			if b.WriteString(part); b.Len() > jsregex.MaxReplaced {
				break
			}
		}
		return r.expand(b.String())
	})
}

// trims are the trim strings of a script, with their macros replaced.
func (r *ScriptRun) trims(sc *script) []string {
	trims := make([]string, len(sc.tavern.trims))
	for i, s := range sc.tavern.trims {
		trims[i] = r.expand(s)
	}
	return trims
}

func without(text string, trims []string) string {
	for _, s := range trims {
		if s != "" {
			text = strings.ReplaceAll(text, s, "")
		}
	}
	return text
}

func (r *ScriptRun) expand(text string) string {
	if macro.Plain(text) {
		return text
	}
	r.varies = true
	if r.macros == nil {
		return text
	}
	return r.macros.Expand(text)
}

// escapePattern makes a text that, as a regular expression, matches itself.
func escapePattern(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case strings.ContainsRune("\n\r\t\v\f\x00", c):
			b.WriteString(map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`, '\f': `\f`, 0: `\0`}[c])
			continue
		case strings.ContainsRune(`.^$*+?{}[]\/|()`, c):
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
