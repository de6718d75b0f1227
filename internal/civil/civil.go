// Package civil reads the calendar and the clock of a time zone, in which an hour may be left out or come
// twice, at midnight too.
package civil

import "time"

// Wall returns the date and the clock that t shows, as a time of UTC. Days counted on it are whole: they
// begin at midnight, and all have 24 hours.
func Wall(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// Start returns when the day that t shows begins in a zone.
func Start(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.Date()
	return At(y, m, d, 0, zone)
}

// At returns when clocks show a minute of a day. It is the first moment if there are two, and the end of
// the gap if clocks skip the minute.
func At(y int, m time.Month, d, minute int, zone *time.Location) time.Time {
	y, m, d = time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Date()
	at := time.Date(y, m, d, minute/60, minute%60, 0, 0, zone)
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
