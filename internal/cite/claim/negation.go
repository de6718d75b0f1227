package claim

import (
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/internal/index"
)

var (
	carriers    = data.Set("carriers")
	thoughts    = data.Set("thoughts")
	negations   = data.List("negation")
	affirmation = data.Rule("affirmation")
	absence     = data.Rule("absence")
	exception   = data.Rule("exception")
	denyingVerb = data.Rule("denying-verb")
	forms       = data.Set("forms-of-be")
)

// denial is a negation and the terms behind it, of which the first is what is denied.
type denial struct {
	scope []string
	all   bool // all of the scope is meant, wherever it is spoken of: an exception
}

// denialsIn finds what a clause denies, and whether it does so with more than a verb that has an
// opposite.
func denialsIn(text string) (out []denial, negated bool) {
	text = affirmation.ReplaceAllString(text, " ")
	for _, rule := range negations() {
		if !rule.MatchString(text) {
			continue
		}
		for _, m := range rule.FindAllStringIndex(text, 8) {
			word := text[m[0]:m[1]]
			d := denial{scope: scopeOf(text[m[1]:])}
			if r, _ := utf8.DecodeRuneInString(word); len(d.scope) == 0 && script.IsDense(r) { // 除夕除外
				before := index.Terms(text[:m[0]])
				d.scope = before[max(0, len(before)-2):]
			}
			if copulas()[word] { // the denied thing stands at the end
				d.scope = tail(text[m[1]:])
			}
			if denyingVerb.MatchString(word) && inPassive(text[:m[0]]) {
				d.scope = before(text[:m[0]])
			}
			d.all = len(d.scope) > 0 && exception.MatchString(word)
			out = append(out, d)
			negated = negated || opposites().of[word] == nil && opposites().of[stemOf(word)] == nil
		}
	}
	return out, negated
}

var copulas = data.Set("denying-copulas")

// tail is what a text in a dense script ends with, up to the end of the clause.
func tail(text string) []string {
	terms := index.Terms(text)
	return terms[max(0, len(terms)-3):]
}

// inPassive reports whether a text ends with a form of "be".
func inPassive(text string) bool {
	words := strings.Fields(text)
	return len(words) > 0 && forms()[words[len(words)-1]]
}

// before returns the last words of a text, the last first.
func before(text string) []string {
	scope := scopeOf(text)
	slices.Reverse(scope)
	return scope
}

// longestScope is in terms.
const longestScope = 6

// scopeOf returns the terms behind a negation: words by their stems, dense scripts by pairs.
func scopeOf(text string) (scope []string) {
	started := false
	for i := 0; i < len(text) && len(scope) < longestScope; {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case script.IsDense(r) && !started && carriers()[string(r)]:
			i += n
		case script.IsDense(r):
			end := script.RunOf(text, i, script.IsDense)
			scope = append(scope, index.Terms(text[i:end])...)
			i, started = end, true
		case script.IsWord(r):
			end := script.RunOf(text, i, script.IsWord)
			word := text[i:end]
			i = end
			if terms := index.Terms(word); len(terms) > 0 && (started || !carriers()[word] && !carriers()[terms[0]]) {
				scope, started = append(scope, terms[0]), true
			}
		default:
			i += n
		}
	}
	return scope[:min(len(scope), longestScope)]
}
