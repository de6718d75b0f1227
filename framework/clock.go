package framework

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// clock holds the values of the macros about time.
type clock struct {
	now        time.Time // in the user's time zone; zero = these macros stay as they are
	lastUserAt time.Time // of the user's last message before the newest one; zero = there is none
	language   Language
}

// clockMacros are the macros about time, by their names in lower case.
var clockMacros = map[string]func(c clock) string{
	"date":          clock.date,
	"time":          clock.time,
	"weekday":       clock.weekday,
	"isodate":       func(c clock) string { return c.now.Format(time.DateOnly) },
	"isotime":       func(c clock) string { return c.now.Format("15:04") },
	"idle_duration": clock.idle,
}

// expand replaces the macros about time.
func (c clock) expand(text string) string {
	if c.now.IsZero() {
		return text
	}
	for name, value := range clockMacros { // in any order: no value holds a macro
		text = replaceMacro(text, name, func(string) (string, bool) { return value(c), true })
	}
	return text
}

func (c clock) date() string {
	if c.language == Chinese {
		return c.now.Format("2006年1月2日")
	}
	return c.now.Format("January 2, 2006")
}

func (c clock) time() string {
	if c.language == Chinese {
		return c.now.Format("15:04")
	}
	return c.now.Format("3:04 PM")
}

func (c clock) weekday() string {
	if c.language == Chinese {
		return "星期" + string([]rune("日一二三四五六")[c.now.Weekday()])
	}
	return c.now.Weekday().String()
}

// nowLine tells the model what the dates of memories are relative to.
func (c clock) nowLine() string {
	if c.language == Chinese {
		return "现在：" + c.date() + " " + c.weekday() + " " + c.now.Format("15:04") + "\n"
	}
	return c.now.Format("Now: Monday, 2 January 2006, 15:04") + "\n"
}

// idle is the time since the user's last message, in words.
func (c clock) idle() string {
	if c.lastUserAt.IsZero() {
		if c.language == Chinese {
			return "刚刚"
		}
		return "just now"
	}
	return humanize(c.now.Sub(c.lastUserAt), c.language)
}

// units of a humanized duration, in English for one and for many, and in Chinese.
var units = [...]struct{ one, many, chinese string }{
	{"a minute", "%d minutes", "%d 分钟"},
	{"an hour", "%d hours", "%d 小时"},
	{"a day", "%d days", "%d 天"},
	{"a month", "%d months", "%d 个月"},
	{"a year", "%d years", "%d 年"},
}

// humanize tells a duration in its largest unit, as SillyTavern does (moment.js).
func humanize(d time.Duration, language Language) string {
	d = d.Abs()
	const day, month = 24, 24 * 146097. / 4800 // hours
	round := func(n float64) int { return int(math.Round(n)) }
	if round(d.Seconds()) < 45 {
		if language == Chinese {
			return "几秒"
		}
		return "a few seconds"
	}
	for i, unit := range units {
		n := round(d.Hours() / [...]float64{1. / 60, 1, day, month, 12 * month}[i])
		if most := [...]int{45, 22, 26, 11, math.MaxInt}[i]; n >= most {
			continue
		}
		n = max(n, 1)
		switch {
		case language == Chinese:
			return fmt.Sprintf(unit.chinese, n)
		case n == 1:
			return unit.one
		}
		return strings.Replace(unit.many, "%d", strconv.Itoa(n), 1)
	}
	panic("unreachable: a number of years has no upper limit")
}
