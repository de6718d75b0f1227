package framework

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// clock holds the values of the macros about time.
type clock struct {
	now        time.Time // in the user's time zone; zero = these macros stay as they are
	lastUserAt time.Time // time of the user's last message before the newest one; zero = there is none
	language   Language
}

// clockMacros are the macros about time, by their names in lower case.
var clockMacros = map[string]func(c clock) string{
	"date":          func(c clock) string { return c.format(c.language.words().Clock.Date) },
	"time":          func(c clock) string { return c.format(c.language.words().Clock.Time) },
	"weekday":       func(c clock) string { return c.format("Monday") },
	"isodate":       func(c clock) string { return c.format(time.DateOnly) },
	"isotime":       func(c clock) string { return c.format("15:04") },
	"idle_duration": clock.idle,
}

func (c clock) expand(text string) string {
	if c.now.IsZero() {
		return text
	}
	for name, value := range clockMacros { // in any order: no value holds a macro
		text = replaceMacro(text, name, func(string) (string, bool) { return value(c), true })
	}
	return text
}

// format is the present time in a layout, with the weekday in the language.
func (c clock) format(layout string) string {
	day := c.now.Weekday()
	return strings.Replace(c.now.Format(layout), day.String(), c.language.words().Clock.Weekdays[day], 1)
}

// nowLine tells the model what the dates of memories are relative to.
func (c clock) nowLine() string { return c.format(c.language.words().Clock.Now) + "\n" }

// idle is the time since the user's last message, in words.
func (c clock) idle() string {
	if c.lastUserAt.IsZero() {
		return c.language.words().Clock.JustNow
	}
	return humanize(c.now.Sub(c.lastUserAt), c.language)
}

// humanize tells a duration in its largest unit, as SillyTavern does (moment.js).
func humanize(d time.Duration, language Language) string {
	d = d.Abs()
	const day, month = 24, 24 * 146097. / 4800 // hours
	round := func(n float64) int { return int(math.Round(n)) }
	words := &language.words().Clock
	if round(d.Seconds()) < 45 {
		return words.FewSeconds
	}
	for i, unit := range words.Units {
		n := round(d.Hours() / [...]float64{1. / 60, 1, day, month, 12 * month}[i])
		if most := [...]int{45, 22, 26, 11, math.MaxInt}[i]; n >= most {
			continue
		}
		if n <= 1 {
			return strings.Replace(unit[0], "%d", "1", 1)
		}
		return strings.Replace(unit[1], "%d", strconv.Itoa(n), 1)
	}
	panic("unreachable: a number of years has no upper limit")
}
