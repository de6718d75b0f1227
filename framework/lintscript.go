package framework

import (
	"slices"
	"strings"

	"nodest/card"
)

func (l *linter) script(path string, s card.RegexScript) {
	if s.Disabled {
		return
	}
	if s.Find == "" {
		l.add(path+".findRegex", lintEmpty, "the script has no pattern")
		return
	}
	p, err := l.patterns.compile(s)
	switch {
	case err != nil:
		l.add(path+".findRegex", lintInvalid, "%v", err)
	case p.Nested():
		l.add(path+".findRegex", lintSlow, "nested repetition can be very slow on some texts")
	}
	if err == nil && p.Global() {
		if out, _, err := p.Replace("", "x"); err == nil && out != "" {
			l.add(path+".findRegex", lintEverything, "the pattern matches the empty string, so it matches everywhere")
		}
	}
	if len(s.Placement) == 0 {
		l.add(path+".placement", lintUnreachable, "the script has no placement, so it never runs")
	}
	if l.d.Dialect == card.SillyTavern {
		l.tavernScript(path, s)
	}
	if s.MinDepth != nil && s.MaxDepth != nil && *s.MaxDepth >= 0 && *s.MinDepth > *s.MaxDepth {
		l.add(path+".minDepth", lintUnreachable, "minDepth is greater than maxDepth, so the script never runs")
	}
}

// tavernScript reports what a script of the SillyTavern dialect says without effect.
func (l *linter) tavernScript(path string, s card.RegexScript) {
	l.tavernPlaces(path, s)
	pieces := replacementPieces(s.Replace)
	matched := slices.ContainsFunc(pieces, func(p reference) bool { return p.group >= 0 || p.name != "" })
	without := func(field, format string, args ...any) { l.add(path+"."+field, lintUnused, format, args...) }
	if slices.ContainsFunc(s.TrimStrings, func(t string) bool { return t != "" }) && !matched {
		without("trimStrings", "they are removed from matched text, and the replacement has none")
	}
	if s.Substitute != 0 && !hasMacros(s) {
		without("substituteRegex", "the pattern has no macros")
	}
	for _, special := range []string{"$&", "$$", "$`", "$'"} {
		if strings.Contains(s.Replace, special) {
			without("replaceString", "%s is put into the text as written; {{match}} is the whole match", special)
			break
		}
	}
}

// tavernPlaces reports where a script never runs, and what it says about places without effect.
func (l *linter) tavernPlaces(path string, s card.RegexScript) {
	stores := !s.MarkdownOnly && !s.PromptOnly
	if !stores && s.RunOnEdit {
		l.add(path+".runOnEdit", lintUnused, "the script changes nothing that is stored, so editing a message does not matter to it")
	}
	if stores && (inRange(s.MinDepth) && *s.MinDepth > 0 || inRange(s.MaxDepth)) {
		l.add(path+".minDepth", lintUnused, "what is stored has no depth yet; depths count for scripts that change the display or the prompt")
	}
	if len(s.Placement) > 0 && !slices.ContainsFunc(s.Placement, func(p int) bool {
		return p == card.PlaceUserInput || p == card.PlaceAIOutput || p == card.PlaceWorldInfo
	}) {
		l.add(path+".placement", lintUnreachable, "scripts run over the user's messages, replies and world info; this one is for none of them")
	}
	if stores && len(s.Placement) == 1 && s.Placement[0] == card.PlaceWorldInfo {
		l.add(path+".placement", lintUnreachable, "world info is only sent: the script must be for the prompt")
	}
}

func inRange(depth *int) bool { return depth != nil && *depth >= 0 }
