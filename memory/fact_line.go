package memory

import (
	"regexp"
	"strings"
	"time"
	"unicode"

	"nodest/memory/lang"
)

// blockTags would begin or end a block of a prompt for a model, however they are written.
var blockTags = regexp.MustCompile(`[<＜﹤]((?:[\s/／∕⁄]|` + lang.Fillers + `)*(?:` +
	anyForm("mem") + `|` + anyForm("websearch") + `|` + anyForm("response_guidelines") + `)[^<>＜＞﹤﹥]*)[>＞﹥]?`)

// anyForm matches an ASCII word in either case, and in full width, with fillers in it.
func anyForm(word string) string {
	var narrow, wide strings.Builder
	for _, r := range word {
		narrow.WriteString(regexp.QuoteMeta(string(r)) + lang.Fillers + `*`)
		wide.WriteString(string(r-'a'+'ａ') + lang.Fillers + `*`)
	}
	return `(?i:` + narrow.String() + `\b|` + wide.String() + `)`
}

// blockLine formats an item for a <mem> block: one line, tags defused, with the day if it has none.
func blockLine(text string, day *time.Time) string {
	line := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c': // they hide tags; joiners shape letters and emoji
			return -1
		}
		return r
	}, text)
	line = blockTags.ReplaceAllString(line, "‹$1›")
	line = lang.Tidy(line)
	if day != nil && !day.IsZero() && !strings.Contains(line, day.Format(time.DateOnly)) {
		line += day.Format(" (2006-01-02)")
	}
	return line
}

// PromptLine returns a text as one line of a prompt, with the tags of blocks defused.
func PromptLine(text string) string { return blockLine(text, nil) }
