package cite

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
)

// facts are the numbers and names of a sentence: what a quote must have to support it.
type facts struct {
	numbers []string // decimal, without separators
	spelled []string // likewise, of English words from "two" on
	names   []string // capitalised words
	titles  []string // in Chinese quotation marks
}

// Titles are looked for in whole texts.
const (
	maxTitles = 5  // per sentence
	maxTitle  = 20 // code points
)

var (
	scale        = data.List("scale", "times") // what multiplies the number before it
	smallNumbers = data.Ranks("small-numbers")
	tens         = data.Ranks("tens")

	// Chinese titles and names in quotation marks, but not what somebody says.
	quoted = regexp.MustCompile(`[《「『“]([^《》「」『』“”，。！？…,.!?\n]*\p{Han}[^《》「」『』“”，。！？…,.!?\n]*)[》」』”]`)
)

func factsOf(sentence string) facts {
	f := facts{numbersIn(sentence), spelledIn(sentence), namesIn(sentence), titlesIn(sentence)}
	f.numbers = append(f.numbers, counted(sentence, f.numbers)...)
	f.spelled = slices.DeleteFunc(f.spelled, func(n string) bool { return n == "1" }) // "one" is more often a pronoun
	return f
}

func (f facts) count() int { return len(f.numbers) + len(f.spelled) + len(f.names) + len(f.titles) }

// telling reports whether the numbers are unlikely to be those of another text by chance.
func (f facts) telling() bool {
	return len(f.numbers) > 1 || len(f.numbers) == 1 && len(f.numbers[0]) > 2
}

// evidence is what facts are looked up in.
type evidence struct {
	numbers map[string]bool
	words   map[string]bool // in lower case
	text    string
}

// newEvidence takes the numbers and names of a quote and of the title of its source: a page names its subject in the title, and says "it" later.
func newEvidence(quote, title string) evidence {
	e := evidence{map[string]bool{}, map[string]bool{}, quote + "\n" + title}
	e.add(quote, title)
	return e
}

func (e evidence) add(quote, title string) {
	for _, n := range numbersIn(quote) {
		e.numbers[n] = true
	}
	for _, n := range spelledIn(quote) {
		e.numbers[n] = true
	}
	for _, n := range counted(quote, nil) {
		e.numbers[n] = true
	}
	for w := range wordsOf(quote) {
		e.words[strings.ToLower(w)] = true
	}
	for _, n := range numbersIn(title) {
		e.numbers[n] = true
	}
	for _, n := range counted(title, nil) {
		e.numbers[n] = true
	}
	for w := range wordsOf(title) {
		e.words[strings.ToLower(w)] = true
	}
}

// addMonths adds the numbers of the months that a text names.
func (e evidence) addMonths(text string) {
	for w := range wordsOf(text) {
		lower := strings.ToLower(w)
		if rank, ok := months()[lower]; ok && lower != w {
			e.numbers[strconv.Itoa(rank+1)] = true
		}
	}
}

// evidenceOf is what all sources have.
func evidenceOf(sources []Source) evidence {
	e := newEvidence("", "")
	var text strings.Builder
	for _, s := range sources {
		for _, c := range s.Chunks {
			e.add(c.Text, s.title())
			text.WriteString(c.Text + "\n")
		}
		text.WriteString(s.title() + "\n")
	}
	e.text = text.String()
	return e
}

func wordsOf(text string) iter.Seq[string] {
	return strings.FieldsFuncSeq(text, func(r rune) bool { return !isWord(r) })
}

// missing returns the facts that e does not have.
func (f facts) missing(e evidence) facts {
	isThere := func(n string) bool { return e.numbers[n] }
	return facts{
		slices.DeleteFunc(slices.Clone(f.numbers), isThere),
		slices.DeleteFunc(slices.Clone(f.spelled), isThere),
		slices.DeleteFunc(slices.Clone(f.names), func(n string) bool {
			n = strings.ToLower(n)
			return e.words[n] || e.words[n+"s"] || e.words[strings.TrimSuffix(n, "s")]
		}),
		slices.DeleteFunc(slices.Clone(f.titles), func(n string) bool { return strings.Contains(e.text, n) }),
	}
}

// factor lowers the score of a quote without these facts. Without a number, it is below all
// sensible thresholds: half of what cosines reach, a quarter of what words do.
func (f facts) factor(byWords bool) float64 {
	switch {
	case len(f.numbers)+len(f.spelled) > 0 && byWords:
		return 0.25
	case len(f.numbers)+len(f.spelled) > 0:
		return 0.5
	case len(f.names)+len(f.titles) > 0:
		return 0.85
	}
	return 1
}

