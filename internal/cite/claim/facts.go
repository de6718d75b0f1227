package claim

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/internal/index"
)

// Facts are the numbers and names of a sentence: what a quote must have to support it.
type Facts struct {
	Names  []string // capitalised words
	Titles []string // in Chinese quotation marks

	quantities []quantity
}

// Titles are looked for in whole texts.
const (
	maxTitles = 5  // per sentence
	maxTitle  = 20 // code points
)

// Chinese titles and names in quotation marks, but not what somebody says.
var quoted = regexp.MustCompile(`[《「『“]([^《》「」『』“”，。！？…,.!?\n]*\p{Han}[^《》「」『』“”，。！？…,.!?\n]*)[》」』”]`)

// FactsOf reads the facts of a sentence.
func FactsOf(sentence string) Facts {
	return Facts{NamesIn(sentence), titlesIn(sentence), numbersOf(sentence)}
}

func numbersOf(text string) []quantity {
	if !strings.ContainsFunc(text, unicode.IsDigit) && !mayCount(text) {
		return nil // faster
	}
	return quantitiesIn(Plain(text))
}

// mayCount reports whether a text has a letter, of which a number may be written.
func mayCount(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < utf8.RuneSelf && unicode.IsLetter(r) || isHanDigit(r) || r == '半' })
}

// Numbers are those of f in digits.
func (f Facts) Numbers() (values []string) {
	for _, q := range f.quantities {
		values = append(values, q.value)
	}
	return values
}

// Count is how many facts there are.
func (f Facts) Count() int { return len(f.quantities) + len(f.Names) + len(f.Titles) }

// Telling reports whether the numbers are unlikely to be those of another text by chance.
func (f Facts) Telling() bool {
	return len(f.quantities) > 1 || len(f.quantities) == 1 && len(f.quantities[0].value) > 2
}

// Evidence is what facts are looked up in.
type Evidence struct {
	numbers map[string][]quantity // by value
	kinds   map[string][]quantity // by dimension
	words   map[string]bool       // in lower case
	text    *strings.Builder
}

// NewEvidence takes the numbers and names of texts: of a quote and of the title of its source, since a page names
// its subject in the title, and says "it" later.
func NewEvidence(texts ...string) Evidence {
	e := Evidence{map[string][]quantity{}, map[string][]quantity{}, map[string]bool{}, &strings.Builder{}}
	for _, text := range texts {
		e.Add(text)
	}
	return e
}

// Add takes the numbers and names of another text.
func (e Evidence) Add(text string) {
	e.text.WriteString(text + "\n")
	for _, q := range numbersOf(text) {
		e.addNumber(q)
	}
	for w := range wordsOf(text) {
		w = strings.ToLower(w)
		e.words[w] = true
	}
	if halves.MatchString(text) {
		e.addNumber(quantity{value: "50", amount: 50, unit: unit{ratio, 0.01}})
	}
	e.addImplied(strings.ToLower(text))
}

// addImplied adds the numbers that a text in lower case says without one: an hour, each year, the second, half past.
func (e Evidence) addImplied(text string) {
	for _, line := range implied() {
		value, words, _ := strings.Cut(line, " ")
		for w := range strings.SplitSeq(words, "/") {
			if strings.Contains(text, w) {
				amount, _ := strconv.ParseFloat(value, 64) // our own data
				e.addNumber(quantity{value: value, amount: amount})
			}
		}
	}
	for _, single := range singles() {
		for i := strings.Index(text, single); i >= 0; {
			before, _ := utf8.DecodeLastRuneInString(text[:i])
			end := i + len(single)
			if u := unitAfter(text[end:]); u.dim != "" && !script.IsWord(before) {
				e.addNumber(quantity{value: "1", amount: 1, unit: u})
			}
			next := strings.Index(text[end:], single)
			if next < 0 {
				break
			}
			i = end + next
		}
	}
}

var (
	implied = data.Words("implied")
	singles = data.Words("singles") // words for one before a unit
)

// halves tells of one half, in other words than the number.
var halves = data.Rule("halves")

func (e Evidence) addNumber(q quantity) {
	e.numbers[q.value] = append(e.numbers[q.value], q)
	e.kinds[q.unit.dim] = append(e.kinds[q.unit.dim], q)
}

func (e Evidence) hasNumber(q quantity) bool {
	return slices.ContainsFunc(e.numbers[q.value], q.equals) || q.measured() && slices.ContainsFunc(e.kinds[q.unit.dim], q.equals)
}

func wordsOf(text string) iter.Seq[string] {
	return strings.FieldsFuncSeq(text, func(r rune) bool { return !script.IsWord(r) })
}

// Missing returns the facts that e does not have.
func (f Facts) Missing(e Evidence) Facts {
	text := ""
	return Facts{
		slices.DeleteFunc(slices.Clone(f.Names), func(n string) bool {
			n = strings.ToLower(n)
			return e.words[n] || e.words[n+"s"] || e.words[strings.TrimSuffix(n, "s")] || e.hasCountryOf(n)
		}),
		slices.DeleteFunc(slices.Clone(f.Titles), func(n string) bool {
			if text == "" {
				text = e.text.String()
			}
			return strings.Contains(text, n)
		}),
		slices.DeleteFunc(slices.Clone(f.quantities), func(q quantity) bool { return e.hasNumber(q) || f.isDifference(q, e) || e.derives(q) }),
	}
}

var peoples = data.Words("peoples")

// hasCountryOf reports whether a name is that of a people or a language whose country is there: Chilean, of Chile.
func (e Evidence) hasCountryOf(name string) bool {
	return slices.ContainsFunc(peoples(), func(ending string) bool {
		root, ok := strings.CutSuffix(name, ending)
		return ok && len(root) >= 4 && slices.ContainsFunc([]string{"", "a", "e", "o", "y"}, func(last string) bool { return e.words[root+last] })
	})
}

// And returns the facts that are in both.
func (f Facts) And(other Facts) Facts {
	in := func(list []string) func(string) bool {
		return func(s string) bool { return !slices.Contains(list, s) }
	}
	return Facts{
		slices.DeleteFunc(slices.Clone(f.Names), in(other.Names)),
		slices.DeleteFunc(slices.Clone(f.Titles), in(other.Titles)),
		slices.DeleteFunc(slices.Clone(f.quantities), func(q quantity) bool { return !slices.ContainsFunc(other.quantities, q.equals) }),
	}
}

// titlesIn returns what is in Chinese quotation marks.
func titlesIn(text string) []string {
	if !strings.ContainsAny(text, "《「『“") {
		return nil // faster than the pattern
	}
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(text, maxTitles) {
		if utf8.RuneCountInString(m[1]) <= maxTitle {
			out = append(out, m[1])
		}
	}
	return out
}

// NamesIn returns capitalised words of at least three letters, but not the first word of the
// sentence.
func NamesIn(text string) []string {
	var out []string
	first := true
	for w := range wordsOf(text) {
		initial, n := utf8.DecodeRuneInString(w)
		if unicode.IsUpper(initial) && utf8.RuneCountInString(w) > 2 && !isMonth(index.Stem(strings.ToLower(w))) && (!first || strings.ContainsFunc(w[n:], unicode.IsUpper)) && len(index.Terms(w)) > 0 {
			out = append(out, w)
		}
		first = false
	}
	return out
}
