package lang

import "testing"

func TestContentHash(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b string
		same bool
	}{
		{"User loves tea.", "user  LOVES tea", true},
		{"用户喜欢绿茶。", "用户 喜欢，绿茶", true},
		{"ＡＢＣ１２３", "abc123", true},
		{"User loves\u200b tea", "User loves tea", true},
		{"User loves tea", "User loves coffee", false},
		{"User weighs 3.5 kg", "User weighs 35 kg", false},
		{"User likes C", "User likes C++", false},
		{"!!", "??", false},
	}
	for _, tt := range tests {
		if got := ContentHash(tt.a) == ContentHash(tt.b); got != tt.same {
			t.Errorf("%q and %q: same = %v, want %v", tt.a, tt.b, got, tt.same)
		}
	}
}
