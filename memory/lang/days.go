package lang

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
	"time"
)

// LocalTime converts a time to a zone. Midnight UTC stands for a date without an hour, and
// stays that date in every zone.
func LocalTime(at time.Time, zone *time.Location) time.Time {
	if utc := at.UTC(); IsWholeDay(utc) {
		return WholeDay(utc, zone)
	}
	return at.In(zone)
}

func IsWholeDay(utc time.Time) bool {
	return utc.Hour() == 0 && utc.Minute() == 0 && utc.Second() == 0 && utc.Nanosecond() == 0
}

func WholeDay(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone)
}

// Days is a day, or several, named by a question. Year 0 is every year, day 0 the whole month,
// month 0 the whole year.
type Days struct {
	Year  int
	Month time.Month
	Day   int

	// From and Until are set instead for days relative to the question: yesterday, 上周. Until is
	// exclusive.
	From, Until time.Time
}

const (
	ordinals  = `first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|twenty[- ]first|twenty[- ]second|twenty[- ]third|twenty[- ]fourth|twenty[- ]fifth|twenty[- ]sixth|twenty[- ]seventh|twenty[- ]eighth|twenty[- ]ninth|thirtieth|thirty[- ]first`
	dayNumber = `(\d{1,2}|` + ordinals + `)(?:st|nd|rd|th)?`
	hanYear   = `(?:(\d{4}|[一二三四五六七八九零〇]{4})\s*年\s*)`
	hanCount  = `(\d{1,2}|[一二三四五六七八九十]{1,3})`
)

var ordinalOf = func() map[string]int {
	m := map[string]int{}
	for i, w := range strings.Split(strings.ReplaceAll(ordinals, "[- ]", " "), "|") {
		m[w] = i + 1
	}
	return m
}()

// dayForm is a way to write a day.
type dayForm struct {
	with             parts
	re               *regexp.Regexp
	year, month, day int // number of the group, 0 = none
}

// parts are separated by |. A text that a form matches has one of them: most texts name no day,
// and looking for a part takes far less time than trying a regular expression.
type parts string

