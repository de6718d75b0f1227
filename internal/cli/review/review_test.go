package review_test

import (
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
