package lang

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	questionWords = regexp.MustCompile(`(?i)[吗么呢]$|什么|怎么|怎样|为什么|哪|谁|几点|几个|多少|是不是|有没有|要不要|能不能|可不可以|会不会|好不好|^(?:what|who|whom|whose|which|when|where|why|how|do|does|did|is|are|am|was|were|can|could|will|would|should|shall|may|might|have|has|had|don't|doesn't|didn't|isn't|aren't|won't|can't)\b`)
	commas        = regexp.MustCompile(`[,，;；]\s*`)
)

// SentencesOf splits a text after the ends of sentences.
func SentencesOf(text string) []string {
	var out []string
	from := 0
	cut := func(to int) {
		if s := strings.TrimSpace(text[from:to]); s != "" {
			out = append(out, s)
		}
		from = to
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		next := i + size
		i = next
		switch r {
		case '\n':
			cut(next)
		case '。', '！', '？', '!', '?', '；', ';', '…', '~', '～':
			if behind, _ := utf8.DecodeRuneInString(text[next:]); !strings.ContainsRune("。！？!?…~～”」』\"", behind) {
				cut(next)
			}
		case '.':
			behind, _ := utf8.DecodeRuneInString(text[next:])
			if next == len(text) || behind == ' ' || behind == '\n' || behind == '"' {
				if !abbreviation.MatchString(text[from:next]) {
					cut(next)
				}
			}
		}
	}
	cut(len(text))
	return out
}

var abbreviation = regexp.MustCompile(`(?i)\b(?:mr|mrs|ms|dr|st|vs|prof|jr|sr|no|[a-z]\.[a-z])\.$`)

// IsQuestion looks at the end of a sentence and, without a mark, at its words.
func IsQuestion(sentence string) bool {
	s := strings.TrimRight(sentence, " \t\r\n\"”’」』)）~～")
	if strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") {
		return true
	}
	bare := strings.TrimRight(s, "。.!！…")
	if strings.HasSuffix(s, "!") || strings.HasSuffix(s, "！") {
		return false
	}
	return HasCJK(bare) && (strings.HasSuffix(bare, "吗") || strings.HasSuffix(bare, "么") && !strings.HasSuffix(bare, "这么") && !strings.HasSuffix(bare, "那么"))
}

// Statements returns the sentences of a text that are not questions. The clauses of a question
// before the last stay if they do not ask: "I love sushi, do you know a good place?".
func Statements(text string) []string {
	var out []string
	for _, s := range SentencesOf(text) {
		if !IsQuestion(s) {
			out = append(out, s)
			continue
		}
		clauses := commas.Split(s, -1)
		kept := clauses[:0]
		for _, c := range clauses[:len(clauses)-1] {
			if questionWords.MatchString(strings.TrimSpace(c)) {
				break
			}
			kept = append(kept, c)
		}
		if len(kept) > 0 {
			out = append(out, strings.Join(kept, separatorOf(s)))
		}
	}
	return out
}

func separatorOf(s string) string {
	if HasCJK(s) {
		return "，"
	}
	return ", "
}
