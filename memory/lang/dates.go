package lang

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"
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

const (
	Months   = "january february march april may june july august september october november december"
	Weekdays = "monday tuesday wednesday thursday friday saturday sunday"
)

const (
	monthWord = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`
	dayWord   = `(monday|tuesday|wednesday|thursday|friday|saturday|sunday)`
)

var dayNames = regexp.MustCompile(`^(?:` + monthWord + `|` + dayWord + `)$`)

// dateForm is one way to name a day; day computes it from the groups, in lower case.
type dateForm struct {
	form  *regexp.Regexp
	day   func(m []string, at time.Time) (time.Time, bool)
	names span
}

// dateForms, the more specific ones first.
var dateForms = sync.OnceValue(func() []dateForm {
	return []dateForm{
		{regexp.MustCompile(`(?i)\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b`), onDay(1, 2, 3), absolute},
		{regexp.MustCompile(`(?i)(?:(\d{4})\s*年\s*)?(\d{1,2}|一)\s*月\s*(\d{1,2}|一)\s*[日号]`), onDay(1, 2, 3), absolute},
		{regexp.MustCompile(`(?i)\b` + monthWord + `\.?\s+(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(\d{4})\b)?`), onDay(3, 1, 2), absolute},
		{regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?` + monthWord + `\b(?:,?\s+(\d{4})\b)?`), onDay(3, 2, 1), absolute},
		{regexp.MustCompile(`(?i)大前天`), after(0, 0, -3), aDay},
		{regexp.MustCompile(`(?i)大后天`), after(0, 0, 3), aDay},
		{regexp.MustCompile(`(?i)(?:the )?day before yesterday|前天`), after(0, 0, -2), aDay},
		{regexp.MustCompile(`(?i)(?:the )?day after tomorrow|后天`), after(0, 0, 2), aDay},
		{regexp.MustCompile(`(?i)\b(\d+|an?|one) (day|week|month|year)s? ago\b`), spanAway(-1), aSpan},
		{regexp.MustCompile(`(?i)\bin (\d+|an?|one) (day|week|month|year)s?\b`), spanAway(1), aSpan},
		{regexp.MustCompile(`(?i)(\d+|一|两)\s*个?(天|周|星期|礼拜|月|年)(?:以|之)?前`), spanAway(-1), aSpan},
		{regexp.MustCompile(`(?i)(\d+|一|两)\s*个?(天|周|星期|礼拜|月|年)(?:以|之)?后`), spanAway(1), aSpan},
		{regexp.MustCompile(`(?i)\b(last|this|next) ` + dayWord + `\b`), inWeek, aDay},
		{regexp.MustCompile(`(?i)(上+|这|本|下+)个?(?:周|星期|礼拜)([一二三四五六日天1-6])`), inWeek, aDay},
		{regexp.MustCompile(`(?i)\byesterday\b|\blast night\b|昨天|昨晚|昨日|昨夜`), after(0, 0, -1), aDay},
		{regexp.MustCompile(`(?i)\btomorrow\b|明天|明晚|明早|明日`), after(0, 0, 1), aDay},
		{regexp.MustCompile(`(?i)\blast week(?:end)?\b|上个?(?:周|星期|礼拜)`), after(0, 0, -7), aWeek},
		{regexp.MustCompile(`(?i)\bnext week(?:end)?\b|下个?(?:周|星期|礼拜)`), after(0, 0, 7), aWeek},
		{regexp.MustCompile(`(?i)\blast month\b|上个?月`), after(0, -1, 0), aMonth},
		{regexp.MustCompile(`(?i)\bnext month\b|下个?月`), after(0, 1, 0), aMonth},
		{regexp.MustCompile(`(?i)\blast year\b|去年`), after(-1, 0, 0), aYear},
		{regexp.MustCompile(`(?i)\bnext year\b|明年`), after(1, 0, 0), aYear},
		{regexp.MustCompile(`(?i)前年`), after(-2, 0, 0), aYear},
		{regexp.MustCompile(`(?i)\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b|今天|今晚|今早|今日`), after(0, 0, 0), aDay},
	}
})

func after(years, months, days int) func([]string, time.Time) (time.Time, bool) {
	return func(_ []string, at time.Time) (time.Time, bool) {
		return monthsOn(at, 12*years+months).AddDate(0, 0, days), true
	}
}

// monthsOn stays in the month: a month after January 31st is the end of February.
func monthsOn(at time.Time, months int) time.Time {
	y, m, d := at.Date()
	first := time.Date(y, m+time.Month(months), 1, 0, 0, 0, 0, at.Location())
	return first.AddDate(0, 0, min(d, first.AddDate(0, 1, -1).Day())-1)
}

