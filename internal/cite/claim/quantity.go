package claim

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/internal/index"
)

// quantity is a number with what it counts or measures.
type quantity struct {
	value   string // in digits
	amount  float64
	unit    unit
	signed  bool // it stands behind the sign of a currency
	at, end int  // the number's place in its text
	unitEnd int  // where its unit ends, behind it
}

// unit is a measure, and how many of the first unit of its dimension it is.
type unit struct {
	dim    string // "" = none is known
	factor float64
}

// Dimensions that the words beside a number tell, and no unit.
const (
	year   = "year"
	month  = "month of a year"
	day    = "day of a month"
	clock  = "clock"
	label  = "label"     // belongs to the name before it: line 7
	score  = "score"     // 三比二
	counts = "count of " // and behind it what is counted
)

var (
	ranges   = data.Set("ranges")
	months   = data.Ranks("months")
	unitList = data.Words("units")
)

// unitsByName reads lines such as "length 1000 kilometre/km".
var unitsByName = sync.OnceValue(func() map[string]unit {
	units := map[string]unit{}
	for _, line := range unitList() {
		fields := strings.SplitN(line, " ", 3)
		factor, _ := strconv.ParseFloat(fields[1], 64) // our own data
		for name := range strings.SplitSeq(fields[2], "/") {
			units[name] = unit{fields[0], factor}
		}
	}
	return units
})

// longestUnit is in bytes, with the space within.
const longestUnit = 20

// quantitiesIn returns the numbers of a plain text with their units, and the months that it names. Digits at the end of a
// word are a name.
func quantitiesIn(text string) (out []quantity) {
	before := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !script.IsDigit(r) {
			if unicode.IsUpper(r) && !script.IsWord(before) {
				n = script.RunOf(text, i, script.IsWord) - i
				if rank, ok := months()[strings.ToLower(text[i:i+n])]; ok {
					out = append(out, quantity{value: decimal(float64(rank + 1)), amount: float64(rank + 1), unit: unit{month, 1}, at: i, end: i + n})
				}
				r, _ = utf8.DecodeLastRuneInString(text[:i+n])
			}
			before = r
			i += n
			continue
		}
		end := digitsEnd(text, i)
		if !script.IsLetter(before) && !(before == ':' && text[i:end] == "00") {
			q := quantity{value: number(text[i:end], ""), at: i, end: end}
			q.amount, _ = strconv.ParseFloat(q.value, 64) // a version has none
			q.unit = unitOf(text, &q, out)
			q.signed = currency(before)
			out = append(out, q)
		}
		i, before = end, r
	}
	for i := len(out) - 2; i >= 0; i-- { // 10 to 80 percent
		if between := strings.Trim(text[out[i].end:out[i+1].at], " "); ranges()[between] && (out[i].unit.dim == "" || strings.HasPrefix(out[i].unit.dim, counts)) {
			out[i].unit = out[i+1].unit
		}
	}
	return out
}

// unitOf tells what a number counts: by what stands before it, behind it, or both.
func unitOf(text string, q *quantity, before []quantity) unit {
	last, _ := utf8.DecodeLastRuneInString(text[:q.at])
	if u, ok := unitsByName()[string(last)]; ok && currency(last) {
		return u
	}
	rest := text[q.end:]
	next, _ := utf8.DecodeRuneInString(rest)
	for _, of := range []func() string{
		func() string { return scoreOf(text[:q.at], last, next) },
		func() string { return yearOf(q, text[q.at:q.end], rest, next) },
		func() string { return dayOf(q, text[:q.at], rest, next, before) },
		func() string { return clockOf(rest, next) },
	} {
		if dim := of(); dim != "" {
			return unit{dim, 1}
		}
	}
	if u, length := unitAt(rest); u.dim != "" {
		q.unitEnd = q.end + length
		return u
	}
	if script.IsDense(next) && measures()[string(next)] {
		return unit{counts + string(next), 1}
	}
	if terms := index.Terms(nextWord(rest)); len(terms) == 1 {
		return unit{counts + terms[0], 1}
	}
	if first, _ := utf8.DecodeRuneInString(lastWord(text[:q.at])); unicode.IsUpper(first) && !strings.ContainsAny(text[q.at:q.end], ".,") {
		return unit{label, 1}
	}
	return unit{}
}

func scoreOf(before string, last, next rune) string {
	if next == '比' || last == '比' && script.IsDigit(lastBefore(before, "比")) {
		return score
	}
	return ""
}

func yearOf(q *quantity, digits, rest string, next rune) string {
	if len(q.value) != 4 || q.value[0] != '1' && q.value[0] != '2' || strings.ContainsAny(digits, ".,") {
		return ""
	}
	if next == '年' || !script.IsDense(next) && unitAfter(rest).dim == "" {
		return year
	}
	return ""
}

// dayOf tells months and days of dates.
func dayOf(q *quantity, before, rest string, next rune, earlier []quantity) string {
	following := nextWord(rest)
	_, isNext := months()[following]
	_, isBefore := months()[strings.ToLower(lastWord(before))]
	inDate := len(earlier) > 0 && earlier[len(earlier)-1].unit.dim == month
	switch {
	case next == '月' && q.amount <= 12:
		return month
	case q.amount > 31:
		return ""
	case isNext && following != "may", isBefore, next == '日', next == '号' && inDate:
		return day
	}
	return ""
}

