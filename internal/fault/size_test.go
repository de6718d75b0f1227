package fault_test

import (
	"testing"

	"nodest/internal/fault"
)

func TestSizesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 kB", 64 << 10: "64 kB", 32 << 20: "32 MB", 60_000_029: "57 MB",
	} {
		if got := fault.Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
	for _, c := range []struct {
		n, limit int
		want     string
	}{
		{60_000_029, 32 << 20, "57 MB, limit 32 MB"},
		{32<<20 + 1, 32 << 20, "just over 32 MB, limit 32 MB"},
	} {
		if got := fault.OverLimit(c.n, c.limit); got != c.want {
			t.Errorf("OverLimit(%d, %d) = %q, want %q", c.n, c.limit, got, c.want)
		}
	}
}
