package lang

import (
	"math"
	"time"
)

// The Chinese calendar, by the new moons and the longitude of the sun (J. Meeus, Astronomical Algorithms, chapters
// 25 and 49, the larger terms: exact to a few minutes, for centuries around 2000). The month with the winter
// solstice is the eleventh; of thirteen months between two of them, the first in which the sun enters no sign is
// a leap month.

const synodic = 29.530588861 // days from new moon to new moon

// newMoon is the day of new moon k in Beijing, in days since the Julian epoch; 0 is that of January 6th, 2000.
func newMoon(k int) int {
	n := float64(k)
	t := n / 1236.85
	sin := func(degrees float64) float64 { return math.Sin(degrees * math.Pi / 180) }
	sun, moon, node := 2.5534+29.10535670*n, 201.5643+385.81693528*n+0.0107582*t*t, 160.7108+390.67050284*n-0.0016118*t*t
	at := 2451550.09766 + synodic*n + 0.00015437*t*t -
		0.40720*sin(moon) + 0.17241*sin(sun) + 0.01608*sin(2*moon) + 0.01039*sin(2*node) + 0.00739*sin(moon-sun) -
		0.00514*sin(moon+sun) + 0.00208*sin(2*sun) - 0.00111*sin(moon-2*node) - 0.00057*sin(moon+2*node) + 0.00056*sin(2*moon+sun) - 0.00042*sin(3*moon)
	return int(math.Floor(at + 0.5 + 8./24))
}

// sign is the twelfth of its way, from 0 in spring on, in which the sun is at the beginning of a day in Beijing.
func sign(day int) int {
	t := (float64(day) - 0.5 - 8./24 - 2451545) / 36525
	mean := (357.52911 + 35999.05029*t) * math.Pi / 180
	longitude := 280.46646 + 36000.76983*t + 1.914602*math.Sin(mean) + 0.019993*math.Sin(2*mean) + 0.000289*math.Sin(3*mean) - 0.00569
	return int(math.Floor(math.Mod(longitude/30, 12)+12)) % 12
}

// lunarDay is a day of the Chinese year that begins in a year.
func lunarDay(year, month, day int) time.Time {
	k := eleventh(year - 1)
	leap := eleventh(year)-k == 13
	for number := 11; ; k++ {
		first, next := newMoon(k), newMoon(k+1)
		if leap && number != 11 && sign(first) == sign(next) {
			leap = false // the number of the month before it
			continue
		}
		if number == 10+2+month {
			return dayOfJulian(first + day - 1)
		}
		number++
	}
}

// eleventh is the new moon before the winter solstice of a year.
func eleventh(year int) int {
	solstice := 2451545 + int(math.Round(float64(year-2000)*365.2422)) + 350 // December 16th or so
	for sign(solstice+1) != 9 {
		solstice++
	}
	k := int(float64(solstice-2451550)/synodic) + 1
	for newMoon(k) > solstice {
		k--
	}
	return k
}

func dayOfJulian(day int) time.Time {
	return time.Date(2000, 1, 1+day-2451545, 0, 0, 0, 0, time.UTC)
}

// easter is the Sunday of a year (Meeus, chapter 8).
func easter(year int) time.Time {
	a, b, c := year%19, year/100, year%100
	d, e := b/4, b%4
	g := (b - (b+8)/25 + 1) / 3
	h := (19*a + b - d - g + 15) % 30
	l := (32 + 2*e + 2*(c/4) - h - c%4) % 7
	m := (a + 11*h + 22*l) / 451
	n := h + l - 7*m + 114
	return time.Date(year, time.Month(n/31), n%31+1, 0, 0, 0, 0, time.UTC)
}
