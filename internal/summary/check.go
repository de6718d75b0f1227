package summary

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/memory/lang"
)

// material is what a summary is made of, as it is checked.
type material struct {
	plain     []string // texts of the messages with single blanks
	messages  int
	size      int // code points
	lang.Said     // words and runs of everything
	numbers   map[string]bool
	script    scripts
	nouns     bool // its language writes common nouns with a capital, so that these tell no name
}

// materialOf reads what a summary of lines, which continues previous, is made of.
func materialOf(lines []ChatLine, previous string) *material {
	m := &material{plain: make([]string, len(lines)), messages: len(lines), numbers: map[string]bool{}, script: scripts{}}
	texts := make([]string, 0, len(lines)+1)
	speakers, dates := map[string]bool{}, map[string]bool{} // most lines have those of others
	for i := range lines {
		m.plain[i] = lang.Tidy(lines[i].Text)
		m.size += runes(m.plain[i])
		m.script.count(m.plain[i])
		texts = append(texts, m.plain[i])
		speakers[lines[i].speaker()] = true
		if at := lines[i].At; !at.IsZero() {
			for day := -1; day <= 1; day++ { // "yesterday" is a date in a summary
				dates[at.AddDate(0, 0, day).Format("2006 1 2 January")] = true
			}
		}
	}
	texts = slices.AppendSeq(append(texts, previous), maps.Keys(speakers))
	texts = slices.AppendSeq(texts, maps.Keys(dates))
	m.Said = lang.SaidIn(texts...)
	for _, text := range texts {
		m.addNumbers(strings.ToLower(norm.NFKC.String(text)))
	}
	m.nouns = capitalShare(m.plain) > mostCapitals
	return m
}

// addNumbers counts the numbers of a text as said, written in digits or in words.
func (m *material) addNumbers(text string) {
	forms := []string{text}
	if inDigits := lang.Digits(text); inDigits != text {
		forms = append(forms, inDigits)
	}
	if strings.Contains(text, "两") {
		forms = append(forms, lang.Digits(strings.ReplaceAll(text, "两", " "))) // 三百两 are 300
	}
	for _, form := range forms {
		if !strings.ContainsAny(form, "0123456789") {
			continue
		}
		for _, n := range numberSigns.FindAllString(form, -1) {
			for _, part := range numberParts(n) {
				m.numbers[part] = true
			}
		}
	}
	for word, n := range map[string]string{"hundred": "100", "thousand": "1000", "million": "1000000", "dozen": "12"} {
		if strings.Contains(text, word) {
			m.numbers[n] = true
		}
	}
}

var numberSigns = regexp.MustCompile(`\d+(?:[.,:/-]\d+)*`)

// numberParts are the possible readings of a number: 3,000 is one, 2025-03-01 are three.
func numberParts(spelling string) []string {
	parts := strings.FieldsFunc(spelling, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) > 1 {
		parts = append(parts, strings.NewReplacer(",", "", ".", "").Replace(spelling))
	}
	for i := range parts {
		if short := strings.TrimLeft(parts[i], "0"); short != "" {
			parts[i] = short
		}
	}
	return parts
}

// mostCounted is the highest count that a summary may make itself.
const mostCounted = 10

func (m *material) madeUp(sentence string) []string {
	var found []string
	sentence = norm.NFKC.String(sentence)
	for _, n := range numberSigns.FindAllString(sentence, -1) {
		if !m.knowsNumber(n) {
			found = append(found, n)
		}
	}
	if lang.HasCJK(sentence) {
		found = append(found, m.madeUpHan(sentence)...)
	}
	if m.nouns && !lang.HasCJK(sentence) {
		return found
	}
	for _, name := range latinNames(sentence) {
		if !m.knowsWord(name) {
			found = append(found, name)
		}
	}
	return found
}

func (m *material) knowsNumber(spelling string) bool {
	parts := numberParts(spelling)
	if whole := parts[len(parts)-1]; m.numbers[whole] {
		return true
	}
	if strings.Contains(spelling, ":") { // half past eight
		parts = parts[:1]
	} else if len(parts) > 1 {
		parts = parts[:len(parts)-1]
	}
	for _, part := range parts {
		if n, err := strconv.Atoi(part); (err != nil || n > mostCounted) && !m.numbers[part] {
			return false
		}
	}
	return true
}

// knowsWord reports whether a word was said in some form (Paris, Parisian).
func (m *material) knowsWord(name string) bool {
	for _, part := range lang.LatinParts(strings.ToLower(strings.ReplaceAll(name, "’", "'"))) {
		if m.Words[part] || len(part) < 2 {
			continue
		}
		if len(part) < 4 || !m.saysForm(part[:4]) {
			return false
		}
	}
	return true
}

// saysForm reports whether a word with this beginning was said; March is no form of Marcus.
func (m *material) saysForm(beginning string) bool {
	for w := range m.Words {
		if strings.HasPrefix(w, beginning) && !lang.IsDayName(w) {
			return true
		}
	}
	return false
}

var (
	latinWord = regexp.MustCompile(`[\p{Latin}\p{M}]+(?:['’-][\p{Latin}\p{M}]+)*`)

	ofText   = data.Rule("of-text") // capitalised words about the chat or the calendar
	does     = data.Rule("does")    // verbs of people: a capitalised word before one is a name, even if it begins a sentence
	starters = data.Rule("starter") // words before such a verb that are no names
)

