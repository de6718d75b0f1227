package rules

import (
	"fmt"
	"slices"
	"time"
)

// Slot is a time of a day at which a character posts.
type Slot struct {
	Name string // unique in the day: "08:30" of a set time, "#1" of those by number
	At   time.Time
}

// Slots returns the slots of a day, earliest first; day is any moment of it in the user's
// zone. There is one for each of times (HH:MM; others are ignored), even in quiet hours,
// because the user has chosen it. perDay more are spread over the hours that are not
// quiet. seed should be made of the character and the day.
func Slots(day time.Time, times []string, perDay int, quiet Quiet, seed uint64) []Slot {
	var slots []Slot
	named := map[int]bool{}
	for _, text := range times {
		m, ok := minutes(text)
		if !ok || named[m] {
			continue
		}
		named[m] = true
		slots = append(slots, Slot{fmt.Sprintf("%02d:%02d", m/60, m%60), clockAt(day, m)})
	}
	var free []int // minutes
	for m := range 24 * 60 {
		if !quiet.holds(m) {
			free = append(free, m)
		}
	}
	d := dice(seed, "slots")
	for i := range perDay {
		m := free[int((float64(i)+d.Float64())*float64(len(free))/float64(perDay))]
		at := clockAt(day, m).Add(time.Duration(d.IntN(60)) * time.Second)
		slots = append(slots, Slot{fmt.Sprintf("#%d", i+1), at})
	}
	slices.SortStableFunc(slots, func(a, b Slot) int { return a.At.Compare(b.At) })
	return slots
}

// minutes reads HH:MM.
func minutes(clock string) (int, bool) {
	t, err := time.Parse("15:04", clock)
	return t.Hour()*60 + t.Minute(), err == nil
}

// clockAt returns when clocks show a minute of the day that t is in. It is the first
// moment if there are two, and the end of the gap if clocks skip the minute.
func clockAt(t time.Time, minute int) time.Time {
	y, mon, d := t.Date()
	at := time.Date(y, mon, d, minute/60, minute%60, 0, 0, t.Location())
	start, end := at.ZoneBounds()
	switch shown := at.Hour()*60 + at.Minute(); {
	case at.Day() != d: // the gap is at midnight, and at is before it
		return end
	case shown > minute:
		return start
	case shown < minute:
		return end
	case !start.IsZero():
		_, now := at.Zone()
		_, before := start.Add(-time.Second).Zone()
		if first := at.Add(time.Duration(now-before) * time.Second); first.Before(start) && before > now {
			return first
		}
	}
	return at
}

// nextClock returns the next moment after t at which clocks show a minute of the day.
func nextClock(t time.Time, minute int) time.Time {
	at := clockAt(t, minute)
	if !at.After(t) {
		y, mon, d := t.Date()
		at = clockAt(time.Date(y, mon, d+1, 12, 0, 0, 0, t.Location()), minute)
	}
	return at
}
