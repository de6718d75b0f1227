package rules

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nodest/framework"
)

// datesOf returns what a date gives one to tell: a holiday today or soon, "" = none; and
// four things about the weekday, the month and the season.
func datesOf(l framework.Language, date time.Time) (special string, usual []string) {
	text := &textsOf(l).Dates
	for days := 3; days >= 0; days-- {
		switch name := holiday(l, date.AddDate(0, 0, days)); {
		case name == "":
		case days == 0:
			special = say(text.Today, name)
		default:
			special = say(text.Soon, name)
		}
	}
	weekday := date.Weekday()
	day, month := text.Workday, text.MonthMiddle
	switch weekday {
	case time.Saturday, time.Sunday:
		day = text.Weekend
	case time.Friday:
		day = text.Friday
	}
	switch n := date.Day(); {
	case n <= 7:
		month = text.MonthBegins
	case n >= 25:
		month = text.MonthEnds
	}
	season := text.Seasons[seasonOf(date)]
	return special, []string{
		say(day, text.Weekdays[weekday]), say(month, text.Months[date.Month()-1]), say(text.Season, season), say(text.Evening, season),
	}
}

// say is a sentence, with a capital letter at its beginning.
func say(format, what string) string {
	s := fmt.Sprintf(format, what)
	if s[0] < utf8.RuneSelf {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

// southern are the beginnings of the names of time zones south of the equator with
// seasons.
var southern = []string{"Australia/", "Antarctica/", "Pacific/Auckland", "Pacific/Chatham", "America/Argentina/", "America/Buenos_Aires",
	"America/Santiago", "America/Montevideo", "America/Sao_Paulo", "America/Asuncion", "Africa/Johannesburg", "Africa/Maputo"}

// seasonOf is the season of a date, from winter on.
func seasonOf(date time.Time) int {
	at := int(date.Month()) % 12 / 3
	for _, zone := range southern {
		if strings.HasPrefix(date.Location().String(), zone) {
			return (at + 2) % 4
		}
	}
	return at
}

var holidays = map[framework.Language]func() map[string]string{
	framework.English: holidaysOf("en"), framework.Chinese: holidaysOf("zh"),
}

// holidaysOf returns the holidays of a language, by day of each year or of one.
func holidaysOf(language string) func() map[string]string {
	list := data.Words("holidays", language)
	return sync.OnceValue(func() map[string]string {
		names := map[string]string{}
		for _, line := range list() {
			day, name, _ := strings.Cut(line, " ")
			names[day] = name
		}
		return names
	})
}

// holiday returns the name of a day, "" = none.
func holiday(l framework.Language, date time.Time) string {
	if l != framework.Chinese {
		l = framework.English
	}
	names := holidays[l]()
	return cmp.Or(names[date.Format(time.DateOnly)], names[date.Format("01-02")])
}
