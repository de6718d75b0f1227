// Package figure has the figures that measurements print of their times, and the clock of those in virtual time.
package figure

import (
	"slices"
	"time"
)

// At is the value below which a share of the times are; 0 = there are none. It sorts them.
func At(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(int(share*float64(len(times))), len(times)-1)]
}

// Millis is a time in milliseconds.
func Millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
