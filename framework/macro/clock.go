package macro

import (
	"strconv"
	"strings"
	"time"
)

func clockTable() []definition {
	now := func(name, about, layout string) definition {
		return definition{Info: Info{Name: name, About: about}, value: func(r *run, _ *call, _ []string) (string, bool) {
			return r.format(r.env.Now, layout)
		}}
	}
	return []definition{
		{
			Info: Info{Name: "time", Args: "::UTC+2", About: "the time; with an argument in another time zone"}, max: 1,
			value: func(r *run, _ *call, args []string) (string, bool) {
				at := r.env.Now
				if len(args) > 0 {
					offset, ok := readZone(args[0])
					if !ok {
						return "", false
					}
					at = at.In(time.FixedZone("", offset))
				}
				return r.format(at, "LT")
			},
		},
		{
			Info: Info{Name: "time_UTC", Args: "+2", About: "the time in another time zone", Status: Deprecated}, min: 1, max: 1,
			value: func(r *run, c *call, args []string) (string, bool) { return definitions["time"].value(r, c, args) },
		},
		now("date", "the date", "LL"),
		now("weekday", "the day of the week", "dddd"),
		now("isotime", "the time as 14:05", "HH:mm"),
		now("isodate", "the date as 2026-11-22", "YYYY-MM-DD"),
		{
			Info: Info{Name: "datetimeformat", Args: " DD.MM.YYYY HH:mm", About: "date and time in a format of moment.js"}, min: 1, max: 1,
			value: func(r *run, _ *call, args []string) (string, bool) { return r.format(r.env.Now, args[0]) },
		},
		{
			Info: Info{Name: "timeDiff", Args: "::date::date", About: "how long the first date is before or after the second"}, min: 2, max: 2,
			value: timeDiff,
		},
		{
			Info:  Info{Name: "idle_duration", Aliases: []string{"idleDuration"}, About: "the time since the user's last message before the newest one"},
			value: idle,
		},
	}
}

func (r *run) locale() *Locale {
	if r.env.Locale != nil {
		return r.env.Locale
	}
	return English
}

func (r *run) format(t time.Time, layout string) (string, bool) {
	if r.env.Now.IsZero() {
		return "", false
	}
	return r.locale().Format(t, layout), true
}

// readZone reads "UTC+8" into seconds: hours, or minutes from 16.
func readZone(s string) (seconds int, ok bool) {
	const utc = "UTC"
	s = strings.TrimSpace(s)
	if len(s) <= len(utc) || !strings.EqualFold(s[:len(utc)], utc) || s[len(utc)] != '+' && s[len(utc)] != '-' {
		return 0, false
	}
	n, ok := integer(s[len(utc):])
	switch {
	case !ok || n > 18*60 || n < -18*60:
		return 0, false
	case n > -16 && n < 16:
		return n * 3600, true
	}
	return n * 60, true
}

func timeDiff(r *run, _ *call, args []string) (string, bool) {
	a, okA := readTime(args[0], r.env.Now.Location())
	b, okB := readTime(args[1], r.env.Now.Location())
	if !okA || !okB {
		return "", false
	}
	words := r.locale()
	d := a.Sub(b)
	if d > 0 {
		return strings.Replace(words.future, "%s", words.Humanize(d), 1), true
	}
	return strings.Replace(words.past, "%s", words.Humanize(d), 1), true
}

func idle(r *run, _ *call, _ []string) (string, bool) {
	if r.env.Now.IsZero() {
		return "", false
	}
	messages := r.env.Chat.Messages
	for i := len(messages) - 2; i >= 0; i-- {
		if m := &messages[i]; m.User && !m.Hidden {
			if m.At.IsZero() {
				break
			}
			return r.locale().Humanize(r.env.Now.Sub(m.At)), true
		}
	}
	return r.locale().justNow, true
}

var timeLayouts = [...]string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02 15:04", "2006-01-02", "2006-1-2 15:04:05", "2006-1-2 15:04", "2006-1-2", "2006/1/2 15:04:05", "2006/1/2 15:04", "2006/1/2",
	"1/2/2006 15:04:05", "1/2/2006 15:04", "1/2/2006 3:04 PM", "1/2/2006", "January 2, 2006 15:04:05", "January 2, 2006 15:04", "January 2, 2006 3:04 PM",
	"January 2, 2006 3:04pm", "January 2, 2006", "2 January 2006 15:04:05", "2 January 2006 15:04", "2 January 2006", "Jan 2, 2006 15:04:05",
	"Jan 2, 2006 15:04", "Jan 2, 2006 3:04 PM", "Jan 2, 2006", "2 Jan 2006 15:04:05", "2 Jan 2006", time.RFC1123Z, time.RFC1123, "2006年1月2日 15:04", "2006年1月2日", "2006",
}

