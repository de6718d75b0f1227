package review_test

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"nodest/internal/cli/review"
)

// A diff keeps the lines that both texts have in their order.
func TestADiffShowsWhatChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ before, after, want string }{
		{"a\nb\nc", "a\nb\nc", "  a\n  b\n  c\n"},
		{"a\nb\nc", "a\nx\nc", "  a\n- b\n+ x\n  c\n"},
		{"a\nb", "a\nb\nc", "  a\n  b\n+ c\n"},
		{"a\nb\nc", "b", "- a\n  b\n- c\n"},
		{"a", "b", "- a\n+ b\n"},
	} {
		if got := review.Diff(tt.before, tt.after); got != tt.want {
			t.Errorf("%q, %q:\n%s\nwant\n%s", tt.before, tt.after, got, tt.want)
		}
	}
}

// An editor that fails ends no review: the person is told why and asked again.
func TestAFailedEditorEndsNoReview(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := &review.Desk{In: bufio.NewReader(strings.NewReader("e\ns\ne\ns\n")), Out: &out, Edit: func(string) (string, error) {
		return "", errors.New("nano: exit status 1")
	}}
	payload := []byte(`{"content":"The ferry sails at nine."}`)
	approved, err := d.Review(t.Context(), []review.Extraction{{ID: "pending-1", Payload: payload}, {ID: "pending-2", Payload: payload}})
	if said := out.String(); approved != 0 || err != nil || strings.Count(said, "not edited: nano: exit status 1") != 2 || strings.Count(said, "[a/e/d/s/q]") != 4 {
		t.Errorf("%d approved, %v:\n%s", approved, err, said)
	}
}
