package bench

import (
	"strings"
	"testing"
)

// TestFrameworkPrints runs the whole measurement once: its figures are not
// judged.
func TestFrameworkPrints(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := measureFramework(t.Context(), &out, 50, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"key scan, last 20", "key scan, all", "nothing cached", "tokens cached", "a further turn", "allocs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestWorldInfoPrints(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := measureWorldInfo(t.Context(), &out, 20, []int{30}, 0); err != nil {
		t.Fatal(err)
	}
	if err := measureTavern(t.Context(), &out, 20, 30, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"keys in the last 2 messages, o200k_base, cached", "20 messages, 30 entries", "× its JSON", "all messages, recursion, nothing cached", "a further turn, last 2 messages"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
