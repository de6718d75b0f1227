package op_test

import (
	"testing"

	"nodest/internal/op"
)

// Ids that the server makes are told from the names that apps give.
func TestIDsHaveAFormOfTheirOwn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		op.NewID(): true, "019ab3f2-7c10-7d2e-9a51-3f2b8c6d1e00": true,
		"": false, "character123": false, "char_1732228278042": false, "角色": false,
		"9b2fbc4e-33ab-4c1f-8d0e-0f6f6f1b2a3c":          false, // a random UUID, as apps make them
		"019AB3F2-7C10-7D2E-9A51-3F2B8C6D1E00":          false,
		"urn:uuid:019ab3f2-7c10-7d2e-9a51-3f2b8c6d1e00": false,
		"{019ab3f2-7c10-7d2e-9a51-3f2b8c6d1e00}":        false,
		"019ab3f27c107d2e9a513f2b8c6d1e00":              false,
	} {
		if got := op.HasIDForm(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
