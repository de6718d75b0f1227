package chat

import (
	"strings"
	"testing"

	"nodest/card"
)

func TestNamesInAGreeting(t *testing.T) {
	tests := []struct {
		dialect    card.Dialect
		text, want string
	}{
		{card.NodeST, "{{char}} {{CHAR}} {{user}} {{User}}", "A A $1 $1"},
		{card.NodeST, "<USER> {{random}}", "<USER> {{random}}"},
		{card.SillyTavern, "<USER> <bot> <char>", "$1 A A"},
	}
	for _, tt := range tests {
		n := namer{char: "A", user: "$1", old: tt.dialect == card.SillyTavern, left: maxNamed}
		if got := n.named(tt.text); got != tt.want {
			t.Errorf("named(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestExpandedNamesAreBounded(t *testing.T) {
	n := namer{char: strings.Repeat("n", maxNamed/4), left: maxNamed}
	text := strings.Repeat("{{char}}", 100)
	if size := len(n.named(text)); size > maxNamed+len(text) {
		t.Errorf("the first text has %d bytes", size)
	}
	if got := n.named(text); got != text {
		t.Errorf("the second text has %d bytes", len(got))
	}
}
