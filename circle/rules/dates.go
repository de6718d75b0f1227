package rules

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"nodest/framework"
)

// datesOf returns what a date gives one to tell: a holiday today or soon, "" = none; and
// four things about the weekday, the month and the season.
func datesOf(l framework.Language, date time.Time) (special string, usual []string) {
	for days := 3; days >= 0; days-- {
		switch name := holiday(l, date.AddDate(0, 0, days)); {
		case name == "":
		case days == 0:
			special = say(l, "Today is %s.", "今天是%s。", name)
		default:
			special = say(l, "%s is coming up in a few days.", "过几天就是%s了。", name)
		}
	}
	return special, usualOf(l, date)
}

func usualOf(l framework.Language, date time.Time) []string {
	var out []string
	weekday := date.Weekday()
	name, weekend := weekday.String(), weekday == time.Saturday || weekday == time.Sunday
	if l == framework.Chinese {
		name = "星期" + string([]rune("日一二三四五六")[weekday])
	}
	switch {
	case weekend:
		out = append(out, say(l, "It is %s, and it is the weekend.", "今天是%s，周末到了。", name))
	case weekday == time.Friday:
		out = append(out, say(l, "It is %s, and the week is almost over.", "今天是%s，这一周快结束了。", name))
	default:
		out = append(out, say(l, "It is %s, an ordinary working day.", "今天是%s，一个平常的工作日。", name))
	}
	month := date.Month().String()
	if l == framework.Chinese {
		month = fmt.Sprintf("%d月", date.Month())
	}
	switch day := date.Day(); {
	case day <= 7:
		out = append(out, say(l, "%s has just begun.", "%s刚刚开始。", month))
	case day >= 25:
		out = append(out, say(l, "%s is coming to its end.", "%s快要过完了。", month))
	default:
		out = append(out, say(l, "It is the middle of %s.", "现在是%s中旬。", month))
	}
	season := seasonOf(l, date)
	return append(out, say(l, "It is %s: the light, the weather and the food of the season.", "现在是%s：这个时节的光线、天气和吃的。", season),
		say(l, "What one does in %s at the end of the day.", "%s里，一天结束的时候会做些什么。", season))
}

func say(l framework.Language, en, zh, what string) string {
	if l == framework.Chinese {
		return fmt.Sprintf(zh, what)
	}
	s := fmt.Sprintf(en, what)
	return strings.ToUpper(s[:1]) + s[1:]
}

// southern are the beginnings of the names of time zones south of the equator with
// seasons.
var southern = []string{"Australia/", "Antarctica/", "Pacific/Auckland", "Pacific/Chatham", "America/Argentina/", "America/Buenos_Aires",
	"America/Santiago", "America/Montevideo", "America/Sao_Paulo", "America/Asuncion", "Africa/Johannesburg", "Africa/Maputo"}

func seasonOf(l framework.Language, date time.Time) string {
	names := []string{"winter", "spring", "summer", "autumn"}
	if l == framework.Chinese {
		names = []string{"冬天", "春天", "夏天", "秋天"}
	}
	at := int(date.Month()) % 12 / 3
	for _, zone := range southern {
		if strings.HasPrefix(date.Location().String(), zone) {
			return names[(at+2)%4]
		}
	}
	return names[at]
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
