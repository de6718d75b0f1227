// Package date reads the dates of chat logs, in whatever form a program wrote them. It must not know logs.
package date

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Years that a message can be of. What lies outside is an error of the program that wrote it.
const (
	firstYear = 1971
	lastYear  = 2200
)

const maxDate = 100 // bytes

// Parse reads the date of a message in any of the forms that logs have had: ISO 8601, the
// forms of SillyTavern ("June 19, 2023 2:20pm", "2023-6-19 @14h 20m 15s 123ms"), those that
// browsers and languages write, and numbers of seconds or smaller units since 1970. Dates
// without a zone count as UTC; zero is a date that cannot be read.
func Parse(s string) time.Time {
	if len(s) > maxDate {
		return time.Time{}
	}
	s = strings.Join(strings.Fields(s), " ")
	t, err := time.Parse(time.RFC3339, s)
	if n, notNumber := strconv.ParseFloat(s, 64); notNumber == nil {
		t = sinceEpoch(n)
	} else if err != nil {
		t = writtenDate(s)
	}
	if t.Year() < firstYear || t.Year() > lastYear {
		return time.Time{}
	}
	return t.UTC()
}

// sinceEpoch takes a number in the largest unit in which it is a date of our time.
func sinceEpoch(n float64) time.Time {
	const seconds = 1e11 // from here on it is the year 5138
	for _, unit := range []float64{1e3, 1, 1e-3, 1e-6} {
		if n < seconds*1e3/unit {
			return time.UnixMicro(int64(n * unit * 1e3)).UTC()
		}
	}
	return time.Time{}
}

// Parts of a written date. Marks of the half of the day stand before the time or behind it.
var (
	dayTime = regexp.MustCompile(`(?i)(?:([\p{Han}\p{Hangul}]{2})\s*|^|[^\d])(\d{1,2})\s*[:h時时点點시]\s*(\d{1,2})` +
		`(?:\s*[:m分분]\s*(?:(\d{1,2})(?:[.,](\d{1,9})|s?\s*(\d{1,3})ms)?)?)?[s秒초m分분]?\s*([ap]\.?m\b\.?)?`)
	zone      = regexp.MustCompile(`^\s*(?:Z|GMT|UTC)?\s*([+-])(\d{2}):?(\d{2})`)
	yearFirst = regexp.MustCompile(`\b(\d{4})\s*[-/.年년]\s*(\d{1,2})\s*[-/.月월]\s*(\d{1,2})`)
	yearLast  = regexp.MustCompile(`\b(\d{1,2})\s*[-/.]\s*(\d{1,2})\s*[-/.]\s*(\d{4})\b`)
	oneYear   = regexp.MustCompile(`\b\d{4}\b`)
	oneDay    = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)?\b`)
	word      = regexp.MustCompile(`\pL{3,}`)
)

// afternoon are the marks of hours that a clock of twelve hours counts again; morning marks
// make twelve zero.
var afternoon = map[string]bool{
	"pm": true, "下午": true, "晚上": true, "오후": true, "午後": true,
	"am": false, "上午": false, "凌晨": false, "早上": false, "오전": false, "午前": false,
}

// months are the names of each month, as SillyTavern writes dates in these languages:
// English, German, French, Spanish, Italian, Portuguese, Russian.
var months = func() map[string]int {
	byName := map[string]int{}
	for i, names := range []string{
		"january jan januar janvier enero gennaio janeiro января", "february feb februar février febrero febbraio fevereiro февраля",
		"march mar märz mars marzo março марта", "april apr avril abril aprile апреля", "may mai mayo maggio maio мая",
		"june jun juni juin junio giugno junho июня", "july jul juli juillet julio luglio julho июля",
		"august aug août agosto августа", "september sep sept septembre septiembre settembre setembro сентября",
		"october oct oktober octobre octubre ottobre outubro октября", "november nov novembre noviembre novembro ноября",
		"december dec dezember décembre diciembre dicembre dezembro декабря",
	} {
		for name := range strings.FieldsSeq(names) {
			byName[name] = i + 1
		}
	}
	return byName
}()

// writtenDate reads a date with or without a time of the day; zero if it is none.
func writtenDate(s string) time.Time {
	date, clock, offset := s, time.Duration(0), time.Duration(0)
	if at := dayTime.FindStringSubmatchIndex(s); at != nil {
		var ok bool
		if clock, ok = timeOfDay(dayTime.FindStringSubmatch(s)); !ok {
			return time.Time{}
		}
		date, offset = s[:at[0]]+" "+s[at[1]:], zoneOf(s[at[1]:])
		if mark := at[2:4]; mark[0] >= 0 { // the mark before the time may belong to the date
			date = s[:mark[1]] + " " + s[at[1]:]
		}
	}
	year, month, day := dateParts(date)
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if month < 1 || month > 12 || t.Day() != day {
		return time.Time{}
	}
	return t.Add(clock - offset)
}

func timeOfDay(part []string) (time.Duration, bool) {
	hour, minute, second := atoi(part[2]), atoi(part[3]), atoi(part[4])
	mark := strings.ReplaceAll(strings.ToLower(part[7]), ".", "")
	if mark == "" {
		mark = part[1]
	}
	later, half := afternoon[mark]
	switch {
	case half && later && hour < 12:
		hour += 12
	case half && !later && hour == 12:
		hour = 0
	}
	fraction, _ := time.ParseDuration("0." + part[5] + "s")
	fraction += time.Duration(atoi(part[6])) * time.Millisecond
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second + fraction,
		hour < 24 && minute < 60 && second < 60
}

// zoneOf is the offset that begins a text, 0 without one.
func zoneOf(s string) time.Duration {
	part := zone.FindStringSubmatch(s)
	if part == nil {
		return 0
	}
	offset := time.Duration(atoi(part[2]))*time.Hour + time.Duration(atoi(part[3]))*time.Minute
	if part[1] == "-" {
		return -offset
	}
	return offset
}

// dateParts finds year, month and day; a day is 0 if it is no date. Of two numbers that can
// both be a month, the first one is, as in the United States.
func dateParts(s string) (year, month, day int) {
	if part := yearFirst.FindStringSubmatch(s); part != nil {
		return atoi(part[1]), atoi(part[2]), atoi(part[3])
	}
	if part := yearLast.FindStringSubmatch(s); part != nil {
		month, day = atoi(part[1]), atoi(part[2])
		if dots := strings.Contains(part[0], "."); month > 12 || dots {
			month, day = day, month
		}
		return atoi(part[3]), month, day
	}
	for _, name := range word.FindAllString(strings.ToLower(s), -1) {
		if month = months[name]; month > 0 {
			break
		}
	}
	if part := oneDay.FindStringSubmatch(oneYear.ReplaceAllString(s, " ")); part != nil {
		day = atoi(part[1])
	}
	return atoi(oneYear.FindString(s)), month, day
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
