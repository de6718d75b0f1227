package rules

import (
	"math"
	"math/rand/v2"
	"time"
)

// Habit is when a character is active and how fast it reacts. It follows from its id.
type Habit struct {
	wakes, sleeps float64 // hours of the day; sleeps may be past 24
	pace          float64 // that delays are multiplied with, about 0.6 to 1.8
	soonest       time.Duration
}

// HabitOf returns the habit of a character, from early bird to night owl.
func HabitOf(id string) Habit {
	d := dice(Seed(id), "habit")
	days := [][2]float64{{5.5, 21}, {7, 22.5}, {7, 23}, {9, 24.5}, {11, 27}}
	day := days[d.IntN(len(days))]
	shift := d.Float64()*2 - 1
	return Habit{wakes: day[0] + shift, sleeps: day[1] + shift, pace: math.Exp(d.Float64()*1.1 - 0.5), soonest: 20 * time.Second}
}

// Quick returns a habit that is sixty times as fast, at every hour.
func (h Habit) Quick() Habit {
	return Habit{wakes: -1, sleeps: 25, pace: h.pace / 60, soonest: time.Second}
}

// Active returns from 0 to 1 how active the character is at a time in the user's zone.
func (h Habit) Active(t time.Time) float64 {
	hour := float64(t.Hour()) + float64(t.Minute())/60
	if hour < h.wakes {
		hour += 24
	}
	switch {
	case hour >= h.sleeps:
		return 0
	case hour < h.wakes+1, hour >= h.sleeps-1:
		return 0.5
	}
	return 1
}

// How long a reaction takes.
const (
	latest  = 6 * time.Hour
	asleep  = 4                // times as slow outside its active hours
	morning = 90 * time.Minute // after the quiet hours, in which what they held back is spread
)

// Delay returns how long a character waits before it reacts; now is in the user's zone.
// It takes minutes to react to the user, to a mention and to an answer, and about an hour
// otherwise: at least 20 seconds and at most 6 hours; with a quick habit, at least a second
// and at most some minutes. The wait is longer if it would end in the quiet hours, or
// outside the character's active hours; to the user, a character reacts at any hour, but
// more slowly.
func (h Habit) Delay(seed uint64, now time.Time, quiet Quiet, reason Reason, toUser bool) time.Duration {
	d := dice(seed, "delay")
	wait := h.pace * spread(d) * float64(median(reason, toUser))
	if toUser && h.Active(now) == 0 {
		wait *= asleep
	}
	at := now.Add(min(max(time.Duration(wait), h.soonest), latest))
	if !toUser && h.Active(at) == 0 {
		at = nextClock(at, int(h.wakes*60)).Add(fraction(d, morning))
	}
	if end := quiet.End(at); !end.IsZero() {
		at = end.Add(fraction(d, quiet.spread()))
	}
	return at.Sub(now)
}

func median(reason Reason, toUser bool) time.Duration {
	close := reason == Mentioned || reason == OwnThread
	switch {
	case toUser && close:
		return 90 * time.Second
	case toUser:
		return 5 * time.Minute
	case close:
		return 12 * time.Minute
	}
	return 50 * time.Minute
}

// spread is a factor around 1 with a long tail.
func spread(d *rand.Rand) float64 { return math.Exp(0.8 * d.NormFloat64()) }

func fraction(d *rand.Rand, of time.Duration) time.Duration {
	return time.Duration(d.Float64() * float64(of))
}

// Quiet is a time of the day in which nothing is posted, in minutes; it may pass midnight.
// The zero value is none.
type Quiet struct{ from, until int }

// QuietHours returns the time from HH:MM until HH:MM. It is none if both are equal, or if
// one is not a time.
func QuietHours(from, until string) Quiet {
	a, okA := minutes(from)
	b, okB := minutes(until)
	if !okA || !okB {
		return Quiet{}
	}
	return Quiet{a, b}
}

func (q Quiet) holds(minute int) bool {
	if q.from <= q.until {
		return q.from <= minute && minute < q.until
	}
	return minute >= q.from || minute < q.until
}

// End returns the end of the quiet hours that t, in the user's zone, is in; zero if it is
// in none.
func (q Quiet) End(t time.Time) time.Time {
	if !q.holds(t.Hour()*60 + t.Minute()) {
		return time.Time{}
	}
	return nextClock(t, q.until)
}

// spread returns the time over which reactions are spread after the quiet hours.
func (q Quiet) spread() time.Duration {
	awake := (q.from - q.until + 24*60) % (24 * 60)
	return min(morning, time.Duration(awake)*time.Minute/2)
}