// numbersIn returns the numbers of text, written in digits or in Chinese. Digits at the end of
// a word are a name.
func numbersIn(text string) []string {
	var out []string
	before := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case isDigit(r):
			end := digitsEnd(text, i)
			if !unicode.IsLetter(before) || isDense(before) {
				out = append(out, number(text[i:end], strings.ToLower(text[end:min(end+12, len(text))])))
			}
			i = end
		case isHanDigit(r):
			end := runOf(text, i, isHanDigit)
			if value, ok := hanNumber(text[i:end]); ok && end > i+n {
				out = append(out, value)
			}
			i = end
		default:
			i += n
		}
		before = r
	}
	return out
}

// spelledIn returns the numbers that text writes out in English: nine, forty-two.
func spelledIn(text string) (out []string) {
	before := 0 // the word before, if it was one of twenty to ninety
	for w := range wordsOf(text) {
		w = strings.ToLower(w)
		if rank, ok := tens()[w]; ok {
			before = 10 * (rank + 2)
			out = append(out, strconv.Itoa(before))
			continue
		}
		if rank, ok := smallNumbers()[w]; ok && before > 0 && rank < 9 {
			out[len(out)-1] = strconv.Itoa(before + rank + 1)
		} else if ok {
			out = append(out, strconv.Itoa(rank+1))
		}
		before = 0
	}
	return out
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' || '０' <= r && r <= '９' }

func isHanDigit(r rune) bool {
	return r >= 0x3007 && strings.ContainsRune("〇零一二两三四五六七八九十百千万亿", r)
}

// digitsEnd is the end of digits, with single separators between them.
func digitsEnd(text string, from int) int {
	for {
		from = runOf(text, from, isDigit)
		r, n := utf8.DecodeRuneInString(text[from:])
		next, _ := utf8.DecodeRuneInString(text[from+n:])
		if !strings.ContainsRune(".,．，", r) || !isDigit(next) {
			return from
		}
		from += n
	}
}

// number is the plain form of digits with separators, and of what follows them.
func number(s, after string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case '０' <= r && r <= '９':
			return r - '０' + '0'
		case r == '．':
			return '.'
		case r == '，':
			return ','
		}
		return r
	}, s)
	if whole := strings.Split(s, ","); len(whole) > 1 {
		join := ""
		for _, group := range whole[1:] {
			if group, _, _ = strings.Cut(group, "."); len(group) != 3 {
				join = "."
			}
		}
		s = strings.Join(whole, join)
	}
	value, err := strconv.ParseFloat(s, 64)
	if err != nil || len(s) > 15 {
		return s // a version, a key
	}
	for _, s := range scale() {
		if s.MatchString(after) {
			times, _ := strconv.ParseFloat(s.With["times"], 64) // of our own data
			value *= times
		}
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

const hanFigures = "〇一二三四五六七八九零壹两"

// hanNumber reads a number in Chinese characters: 三百一十二, 二〇一九. Two digits side by side
// are an estimate (三四), and 万一 is a word.
func hanNumber(s string) (string, bool) {
	total, section, figure, units, places := 0, 0, 0, 0, ""
	for i, r := range s {
		switch r {
		case '十', '百', '千':
			unit := map[rune]int{'十': 10, '百': 100, '千': 1000}[r]
			if figure == 0 && (r != '十' || i > 0 && section > 0) {
				return "", false
			}
			section += max(figure, 1) * unit
			figure = 0
			units++
		case '万', '亿':
			if section+figure == 0 || total+section+figure > 1e8 {
				return "", false
			}
			total = (total + section + figure) * map[rune]int{'万': 1e4, '亿': 1e8}[r]
			section, figure = 0, 0
			units++
		default:
			figure = strings.Index(hanFigures, string(r)) / len("〇") % 10
			places += strconv.Itoa(figure)
		}
		if len(places) > 12 {
			return "", false
		}
	}
	if units == 0 {
		return strings.TrimLeft(places, "0"), len(places) >= 3
	}
	return strconv.Itoa(total + section + figure), true
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

// namesIn returns capitalised words of at least three letters, but not the first word of the
// sentence.
func namesIn(text string) []string {
	var out []string
	first := true
	for w := range wordsOf(text) {
		initial, n := utf8.DecodeRuneInString(w)
		if unicode.IsUpper(initial) && utf8.RuneCountInString(w) > 2 && (!first || strings.ContainsFunc(w[n:], unicode.IsUpper)) && len(index.Terms(w)) > 0 {
			out = append(out, w)
		}
		first = false
	}
	return out
}