func clockOf(rest string, next rune) string {
	rest = strings.TrimLeft(rest, " ")
	if strings.ContainsRune("点时:", next) || slices.ContainsFunc([]string{"am", "pm", "a.m", "p.m"}, func(half string) bool {
		after, found := strings.CutPrefix(rest, half)
		r, _ := utf8.DecodeRuneInString(after)
		return found && !script.IsWord(r)
	}) {
		return clock
	}
	return ""
}

// lastBefore is the last character of a text without an ending.
func lastBefore(text, ending string) rune {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimSuffix(text, ending))
	return r
}

// nextWord is the word that a text begins with, behind a space.
func nextWord(text string) string {
	word, _ := wordAfter(text, 0)
	return word
}

// lastWord is the word that a text ends with, but for a space.
func lastWord(text string) string {
	text = strings.TrimRight(text, " ")
	return text[strings.LastIndexFunc(text, func(r rune) bool { return !script.IsWord(r) })+1:]
}

// unitAfter finds the longest unit at the beginning of a text.
func unitAfter(text string) unit {
	u, _ := unitAt(text)
	return u
}

// unitAt is unitAfter with the length of the unit.
func unitAt(text string) (unit, int) {
	text = text[:min(len(text), longestUnit+2)]
	skipped := len(text) - len(strings.TrimLeft(text, " -"))
	text = strings.ToLower(text[skipped:])
	units := unitsByName()
	for end := len(text); end > 0; end-- {
		u, ok := units[text[:end]]
		if !ok {
			continue
		}
		last, _ := utf8.DecodeLastRuneInString(text[:end])
		next, _ := utf8.DecodeRuneInString(text[end:])
		if !script.IsLetter(last) || !script.IsWord(next) {
			return u, skipped + end
		}
	}
	return unit{}, 0
}

// convertible reports whether there are other units of the same dimension.
func (u unit) convertible() bool {
	return u.dim != "" && u.factor > 0 && u.measures() && u.dim != ratio
}

// measures reports whether u is more than a word for what is counted.
func (u unit) measures() bool {
	return u.dim != "" && !strings.HasPrefix(u.dim, counts) && !slices.Contains([]string{year, month, day, clock, label, score}, u.dim)
}

// measured reports whether a quantity has a unit that is more than a word for what is counted.
func (q quantity) measured() bool {
	return q.unit.dim != "" && q.unit.dim != year && !strings.HasPrefix(q.unit.dim, counts)
}

// equals reports whether two quantities are the same amount: 3 km are 3,000 m, and 9 p.m. is 21:00. Where one
// has no unit, the number tells.
func (q quantity) equals(other quantity) bool {
	same := q.value == other.value
	switch {
	case q.unit.dim == clock || other.unit.dim == clock:
		return same || math.Mod(q.amount+12, 24) == other.amount
	case q.unit.dim == day && other.unit.isDay(), other.unit.dim == day && q.unit.isDay(): // 十日
		return same
	case q.differs(other):
		return false
	case !q.measured() || !other.measured():
		return same
	case q.unit.dim != other.unit.dim:
		return false
	case q.unit.dim == ratio: // a third is 33 %
		return same || (q.isFraction() || other.isFraction()) && math.Abs(q.amount-other.amount) < 1
	}
	a, b := q.amount*q.unit.factor, other.amount*other.unit.factor
	return math.Abs(a-b) <= 1e-6*max(a, b)
}

func (u unit) isDay() bool { return u.dim == "time" && u.factor == 86400 }

// differs reports whether two quantities are of kinds that are not taken for each other though one has no unit: months, scores,
// and money, which is not those under twelve years of age.
func (q quantity) differs(other quantity) bool {
	if q.signed && !other.measured() && q.amount < 1000 {
		return true
	}
	return q.unit.dim != "" && other.unit.dim != "" && slices.ContainsFunc([]string{month, score}, func(dim string) bool {
		return (q.unit.dim == dim) != (other.unit.dim == dim)
	})
}

// ratio is the dimension of percentages.
const ratio = "ratio"

// isFraction reports whether a percentage has more places than people write: it was made of a fraction.
func (q quantity) isFraction() bool {
	_, places, _ := strings.Cut(q.value, ".")
	return len(places) > 2
}

// like reports whether two quantities measure the same, so that one may stand for the other.
func (q quantity) like(other quantity) bool {
	lasts := func(u unit) bool { return u.dim == "time" || u.dim == "calendar" }
	return q.unit.dim == other.unit.dim || lasts(q.unit) && lasts(other.unit)
}

// isUnit reports whether a term is that of a unit.
func isUnit(term string) bool { return unitTerms()[term] }

var unitTerms = sync.OnceValue(func() map[string]bool {
	terms := map[string]bool{}
	for name := range unitsByName() {
		for _, t := range index.Terms(name) {
			terms[t] = true
		}
	}
	return terms
})

// isMonth reports whether a term is that of a month.
func isMonth(term string) bool { return monthTerms()[term] }

var monthTerms = sync.OnceValue(func() map[string]bool {
	terms := map[string]bool{}
	for name := range months() {
		terms[index.Stem(name)] = true
	}
	return terms
})
