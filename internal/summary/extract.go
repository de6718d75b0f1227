package summary

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/index"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory/lang"
)

// extractSummary makes a summary by rule: the sentences that say most, in their order, one per
// line with the speaker's name. Those of a summary that is folded get a bonus. The text has at
// most w.Length code points; it is empty only if nothing was said. It is deterministic: scores
// are integers.
func extractSummary(w Work) string {
	w = w.withDefaults()
	lines, previous := w.Lines, w.Previous
	if previous != nil && w.Rebuild {
		if previous.Stale || previous.Method == MethodExtractive {
			previous = nil // the messages themselves are better
		} else {
			lines = lines[w.Known:]
		}
	}
	var quotes []quote
	if previous != nil {
		quotes = quotesOf(previous.Text)
		for i := range quotes {
			quotes[i].prior = true
		}
	}
	for i := range lines {
		quotes = append(quotes, quotesFrom(&lines[i], sentences(withoutMarkers(lines[i].Text)))...)
	}
	if len(quotes) == 0 { // nothing but "Hm." and "No?"
		for i := range lines {
			quotes = append(quotes, quotesFrom(&lines[i], []string{lang.Tidy(withoutMarkers(lines[i].Text))})...)
		}
	}
	return pick(quotes, w.Length)
}

// longestSpeaker is the maximum length of a name in a quote, in code points.
const longestSpeaker = 40

func quotesFrom(l *ChatLine, said []string) []quote {
	speaker := op.Truncate(l.speaker(), longestSpeaker)
	quotes := make([]quote, 0, len(said))
	for _, s := range said {
		quotes = append(quotes, quote{speaker: speaker, user: l.Role == llm.User, text: s})
	}
	return quotes
}

// quote is a sentence that may be picked.
type quote struct {
	speaker string // empty: the text says itself who speaks, or nobody does
	text    string
	user    bool // the user said it
	prior   bool // it stood in the summary before

	terms []string // distinct, sorted
	score int64    // how much it says, in millionths
	close int64    // how much of it was picked already, in millionths
	size  int      // in a summary, with the line break, in code points
}

func (q *quote) String() string {
	if q.speaker == "" {
		return q.text
	}
	return q.speaker + ": " + q.text
}

// quotesOf splits a summary or a transcript. Quotes in it ("name: text") keep their speaker.
func quotesOf(text string) []quote {
	var quotes []quote
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, said, ok := strings.Cut(line, ": "); ok && runes(name) <= longestSpeaker {
			for _, s := range sentences(said) {
				quotes = append(quotes, quote{speaker: name, text: s})
			}
			continue
		}
		for _, s := range sentences(line) {
			quotes = append(quotes, quote{text: s})
		}
	}
	return quotes
}

const million = 1_000_000

// Factors of a score, and the penalty for repeating what was picked before, in hundredths.
const (
	priorFactor    = 150
	promiseFactor  = 130
	digitFactor    = 110
	nameFactor     = 110
	meFactor       = 110
	politeFactor   = 50
	noveltyPercent = 50
)

// pick takes quotes until length code points are used.
func pick(quotes []quote, length int) string {
	telling := rate(quotes)
	left := length
	var picked, rest []int
	for i := range quotes {
		if quotes[i].score > 0 || !telling {
			rest = append(rest, i)
		}
	}
	for len(rest) > 0 {
		best := -1
		rest = slices.DeleteFunc(rest, func(i int) bool { return quotes[i].size > left })
		for at, i := range rest {
			if best < 0 || quotes[i].worth() > quotes[rest[best]].worth() {
				best = at
			}
		}
		if best < 0 {
			break
		}
		i := rest[best]
		picked = append(picked, i)
		left -= quotes[i].size
		rest = slices.Delete(rest, best, best+1)
		for _, other := range rest {
			quotes[other].close = max(quotes[other].close, overlap(quotes[i].terms, quotes[other].terms))
		}
		rest = slices.DeleteFunc(rest, func(i int) bool { return quotes[i].close == million }) // said already
	}
	slices.Sort(picked)
	texts := make([]string, len(picked))
	for at, i := range picked {
		texts[at] = quotes[i].String()
	}
	return strings.Join(texts, "\n")
}

func (q *quote) worth() int64 {
	return (100-noveltyPercent)*q.score - noveltyPercent*q.close
}

// rate sets size, terms and score (in millionths) of quotes, and reports whether any says something.
func rate(quotes []quote) bool {
	in := map[string]int64{} // quotes that have the term
	for i := range quotes {
		q := &quotes[i]
		q.terms = index.Terms(q.text)
		slices.Sort(q.terms)
		q.terms = slices.Compact(q.terms)
		q.close, q.size = 0, runes(q.String())+1
		for _, t := range q.terms {
			in[t]++
		}
	}
	idf := make(map[string]int64, len(in))
	for t, n := range in {
		idf[t] = int64(math.Round(1000 * math.Log(1+float64(len(quotes))/float64(n))))
	}
	best := int64(0)
	for i := range quotes {
		quotes[i].score = quotes[i].rating(idf)
		best = max(best, quotes[i].score)
	}
	if best == 0 {
		return false
	}
	for i := range quotes {
		quotes[i].score = quotes[i].score * million / best
	}
	return true
}

func (q *quote) rating(idf map[string]int64) int64 {
	if len(q.terms) == 0 {
		return 0
	}
	sum := int64(0)
	for _, t := range q.terms {
		sum += idf[t]
	}
	score := int64(math.Round(float64(1000*sum) / math.Sqrt(float64(len(q.terms)))))
	folded := strings.ToLower(norm.NFKC.String(q.text))
	for _, bonus := range []struct {
		is     bool
		factor int64
	}{
		{q.prior, priorFactor},
		{strings.ContainsFunc(folded, unicode.IsDigit) || lang.ContainsWord(folded, dateWords()), digitFactor},
		{hasName(q.text), nameFactor},
		{lang.ContainsWord(folded, promiseWords()), promiseFactor},
		{q.user && lang.ContainsWord(folded, tellerWords()), meFactor},
		{len(q.terms) <= 6 && lang.ContainsWord(folded, politeWords()), politeFactor},
	} {
		if bonus.is {
			score = score * bonus.factor / 100
		}
	}
	return score
}

// Words that make a sentence worth more or less.
var (
	dateWords    = data.Words("date-words")
	promiseWords = data.Words("promise-words")
	tellerWords  = data.Words("teller-words")
	politeWords  = data.Words("polite-words")
)

// hasName reports whether text has a title in marks, or a capitalised word after the first.
func hasName(text string) bool {
	if strings.ContainsAny(text, "《》「」“”") {
		return true
	}
	for i, word := range strings.Fields(text) {
		if i > 0 && capitalised(strings.TrimLeft(word, "\"'(*")) {
			return true
		}
	}
	return false
}

// overlap is the share of terms that two sorted lists have in common, in millionths.
func overlap(a, b []string) int64 {
	both, all := index.Overlap(a, b)
	if all == 0 {
		return million
	}
	return int64(both) * million / int64(all)
}
