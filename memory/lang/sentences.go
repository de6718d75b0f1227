package lang

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	questionWords = data.Rule("question-words")
	asksUnmarked  = data.Rule("asks-unmarked")
	commas        = regexp.MustCompile(`[,，;；]\s*`)
)

// SentencesOf splits a text after the ends of sentences.
func SentencesOf(text string) []string {
	var out []string
	for len(text) > 0 {
		end := SentenceEnd(text)
		if s := strings.TrimSpace(text[:end]); s != "" {
			out = append(out, s)
		}
		text = text[end:]
	}
	return out
}

// SentenceEnd returns where the first sentence of text ends, including closing quotes.
func SentenceEnd(text string) int {
	for i, r := range text {
		_, n := utf8.DecodeRuneInString(text[i:])
		next := i + n
		switch {
		case r == '\n':
			return next
		case r == '.' && !fullStop(text, i), !endsSentence(r):
			continue
		}
		for next < len(text) {
			r, n := utf8.DecodeRuneInString(text[next:])
			if !endsSentence(r) && !closes(r) {
				break
			}
			next += n
		}
		return next
	}
	return len(text)
}

func endsSentence(r rune) bool { return strings.ContainsRune("。！？!?…;；.．~～", r) }

func closes(r rune) bool { return strings.ContainsRune("”’\"'」』）)】》〉*", r) }

// mostClosers is how many bytes after a point closing quotes and further points may take.
const mostClosers = 24

// fullStop reports whether the point at i is none of a number, an address, an initial or a title.
func fullStop(text string, i int) bool {
	rest := text[i+1 : min(i+1+mostClosers, len(text))]
	rest = strings.TrimLeftFunc(rest, func(r rune) bool { return r == '.' || closes(r) })
	if next, _ := utf8.DecodeRuneInString(rest); rest != "" && !unicode.IsSpace(next) && next < 0x2E80 {
		return false
	}
	if i > 0 && text[i-1] == '.' {
		return true
	}
	word := text[:i]
	if at := strings.LastIndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }); at >= 0 {
		_, n := utf8.DecodeRuneInString(word[at:])
		word = word[at+n:]
	}
	if inside := strings.HasSuffix(text[:i-len(word)], "."); len(word) == 1 && word != "I" && (inside || unicode.IsUpper(rune(word[0]))) {
		return false
	}
	return !titles()[strings.ToLower(word)] && !isOrdinal(text[:i], rest)
}

// isOrdinal reports whether a point makes a number the day of a month: "am 9. Juni".
func isOrdinal(before, behind string) bool {
	day := before[len(strings.TrimRight(before, "0123456789")):]
	words := strings.Fields(behind)
	if day == "" || len(day) > len("31") || len(words) == 0 {
		return false
	}
	_, is := months()[Plain(strings.TrimRightFunc(words[0], unicode.IsPunct))]
	return is
}

var titles = data.Set("titles")

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
	return asksUnmarked.MatchString(bare)
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
