package macro

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Locale has the words for dates and durations of a language, as moment.js has them.
type Locale struct {
	long                  map[string]string // LT, LL and their like
	months, shortMonths   [12]string
	days, shortDays       [7]string
	leastDays             [7]string
	meridiem              func(t time.Time) string
	ordinal               func(n int, unit byte) string
	past, future, justNow string
	units                 [12]string // few seconds; a minute, minutes; … ; years, and empty
}

// English is the locale of the United States.
var English = &Locale{
	long: map[string]string{
		"LT": "h:mm A", "LTS": "h:mm:ss A", "L": "MM/DD/YYYY", "LL": "MMMM D, YYYY", "LLL": "MMMM D, YYYY h:mm A", "LLLL": "dddd, MMMM D, YYYY h:mm A",
		"l": "M/D/YYYY", "ll": "MMM D, YYYY", "lll": "MMM D, YYYY h:mm A", "llll": "ddd, MMM D, YYYY h:mm A",
	},
	months: [12]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
	days:   [7]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
	meridiem: func(t time.Time) string {
		if t.Hour() < 12 {
			return "AM"
		}
		return "PM"
	},
	ordinal: func(n int, _ byte) string {
		suffix := "th"
		if n%100/10 != 1 && n%10 >= 1 && n%10 <= 3 {
			suffix = [...]string{"st", "nd", "rd"}[n%10-1]
		}
		return strconv.Itoa(n) + suffix
	},
	past: "%s ago", future: "in %s", justNow: "just now",
	units: [12]string{"a few seconds", "a minute", "%d minutes", "an hour", "%d hours", "a day", "%d days", "a month", "%d months", "a year", "%d years"},
}

// Chinese is the locale of China.
var Chinese = &Locale{
	long: map[string]string{
		"LT": "HH:mm", "LTS": "HH:mm:ss", "L": "YYYY/MM/DD", "LL": "YYYY年M月D日", "LLL": "YYYY年M月D日Ah点mm分", "LLLL": "YYYY年M月D日ddddAh点mm分",
		"l": "YYYY/M/D", "ll": "YYYY年M月D日", "lll": "YYYY年M月D日 HH:mm", "llll": "YYYY年M月D日dddd HH:mm",
	},
	months: [12]string{"一月", "二月", "三月", "四月", "五月", "六月", "七月", "八月", "九月", "十月", "十一月", "十二月"},
	days:   [7]string{"星期日", "星期一", "星期二", "星期三", "星期四", "星期五", "星期六"},
	meridiem: func(t time.Time) string {
		switch at := t.Hour()*100 + t.Minute(); {
		case at < 600:
			return "凌晨"
		case at < 900:
			return "早上"
		case at < 1130:
			return "上午"
		case at < 1230:
			return "中午"
		case at < 1800:
			return "下午"
		}
		return "晚上"
	},
	ordinal: func(n int, unit byte) string { return strconv.Itoa(n) + map[byte]string{'D': "日", 'M': "月"}[unit] },
	past:    "%s前", future: "%s后", justNow: "刚刚",
	units: [12]string{"几秒", "1 分钟", "%d 分钟", "1 小时", "%d 小时", "1 天", "%d 天", "1 个月", "%d 个月", "1 年", "%d 年"},
}

func init() {
	for i, name := range English.months {
		English.shortMonths[i] = name[:3]
		Chinese.shortMonths[i] = strconv.Itoa(i+1) + "月"
	}
	for i, name := range English.days {
		English.shortDays[i], English.leastDays[i] = name[:3], name[:2]
		least := strings.TrimPrefix(Chinese.days[i], "星期")
		Chinese.shortDays[i], Chinese.leastDays[i] = "周"+least, least
	}
}

// Humanize tells a duration in its largest unit, with the thresholds of moment.js.
func (l *Locale) Humanize(d time.Duration) string {
	d = d.Abs()
	const day, month = 24, 24 * 146097. / 4800 // hours
	round := func(n float64) int { return int(math.Round(n)) }
	if round(d.Seconds()) < 45 {
		return l.units[0]
	}
	sizes := [...]float64{1. / 60, 1, day, month, 12 * month}
	for i, most := range [...]int{45, 22, 26, 11, math.MaxInt} {
		n := round(d.Hours() / sizes[i])
		switch {
		case n >= most:
		case n <= 1:
			return l.units[1+2*i]
		default:
			return strings.Replace(l.units[2+2*i], "%d", strconv.Itoa(n), 1)
		}
	}
	return ""
}
