package lang

import (
	"strings"
	"testing"
	"time"
)

func TestSmallTalkIsBlanked(t *testing.T) {
	for text, want := range map[string]string{
		"good morning, how was your day?":    " ,  ?",
		"thank you so much, that’s nice — é": " ,   — é",
		"haha 哈哈, good night 晚安":             "haha  ,    ",
		"the boat is gone":                   "the boat is gone",
	} {
		if got := aboutNothing(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestContractionsWithoutAMark(t *testing.T) {
	for text, want := range map[string]string{
		"im here": "i'm here", "Dont, he said, DIDNT": "Don't, he said, DIDn't", "its ill": "its ill", "him imx x_im": "him imx x_im",
		"theyre what’s whats": "they're what's what's", "ive": "i've", "": "",
	} {
		if got := Contracted(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// BenchmarkReadQuery reads a message of some length.
func BenchmarkReadQuery(b *testing.B) {
	text := strings.Repeat("She walks over to the old window and thinks of the boat that her brother built last spring. ", 6)
	for b.Loop() {
		ReadQuery(text, Names{User: "Ann", Character: "Reed"}, time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))
	}
}
