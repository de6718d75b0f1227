package framework

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"nodest/card"
	"nodest/framework/jsregex"
	"nodest/framework/macro"
)

// tavernParts is what a script of the SillyTavern dialect has beside its pattern.
type tavernParts struct {
	replacement []reference
	trims       []string

	macros  bool // the pattern has some: that of the script stands for those of all their values
	current atomic.Pointer[expandedPattern]
}

// reference is a part of a replacement: a group of the pattern, or a text.
type reference struct {
	text  string
	group int    // -1 = none
	name  string // name of a group
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

// The limits of a script: what its replacement refers to, and its trim strings.
const (
	maxReferences = 2000
	maxTrims      = 1000
)

func newTavernParts(sc card.RegexScript) (*tavernParts, error) {
	if len(sc.TrimStrings) > maxTrims {
		return nil, fmt.Errorf("the script has more than %d trim strings", maxTrims)
	}
	pieces := replacementPieces(sc.Replace)
	if len(pieces) > 2*maxReferences {
		return nil, fmt.Errorf("the replacement refers to more than %d matches", maxReferences)
	}
	return &tavernParts{replacement: pieces, macros: hasMacros(sc), trims: sc.TrimStrings}, nil
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

// replacing is a run of a script over a text. One that is tried again goes on with what was made.
type replacing struct {
	*ScriptRun
	sc    *script
	own   *expandedPattern // expanded form of a pattern with macros; nil = not compiled yet
	made  []string         // the replacements of the first matches
	trims []string         // with their macros replaced; nil = they were not needed yet

	end  time.Time // end of the attempt
	late bool      // it was reached
}

// pattern is that of the script, with the present values of its macros.
func (t *replacing) pattern() (*jsregex.Pattern, error) {
	sc := t.sc
	if !sc.tavern.macros || t.macros == nil {
		return sc.pattern, nil
	}
	t.varies = true
	if t.own != nil {
		return t.own.pattern, t.own.err
	}
	var escape func(string) string
	if sc.Substitute == card.SubstituteEscaped {
		escape = escapePattern
	}
	find := t.macros.ExpandPattern(sc.Find, escape)
	t.own = sc.tavern.current.Load()
	if t.own == nil || t.own.source != find {
		source, flags := tavernPattern(find, sc.Flags)
		t.own = &expandedPattern{source: find}
		if t.own.pattern, t.own.err = jsregex.Compile(source, flags, t.scripts.limit); t.own.err != nil {
			t.own.err = &invalidPattern{t.own.err}
		}
		sc.tavern.current.Store(t.own)
	}
	return t.own.pattern, t.own.err
}

// replace replaces the matches of a script in a text. Macros are expanded in each replacement, also
// those in what was matched. It takes the time that a pattern may take, with the replacements.
func (t *replacing) replace(text string) (string, int, error) {
	t.end, t.late = time.Now().Add(t.scripts.limit), false
	pattern, err := t.pattern()
	if err != nil {
		return text, 0, err
	}
	n := 0
	changed, count, err := pattern.ReplaceFunc(text, func(m jsregex.Match) string {
		if n == len(t.made) && !t.late {
			if s := t.replacement(m); !t.late {
				t.made = append(t.made, s)
			}
		}
		if n++; n > len(t.made) {
			return ""
		}
		return t.made[n-1]
	})
	if t.late && err == nil {
		return text, 0, jsregex.ErrTime
	}
	return changed, count, err
}

// replacement is what stands in the place of a match.
func (t *replacing) replacement(m jsregex.Match) string {
	trimmed := map[reference]string{} // texts of the groups without the trim strings
	var b strings.Builder
	for _, p := range t.sc.tavern.replacement {
		part := p.text
		if p.name != "" || p.group >= 0 {
			known, ok := trimmed[p]
			if !ok {
				known = t.without(m, p)
				trimmed[p] = known
			}
			part = known
		}
		if b.WriteString(part); b.Len() > jsregex.MaxReplaced || t.isLate() {
			break
		}
	}
	if t.late {
		return ""
	}
	return t.expand(b.String())
}

// isLate reports that the time of the attempt is over.
func (t *replacing) isLate() bool {
	t.late = t.late || time.Now().After(t.end)
	return t.late
}

// without is a group of a match without the trim strings.
func (t *replacing) without(m jsregex.Match, p reference) string {
	text, _ := m.Group(p.group)
	if p.name != "" {
		text, _ = m.Named(p.name)
	}
	for i, s := range t.sc.tavern.trims {
		if t.isLate() {
			return ""
		}
		if i == len(t.trims) {
			t.trims = append(t.trims, t.expand(s))
		}
		if s = t.trims[i]; s != "" {
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
