package summary

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/index"
	"nodest/llm"
	"nodest/memory/lang"
)

// A model's summary may read well and yet lose what counts. What it is made of says what must be in it.

// essentialMark is the mark from which on a summary must say what a quote of some words does: a number with a
// name has it, and any debt, promise or decision.
const essentialMark = 180

// How many essentials a chat must have for their loss to count, and words an essential.
const (
	fewestLost  = 3
	fewestTerms = 3 // "Line 7." is no essential
)

// sameFact is the share of words in common, in millionths, from which on two quotes are one essential: those who go
// through a list say much the same each time.
const sameFact = million * 6 / 10

// essentials are the quotes that a summary must not lose, as many as have half of its room.
func (w *Work) essentials() (all []quote) {
	quotes := w.quotes()
	rate(quotes)
	for _, q := range choose(quotes, w.Length/2, func(q *quote) bool { return q.mark >= essentialMark && len(q.terms) >= fewestTerms }) {
		if !slices.ContainsFunc(all, func(other quote) bool { return overlap(q.terms, other.terms) >= sameFact }) {
			all = append(all, q)
		}
	}
	return all
}

// lostIn are the essentials that a summary does not say; nil if it says half of them.
func lostIn(text string, essentials []quote) (lost []quote) {
	said, terms := materialOf(nil, text), map[string]bool{}
	for _, term := range index.Terms(text) {
		terms[term] = true
	}
	for i := range essentials {
		if !essentials[i].saidIn(said, terms) {
			lost = append(lost, essentials[i])
		}
	}
	if len(essentials) < fewestLost || 2*len(lost) <= len(essentials) {
		return nil
	}
	return lost
}

// saidIn reports whether a text says a quote in its own words: it has its numbers, its names and a third of its other
// words, or half of them where there are neither.
func (q *quote) saidIn(said *material, terms map[string]bool) bool {
	folded := lang.Digits(strings.ToLower(norm.NFKC.String(q.text)))
	numbers := numberSigns.FindAllString(folded, -1)
	for _, n := range numbers {
		if !said.knowsNumber(n) {
			return false
		}
	}
	for _, name := range q.names {
		if !said.knowsWord(name) || lang.HasCJK(name) && !strings.Contains(said.Runs, lang.Fold(name)) {
			return false
		}
	}
	same := 0
	for _, term := range q.terms {
		if terms[term] {
			same++
		}
	}
	if len(numbers)+len(q.names) > 0 {
		return 3*same >= len(q.terms)
	}
	return 2*same >= len(q.terms)
}

// keeping returns a summary that loses less: it asks once more, with what was lost.
func (s *scribe) keeping(ctx context.Context, prompt, text string, essentials []quote) (string, error) {
	lost := lostIn(text, essentials)
	if lost == nil {
		return text, nil
	}
	w := texts(s.lang)
	lines := make([]string, len(lost))
	for i := range lost {
		lines[i] = lost[i].String()
	}
	answer, err := s.call(ctx, prompt+"\n\n"+fmt.Sprintf(w["again"], w["lost"]+" "+llm.JSONLine(lines)))
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err == nil {
		again, verdict := s.accept(answer, s.shortest(), s.work.Length)
		if (verdict == Accepted || verdict == TooLong) && len(lostIn(again, essentials)) < len(lost) {
			return again, nil
		}
	}
	return text, nil // it can be mended
}

// mended is a summary with the essentials that it lost behind it, word for word, in at most length code points.
func mended(text string, essentials []quote, length int) string {
	lost := lostIn(text, essentials)
	if lost == nil {
		return text
	}
	size := 0
	lost = slices.DeleteFunc(lost, func(q quote) bool { // those said first
		size += q.size
		return size > length/2
	})
	added := joined(lost)
	return cutAtSentence(text, length-runes(added)-1) + "\n" + added
}
