package framework

import (
	"regexp"
	"strings"
)

// rewriteBlock is where a wish for a rewrite begins in a message: at the beginning
// of a line, whatever punctuation stands before it there. A mark amid a line is
// something that the user talks about.
var rewriteBlock = regexp.MustCompile(`\n[^\n\p{L}\p{N}]*?(?:` + strings.Join([]string{
	regexp.QuoteMeta(strings.TrimSpace(wordsIn[Chinese].rewrite)),
	regexp.QuoteMeta(strings.TrimSpace(wordsIn[English].rewrite)),
}, "|") + `)`)

// WithRewrite returns the text of a user message with a wish for how the reply
// is to be written anew, in the words of a language. An earlier wish in it is
// taken out; a blank wish adds none.
func WithRewrite(text, wish string, l Language) string {
	text = WithoutRewrite(text)
	if isBlank(wish) {
		return text
	}
	return text + "\n\n" + l.words().rewrite + strings.TrimSpace(wish)
}

// WithoutRewrite returns the text of a user message without the wish for a rewrite
// at its end, in whatever language that was added.
func WithoutRewrite(text string) string {
	if at := rewriteBlock.FindStringIndex(text); at != nil {
		return strings.TrimRight(text[:at[0]], "\r\n")
	}
	return text
}
