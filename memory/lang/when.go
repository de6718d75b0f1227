package lang

import (
	"strings"
	"time"
	"unicode"

	"nodest/internal/civil"
)

// Relative days mean another day later, so a stored statement has "on 2024-03-07" for "tomorrow".

// dayMatch is where a text names a day.
type dayMatch struct {
	day      time.Time
	from, to int
	names    span
}

// firstDay finds the first day in a text, by the first rule that finds one.
func firstDay(text string, at time.Time) (dayMatch, bool) {
	at = civil.Wall(at)
	for _, e := range saidDays() {
		for _, place := range e.FindAllStringSubmatchIndex(text, -1) {
			if day, names, ok := groupsOf(e.Form, text, place).said(e, at); ok && IsPlausible(day) {
				return dayMatch{WholeDay(day), place[0], place[1], names}, true
			}
		}
	}
	return dayMatch{}, false
}

// How a day, a week, a month and a year are written in a fact, as layouts of time.Format.
var (
	hanLayouts     = data.Words("day-layouts", "zh")
	englishLayouts = data.Words("day-layouts", "en")
	prepositions   = data.Words("day-prepositions") // prepositions of an English day, and of a longer time
	beforeDay      = english("before-day")          // has a preposition
	partsOfDay     = data.List("part-of-day", "written")
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
		return before + m.written(said, hanLayouts()) + behind
	}
	when := m.written(said, englishLayouts())
	if !beforeDay.MatchString(before) && !strings.HasPrefix(behind, "'s") {
		when = prepositions()[min(m.names, aWeek)-aDay] + " " + when
	}
	return before + when + behind
}

func (m dayMatch) written(said string, layouts []string) string {
	layout := layouts[m.names-aDay]
	for _, e := range partsOfDay() {
		if e.MatchString(said) {
			layout = e.With["written"]
		}
	}
	return m.day.Format(layout)
}
