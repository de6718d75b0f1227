package lang

import (
	"slices"
	"strings"
	"time"

	"nodest/internal/civil"
	"nodest/internal/lexicon"
)

// LocalTime converts a time to a zone. Midnight UTC is a day without an hour, in every zone.
func LocalTime(at time.Time, zone *time.Location) time.Time {
	if utc := at.UTC(); IsWholeDay(utc) {
		return civil.Start(utc, zone)
	}
	return at.In(zone)
}

func IsWholeDay(utc time.Time) bool {
	return utc.Hour() == 0 && utc.Minute() == 0 && utc.Second() == 0 && utc.Nanosecond() == 0
}

// WholeDay is the day that t shows, without an hour.
func WholeDay(t time.Time) time.Time { return civil.Start(t, time.UTC) }

// Days is a day, or several, named by a question. Year 0 is every year, day 0 the whole month,
// month 0 the whole year.
type Days struct {
	Year  int
	Month time.Month
	Day   int

	// From and Until (exclusive) are set instead for days relative to the question: 上周. They are days
	// without an hour.
	From, Until time.Time
}

// readDays returns the days that folded names, the rest without dates, the rest without words such as
// "yesterday" either, and the words of parts of the year, which may be told at another time as well.
func readDays(folded string, now time.Time) (days []Days, rest, bare, parts string) {
	read := func(text string, of []lexicon.Entry, day func(lexicon.Entry, groups) (Days, bool)) string {
		for _, e := range of {
			whole := text
			for _, at := range e.FindAllStringSubmatchIndex(whole, -1) {
				if d, ok := day(e, groupsOf(e.Form, whole, at)); ok {
					days = append(days, d)
					text = strings.Replace(text, whole[at[0]:at[1]], " ", 1)
				}
			}
		}
		return text
	}
	rest = read(folded, askedDates(), func(_ lexicon.Entry, g groups) (Days, bool) { return g.askedDate() })
	if now.IsZero() {
		return days, rest, rest, ""
	}
	now = civil.Wall(now)
	bare = read(rest, askedDays(), func(e lexicon.Entry, g groups) (Days, bool) { return g.askedDay(e, now) })
	year := yearOf(days)
	_, rest, _ = partsIn(rest, year, now)
	found, bare, parts := partsIn(bare, year, now)
	days = append(append(days, found...), weekdaysIn(bare, now)...)
	return inYear(days), rest, bare, parts
}

// yearOf returns the only whole year of some days; 0 if there is none.
func yearOf(days []Days) (year int) {
	for _, d := range days {
		if y := d.wholeYear(); y > 0 && year > 0 {
			return 0
		} else if y > 0 {
			year = y
		}
	}
	return year
}

func (d Days) wholeYear() int {
	switch {
	case d.From.IsZero() && d.Month == 0:
		return d.Year
	case !d.From.IsZero() && d.From.YearDay() == 1 && d.Until.Equal(d.From.AddDate(1, 0, 0)):
		return d.From.Year()
	}
	return 0
}

// inYear puts months and days into the year that is named beside them: last year in August.
func inYear(days []Days) []Days {
	year := yearOf(days)
	if year == 0 || len(days) == 1 {
		return days
	}
	days = slices.DeleteFunc(days, func(d Days) bool { return d.wholeYear() > 0 })
	for i := range days {
		if d := &days[i]; d.From.IsZero() && d.Year == 0 {
			d.Year = year
		}
	}
	return days
}

func (g groups) askedDate() (Days, bool) {
	d := Days{Year: number(g["year"]), Day: number(g["day"])}
	if g["month"] != "" {
		d.Month = time.Month(monthNumber(Digits(g["month"])))
		if d.Month < 1 || d.Month > 12 {
			return Days{}, false
		}
	}
	return d, d.Day <= 31 && (d.Year > 0 || d.Month > 0)
}

func number(s string) int {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "-", " "), "〇", "零")
	if rank, ok := ordinals()[s]; ok {
		return rank + 1
	}
	return count(Digits(s)) // an optional group that is missing is 0
}

func (g groups) askedDay(e lexicon.Entry, now time.Time) (Days, bool) {
	switch {
	case e.With["on"] != "":
		n, unit := amount(e.With["on"])
		return oneDay(WholeDay(later(now, n, unit))), true
	case e.With["within"] != "":
		return within(e.With["within"], now), true
	case g["count"] != "":
		return g.awayFrom(now)
	}
	return oneDay(g.inWeek(WholeDay(now))), true
}

func oneDay(at time.Time) Days { return Days{From: at, Until: at.AddDate(0, 0, 1)} }

