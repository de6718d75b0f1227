package lang

import (
	"fmt"
	"strings"
	"time"

	"nodest/internal/lexicon"
)

// partsOfYear are seasons and feasts. "falls" has the calendar, a date in it, and the first and the last day
// relative to that: "solar 12-25 -1..1", "lunar 1-1 0..6", "easter 0 -2..1", "nth 11-4-4 0..3" (the fourth
// Thursday of November). "also" adds that of the year before: last summer may be this year's, once it is over.
var partsOfYear = data.List("asked-part", "falls", "also")

// part returns the days of a part in a year.
func part(falls string, year int) Days {
	var calendar, date string
	var first, last int
	if n, err := fmt.Sscanf(falls, "%s %s %d..%d", &calendar, &date, &first, &last); n != 4 {
		panic(fmt.Sprintf("lang: no part of the year: %s: %v", falls, err))
	}
	var numbers [3]int
	for i, n := range strings.SplitN(date, "-", 3) {
		numbers[i] = count(n)
	}
	var day time.Time
	switch calendar {
	case "solar":
		day = time.Date(year, time.Month(numbers[0]), numbers[1], 0, 0, 0, 0, time.UTC)
	case "lunar":
		day = lunarDay(year, numbers[0], numbers[1])
	case "easter":
		day = easter(year)
	case "nth":
		day = time.Date(year, time.Month(numbers[0]), 1, 0, 0, 0, 0, time.UTC)
		day = day.AddDate(0, 0, (numbers[1]-int(day.Weekday())+7)%7+7*(numbers[2]-1))
	default:
		panic("lang: no calendar: " + calendar)
	}
	return Days{From: day.AddDate(0, 0, first), Until: day.AddDate(0, 0, last+1)}
}

// partsIn returns the parts of the year that a folded text names, the text without them, and their words: of a
// year, or the last ones that have begun.
func partsIn(folded string, year int, now time.Time) (days []Days, rest, words string) {
	rest = folded
	for _, e := range partsOfYear() {
		found := e.FindString(rest)
		if found == "" || !e.MatchString(rest) {
			continue
		}
		days = append(days, partsOf(e, year, now)...)
		rest = strings.Replace(rest, found, " ", 1)
		words += " " + found
	}
	return days, rest, words
}

func partsOf(e lexicon.Entry, year int, now time.Time) []Days {
	falls := e.With["falls"]
	if year > 0 {
		return []Days{part(falls, year)}
	}
	for year = now.Year(); part(falls, year).From.After(now); year-- {
	}
	if e.With["also"] == "" {
		return []Days{part(falls, year)}
	}
	return []Days{part(falls, year), part(falls, year-1)}
}
