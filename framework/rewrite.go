package framework

import (
	"regexp"
	"strings"
)

// rewriteBlock is where a rewrite instruction begins in a message: at the beginning
// of a line, after any punctuation. A mark in the middle of a line is
// something that the user talks about.
var rewriteBlock = regexp.MustCompile(`\n[^\n\p{L}\p{N}]*?(?:` + strings.Join([]string{
	regexp.QuoteMeta(strings.TrimSpace(wordsIn[Chinese].Rewrite)),
	regexp.QuoteMeta(strings.TrimSpace(wordsIn[English].Rewrite)),
}, "|") + `)`)

// onlyInstruction is a message with an instruction and nothing else, as the app writes
// it: a user who talks about the mark adds a space after it.
var onlyInstruction = regexp.MustCompile(`^[^\n\p{L}\p{N}]*?(?:` + strings.Join([]string{
	regexp.QuoteMeta(wordsIn[Chinese].Rewrite), regexp.QuoteMeta(wordsIn[English].Rewrite),
}, "|") + `)(\S(?s:.*))$`)

// WithRewrite returns the text of a user message with an instruction for rewriting the
// reply, in the words of a language. An earlier instruction is removed; a blank one adds
// none. If the earlier instruction is the whole message, a new one replaces it, and a
// blank one leaves it as plain text: a reply needs something to answer.
func WithRewrite(text, instruction string, l Language) string {
	rest := WithoutRewrite(text)
	said := onlyInstruction.FindStringSubmatch(text)
	switch {
	case isBlank(instruction) && said != nil:
		return said[1]
	case isBlank(instruction):
		return rest
	case said == nil:
		rest += "\n\n"
	}
	return rest + l.words().Rewrite + strings.TrimSpace(instruction)
}

// WithoutRewrite returns the text of a user message without the rewrite instruction at
// its end, in whatever language it was added; "" if it is nothing else.
func WithoutRewrite(text string) string {
	if onlyInstruction.MatchString(text) {
		return ""
	}
	if at := rewriteBlock.FindStringIndex(text); at != nil {
		return strings.TrimRight(text[:at[0]], "\r\n")
	}
	return text
}
