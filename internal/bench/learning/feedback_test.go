package learning

import (
	"bytes"
	"encoding/json"
	"testing"

	"nodest/internal/feedback"
)

// The promises of decision 41, for simulated users whose evaluations are wrong one time in ten.
func TestFeedbackKeepsItsPromises(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Feedback(t.Context(), &out, FeedbackOptions{Users: 30, JSON: true}); err != nil {
		t.Fatal(err)
	}
	var r feedbackReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
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
	if r.TurnedWithin > turnedPromise || r.WrongWithin > wrongPromise || r.TurnedWithin == 0 || r.WrongWithin == 0 || r.Unfallen > 0 {
		t.Errorf("turned within %d, wrong within %d, not fallen %d", r.TurnedWithin, r.WrongWithin, r.Unfallen)
	}
}
