package recall

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"nodest/internal/index"
	"nodest/memory/lang"
)

// line is what a ranking knows of every unit without reading it: the attribute of its row. The
// upper half is when it was, in minutes since 1970, then come flags, the properties that it
// gives, and its importance in 255ths.
type line uint64

const (
	lineFact line = 1 << (16 + iota)
	lineOfUser
	lineOfCharacter
	lineAsks
	lineTime
	lineNumber
	linePlace
	lineName
	lineProfile
	linePinned
	lineCircle
	linePublic
	lineNamesUser // the user's name, of a fact for the profile
	lineSelf      // in the first person
)

func (e *entry) line() line {
	minutes := max(math.MinInt32+1, min(math.MaxInt32, e.At.Unix()/60))
	switch {
	case e.At.IsZero():
		minutes = math.MinInt32
	case minutes%(24*60) == 0 && !lang.IsWholeDay(e.At.UTC()):
		minutes++ // a time of day, not a day
	}
	l := line(uint32(int32(minutes)))<<32 | line(math.Round(255*max(0, min(1, e.Importance)))) | line(e.gives(lang.Names{})&0xff)<<8
	t := e.traits
	for flag, set := range map[line]bool{
		lineFact: e.Layer == Fact, lineOfUser: e.Speaker == lang.RoleUser, lineOfCharacter: e.Speaker == lang.RoleCharacter,
		lineAsks: t.Asks, lineTime: t.Fits(lang.SeekTime), lineNumber: t.Fits(lang.SeekNumber), linePlace: t.Fits(lang.SeekPlace), lineName: t.Fits(lang.SeekName),
		lineProfile: e.Profile, linePinned: e.Pinned, lineCircle: e.Circle, linePublic: e.Public,
		lineNamesUser: e.Profile && lang.GivesName(e.Text), lineSelf: t.Self,
	} {
		if set {
			l |= flag
		}
	}
	return l
}

func (l line) is(flag line) bool { return l&flag != 0 }

// at is when the unit was, to the minute; zero if nobody knows.
func (l line) at() time.Time {
	if l.minute() == math.MinInt32 {
		return time.Time{}
	}
	return time.Unix(60*l.minute(), 0).UTC()
}

// minute is at in minutes since 1970.
func (l line) minute() int64 { return int64(int32(l >> 32)) }

// span is a time, from its first to its last minute since 1970.
type span struct{ from, to int32 }

// spanOf returns the time that has all times which may fit some days.
func spanOf(days []lang.Days) span {
	all := span{math.MaxInt32, math.MinInt32}
	for _, d := range days {
		from, to := d.Span()
		if from.IsZero() { // a day of every year
			return span{math.MinInt32, math.MaxInt32}
		}
		all = span{min(all.from, int32(from.Unix()/60)), max(all.to, int32(to.Unix()/60))}
	}
	return all
}

func (l line) importance() float64 { return float64(l&0xff) / 255 }

func (l line) gives() lang.Properties { return lang.Properties(l >> 8 & 0xff) }

func (l line) speaker() lang.Role {
	switch {
	case l.is(lineOfUser):
		return lang.RoleUser
	case l.is(lineOfCharacter):
		return lang.RoleCharacter
	}
	return ""
}

// tellsOfUser reports whether a unit may be about the user; in the circle "I" is somebody else.
func (l line) tellsOfUser() bool {
	return l.is(lineFact) && !l.is(lineCircle) || l.is(lineOfUser)
}

// fits reports whether a unit holds what is sought.
func (l line) fits(sought lang.Sought) bool {
	return l.is([...]line{lang.SeekAny: 0, lang.SeekTime: lineTime, lang.SeekNumber: lineNumber, lang.SeekPlace: linePlace, lang.SeekName: lineName}[sought])
}

// Marks of a row: that its text states a term as a name, or has it capitalised inside a sentence,
// names a day other than the one when it was said, gives a property of the user, and, of a fact, the text that it
// was taken from.
const (
	markNames   = "n"
	markCapital = "c"
	markDay     = "d"
	markGives   = "p"
	markSource  = "s"
)

func markOf(p lang.Properties) string { return markGives + strconv.Itoa(int(p)) }

func (e *entry) marks() (marks []string) {
	seen := map[string]bool{}
	add := func(kind, of string) {
		if !seen[kind+of] {
			seen[kind+of] = true
			marks = append(marks, kind+of)
		}
	}
	for _, t := range lang.NamesStated(e.Text) {
		add(markNames, t)
	}
	for _, m := range lang.Named.FindAllStringSubmatch(e.Text, -1) {
		for _, t := range index.Terms(strings.ToLower(m[1])) {
			add(markCapital, t)
		}
	}
	if day, ok := lang.EventTime(e.Text, e.At); ok && day.Format(time.DateOnly) != e.At.Format(time.DateOnly) {
		add(markDay, day.Format(time.DateOnly))
	}
	for _, p := range e.gives(lang.Names{}).Each() {
		add(markOf(p), "")
	}
	for _, source := range e.Sources {
		for _, id := range source {
			add(markSource, id)
		}
	}
	return marks
}

// compareTime compares units by when they were.
func (l line) compareTime(other line) int { return cmp.Compare(int32(l>>32), int32(other>>32)) }
