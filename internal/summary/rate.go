package summary

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/index"
	"nodest/internal/lexicon"
	"nodest/memory/lang"
)

// A summary must not lose these, by what a sentence says, and how much each is worth, in hundredths of the sentence
// with the rarest words. They add up: who owes whom how much until when is worth most.
var marks = []struct {
	says  *lexicon.Rule
	worth int64
}{
	{data.Rule("debt"), 350},
	{data.Rule("promise"), 300},
	{data.Rule("decision"), 250},
	{data.Rule("particular"), 300},
	{data.Rule("money"), 150},
	{data.Rule("at-time"), 150},
	{data.Rule("appointment"), 120},
	{data.Rule("named"), 200},
	{data.Rule("health"), 200},
	{data.Rule("change"), 150},
	{data.Rule("reminder"), 120},
}

// More that makes a sentence worth more, in the same hundredths.
const (
	numberWorth = 100 // a number
	nameWorth   = 90  // each name that few sentences have, up to mostNames
	mostNames   = 2
	fewHave     = 3 // sentences that have a rare name, at most
)

// Factors of what a sentence is worth in all, in hundredths.
const (
	priorFactor  = 150 // it stood in the summary before
	meFactor     = 120 // the user tells it of themselves
	politeFactor = 50
	askFactor    = 30 // a question says little
	cryFactor    = 80 // so does an exclamation
	kindFactor   = 60 // and what is said to be kind

	tellingTerms = 4 // a promise or debt with fewer words names none: "I agree"
)

// Words that make a sentence worth more or less.
var (
	dateWords   = data.Words("date-words")
	tellerWords = data.Words("teller-words")
	politeWords = data.Words("polite-words")

	kind = data.Rule("kind")
)

// rate sets size, terms and score (in millionths) of quotes, and reports whether any says something.
func rate(quotes []quote) bool {
	in := map[string]int64{} // quotes that have the term
	texts := make([]string, len(quotes))
	for i := range quotes {
		q := &quotes[i]
		q.terms = index.Terms(q.text)
		slices.Sort(q.terms)
		q.terms = slices.Compact(q.terms)
		q.close, q.size, texts[i] = 0, runes(q.String())+1, q.text
		for _, t := range q.terms {
			in[t]++
		}
	}
	idf := make(map[string]int64, len(in))
	for t, n := range in {
		idf[t] = int64(math.Round(1000 * math.Log(1+float64(len(quotes))/float64(n))))
	}
	rarest := int64(0)
	for i := range quotes {
		quotes[i].score = quotes[i].rarity(idf)
		rarest = max(rarest, quotes[i].score)
	}
	if rarest == 0 {
		return false
	}
	names := rareNames(quotes, capitalShare(texts) > mostCapitals)
	best := int64(0)
	for i := range quotes {
		q := &quotes[i]
		if q.score > 0 {
			q.mark = q.factored(q.marked() + names[i]*nameWorth)
			q.score = q.perLength(q.factored(10_000*q.score/rarest) + 100*q.mark)
		}
		best = max(best, q.score)
	}
	for i := range quotes {
		quotes[i].score = quotes[i].score * million / best
	}
	return true
}

// rarity says how rare the words of a quote are.
func (q *quote) rarity(idf map[string]int64) int64 {
	sum := int64(0)
	for _, t := range q.terms {
		sum += idf[t]
	}
	return int64(math.Round(float64(1000*sum) / math.Sqrt(float64(max(1, len(q.terms))))))
}

// marked is what a quote is worth for what it says.
func (q *quote) marked() (worth int64) {
	text := norm.NFKC.String(q.text)
	for _, m := range marks {
		if m.says.MatchString(text) {
			worth += m.worth
		}
	}
	worth = worth * int64(min(len(q.terms), tellingTerms)) / tellingTerms
	folded := strings.ToLower(text)
	if strings.ContainsFunc(lang.Digits(folded), unicode.IsDigit) || lang.ContainsWord(folded, dateWords()) {
		worth += numberWorth
	}
	return worth
}

func (q *quote) factored(worth int64) int64 {
	folded := strings.ToLower(norm.NFKC.String(q.text))
	end := strings.TrimRight(folded, "\"'”’」』)*~ ")
	for _, f := range []struct {
		is     bool
		factor int64
	}{
		{q.prior, priorFactor},
		{q.user && lang.ContainsWord(folded, tellerWords()), meFactor},
		{len(q.terms) <= 6 && lang.ContainsWord(folded, politeWords()), politeFactor},
		{strings.HasSuffix(end, "?"), askFactor},
		{strings.HasSuffix(end, "!"), cryFactor},
		{kind.MatchString(folded), kindFactor},
	} {
		if f.is {
			worth = worth * f.factor / 100
		}
	}
	return worth
}

// Sizes up to which a quote is worth no more for being short, in a script of letters and in a dense one.
const (
	shortQuote = 36
	shortDense = 18
)

// perLength is what a quote is worth for the room that it takes.
func (q *quote) perLength(worth int64) int64 {
	size := max(q.size, shortQuote)
	if lang.HasCJK(q.text) {
		size = max(q.size, shortDense)
	}
	root := math.Sqrt(float64(size))
	return int64(math.Round(1000 * float64(worth) / (root * math.Sqrt(root))))
}

// rareNames sets the names of quotes, and counts in each those that few others have, and no speaker has. nouns says that the language
// writes all nouns with a capital, so that these tell no name.
func rareNames(quotes []quote, nouns bool) []int64 {
	have := map[string]int{}
	for i := range quotes {
		quotes[i].names = namesIn(quotes[i].text, nouns)
		for _, name := range quotes[i].names {
			have[name]++
		}
	}
	for i := range quotes {
		delete(have, quotes[i].speaker)
	}
	counts := make([]int64, len(quotes))
	for i := range quotes {
		for _, name := range quotes[i].names {
			if n := have[name]; n > 0 && n <= fewHave && counts[i] < mostNames {
				counts[i]++
			}
		}
	}
	return counts
}

// namesIn are the names in a text, each once.
func namesIn(text string, nouns bool) (names []string) {
	if !nouns && !lang.HasCJK(text) {
		names = latinNames(text)
	}
	if lang.HasCJK(text) {
		names = append(names, hanNames(text)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