// readTime reads the usual forms of a time; those without a zone are in the one given.
func readTime(s string, zone *time.Location) (time.Time, bool) {
	s = strings.TrimSpace(s)
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// Format writes a time in a format of moment.js: https://momentjs.com/docs/#/displaying/format/.
func (l *Locale) Format(t time.Time, layout string) string {
	if len(layout) > maxLayout {
		return layout
	}
	return l.write(t, layout, true)
}

const maxLayout = 1000 // bytes

func (l *Locale) write(t time.Time, layout string, long bool) string {
	var b strings.Builder
	for layout != "" {
		if layout[0] == '[' {
			if end := strings.IndexByte(layout, ']'); end > 0 {
				b.WriteString(layout[1:end])
				layout = layout[end+1:]
				continue
			}
		}
		escaped := layout[0] == '\\' && len(layout) > 1
		if escaped {
			layout = layout[1:]
		}
		size := tokenSize(layout)
		token := layout[:size]
		layout = layout[size:]
		inner, isLong := l.long[token]
		switch value := tokens[token]; {
		case escaped:
			b.WriteString(token)
		case isLong && long:
			b.WriteString(l.write(t, inner, false))
		case value != nil:
			b.WriteString(value(l, t))
		default:
			b.WriteString(token)
		}
	}
	return b.String()
}

// tokenSize is the length of the longest token that a layout begins with; 1 without one.
func tokenSize(layout string) int {
	for n := min(len(layout), 4); n > 1; n-- {
		token := layout[:n]
		if _, long := English.long[token]; long || tokens[token] != nil {
			return n
		}
	}
	return 1
}

// tokens are the parts of a layout, but for the long ones of a locale.
var tokens map[string]func(l *Locale, t time.Time) string

func init() {
	number := func(width int, value func(t time.Time) int) func(*Locale, time.Time) string {
		return func(_ *Locale, t time.Time) string { return pad(value(t), width) }
	}
	week := func(t time.Time) int { _, w := t.ISOWeek(); return w }
	year := func(t time.Time) int { y, _ := t.ISOWeek(); return y }
	half := func(t time.Time) int { return (t.Hour()+11)%12 + 1 }
	from1 := func(t time.Time) int { return (t.Hour()+23)%24 + 1 }
	quarter := func(t time.Time) int { return (int(t.Month()) + 2) / 3 }
	weekday := func(t time.Time) int { return int(t.Weekday()) }
	day, month := time.Time.Day, func(t time.Time) int { return int(t.Month()) }
	tokens = map[string]func(*Locale, time.Time) string{
		"YYYY": number(4, time.Time.Year), "YY": number(2, func(t time.Time) int { return t.Year() % 100 }), "Y": number(1, time.Time.Year),
		"GGGG": number(4, year), "gggg": number(4, year), "GG": number(2, func(t time.Time) int { return year(t) % 100 }),
		"Q": number(1, quarter), "M": number(1, month), "MM": number(2, month), "D": number(1, day), "DD": number(2, day),
		"DDD": number(1, time.Time.YearDay), "DDDD": number(3, time.Time.YearDay), "d": number(1, weekday), "e": number(1, weekday),
		"E": number(1, func(t time.Time) int { return (weekday(t)+6)%7 + 1 }), "W": number(1, week), "WW": number(2, week), "w": number(1, week), "ww": number(2, week),
		"H": number(1, time.Time.Hour), "HH": number(2, time.Time.Hour), "h": number(1, half), "hh": number(2, half), "k": number(1, from1), "kk": number(2, from1),
		"m": number(1, time.Time.Minute), "mm": number(2, time.Time.Minute), "s": number(1, time.Time.Second), "ss": number(2, time.Time.Second),
		"S": number(1, func(t time.Time) int { return t.Nanosecond() / 1e8 }), "SS": number(2, func(t time.Time) int { return t.Nanosecond() / 1e7 }),
		"SSS": number(3, func(t time.Time) int { return t.Nanosecond() / 1e6 }),
		"X":   func(_ *Locale, t time.Time) string { return strconv.FormatInt(t.Unix(), 10) },
		"x":   func(_ *Locale, t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) },
		"Z":   func(_ *Locale, t time.Time) string { return t.Format("-07:00") }, "ZZ": func(_ *Locale, t time.Time) string { return t.Format("-0700") },
		"Mo": func(l *Locale, t time.Time) string { return l.ordinal(month(t), 'M') }, "Do": func(l *Locale, t time.Time) string { return l.ordinal(day(t), 'D') },
		"MMM": func(l *Locale, t time.Time) string { return l.shortMonths[month(t)-1] }, "MMMM": func(l *Locale, t time.Time) string { return l.months[month(t)-1] },
		"dd": func(l *Locale, t time.Time) string { return l.leastDays[weekday(t)] }, "ddd": func(l *Locale, t time.Time) string { return l.shortDays[weekday(t)] },
		"dddd": func(l *Locale, t time.Time) string { return l.days[weekday(t)] },
		"A":    func(l *Locale, t time.Time) string { return l.meridiem(t) }, "a": func(l *Locale, t time.Time) string { return strings.ToLower(l.meridiem(t)) },
	}
}

func pad(n, width int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, width-len(s))) + s
}
