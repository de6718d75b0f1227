package sharedtest

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Vector is a recorded case: the Output that belongs to an Input. Where the recorded program
// deviates from its specification, Output is that of the specification; Bug names a known error
// that Output still has.
type Vector[In, Out any] struct {
	Name, Bug string
	Input     In
	Output    Out
}

// UnmarshalJSON reads a case.
func (v *Vector[In, Out]) UnmarshalJSON(data []byte) error {
	var c struct {
		Name, Bug  string
		Input      In
		Output     json.RawMessage
		SpecOutput json.RawMessage `json:"spec_output"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	v.Name, v.Bug, v.Input = c.Name, c.Bug, c.Input
	if c.SpecOutput != nil {
		c.Output = c.SpecOutput
	}
	return json.Unmarshal(c.Output, &v.Output)
}

// Vectors decodes a file of vectors: a list, or an object with a list of cases.
func Vectors[In, Out any](tb testing.TB, data []byte) []Vector[In, Out] {
	tb.Helper()
	var f struct{ Cases []Vector[In, Out] }
	var into any = &f
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		into = &f.Cases
	}
	if err := json.Unmarshal(data, into); err != nil {
		tb.Fatal(err)
	}
	return f.Cases
}

// Replay runs a subtest for each vector of a file below golden and logs how they ended. The test
// is skipped if the file is absent.
func Replay[In, Out any](t *testing.T, file string, run func(t *testing.T, v Vector[In, Out])) {
	t.Helper()
	Each(t, Vectors[In, Out](t, Read(t, "golden/"+file)), run)
}

// Each is Replay of vectors that are read already.
func Each[In, Out any](t *testing.T, vectors []Vector[In, Out], run func(t *testing.T, v Vector[In, Out])) {
	t.Helper()
	failed, skipped := 0, 0
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			defer func() {
				switch {
				case t.Failed():
					failed++
				case t.Skipped():
					skipped++
				}
			}()
			run(t, v)
		})
	}
	t.Logf("%d passed, %d failed, %d skipped", len(vectors)-failed-skipped, failed, skipped)
}
