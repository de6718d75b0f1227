package learning

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Whatever a model does in 30 nights, the documents of a memory keep the promises of decision 42.
func TestThirtyNightsHarmNoDocument(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Dream(t.Context(), &out, DreamOptions{JSON: true}); err != nil {
		t.Fatal(err)
	}
	var f DreamFigures
	if err := json.Unmarshal(out.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", f)
	if f.UserLines == 0 || f.UserLinesKept != f.UserLines || f.LowestShare < 0.6 {
		t.Errorf("%d of %d lines of the user are left, the lowest share is %v", f.UserLinesKept, f.UserLines, f.LowestShare)
	}
	if f.DreamLines < 50 || f.JunkShare > 0.05 {
		t.Errorf("%d lines, of which %d are junk", f.DreamLines, f.Junk)
	}
	if f.EmptyNights == 0 || f.EmptyVersions > 0 || f.CallsOfANewRun > 0 || f.FailedNights > 0 || f.MostCalls > 24 || f.MostTokens > 150_000 || len(f.Problems) > 0 {
		t.Errorf("%+v", f)
	}
}