// latinNames returns the capitalised names in a sentence, and Latin words in a dense script.
func latinNames(sentence string) []string {
	var out []string
	dense, start := lang.HasCJK(sentence), true
	for _, at := range latinWord.FindAllStringIndex(sentence, -1) {
		w, before := sentence[at[0]:at[1]], strings.TrimRight(sentence[:at[0]], " ")
		start = start || before == "" || strings.ContainsRune(".!?:;\n\"“‘*•-–—([#>…", lastRune(before))
		first, n := utf8.DecodeRuneInString(w)
		capital := unicode.IsUpper(first) && w != strings.ToUpper(w) && len(w) > n
		begins := start && acts(sentence[at[1]:]) && !starters.MatchString(strings.ToLower(w))
		if (dense && len(w) > 1 || capital && (!start || begins)) && !ofText.MatchString(w) && !lang.IsDayName(w) {
			out = append(out, w)
		}
		start = false
	}
	return out
}

// acts reports whether the text behind a word begins with a verb of people.
func acts(behind string) bool {
	verb, apart := strings.CutPrefix(behind, " ")
	return apart && does.MatchString(verb)
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// Names in Chinese.
var (
	hanTitle    = regexp.MustCompile(`《([^》]{1,30})》`)
	hanPersons  = data.List("person")
	hanNoPerson = data.Rule("no-person") // words that begin like a name
	hanPlaces   = data.Rule("place")
)

// hanNames are titles, persons and places that a Chinese text names.
func hanNames(sentence string) []string {
	matches := hanTitle.FindAllStringSubmatch(sentence, -1)
	for _, person := range hanPersons() {
		matches = append(matches, person.FindAllStringSubmatch(sentence, -1)...)
	}
	var names []string
	for _, at := range matches {
		if !hanNoPerson.MatchString(at[1]) {
			names = append(names, at[1])
		}
	}
	return append(names, hanPlaces.Form().FindAllString(sentence, -1)...)
}

func (m *material) madeUpHan(sentence string) (found []string) {
	for _, name := range hanNames(sentence) {
		if !strings.Contains(m.Runs, lang.Fold(name)) {
			found = append(found, name)
		}
	}
	return found
}

// withoutMadeUp leaves out sentences with names or numbers that nobody said, and returns these.
func (m *material) withoutMadeUp(text string) (kept string, madeUp []string) {
	var b strings.Builder
	for rest := text; len(rest) > 0; {
		end := lang.SentenceEnd(rest)
		if invented := m.madeUp(strings.TrimSpace(rest[:end])); len(invented) > 0 {
			madeUp = append(madeUp, invented...)
			if strings.HasSuffix(rest[:end], "\n") {
				b.WriteByte('\n')
			}
		} else {
			b.WriteString(rest[:end])
		}
		rest = rest[end:]
	}
	return strings.TrimSpace(b.String()), madeUp
}

// mostCapitals is the share of capitals inside sentences above which a language is like German.
const mostCapitals = 0.2

func capitalShare(texts []string) float64 {
	all, capitals := 0, 0
	for _, text := range texts {
		for i, w := range strings.Fields(text) {
			if first, _ := utf8.DecodeRuneInString(w); i == 0 || !unicode.IsLetter(first) {
				continue
			}
			if all++; capitalised(w) {
				capitals++
			}
		}
	}
	return float64(capitals) / float64(max(all, 20))
}

// capitalised reports whether a word begins with a capital and goes on in lower case.
func capitalised(word string) bool {
	first, n := utf8.DecodeRuneInString(word)
	second, _ := utf8.DecodeRuneInString(word[n:])
	return unicode.IsUpper(first) && unicode.IsLower(second)
}

// scripts counts the letters of a text by script; a character of a dense one counts three.
type scripts map[string]int

var otherScripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"latin", unicode.Latin}, {"cyrillic", unicode.Cyrillic}, {"arabic", unicode.Arabic}, {"thai", unicode.Thai},
	{"devanagari", unicode.Devanagari}, {"greek", unicode.Greek}, {"hebrew", unicode.Hebrew},
}

func (s scripts) count(text string) {
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r):
		case unicode.Is(unicode.Hangul, r):
			s["hangul"] += 3
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			s["kana"] += 3
			s["east"] += 3
		case unicode.Is(unicode.Han, r):
			s["east"] += 3
		default:
			for _, other := range otherScripts {
				if unicode.Is(other.table, r) {
					s[other.name]++
					break
				}
			}
		}
	}
}

func (s scripts) share(name string) float64 {
	sum := -s["kana"] // which are in east
	for _, n := range s {
		sum += n
	}
	return float64(s[name]) / float64(max(sum, 1))
}

// foreign reports whether text is in another script than the messages; Japanese has kana.
func (m *material) foreign(text string) bool {
	s := scripts{}
	s.count(text)
	for name := range m.script {
		if name != "kana" && m.script.share(name) >= 0.6 && s.share(name) < 0.4 {
			return true
		}
	}
	japanese, kana := m.script.share("kana"), s.share("kana")
	return japanese >= 0.15 && kana < 0.02 || m.script.share("east") >= 0.6 && japanese < 0.02 && kana >= 0.15
}

// least is the minimum length of a summary.
func least(messages, size, length int) int {
	return min(max(shortestSummary, 2*messages, size/100), max(shortestSummary, length/4))
}
