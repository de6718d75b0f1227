package cite

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
)

// unsaid returns a clause of a part of which a window says nothing.
func (v *verifier) unsaid(p *part, w [2]int, quote []*reading) string {
	e := join(quote)
	for i := range p.about.clauses {
		c := &p.about.clauses[i]
		if t := endsOtherwise(c, e); t != "" {
			return strings.TrimSpace(c.text)
		}
		if d := v.madeUp(c, w); d != "" {
			return d
		}
		least := 2
		if hasDense(c.text) {
			least = 4
		}
		if len(c.terms) < least || v.pages.share(c.terms, w) >= minClauseSupport || v.pages.share(c.terms, w) >= minClauseSupport/2 && denseShare(plainHan(c.text), v.pages.plainOf(w)) >= 0.5 {
			continue
		}
		if len(c.amounts) > 0 && !slices.ContainsFunc(c.amounts, func(q quantity) bool { return !e.hasNumber(q.value) }) {
			continue
		}
		return strings.TrimSpace(c.text)
	}
	return ""
}

// denseShare is the share of the characters of a text in a dense script that stand in runs of two or
// more which another text has too. Particles do not count.
func denseShare(ours []rune, theirs string) float64 {
	if len(ours) > maxDense || len(theirs) > 12*maxDense {
		return 0
	}
	covered := make([]bool, len(ours))
	for _, c := range chunksOf(ours, theirs) {
		for i := c.from; i < c.to; i++ {
			covered[i] = true
		}
	}
	n, all := 0, 0
	for i, r := range ours {
		if particles()[string(r)] {
			continue
		}
		if all++; covered[i] {
			n++
		}
	}
	return float64(n) / float64(max(all, 1))
}

var peoples = data.Words("peoples")

// withoutPeoples leaves out the names of peoples and languages whose country a text has: Chilean, of Chile.
func (f facts) withoutPeoples(text string) facts {
	if len(f.names) == 0 {
		return f
	}
	f.names = slices.DeleteFunc(slices.Clone(f.names), func(name string) bool {
		for _, ending := range peoples() {
			root, ok := strings.CutSuffix(strings.ToLower(name), ending)
			if !ok || utf8.RuneCountInString(root) < 4 {
				continue
			}
			for w := range wordsOf(text) {
				if rest, ok := strings.CutPrefix(strings.ToLower(w), root); ok && utf8.RuneCountInString(rest) <= 1 && unicode.IsUpper([]rune(w)[0]) {
					return true
				}
			}
		}
		return false
	})
	return f
}

// endsOtherwise returns the last word of a clause, if the source has another one behind the same words and
// nowhere this one: "patients reported dizziness" for nausea.
func endsOtherwise(c *clause, e *reading) string {
	n := len(c.tokens)
	if n < 4 || hasDense(c.text) || e.terms[c.tokens[n-1].term] || isNumber(c.tokens[n-1].term) {
		return ""
	}
	for _, of := range e.clauses {
		m := len(of.tokens)
		if m >= 4 && !isNumber(c.tokens[n-3].term) && of.tokens[m-2].term == c.tokens[n-2].term && of.tokens[m-3].term == c.tokens[n-3].term && !c.terms[of.tokens[m-1].term] {
			return c.tokens[n-1].term
		}
	}
	return ""
}

// said is the text of a part without what joins it to others.
func (p *part) said() string {
	return strings.TrimFunc(p.text, func(r rune) bool { return isSpace(r) || isClauseEnd(r) })
}

var details = data.Set("details")

// madeUp returns a detail of a clause of which a window has no word: "by a retired miner".
func (v *verifier) madeUp(c *clause, w [2]int) string {
	words := strings.Fields(c.text)
	for i, word := range words {
		if !details()[word] {
			continue
		}
		detail := strings.Join(words[i:], " ")
		terms := distinct(index.Terms(detail))
		if len(terms) >= 2 && v.pages.share(terms, w) == 0 && len(quantitiesIn(detail)) == 0 {
			return detail
		}
	}
	return ""
}
