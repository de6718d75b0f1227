package summary

import (
	"slices"
	"strings"

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
	quotes := w.quotes()
	if len(quotes) == 0 { // nothing but "Hm." and "No?"
		for i := range w.Lines {
			quotes = append(quotes, quotesFrom(&w.Lines[i], []string{lang.Tidy(withoutMarkers(w.Lines[i].Text))})...)
		}
	}
	return pick(quotes, w.Length)
}

// quotes are the sentences that a summary may be made of, those of the summary that it continues first.
func (w *Work) quotes() (quotes []quote) {
	lines, previous := w.Lines, w.Previous
	if previous != nil && w.Rebuild {
		if previous.Stale || previous.Method == MethodExtractive {
			previous = nil // the messages themselves are better
		} else {
			lines = lines[w.Known:]
		}
	}
	if previous != nil {
		quotes = quotesOf(previous.Text)
		for i := range quotes {
			quotes[i].prior = true
		}
	}
	for i := range lines {
		quotes = append(quotes, quotesFrom(&lines[i], sentences(withoutMarkers(lines[i].Text)))...)
	}
	return quotes
}

// opener is what stands before the words that count: "By the way, ".
var opener = data.Rule("opener")

// longestSpeaker is the maximum length of a name in a quote, in code points.
const longestSpeaker = 40

func quotesFrom(l *ChatLine, said []string) []quote {
	speaker := op.Truncate(l.speaker(), longestSpeaker)
	quotes := make([]quote, 0, len(said))
	for _, s := range said {
		if rest := opener.ReplaceAllString(s, ""); runes(rest) >= shortestSentence {
			s = rest
		}
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
	names []string
	mark  int64 // its worth for what it says, in hundredths
	score int64 // how much it says, in millionths
	close int64 // how much of it was picked already, in millionths
	size  int   // in a summary, with the line break, in code points
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

// pick takes quotes until length code points are used.
func pick(quotes []quote, length int) string {
	telling := rate(quotes)
	return joined(choose(quotes, length, func(q *quote) bool { return q.score > 0 || !telling }))
}

func joined(quotes []quote) string {
	texts := make([]string, len(quotes))
	for i := range quotes {
		texts[i] = quotes[i].String()
	}
	return strings.Join(texts, "\n")
}

// choose takes those of rated quotes that may be, until length code points are used, and returns them in their order.
func choose(quotes []quote, length int, may func(*quote) bool) []quote {
	left := length
	var picked, rest []int
	for i := range quotes {
		if may(&quotes[i]) {
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
	chosen := make([]quote, len(picked))
	for at, i := range picked {
		chosen[at] = quotes[i]
	}
	return chosen
}

// worth is the score without what was picked already: at most half is left of a quote that repeats another.
func (q *quote) worth() int64 { return q.score * (2*million - q.close) / (2 * million) }

// overlap is the share of terms that two sorted lists have in common, in millionths.
func overlap(a, b []string) int64 {
	both, all := index.Overlap(a, b)
	if all == 0 {
		return million
	}
	return int64(both) * million / int64(all)
}
