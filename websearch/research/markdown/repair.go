package markdown

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/cite"
	"nodest/websearch/weburl"
)

var listItem = regexp.MustCompile(`^([ \t]*)(?:[*+-]|\d+\.)\s`)

// IndentCode gives the lines of a fenced block of code the indent that its list item needs, and
// its last fence the indent of the first one.
func IndentCode(md string) string {
	lines := strings.Split(md, "\n")
	var open fence
	base := ""
	for i, line := range lines {
		before := open
		next, isFence := open.step(line)
		open = next
		switch {
		case isFence && before.mark == "":
			base = open.indent
			for _, above := range slices.Backward(lines[max(0, i-3):i]) {
				if m := listItem.FindStringSubmatch(above); m != nil {
					if m[1] != "" {
						base = m[1] + "    "
					}
					break
				}
			}
		case isFence:
			lines[i] = before.indent + strings.TrimLeft(line, " \t")
		case before.mark != "" && strings.TrimSpace(line) != "":
			n := 0
			for n < min(len(line), len(before.indent)) && line[n] == before.indent[n] {
				n++
			}
			lines[i] = base + line[n:]
		}
	}
	return strings.Join(lines, "\n")
}

var addressAsText = regexp.MustCompile(`\[(https?://[^\]\s]+)\]\(`)

// FixLinks gives links whose text is their address the title of the page, where it is known, and
// its host.
func FixLinks(md string, known []weburl.Hit) string {
	titles := map[string]string{}
	for _, h := range known {
		titles[h.URL] = h.Title
	}
	return outside(md, codeSpans(md), func(text string) string {
		var b strings.Builder
		at := 0
		for _, m := range addressAsText.FindAllStringSubmatchIndex(text, -1) {
			address := text[m[2]:m[3]]
			host := weburl.Hostname(address)
			if host == "" || !strings.HasPrefix(text[m[1]:], address+")") {
				continue
			}
			title, ok := titles[address]
			if !ok {
				if same, err := weburl.Normalize(address, spelling); err == nil {
					title = titles[same]
				}
			}
			if title = linkText(title); title != "" {
				title += " - "
			}
			b.WriteString(text[at:m[0]] + "[" + title + host + "](")
			at = m[1]
		}
		return b.String() + text[at:]
	})
}

// spelling is for addresses that are compared, and not read: those of private hosts are spelled alike.
var spelling = weburl.Options{AllowPrivate: func(string) bool { return true }}

// linkText is a title that is safe as the text of a link.
func linkText(title string) string {
	title = strings.Join(strings.Fields(title), " ")
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`).Replace(title)
}

// Tidy is the last repair of an answer: it removes broken characters, <center>, and line breaks
// and rules in HTML that are not in a table, and moves colons out of emphasis.
func Tidy(md string) string {
	md = strings.ReplaceAll(strings.ToValidUTF8(md, ""), string(utf8.RuneError), "")
	md = outside(md, codeSpans(md), func(s string) string { return centered.ReplaceAllString(s, "") })
	keep := append(codeSpans(md), tableSpans(md)...)
	slices.SortFunc(keep, func(a, b cite.Span) int { return a[0] - b[0] })
	md = outside(md, union(keep), func(s string) string { return breaks.ReplaceAllString(s, "") })
	return outside(md, codeSpans(md), func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			b.WriteString(colonsOut(line))
		}
		return b.String()
	})
}

var (
	centered = regexp.MustCompile(`(?i)</?center\b[^<>]*>`)
	breaks   = regexp.MustCompile(`(?i)</?[bh]r\b[^<>]*>`)
	tables   = regexp.MustCompile(`(?is)<table\b.*?</table\s*>`)
)

// tableSpans returns where a text has tables: in HTML, and from a line with two bars, the first
// one at its start, to a blank line.
func tableSpans(md string) (spans []cite.Span) {
	for _, m := range tables.FindAllStringIndex(md, -1) {
		spans = append(spans, cite.Span{m[0], m[1]})
	}
	at, from := 0, -1
	for line := range strings.Lines(md) {
		trimmed := strings.TrimSpace(line)
		switch {
		case from < 0 && strings.HasPrefix(trimmed, "|") && strings.Count(trimmed, "|") > 1:
			from = at
		case from >= 0 && trimmed == "":
			spans, from = append(spans, cite.Span{from, at}), -1
		}
		at += len(line)
	}
	if from >= 0 {
		spans = append(spans, cite.Span{from, len(md)})
	}
	return spans
}

// union joins spans that overlap. They are sorted.
func union(spans []cite.Span) (out []cite.Span) {
	for _, s := range spans {
		if n := len(out) - 1; n >= 0 && s[0] < out[n][1] {
			out[n][1] = max(out[n][1], s[1])
			continue
		}
		out = append(out, s)
	}
	return out
}

var asterisks = regexp.MustCompile(`\*+`)

// colonsOut moves the colons of emphasized parts of a line behind them: "**Note:** x" becomes
// "**Note**: x". Bullets, products and powers are no emphasis; times and links stay as they are.
func colonsOut(line string) string {
	if !strings.ContainsAny(line, ":：") {
		return line
	}
	runs := asterisks.FindAllStringIndex(line, -1)
	closing := closingRuns(line, runs)
	var b strings.Builder
	at := 0
	for i := 0; i < len(runs); i++ {
		c := closing[i]
		if c == 0 {
			continue
		}
		content, colons := splitColons(line[runs[i][1]:runs[c][0]])
		if content != "" {
			b.WriteString(line[at:runs[i][1]] + content + line[runs[c][0]:runs[c][1]] + colons)
			at = runs[c][1]
		}
		i = c
	}
	return b.String() + line[at:]
}

// closingRuns returns for each run of asterisks the one that ends its emphasis, or 0.
func closingRuns(line string, runs [][]int) []int {
	closing := make([]int, len(runs))
	var last [5]int // the next closing run by its length
	for i := len(runs) - 1; i >= 0; i-- {
		n := runs[i][1] - runs[i][0]
		before, _ := utf8.DecodeLastRuneInString(line[:runs[i][0]])
		after, size := utf8.DecodeRuneInString(line[runs[i][1]:])
		if n >= len(last) || before == '\\' {
			continue
		}
		if size > 0 && !unicode.IsSpace(after) {
			closing[i] = last[n]
			if other := 7 - n; n >= 3 && last[other] > 0 && (closing[i] == 0 || last[other] < closing[i]) {
				closing[i] = last[other]
			}
		}
		if i > 0 && (n > 1 || !unicode.IsSpace(before)) {
			last[n] = i
		}
	}
	return closing
}

// splitColons takes the colons out of a text, ASCII ones first. It returns "" if there are none
// or they belong to a link.
func splitColons(text string) (content, colons string) {
	if strings.Contains(text, "](") || strings.Contains(text, "://") {
		return "", ""
	}
	var b strings.Builder
	ascii, wide := 0, 0
	for i, r := range text {
		switch {
		case r == ':' && betweenDigits(text, i):
			b.WriteRune(r)
		case r == ':':
			ascii++
		case r == '：':
			wide++
		default:
			b.WriteRune(r)
		}
	}
	if ascii+wide == 0 {
		return "", ""
	}
	return strings.TrimSpace(b.String()), strings.Repeat(":", ascii) + strings.Repeat("：", wide)
}

func betweenDigits(s string, i int) bool {
	digit := func(i int) bool { return i >= 0 && i < len(s) && '0' <= s[i] && s[i] <= '9' }
	return digit(i-1) && digit(i+1)
}
