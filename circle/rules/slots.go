package rules

import (
	"fmt"
	"slices"
	"time"

	"nodest/internal/civil"
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
	y, mon, date := day.Date()
	for _, text := range times {
		m, ok := minutes(text)
		if !ok || named[m] {
			continue
		}
		named[m] = true
		slots = append(slots, Slot{fmt.Sprintf("%02d:%02d", m/60, m%60), civil.At(y, mon, date, m, day.Location())})
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
		at := civil.At(y, mon, date, m, day.Location()).Add(time.Duration(d.IntN(60)) * time.Second)
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

// nextClock returns the next moment after t at which clocks show a minute of the day.
func nextClock(t time.Time, minute int) time.Time {
	y, mon, d := t.Date()
	at := civil.At(y, mon, d, minute, t.Location())
	if !at.After(t) {
		at = civil.At(y, mon, d+1, minute, t.Location())
	}
	return at
}
