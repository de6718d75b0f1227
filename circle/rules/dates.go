package rules

import (
	"fmt"
	"strings"
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

// holidays are days of each year, as month-day.
var holidays = map[string][2]string{ // English, Chinese; "" = not usual there
	"01-01": {"New Year's Day", "元旦"},
	"02-14": {"Valentine's Day", "情人节"},
	"03-08": {"International Women's Day", "妇女节"},
	"04-01": {"April Fools' Day", "愚人节"},
	"05-01": {"May Day", "劳动节"},
	"06-01": {"", "儿童节"},
	"09-10": {"", "教师节"},
	"10-01": {"", "国庆节"},
	"10-31": {"Halloween", "万圣夜"},
	"12-24": {"Christmas Eve", "平安夜"},
	"12-25": {"Christmas Day", "圣诞节"},
	"12-31": {"New Year's Eve", "跨年夜"},
}

// moon are holidays of the Chinese calendar.
var moon = map[string]string{
	"2026-02-17": "春节", "2027-02-06": "春节", "2028-01-26": "春节", "2029-02-13": "春节", "2030-02-03": "春节",
	"2031-01-23": "春节", "2032-02-11": "春节", "2033-01-31": "春节", "2034-02-19": "春节", "2035-02-08": "春节",
	"2026-06-19": "端午节", "2027-06-09": "端午节", "2028-05-28": "端午节", "2029-06-16": "端午节", "2030-06-05": "端午节",
	"2031-06-24": "端午节", "2032-06-12": "端午节", "2033-06-01": "端午节", "2034-06-20": "端午节", "2035-06-10": "端午节",
	"2026-09-25": "中秋节", "2027-09-15": "中秋节", "2028-10-03": "中秋节", "2029-09-22": "中秋节", "2030-09-12": "中秋节",
	"2031-10-01": "中秋节", "2032-09-19": "中秋节", "2033-09-08": "中秋节", "2034-09-27": "中秋节", "2035-09-16": "中秋节",
}

// holiday is what a day is called, "" = nothing.
func holiday(l framework.Language, date time.Time) string {
	if l != framework.Chinese {
		return holidays[date.Format("01-02")][0]
	}
	if name := moon[date.Format(time.DateOnly)]; name != "" {
		return name
	}
	return holidays[date.Format("01-02")][1]
}
