package learning

import (
	"bytes"
	"encoding/json"
	"testing"

	"nodest/internal/feedback"
)

// The promises of decision 41, in worlds in which a quarter, half and three quarters of the sources help.
func TestFeedbackKeepsItsPromises(t *testing.T) {
	t.Parallel()
	for name, right := range map[string]float64{"evaluations that are true": 1, "one evaluation in ten is wrong": 0.9} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := Feedback(t.Context(), &out, FeedbackOptions{Users: 20, Right: right, JSON: true}); err != nil {
				t.Fatal(err)
			}
			var all struct{ Worlds []feedbackReport }
			if err := json.Unmarshal(out.Bytes(), &all); err != nil || len(all.Worlds) != 3 {
				t.Fatal(len(all.Worlds), err)
			}
			for _, r := range all.Worlds {
				r.check(t, right == 1)
			}
		})
	}
}

func (r *feedbackReport) check(t *testing.T, exact bool) {
	t.Helper()
	t.Logf("%+v", *r)
	if r.Least < feedback.Least || r.Most > feedback.Most || r.Least > 0.95 || r.Most < 1.05 {
		t.Errorf("factors from %v to %v", r.Least, r.Most)
	}
	if r.Interval[0] <= 0 {
		t.Errorf("the gain over no feedback is %v, %v", r.Gain, r.Interval)
	}
	if r.PermutedRange[0] > 0 || r.Permuted > r.Gain/4 {
		t.Errorf("permuted evaluations gain %v, %v", r.Permuted, r.PermutedRange)
	}
	if r.TriedOf == 0 || r.Tried*10 < r.TriedOf {
		t.Errorf("%d of %d slots were for what was never shown", r.Tried, r.TriedOf)
	}
	if r.TurnedWithin == 0 || r.WrongWithin == 0 || r.Unfallen*100 > r.Wrong {
		t.Errorf("turned within %d, wrong within %d, %d of %d did not fall as promised", r.TurnedWithin, r.WrongWithin, r.Unfallen, r.Wrong)
	}
	if exact && (r.TurnedWithin > turnedPromise || r.WrongWithin > wrongPromise || r.Unfallen > 0) {
		t.Errorf("although evaluations are true: turned within %d, wrong within %d, %d did not fall", r.TurnedWithin, r.WrongWithin, r.Unfallen)
	}
}
