package bench

import (
	"time"

	"nodest/internal/bench/figure"
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
	return spread{figure.Millis(figure.At(times, 0.5)), figure.Millis(figure.At(times, 0.95))}
}
