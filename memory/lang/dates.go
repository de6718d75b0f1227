package lang

import (
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/lexicon"
)

// EventTime returns the day that a text names (LocalTime), relative to the time at which it was
// said: "yesterday", 下周三, "May 4th". A week, a month or a year counts as the same day in it; a
// day without a year is the one nearest to at. The first form found counts.
func EventTime(text string, at time.Time) (time.Time, bool) {
	if at.IsZero() {
		return time.Time{}, false
	}
	m, ok := firstDay(Digits(norm.NFKC.String(text)), at)
	return m.day, ok
}

// Rules for days; their groups are in groups.
var (
	saidDays   = data.List("said-day", "after", "away")
	askedDates = data.List("asked-date")
	askedDays  = data.List("asked-day", "within", "on")

	months   = data.Ranks("months")
	weekdays = data.Ranks("weekdays") // from Monday
	units    = data.Ranks("units")    // day, week, month, year
	weeks    = data.Ranks("weeks")    // the last, this, the next
	counts   = data.Ranks("counts")   // from 1
	ordinals = data.Ranks("ordinals") // from 1
)

// span is the length of what a rule names.
type span uint8

// The spans behind absolute are units in their order.
const (
	absolute span = iota // the same on any day
	aDay
	aWeek
	aMonth
	aYear
)

// groups are found by a rule, in lower case: year, month, day; count, unit; week, weekday.
type groups map[string]string

func groupsOf(form *lexicon.Form, text string, at []int) groups {
	found := groups{}
	for i, name := range form.SubexpNames() {
		if name != "" && at[2*i] >= 0 {
			found[name] = strings.ToLower(text[at[2*i]:at[2*i+1]])
		}
	}
	return found
}

// unit is that of the group, a day if there is none.
func (g groups) unit() span { return aDay + span(units()[g["unit"]]) }

// said returns the day that a rule found in a text that was said at a time, and what is named.
func (g groups) said(e lexicon.Entry, at time.Time) (day time.Time, names span, ok bool) {
	switch {
	case e.With["after"] != "":
		n, unit := amount(e.With["after"])
		return later(at, n, unit), unit, true
	case e.With["away"] != "":
		n := count(g["count"])
		if e.With["away"] == "-1" {
			n = -n
		}
		return later(at, n, g.unit()), g.unit(), n != 0
	case g["weekday"] != "":
		return g.inWeek(at), aDay, true
	}
	day, ok = g.date(at)
	return day, absolute, ok
}

// amount reads "-2 day".
func amount(text string) (n int, unit span) {
	number, of, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	rank, ok := units()[of]
	if err != nil || !ok {
		panic("lang: no amount of time: " + text)
	}
	return n, aDay + span(rank)
}

// later is n units after a day.
func later(at time.Time, n int, unit span) time.Time {
	switch unit {
	case aWeek:
		return at.AddDate(0, 0, 7*n)
	case aMonth:
		return monthsOn(at, n)
	case aYear:
		return monthsOn(at, 12*n)
	}
	return at.AddDate(0, 0, n)
}