func (p parts) in(text string) bool {
	for part := range strings.SplitSeq(string(p), "|") {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

const (
	digitParts parts = "0|1|2|3|4|5|6|7|8|9"
	monthParts parts = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
)

// dayForms read folded text.
var dayForms = sync.OnceValue(func() []dayForm {
	return []dayForm{
		{with: digitParts, re: regexp.MustCompile(`\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b`), year: 1, month: 2, day: 3},
		{with: "月", re: regexp.MustCompile(hanYear + `?` + hanCount + `\s*月\s*` + hanCount + `\s*[日号]?`), year: 1, month: 2, day: 3},
		{with: "月", re: regexp.MustCompile(hanYear + `?(\d{1,2}|[一二三四五六七八九]|十[一二]?)\s*月(?:份)?`), year: 1, month: 2},
		{with: "年", re: regexp.MustCompile(hanYear), year: 1},
		{with: "월", re: regexp.MustCompile(`(?:(\d{4})\s*년\s*)?(\d{1,2})\s*월\s*(\d{1,2})\s*일`), year: 1, month: 2, day: 3},
		{with: "월", re: regexp.MustCompile(`(?:(\d{4})\s*년\s*)?(\d{1,2})\s*월`), year: 1, month: 2},
		{with: "년", re: regexp.MustCompile(`(\d{4})\s*년`), year: 1},
		{with: monthParts, re: regexp.MustCompile(`\b` + monthWord + `\.?\s+(?:the\s+)?` + dayNumber + `\b(?:,?\s+(\d{4})\b)?`), month: 1, day: 2, year: 3},
		{with: monthParts, re: regexp.MustCompile(`\b` + dayNumber + `\s+(?:of\s+)?` + monthWord + `\b\.?(?:,?\s+(\d{4})\b)?`), day: 1, month: 2, year: 3},
		{with: monthParts, re: regexp.MustCompile(`\b` + monthWord + `\.?,?\s+(?:of\s+)?(\d{4})\b`), month: 1, year: 2},
		{with: monthParts, re: regexp.MustCompile(`\b(?:in|of|during|last|since|early|late|mid|this)[\s-]+` + monthWord + `\b`), month: 1},
		{with: "19|20", re: regexp.MustCompile(`\b(?:in|of|during|since)\s+((?:19|20)\d{2})\b`), year: 1},
	}
})

// readDays returns the days that folded names, the rest without dates, and the rest without
// words such as "yesterday" either.
func readDays(folded string, now time.Time) (days []Days, rest, bare string) {
	rest = folded
	for _, form := range dayForms() {
		if !form.with.in(rest) {
			continue
		}
		for _, m := range form.re.FindAllStringSubmatch(rest, -1) {
			if d, ok := dayOf(m, form.year, form.month, form.day); ok {
				days = append(days, d)
				rest = strings.Replace(rest, m[0], " ", 1)
			}
		}
	}
	if now.IsZero() {
		return days, rest, rest
	}
	bare = rest
	for _, form := range relativeForms() {
		if !form.with.in(bare) {
			continue
		}
		for _, m := range form.re.FindAllStringSubmatch(bare, -1) {
			if d, ok := form.days(m, now); ok {
				days = append(days, d)
				bare = strings.Replace(bare, m[0], " ", 1)
			}
		}
	}
	for _, s := range spans {
		for _, w := range s.words {
			if at := wordAt(bare, w); at >= 0 {
				days = append(days, s.days(now))
				bare = bare[:at] + " " + bare[at+len(w):]
			}
		}
	}
	return append(days, weekdaysIn(bare, now)...), rest, bare
}

// relativeForm reads a day by a number, or by its name.
type relativeForm struct {
	with parts
	re   *regexp.Regexp
	days func(m []string, now time.Time) (Days, bool)
}

var relativeForms = sync.OnceValue(func() []relativeForm {
	return []relativeForm{
		{"ago|back|before today", regexp.MustCompile(`\b(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a couple of) (day|week|month|year)s? (?:ago|back|before today)\b`), awayFrom},
		{"前", regexp.MustCompile(`(\d{1,3}|[一二两三四五六七八九十]{1,3})\s*个?(天|周|星期|礼拜|月|年)(?:以|之)?前`), awayFrom},
		{"week", regexp.MustCompile(`\b(?:on )?` + dayWord + `,? (?:of |in )?(last|this|next) week\b`), dayOfWeek(2, 1)},
		{"week", regexp.MustCompile(`\b(last|this|next) week,? (?:on )?` + dayWord + `\b`), dayOfWeek(1, 2)},
		{"next", regexp.MustCompile(`\b(next) ` + dayWord + `\b`), dayOfWeek(1, 2)},
		{"周|星期|礼拜", regexp.MustCompile(`(上+|这|本|下+)个?(?:周|星期|礼拜)([一二三四五六日天1-6])`), dayOfWeek(1, 2)},
		{"前", regexp.MustCompile(`(\d{1,3}|[一二三四五六七八九十]{1,3})\s*(日|週間|[かヶカヵケ]月)前`), awayFrom},
		{"전", regexp.MustCompile(`(\d{1,3}|일|한|두|세|네) ?(일|주일?|달|개월|년) ?전`), awayFrom},
		{"전", regexp.MustCompile(`(하루|이틀|사흘|나흘|열흘)() ?전`), awayFrom},
		{"週", regexp.MustCompile(`(先|今|来)週の?([月火水木金土日])曜日?`), dayOfWeek(1, 2)},
		{"주", regexp.MustCompile(`(지난|이번|다음) ?주 ?([월화수목금토일])요일`), dayOfWeek(1, 2)},
		{"前年", regexp.MustCompile(`(?:^|[^目])前年`), func(_ []string, now time.Time) (Days, bool) { return year(-2)(now), true }},
		{"weekend|周末|週末|주말", regexp.MustCompile(`\b(?:last|past|previous) weekend\b|上个?周末|先週末|(?:先週の|この前の)週末|지난 ?주말`), func(_ []string, now time.Time) (Days, bool) {
			last := week(-1)(now)
			return Days{From: last.From.AddDate(0, 0, 5), Until: last.Until}, true
		}},
	}
})

// easternDates translates the Japanese and Korean words of relativeForms.
var easternDates = map[string]string{
	"日": "day", "週間": "week", "か月": "month", "ヶ月": "month", "カ月": "month", "ヵ月": "month", "ケ月": "month",
	"일": "day", "주": "week", "주일": "week", "달": "month", "개월": "month", "년": "year", "": "day",
	"하루": "1", "이틀": "2", "사흘": "3", "나흘": "4", "열흘": "10", "한": "1", "두": "2", "세": "3", "네": "4",
	"先": "last", "今": "this", "来": "next", "지난": "last", "이번": "this", "다음": "next",
}

// awayFrom reads "three days ago". The longer ago, the less exact.
func awayFrom(m []string, now time.Time) (Days, bool) {
	if m[1] == "일" { // 일주일
		m[1] = "1"
	}
	m[1] = strings.Replace(Digits(cmp.Or(easternDates[m[1]], m[1])), "a couple of", "2", 1)
	if unit, ok := easternDates[m[2]]; ok {
		m[2] = unit
	}
	at, ok := spanAway(-1)(m, now)
	if !ok {
		return Days{}, false
	}
	around := map[string]int{"week": 2, "周": 2, "星期": 2, "礼拜": 2, "month": 10, "月": 10, "year": 120, "年": 120}[m[2]]
	from := Midnight(at)
	return Days{From: from.AddDate(0, 0, -around), Until: from.AddDate(0, 0, around+1)}, true
}

// dayOfWeek reads a day of the last, this or the next week, from these groups.
func dayOfWeek(whichWeek, whichDay int) func([]string, time.Time) (Days, bool) {
	return func(m []string, now time.Time) (Days, bool) {
		at, ok := inWeek([]string{"", cmp.Or(easternDates[m[whichWeek]], m[whichWeek]), m[whichDay]}, Midnight(now))
		return Days{From: at, Until: at.AddDate(0, 0, 1)}, ok
	}
}

func (d Days) Exact() bool {
	if d.From.IsZero() {
		return d.Day > 0
	}
	return !d.Until.After(d.From.AddDate(0, 0, 1))
}

func (d Days) Holds(t time.Time) bool { return !t.Before(d.From) && t.Before(d.Until) }

func dayOf(m []string, year, month, day int) (Days, bool) {
	var d Days
	d.Year = number(m, year)
	d.Day = number(m, day)
	if month > 0 {
		d.Month = monthOf(m[month])
		if d.Month < 1 || d.Month > 12 {
			return Days{}, false
		}
	}
	return d, d.Day <= 31 && (d.Year > 0 || d.Month > 0)
}

func number(m []string, group int) int {
	if group == 0 {
		return 0
	}
	s := strings.ReplaceAll(strings.ReplaceAll(m[group], "-", " "), "〇", "零")
	if n, ok := ordinalOf[s]; ok {
		return n
	}
	return count(Digits(s)) // an optional group that is missing is 0
}

func monthOf(s string) time.Month {
	return time.Month(monthNumber(Digits(s)))
}

// spans are relative to the day of the question.
var spans = []struct {
	words []string
	days  func(now time.Time) Days
}{
	{[]string{"today", "tonight", "this morning", "this afternoon", "this evening", "今天", "今日", "今晚", "今早", "今朝", "今夜", "오늘"}, ago(0, 1)},
	{[]string{"大前天"}, ago(3, 1)},
	{[]string{"the day before yesterday", "前天", "一昨日", "おととい", "엊그저께", "그저께", "엊그제", "그제"}, ago(2, 1)},
	{[]string{"yesterday", "last night", "昨天", "昨晚", "昨日", "昨夜", "昨晩", "ゆうべ", "어젯밤", "어제"}, ago(1, 1)},
	{[]string{"a few days ago", "the other day", "前几天", "几天前", "前两天", "数日前", "며칠 전"}, ago(7, 6)},
	{[]string{"this week", "这周", "这个星期", "本周", "这星期", "今週", "이번 주", "이번주"}, week(0)},
	{[]string{"上上周", "上上个周", "上上星期", "上上个星期", "先々週", "先先週", "지지난주", "지지난 주", "저저번 주"}, week(-2)},
	{[]string{"last week", "上周", "上个周", "上星期", "上个星期", "先週", "지난주", "지난 주", "저번 주", "저번주"}, week(-1)},
	{[]string{"this month", "这个月", "本月", "今月", "이번 달", "이번달"}, month(0)},
	{[]string{"上上个月", "上上月", "先々月", "지지난달", "지지난 달"}, month(-2)},
	{[]string{"last month", "上个月", "上月", "先月", "지난달", "지난 달"}, month(-1)},
	{[]string{"this year", "今年", "올해"}, year(0)},
	{[]string{"the year before last", "一昨年", "おととし", "재작년"}, year(-2)},
	{[]string{"last year", "去年", "昨年", "작년", "지난해"}, year(-1)},
}

// weekdays, from Sunday. One that a question names is the last before the question.
var weekdays = [7][]string{
	{"sunday", "周日", "周天", "星期日", "星期天", "礼拜天", "日曜", "일요일"},
	{"monday", "周一", "星期一", "礼拜一", "月曜", "월요일"},
	{"tuesday", "周二", "星期二", "礼拜二", "火曜", "화요일"},
	{"wednesday", "周三", "星期三", "礼拜三", "水曜", "수요일"},
	{"thursday", "周四", "星期四", "礼拜四", "木曜", "목요일"},
	{"friday", "周五", "星期五", "礼拜五", "金曜", "금요일"},
	{"saturday", "周六", "星期六", "礼拜六", "土曜", "토요일"},
}

// otherWeeks are words near which the name of a day does not mean the last one.
var otherWeeks = []string{"next", "coming", "this", "tomorrow", "every", "last week", "上周", "上星期", "先週", "지난주", "지난 주", "下周", "下星期", "下个", "下礼拜", "每", "来週", "毎週", "다음", "매주"}

func weekdaysIn(folded string, now time.Time) (days []Days) {
	if ContainsWord(folded, otherWeeks) {
		return nil
	}
	for day, names := range weekdays {
		if ContainsWord(folded, names) {
			back := (int(now.Weekday())-day+6)%7 + 1
			days = append(days, ago(back, 1)(now))
		}
	}
	return days
}

func Midnight(t time.Time) time.Time { return WholeDay(t, t.Location()) }

func ago(days, length int) func(time.Time) Days {
	return func(now time.Time) Days {
		from := Midnight(now).AddDate(0, 0, -days)
		return Days{From: from, Until: from.AddDate(0, 0, length)}
	}
}

// week starts on Monday.
func week(n int) func(time.Time) Days {
	return func(now time.Time) Days {
		from := Midnight(now).AddDate(0, 0, -(int(now.Weekday())+6)%7+7*n)
		return Days{From: from, Until: from.AddDate(0, 0, 7)}
	}
}

func month(n int) func(time.Time) Days {
	return func(now time.Time) Days {
		from := time.Date(now.Year(), now.Month()+time.Month(n), 1, 0, 0, 0, 0, now.Location())
		return Days{From: from, Until: from.AddDate(0, 1, 0)}
	}
}

func year(n int) func(time.Time) Days {
	return func(now time.Time) Days {
		from := time.Date(now.Year()+n, 1, 1, 0, 0, 0, 0, now.Location())
		return Days{From: from, Until: from.AddDate(1, 0, 0)}
	}
}

// Fit is how well a time fits d, from 0 to 1. What happened on a day is often told in the days
// after it, so those fit a little.
func (d Days) Fit(at time.Time) float32 {
	if d.From.IsZero() && d.Year == 0 {
		best := float32(0)
		for _, y := range []int{at.Year() - 1, at.Year()} {
			best = max(best, Days{Year: y, Month: d.Month, Day: d.Day}.Fit(at))
		}
		return best
	}
	period, _ := d.In(at.Location())
	return period.Fit(at.Unix())
}

// Period is Days as seconds since 1970, for many times.
type Period struct {
	from, until int64
	fit         float32 // of a time in it
}

// In returns the period in a zone; false if d is of every year.
func (d Days) In(zone *time.Location) (p Period, ok bool) {
	if !d.From.IsZero() {
		return Period{d.From.Unix(), d.Until.Unix(), 1}, true
	}
	from := time.Date(d.Year, max(d.Month, 1), max(d.Day, 1), 0, 0, 0, 0, zone)
	until, fit := from.AddDate(0, 0, 1), float32(1)
	switch {
	case d.Month == 0:
		until, fit = from.AddDate(1, 0, 0), wholeYear
	case d.Day == 0:
		until, fit = from.AddDate(0, 1, 0), wholeMonth
	}
	return Period{from.Unix(), until.Unix(), fit}, d.Year != 0
}

// Fit is Days.Fit. It falls within a week after the period.
func (p Period) Fit(at int64) float32 {
	const tail = 7 * 24 * 60 * 60
	switch {
	case at < p.from:
		return 0
	case at < p.until:
		return p.fit
	case at < p.until+tail:
		return p.fit * 0.5 * float32(p.until+tail-at) / tail
	}
	return 0
}

// Span returns a time outside of which nothing fits d, in any zone; zero if d is of every year.
func (d Days) Span() (from, to time.Time) {
	from, to = d.From, d.Until
	if from.IsZero() {
		if d.Year == 0 {
			return time.Time{}, time.Time{}
		}
		from = time.Date(d.Year, max(d.Month, 1), max(d.Day, 1), 0, 0, 0, 0, time.UTC)
		switch to = from.AddDate(0, 0, 1); {
		case d.Month == 0:
			to = from.AddDate(1, 0, 0)
		case d.Day == 0:
			to = from.AddDate(0, 1, 0)
		}
	}
	return from.AddDate(0, 0, -2), to.AddDate(0, 0, 9)
}

// A month or a year that fits says less than a day.
const (
	wholeMonth = 0.6
	wholeYear  = 0.2
)