// within reads "-1 month", "-7..-2 day" and "-1 weekend".
func within(text string, now time.Time) Days {
	weekend := strings.HasSuffix(text, "weekend")
	first, several, found := strings.Cut(strings.TrimSuffix(text, "end"), "..")
	if !found {
		several = first
	} else {
		_, unit, _ := strings.Cut(several, " ")
		first += " " + unit
	}
	from, unit := amount(first)
	until, _ := amount(several)
	begin := WholeDay(now)
	switch unit {
	case aWeek:
		begin = monday(begin)
	case aMonth:
		begin = begin.AddDate(0, 0, 1-begin.Day())
	case aYear:
		begin = begin.AddDate(0, 0, 1-begin.YearDay())
	}
	d := Days{From: later(begin, from, unit), Until: later(begin, until+1, unit)}
	if weekend {
		d.From = d.From.AddDate(0, 0, 5)
	}
	return d
}

// vague is how many days around the day are meant, by unit: the longer ago, the less exact.
var vague = map[span]int{aWeek: 2, aMonth: 10, aYear: 120}

// awayFrom reads "three days ago".
func (g groups) awayFrom(now time.Time) (Days, bool) {
	n := count(Digits(g["count"]))
	from, around := WholeDay(later(now, -n, g.unit())), vague[g.unit()]
	return Days{From: from.AddDate(0, 0, -around), Until: from.AddDate(0, 0, around+1)}, n != 0
}

// Each returns the days of d, of this year and the years beside it if d is of every year; none if there are more
// than some.
func (d Days) Each(now time.Time, most int) (all []time.Time) {
	years := []int{d.Year}
	if d.From.IsZero() && d.Year == 0 {
		years = []int{now.Year() - 1, now.Year(), now.Year() + 1}
	}
	for _, year := range years {
		if d.From.IsZero() {
			d.Year = year
		}
		from, until, _ := d.period()
		if until.After(from.AddDate(0, 0, most)) {
			return nil
		}
		for ; from.Before(until); from = from.AddDate(0, 0, 1) {
			all = append(all, from)
		}
	}
	return all
}

func (d Days) Exact() bool {
	if d.From.IsZero() {
		return d.Day > 0
	}
	return !d.Until.After(d.From.AddDate(0, 0, 1))
}

// Holds reports whether a time is in days relative to a question.
func (d Days) Holds(t time.Time) bool {
	t = civil.Wall(t)
	return !t.Before(d.From) && t.Before(d.Until)
}

var (
	weekdayNames = data.Ranks("weekday-names") // a day that a question names is the last before it
	otherWeeks   = data.Words("other-weeks")   // near these it is not
)

func weekdaysIn(folded string, now time.Time) (days []Days) {
	if ContainsWord(folded, otherWeeks()) {
		return nil
	}
	var named [7]bool
	for name, day := range weekdayNames() {
		named[day] = named[day] || wordAt(folded, name) >= 0
	}
	for i := range named {
		if day := (i + 6) % 7; named[day] { // from Sunday
			back := (int(now.Weekday())+5-day)%7 + 1
			days = append(days, oneDay(WholeDay(now).AddDate(0, 0, -back)))
		}
	}
	return days
}

// Fit is how well a time fits d, from 0 to 1. What happened on a day is often told in the days
// after it, so those fit a little, for a week.
func (d Days) Fit(at time.Time) float32 {
	if !d.From.IsZero() || d.Year != 0 {
		return d.fit(at)
	}
	this, last := d, d
	this.Year, last.Year = at.Year(), at.Year()-1
	return max(this.fit(at), last.fit(at))
}

// fit is Fit in the year of d.
func (d Days) fit(at time.Time) float32 {
	const tail = 7 * 24 * 60 * 60
	from, until, fit := d.period()
	at = civil.Wall(at)
	switch late := at.Unix() - until.Unix(); {
	case at.Unix() < from.Unix():
		return 0
	case late < 0:
		return fit
	default:
		return fit * 0.5 * float32(max(0, tail-late)) / tail
	}
}

// period returns the time that is meant, and how well a time in it fits.
func (d Days) period() (from, until time.Time, fit float32) {
	if !d.From.IsZero() {
		return d.From, d.Until, 1
	}
	from = time.Date(d.Year, max(d.Month, 1), max(d.Day, 1), 0, 0, 0, 0, time.UTC)
	switch {
	case d.Month == 0:
		return from, from.AddDate(1, 0, 0), wholeYear
	case d.Day == 0:
		return from, from.AddDate(0, 1, 0), wholeMonth
	}
	return from, from.AddDate(0, 0, 1), 1
}

// Span returns a time outside of which nothing fits d, in any zone; zero if d is of every year.
func (d Days) Span() (from, to time.Time) {
	if d.From.IsZero() && d.Year == 0 {
		return time.Time{}, time.Time{}
	}
	from, to, _ = d.period()
	return from.AddDate(0, 0, -2), to.AddDate(0, 0, 9)
}

// A month or a year that fits says less than a day.
const (
	wholeMonth = 0.6
	wholeYear  = 0.2
)
