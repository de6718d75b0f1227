package bench

import (
	"slices"
	"time"
)

// stopwatch has the times that steps took, by their names.
type stopwatch map[string][]time.Duration

// step is one thing that is measured. One without a name prepares the next step and is
// not counted.
type step struct {
	name string
	do   func() error
}

// rounds takes the steps in turn, n times, so that whatever else the machine does is
// shared. It warms up with a tenth of that, which is not counted.
func (w stopwatch) rounds(n int, steps ...step) error {
	for i := range n + n/10 {
		for _, s := range steps {
			begun := time.Now()
			if err := s.do(); err != nil {
				return err
			}
			if s.name != "" && i >= n/10 {
				w[s.name] = append(w[s.name], time.Since(begun))
			}
		}
	}
	return nil
}

// spread is a time in milliseconds.
type spread struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

func spreadOf(times []time.Duration) spread {
	return spread{millis(at(times, 0.5)), millis(at(times, 0.95))}
}

// at is the value below which a share of the times are.
func at(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(int(share*float64(len(times))), len(times)-1)]
}

// millis is a time as figures show it.
func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
