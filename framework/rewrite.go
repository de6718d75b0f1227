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

// onlyWish is a message with a wish and nothing else, as the app writes it: one who
// talks about the mark puts a blank behind it.
var onlyWish = regexp.MustCompile(`^[^\n\p{L}\p{N}]*?(?:` + strings.Join([]string{
	regexp.QuoteMeta(wordsIn[Chinese].rewrite), regexp.QuoteMeta(wordsIn[English].rewrite),
}, "|") + `)(\S(?s:.*))$`)

// WithRewrite returns the text of a user message with a wish for how the reply
// is to be written anew, in the words of a language. An earlier wish in it is
// taken out; a blank wish adds none. Where the earlier wish is all that the user has
// said, a new one takes its place, and without one it stays as plain words: a reply
// needs something to answer.
func WithRewrite(text, wish string, l Language) string {
	rest := WithoutRewrite(text)
	said := onlyWish.FindStringSubmatch(text)
	switch {
	case isBlank(wish) && said != nil:
		return said[1]
	case isBlank(wish):
		return rest
	case said == nil:
		rest += "\n\n"
	}
	return rest + l.words().rewrite + strings.TrimSpace(wish)
}

// WithoutRewrite returns the text of a user message without the wish for a rewrite
// at its end, in whatever language that was added; "" if it is nothing else.
func WithoutRewrite(text string) string {
	if onlyWish.MatchString(text) {
		return ""
	}
	if at := rewriteBlock.FindStringIndex(text); at != nil {
		return strings.TrimRight(text[:at[0]], "\r\n")
	}
	return text
}
