package lang

import (
	"strings"
	"testing"
	"time"
)

// TestSmallTalkInLatinLetters: where a text has no other letters, the phrases of the
// others need not be looked for.
func TestSmallTalkInLatinLetters(t *testing.T) {
	others := strings.TrimPrefix(phrasesOfSmallTalk.String(), latinSmallTalk.String()+"|")
	depth := 0
	for _, phrase := range strings.FieldsFunc(others, func(r rune) bool {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		return r == '|' && depth == 0
	}) {
		if countDense(phrase) == 0 {
			t.Errorf("%q can match Latin letters alone", phrase)
		}
	}
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

// BenchmarkReadQuery reads a message of some length.
func BenchmarkReadQuery(b *testing.B) {
	text := strings.Repeat("She walks over to the old window and thinks of the boat that her brother built last spring. ", 6)
	for b.Loop() {
		ReadQuery(text, Names{User: "Ann", Character: "Reed"}, time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))
	}
}
