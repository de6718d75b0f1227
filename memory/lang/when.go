package lang

import (
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Relative days mean another day later. So they are replaced in a stored statement: "tomorrow"
// becomes "on 2024-03-07".

// dayMatch is where a text names a day.
type dayMatch struct {
	day      time.Time
	from, to int
	names    span
}

// firstDay finds the first day in a text, by the first rule that finds one.
func firstDay(text string, at time.Time) (dayMatch, bool) {
	for _, e := range saidDays() {
		for _, place := range e.FindAllStringSubmatchIndex(text, -1) {
			if day, names, ok := groupsOf(e.Form, text, place).said(e, at); ok && IsPlausible(day) {
				return dayMatch{WholeDay(day, time.UTC), place[0], place[1], names}, true
			}
		}
	}
	return dayMatch{}, false
}

var (
	beforeDay = regexp.MustCompile(`(?i)\b(?:on|in|at|by|until|till|since|from|before|after|for|of)\s*$`)
	partOfDay = []struct{ said, en, zh string }{
		{"last night", "the night of ", ""}, {"tonight", "the evening of ", ""}, {"this morning", "the morning of ", ""},
		{"this afternoon", "the afternoon of ", ""}, {"this evening", "the evening of ", ""},
		{"早", "", "早上"}, {"晚", "", "晚上"}, {"夜", "", "夜里"},
	}
)

// Dated replaces the first relative day of a text by the date, given when it was said.
func Dated(text string, at time.Time) string {
	if at.IsZero() {
		return text
	}
	m, ok := firstDay(text, at)
	if !ok { // "in three days"
		folded := Digits(text)
		if m, ok = firstDay(folded, at); ok && m.names != absolute {
			text = folded
		}
	}
	if !ok || m.names == absolute || m.from > 0 && unicode.IsUpper(rune(text[m.from])) { // as in a title
		return text
	}
	before, said, behind := text[:m.from], strings.ToLower(text[m.from:m.to]), text[m.to:]
	if HasCJK(said) {
		return before + m.chinese(said) + behind
	}
	when := m.english(said)
	if !beforeDay.MatchString(before) && !strings.HasPrefix(behind, "'s") {
		when = map[span]string{aDay: "on ", aWeek: "in ", aMonth: "in ", aYear: "in "}[m.names] + when
	}
	return before + when + behind
}

func (m dayMatch) english(said string) string {
	switch m.names {
	case aWeek:
		return m.day.Format("the week of 2006-01-02")
	case aMonth:
		return m.day.Format("January 2006")
	case aYear:
		return m.day.Format("2006")
	}
	day := m.day.Format(time.DateOnly)
	for _, p := range partOfDay {
		if p.en != "" && said == p.said {
			return p.en + day
		}
	}
	return day
}

func (m dayMatch) chinese(said string) string {
	switch m.names {
	case aWeek:
		return m.day.Format("2006-01-02那周")
	case aMonth:
		return m.day.Format("2006年1月")
	case aYear:
		return m.day.Format("2006年")
	}
	day := m.day.Format(time.DateOnly)
	for _, p := range partOfDay {
		if p.zh != "" && strings.HasSuffix(said, p.said) {
			return day + p.zh
		}
	}
	return day
}