// onDay reads a date whose year, month and day are these groups.
func onDay(year, month, day int) func([]string, time.Time) (time.Time, bool) {
	return func(m []string, at time.Time) (time.Time, bool) {
		mo, d := monthNumber(m[month]), count(m[day])
		if y := count(m[year]); y > 0 {
			return dayIn(y, mo, d, at.Location())
		}
		var best time.Time
		for y := at.Year() - 1; y <= at.Year()+1; y++ {
			if t, ok := dayIn(y, mo, d, at.Location()); ok && (best.IsZero() || t.Sub(at).Abs() < best.Sub(at).Abs()) {
				best = t
			}
		}
		return best, !best.IsZero()
	}
}

func dayIn(y, m, d int, zone *time.Location) (time.Time, bool) {
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, zone)
	return t, t.Day() == d && int(t.Month()) == m
}

func monthNumber(s string) int {
	if s[0] >= 'a' && s[0] <= 'z' {
		return strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", s[:3])/3 + 1
	}
	return count(s)
}

// count reads a small number; 0 for an empty group.
func count(s string) int {
	switch s {
	case "a", "an", "one", "一":
		return 1
	case "两":
		return 2
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 9999 {
		return 0
	}
	return n
}

// spanAway reads "3 days ago" (sign -1) and "in 2 weeks" (sign 1).
func spanAway(sign int) func([]string, time.Time) (time.Time, bool) {
	return func(m []string, at time.Time) (time.Time, bool) {
		n := sign * count(m[1])
		switch m[2] {
		case "day", "天":
			return at.AddDate(0, 0, n), n != 0
		case "week", "周", "星期", "礼拜":
			return at.AddDate(0, 0, 7*n), n != 0
		case "month", "月":
			return monthsOn(at, n), n != 0
		}
		return monthsOn(at, 12*n), n != 0
	}
}

func inWeek(m []string, at time.Time) (time.Time, bool) {
	weeks := 0
	switch {
	case m[1] == "last":
		weeks = -1
	case m[1] == "next":
		weeks = 1
	case strings.HasPrefix(m[1], "上"):
		weeks = -strings.Count(m[1], "上")
	case strings.HasPrefix(m[1], "下"):
		weeks = strings.Count(m[1], "下")
	}
	monday := at.AddDate(0, 0, -(int(at.Weekday())+6)%7)
	return monday.AddDate(0, 0, 7*weeks+weekday(m[2])), true
}

func weekday(s string) int {
	for i, names := range [...]string{"monday一1月월", "tuesday二2火화", "wednesday三3水수", "thursday四4木목", "friday五5金금", "saturday六6土토"} {
		if strings.Contains(names, s) {
			return i
		}
	}
	return 6
}

const (
	ones = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
	tens = "twenty thirty forty fifty sixty seventy eighty ninety"
)

var hanNumber = regexp.MustCompile(`十分|万分|百分|千万|万一|[二两三四五六七八九十百千万零][一二两三四五六七八九十百千万零]*|一[十百千万][一二两三四五六七八九十百千万零]*`)

var numberOf = func() map[string]int {
	m := map[string]int{"零": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "百": 100, "千": 1000, "万": 10000}
	for i, w := range strings.Fields(ones) {
		m[w] = i + 1
	}
	for i, w := range strings.Fields(tens) {
		m[w] = 10*i + 20
	}
	return m
}()

// Digits writes the numbers of a folded text in digits, so that 三 and 3 are the same. A lone 一
// or "one" stays: it is seldom a number.
func Digits(text string) string {
	if strings.IndexFunc(text, isHanDigit) >= 0 {
		text = hanNumber.ReplaceAllStringFunc(text, func(s string) string {
			switch s {
			case "十分", "万分", "百分", "千万", "万一": // words
				return s
			}
			return hanValue(s)
		})
	}
	return englishDigits(text)
}

func isHanDigit(r rune) bool {
	switch r {
	case '零', '一', '二', '两', '三', '四', '五', '六', '七', '八', '九', '十', '百', '千', '万':
		return true
	}
	return false
}

// englishDigits is Digits for English: "twenty-five" and "seven". Whole texts are read with it,
// so it is a loop and no regular expression.
func englishDigits(text string) string {
	var b strings.Builder
	copied := 0
	for start := 0; start < len(text); {
		end := wordEnd(text, start)
		if end == start {
			start++
			continue
		}
		if n := numberOf[text[start:end]]; n > 1 {
			if next := wordEnd(text, min(end+1, len(text))); n%10 == 0 && n >= 20 && next > end+1 && (text[end] == '-' || text[end] == ' ') {
				if one := numberOf[text[end+1:next]]; one > 0 && one < 20 {
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
	if !strings.ContainsAny(s, "十百千万") {
		var b strings.Builder
		for _, r := range s {
			b.WriteString(strconv.Itoa(numberOf[string(r)]))
		}
		return b.String()
	}
	total, part, digit := 0, 0, 0
	for _, r := range s {
		n := numberOf[string(r)]
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
