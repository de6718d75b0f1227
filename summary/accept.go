package summary

import (
	"regexp"
	"strings"

	"nodest/llm"
	"nodest/memory/lang"
	"nodest/op"
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

func plainTexts(lines []ChatLine) []string {
	plain := make([]string, len(lines))
	for i := range lines {
		plain[i] = lang.Tidy(lines[i].Text)
	}
	return plain
}

// accept checks what a model wrote as a summary with at least shortest and at most length code
// points, and returns its text: without thoughts, a code fence and repeated marker lines. Up to
// three tenths more than length are accepted, and counts up to ten that nobody said.
func (m *material) accept(output string, shortest, length int) (string, Verdict) {
	text := StripMarkers(unfenced(llm.WithoutThoughts(output)))
	switch n := runes(text); {
	case n < shortest:
		if refuses(text) {
			return text, Refused
		}
		return text, TooShort
	case refuses(text):
		return text, Refused
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

// refusals are the beginnings of answers in which a model refuses. A character may well say
// later that it cannot.
var refusals = []*regexp.Regexp{
	regexp.MustCompile(`^(?:(?:i['’]m|i am|we['’]re|we are)\s+(?:very |so |really )?sorry|sorry|(?:i|we) apologi[sz]e|apologies|unfortunately)\b.{0,80}?\b(?:can['’]?t|cannot|can not|unable|not able|won['’]?t|will not|not comfortable)\b`),
	regexp.MustCompile(`^(?:i|we)\s+(?:can['’]?t|cannot|can not|won['’]?t|will not|am unable to|['’]m unable to|am not able to|must decline|have to decline)\s+(?:to\s+)?(?:help|assist|provide|summari|continue|fulfil|comply|create|generate|write|do|engage|process|discuss)`),
	regexp.MustCompile(`^i['’]m\s+(?:unable|not able|not comfortable)\b`),
	regexp.MustCompile(`^(?:as|being) an? (?:ai|artificial intelligence|language model|large language model)\b`),
	regexp.MustCompile(`^(?:非常|很|十分|真的)?(?:抱歉|对不起|不好意思|遗憾).{0,40}?(?:无法|不能|不便|没法|没有办法|不可以)`),
	regexp.MustCompile(`^(?:我|我们|本人)(?:目前|现在|暂时|恐怕)?(?:无法|不能|不便|没法|没有办法)(?:为您|为你|帮您|帮你|协助|提供|总结|概括|完成|继续|生成|处理|回答|满足|参与|写)`),
	regexp.MustCompile(`^(?:我)?(?:作为|身为)(?:一个|一名|一款)?\s*(?:ai|人工智能|大?语言模型|智能助手)`),
}

func refuses(text string) bool {
	start := strings.ToLower(lang.Tidy(op.Truncate(text, 200)))
	start = strings.TrimLeft(start, "\"'“‘「*#>（( ")
	for _, r := range refusals {
		if r.MatchString(start) {
			return true
		}
	}
	return false
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
