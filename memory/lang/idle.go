package lang

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"nodest/index"
)

var (
	QuestionBegins = regexp.MustCompile(`(?i)^[^\p{L}\p{N}]*(?:(?:and|but|so|hey|well)[^\p{L}\p{N}]+)?(?:(?:what|where|who|when|why|how|which)(?:'s|’s| is| are| do| does| did| was| were| can| could| should| would| old| many| much| long| about)\b|(?:do|does|did|is|are|am|can|could|would|will|should|have|has)\s+(?:i|you|he|she|it|we|they|my|your|the|there|this|that)\b)`)
	questionEnds   = regexp.MustCompile(`(?:什么|哪里|哪儿|谁|几岁|多少|[吗呢]|なに|何|どこ|ですか|ますか|뭐야|어디야|니)[^\p{L}\p{N}]*$`)
	knowsNothing   = regexp.MustCompile(`(?i)^[^\p{L}\p{N}]*(?:(?:hmm|well|sorry|oh)[^\p{L}\p{N}]+)*i(?:'m| am)? (?:don't|do not|can't|not)(?: really)? (?:know|remember|recall|sure)|^[^\p{L}\p{N}]*(?:对不起|抱歉)?[^\p{L}\p{N}]*我?(?:也|还)?(?:不知道|不记得|不清楚|不太清楚|想不起)`)
)

// TellsSomething reports whether a term of a row has content.
func TellsSomething(t string) bool {
	if t[0] >= 0x80 {
		return denseWeight(t) == 1
	}
	return ProofOf(t) >= provesHardly && !weakWords[t]
}

// longestIdle is the maximum length in bytes of a sentence that may be small talk, or a
// question without a mark.
const longestIdle = 60

// OnlyAsks reports whether a text has nothing but questions, small talk, and not knowing.
func OnlyAsks(text string) bool {
	for _, s := range SentencesOf(text) {
		switch {
		case IsQuestion(s) && len(Statements(s)) == 0:
		case len(s) > longestIdle:
			return false
		case !QuestionBegins.MatchString(s) && !questionEnds.MatchString(s) && !knowsNothing.MatchString(s) &&
			saysSomething(aboutNothing(strings.ToLower(s))):
			return false
		}
	}
	return true
}

// saysSomething reports whether a folded text has a word with content.
func saysSomething(folded string) bool {
	return strings.ContainsFunc(folded, func(r rune) bool { return r >= 0x2e80 && unicode.IsLetter(r) && !meansLittle(r, 0) }) ||
		slices.ContainsFunc(index.Terms(folded), func(t string) bool { return t[0] < 0x80 && TellsSomething(t) })
}