// monthsOn stays in the month: a month after January 31st is the end of February.
func monthsOn(at time.Time, months int) time.Time {
	y, m, d := at.Date()
	first := time.Date(y, m+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	return first.AddDate(0, 0, min(d, first.AddDate(0, 1, -1).Day())-1)
}

// date is the nearest to at if no year is named.
func (g groups) date(at time.Time) (time.Time, bool) {
	mo, d := monthNumber(g["month"]), count(g["day"])
	if y := count(g["year"]); y > 0 {
		return dayIn(y, mo, d)
	}
	var best time.Time
	for y := at.Year() - 1; y <= at.Year()+1; y++ {
		if t, ok := dayIn(y, mo, d); ok && (best.IsZero() || t.Sub(at).Abs() < best.Sub(at).Abs()) {
			best = t
		}
	}
	return best, !best.IsZero()
}

func dayIn(y, m, d int) (time.Time, bool) {
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	return t, t.Day() == d && int(t.Month()) == m
}

func monthNumber(s string) int {
	if rank, ok := months()[s]; ok {
		return rank + 1
	}
	return count(s)
}

// count reads a small number; 0 for an empty group.
func count(s string) int {
	if rank, ok := counts()[s]; ok {
		return rank + 1
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 9999 {
		return 0
	}
	return n
}

// inWeek reads "next Friday", and 上上周五 by how often its character is there.
func (g groups) inWeek(at time.Time) time.Time {
	week, times := g["week"], 1
	if _, n := utf8.DecodeRuneInString(week); strings.Repeat(week[:n], len(week)/n) == week {
		week, times = week[:n], len(week)/n
	}
	return monday(at).AddDate(0, 0, 7*times*(weeks()[week]-1)+weekdays()[g["weekday"]])
}

func monday(at time.Time) time.Time { return at.AddDate(0, 0, -(int(at.Weekday())+6)%7) }

var (
	hanNumber = chinese("number")
	noNumbers = data.Set("no-numbers") // look like numbers
	digits    = data.Ranks("digits")
	powers    = data.Words("powers")
	ones      = data.Words("ones")
	tens      = data.Words("tens")
)

var numberOf = sync.OnceValue(func() map[string]int {
	m := map[string]int{}
	for w, n := range digits() {
		m[w] = n
	}
	n := 10
	for _, w := range powers() {
		m[w] = n
		n *= 10
	}
	for i, w := range ones() {
		m[w] = i + 1
	}
	for i, w := range tens() {
		m[w] = 10*i + 20
	}
	return m
})

// Digits writes the numbers of a folded text in digits, but for a lone 一 or "one".
func Digits(text string) string {
	return englishDigits(hanNumber.Form().ReplaceAllStringFunc(text, func(s string) string {
		if noNumbers()[s] {
			return s
		}
		return hanValue(s)
	}))
}

// englishDigits is Digits for English: "twenty-five" and "seven". Whole texts are read with it,
// so it is a loop and no regular expression.
func englishDigits(text string) string {
	var b strings.Builder
	numbers, copied := numberOf(), 0
	for start := 0; start < len(text); {
		end := wordEnd(text, start)
		if end == start {
			start++
			continue
		}
		if n := numbers[text[start:end]]; n > 1 {
			if next := wordEnd(text, min(end+1, len(text))); n%10 == 0 && n >= 20 && next > end+1 && (text[end] == '-' || text[end] == ' ') {
				if one := numbers[text[end+1:next]]; one > 0 && one < 20 {
					n, end = n+one, next
				}
			}
			b.WriteString(text[copied:start])
			b.WriteString(strconv.Itoa(n))
			copied = end
		}
		start = end
	}
	if copied == 0 {
		return text
	}
	b.WriteString(text[copied:])
	return b.String()
}

// wordEnd is where the word of ASCII letters, digits and underscores from start on ends.
func wordEnd(text string, start int) int {
	for start < len(text) && asciiWord(text[start]) {
		start++
	}
	return start
}

func asciiWord(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || c == '_'
}

func hanValue(s string) string {
	if !strings.ContainsAny(s, strings.Join(powers(), "")) {
		var b strings.Builder
		for _, r := range s {
			b.WriteString(strconv.Itoa(numberOf()[string(r)]))
		}
		return b.String()
	}
	total, part, digit := 0, 0, 0
	for _, r := range s {
		n := numberOf()[string(r)]
		switch {
		case n < 10:
			digit = n
			continue
		case n == 10000:
			total, part = (total+part+digit)*n, 0
		case digit == 0:
			part += n
		default:
			part += digit * n
		}
		digit = 0
		if total > 1e15 {
			return s
		}
	}
	return strconv.Itoa(total + part + digit)
}
