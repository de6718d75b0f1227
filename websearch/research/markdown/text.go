package markdown

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/html/atom"
)

// WithoutTags removes the HTML tags and comments of a text and keeps everything else,
// character references included. A "<" that begins no tag of HTML stays.
func WithoutTags(text string) string {
	var b strings.Builder
	for {
		before, _, found := strings.Cut(text, "<")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = text[len(before):]
		size := 1
		if isTag(text) {
			size = tagSize(text)
		} else {
			b.WriteByte('<')
		}
		text = text[size:]
	}
}

// tagSize returns the length in bytes of the tag or comment that text begins with. Without an end
// it is the rest.
func tagSize(text string) int {
	if strings.HasPrefix(text, "<!--") {
		before, _, found := strings.Cut(text, "-->")
		if found {
			return len(before) + len("-->")
		}
		return len(text)
	}
	var quote byte
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case text[i-1] == '=' && (c == '"' || c == '\''):
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return len(text)
}

// isTag reports whether raw begins as a tag of HTML, of a custom element or a declaration does.
func isTag(raw string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(raw, "<"), "/")
	if strings.HasPrefix(name, "!") || strings.HasPrefix(name, "?") {
		return true
	}
	end := strings.IndexFunc(name, func(r rune) bool {
		return r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
	if end >= 0 {
		name = name[:end]
	}
	return strings.Contains(name, "-") || atom.Lookup([]byte(strings.ToLower(name))) != 0
}

var (
	pageImage = regexp.MustCompile(`!\[[^\[\]]*\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+"[^"]*")?\)|\[[^\[\]]*\])`)
	pageLink  = regexp.MustCompile(`\[([^\[\]]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+"[^"]*")?\)`)
)

// Plain returns the text of a page without tags, images and the addresses of links, for a quote: what stands
// there loads nothing and leads nowhere.
func Plain(text string) string {
	return WithoutTags(pageLink.ReplaceAllString(pageImage.ReplaceAllString(text, ""), "$1"))
}

// plain returns the letters, digits and marks of a text. All between them becomes one space.
func plain(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		if !unicode.In(r, unicode.L, unicode.N, unicode.M) || r == unicode.ReplacementChar {
			gap = true
			continue
		}
		if gap {
			b.WriteByte(' ')
		}
		gap = false
		b.WriteRune(r)
	}
	if gap {
		b.WriteByte(' ')
	}
	return b.String()
}
