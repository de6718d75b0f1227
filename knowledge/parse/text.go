package parse

import (
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	chapterLine = regexp.MustCompile(`^(?i:(?:chapter|book|part|section|act|scene|volume|canto)\s+(?:[ivxlcdm]+|\d{1,4}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|the\s+\w+)\b[.:]?(?:\s.{0,80})?)$`)
	hanChapter  = regexp.MustCompile(`^[ 　]*第[零〇一二三四五六七八九十百千万两\d]{1,8}([章节回卷部篇集幕編编]|部分)([ 　:：、.].{0,40}|.{0,24})$`)
	hanTitle    = regexp.MustCompile(`^《[^《》]{1,30}》$`)
)

// parseText keeps a text as it is. Lines that name a chapter or, in a collection, a piece of
// it become headings.
func parseText(p *parser, text string) error {
	b := p.b
	before := "" // the line before
	for line := range p.lines(text) {
		start := b.n
		b.write(line)
		line = strings.TrimRight(line, "\n")
		if level := chapterLevel(line, before); level > 0 {
			b.heading(level, line, start)
		}
		before = line
	}
	return p.ctx.Err()
}

// chapterLevel returns the level of the section that a line of plain text begins; 0 = none.
func chapterLevel(line, before string) int {
	if len(line) > 240 || len(line) < 5 {
		return 0
	}
	switch {
	case hanTitle.MatchString(line):
		return 1
	case hanChapter.MatchString(line):
		if strings.ContainsAny(line, "节") {
			return 2
		}
		return 1
	case chapterLine.MatchString(strings.TrimSpace(line)) && (strings.TrimSpace(before) == "" || line == strings.ToUpper(line)):
		if endsSentence(line) && line != strings.ToUpper(line) && utf8.RuneCountInString(line) > 40 {
			return 0 // "Part one of the plan was to leave."
		}
		return 1
	}
	return 0
}

func endsSentence(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasSuffix(s, ".") || strings.HasSuffix(s, "。") || strings.HasSuffix(s, ",") || strings.HasSuffix(s, ";")
}

// lines yields the lines of a text with their line ends, and stops when the context ends.
func (p *parser) lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		n := 0
		for line := range strings.Lines(text) {
			if n++; n%1024 == 0 && p.ctx.Err() != nil || !yield(line) {
				return
			}
		}
	}
}
