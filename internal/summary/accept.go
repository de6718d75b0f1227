package summary

import (
	"strings"

	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory/lang"
)

// Verdict is the result of checking an answer.
type Verdict string

const (
	Accepted Verdict = "accepted"
	TooShort Verdict = "too_short"
	TooLong  Verdict = "too_long"
	Refused  Verdict = "refused"
	Copied   Verdict = "copied"         // one message, word for word
	Foreign  Verdict = "other_language" // than that of the messages
	MadeUp   Verdict = "made_up"        // it has names or numbers that nobody said
)

// shortestSummary is a length in code points; summaries of many messages must be longer.
const shortestSummary = 50

// accept checks what a model wrote as a summary with at least shortest and at most length code
// points, and returns its text: without thoughts, a code fence and repeated marker lines. Up to
// three tenths more than length are accepted, and counts up to ten that nobody said.
func (m *material) accept(output string, shortest, length int) (string, Verdict) {
	text := StripMarkers(unfenced(llm.WithoutThoughts(output)))
	switch {
	case refuses(text):
		return text, Refused
	case runes(text) < shortest:
		return text, TooShort
	case copies(text, m.plain):
		return text, Copied
	case m.foreign(text):
		return text, Foreign
	}
	if _, madeUp := m.withoutMadeUp(text); len(madeUp) > 0 {
		return text, MadeUp
	}
	if runes(text) > acceptable(length) {
		return text, TooLong
	}
	return text, Accepted
}

func unfenced(s string) string {
	const fence = "```"
	inner, ok := strings.CutPrefix(s, fence)
	if !ok {
		return s
	}
	if inner, ok = strings.CutSuffix(inner, fence); !ok || strings.Contains(inner, fence) {
		return s
	}
	if tag, body, found := strings.Cut(inner, "\n"); found && !strings.ContainsAny(strings.TrimSpace(tag), " \t") {
		inner = body
	}
	return strings.TrimSpace(inner)
}

var refusal = data.Rule("refusal") // the beginning of an answer

func refuses(text string) bool {
	start := strings.ToLower(lang.Tidy(op.Truncate(text, 200)))
	return refusal.MatchString(strings.TrimLeft(start, "\"'“‘「*#>（( "))
}

// copies reports whether text is one of the messages, a part of one, or one with little added.
func copies(text string, messages []string) bool {
	text = lang.Tidy(text)
	for _, message := range messages {
		if strings.Contains(message, text) ||
			len(message)*5 >= len(text)*4 && strings.Contains(text, message) {
			return true
		}
	}
	return false
}
