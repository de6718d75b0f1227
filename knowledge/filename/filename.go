// Package filename makes names of files that can be shown.
package filename

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/op"
)

// Longest is how many code points the name of a file has at most, with its folders.
const Longest = 200

// Clean makes of what a client calls a file a name that can be shown: folders with "/",
// no "." or "..", nothing invisible, and at most Longest code points. It is never a path.
func Clean(name string) string {
	name = norm.NFC.String(strings.ToValidUTF8(name, "\uFFFD"))
	var parts []string
	for part := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		if part = cleanPart(part); part != "" && part != "." && part != ".." {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "file"
	}
	last := len(parts) - 1
	parts[last] = shorten(parts[last])
	for len(parts) > 1 && utf8.RuneCountInString(strings.Join(parts, "/")) > Longest {
		parts = append(parts[:len(parts)-2], parts[len(parts)-1]) // the deepest folder
	}
	return strings.Join(parts, "/")
}

// cleanPart takes out of a part of a name what is not seen, or changes the direction of what
// is, and makes a blank of what is one. Joiners stay: scripts and emoji need them.
func cleanPart(part string) string {
	part = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		case r == '\u200c', r == '\u200d':
			return r
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Noncharacter_Code_Point):
			return -1
		}
		return r
	}, part)
	return strings.Join(strings.Fields(part), " ")
}

// shorten cuts the name of a file in front of its extension.
func shorten(name string) string {
	n := utf8.RuneCountInString(name)
	if n <= Longest {
		return name
	}
	ext := path.Ext(name)
	if utf8.RuneCountInString(ext) > 20 {
		ext = ""
	}
	return op.Truncate(name, Longest-utf8.RuneCountInString(ext)) + ext
}
