package parse

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	atxHeading   = regexp.MustCompile(`^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$`)
	setextLine   = regexp.MustCompile(`^ {0,3}(=+|-+)[ \t]*$`)
	fenceLine    = regexp.MustCompile("^ {0,3}(?:[-*+] +|\\d{1,3}[.)] +)?[ \t]*(`{3,}|~{3,})[ \t]*([\\w+#.-]*)")
	tableBorder  = regexp.MustCompile(`^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
	headingID    = regexp.MustCompile(`\s*\{#[^}]*\}\s*$`)
	markdownLink = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	inlineTag    = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)
	reading      = regexp.MustCompile(`(?i)<r[tp]\b[^<>]*>[^<>]*</r[tp]>|</?(?:ruby|rb|rtc)\b[^<>]*>`)
)

// parseMarkdown keeps a text as it is written, without front matter, comments and the readings
// above ruby.
func parseMarkdown(p *parser, text string) error {
	m := &markdown{p: p, b: p.b}
	text = m.frontMatter(text)
	for line := range p.lines(text) {
		m.line(line)
	}
	m.endTable()
	m.endFence()
	if m.b.title == "" && len(m.b.outline) > 0 && m.b.outline[0].Level == 1 {
		m.b.title = m.b.outline[0].Title
	}
	return p.ctx.Err()
}

type markdown struct {
	p *parser
	b *builder

	comment bool   // within <!-- -->
	fence   string // that closes the code block, "" = outside
	code    Unit

	before      string // the line before, "" = blank or not a paragraph
	beforeStart int
	table       Unit
	rows        int // lines of the table so far, 0 = outside
}

// frontMatter takes the title out of the YAML at the top of a file and returns the rest.
func (m *markdown) frontMatter(text string) string {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return text
	}
	matter, rest, ok := strings.Cut(rest, "\n---\n")
	if !ok || len(matter) > 64<<10 {
		return text
	}
	var fields map[string]yaml.Node
	if yaml.Unmarshal([]byte(matter), &fields) != nil || fields == nil {
		return text
	}
	if title, ok := fields["title"]; ok && title.Kind == yaml.ScalarNode {
		m.b.title = title.Value
	}
	return strings.TrimLeft(rest, "\n")
}

func (m *markdown) line(line string) {
	if m.fence != "" {
		m.codeLine(line)
		return
	}
	line = m.withoutComments(line)
	if line == "" {
		return
	}
	if strings.Contains(line, "<ruby") && !strings.Contains(line, "`") {
		line = reading.ReplaceAllString(line, "")
	}
	start := m.b.n
	bare := strings.TrimRight(line, "\n")
	if found := fenceLine.FindStringSubmatch(bare); found != nil && (found[1][0] == '~' || !strings.Contains(strings.TrimLeft(strings.TrimSpace(bare), "-*+0123456789.) `"), "`")) {
		m.endTable()
		m.fence, m.code = found[1], Unit{Kind: "code", Start: start, Title: found[2]}
		m.b.write(line)
		m.before = ""
		return
	}
	m.b.write(line)
	m.tableLine(bare, start)
	m.headingLine(bare, start)
	m.before, m.beforeStart = strings.TrimSpace(bare), start
}

func (m *markdown) codeLine(line string) {
	m.b.write(line)
	bare := strings.TrimSpace(line)
	if strings.HasPrefix(bare, m.fence) && strings.Trim(bare, m.fence[:1]) == "" {
		m.endFence()
	}
}

func (m *markdown) endFence() {
	if m.fence != "" {
		m.b.unit(m.code)
		m.fence = ""
	}
}

func (m *markdown) headingLine(line string, start int) {
	if found := atxHeading.FindStringSubmatch(line); found != nil {
		m.b.heading(len(found[1]), plainTitle(found[2]), start)
		return
	}
	if found := setextLine.FindStringSubmatch(line); found != nil && m.before != "" && !strings.HasPrefix(m.before, "#") &&
		!strings.Contains(m.before, "|") {
		level := 1
		if found[1][0] == '-' {
			level = 2
		}
		m.b.heading(level, plainTitle(m.before), m.beforeStart)
	}
}

// tableLine follows the lines of a table: its second line is a border.
func (m *markdown) tableLine(line string, start int) {
	switch {
	case m.rows > 0 && strings.Contains(line, "|"):
		m.rows++
	case m.rows > 0:
		m.endTableAt(start)
	case strings.Contains(line, "|") && tableBorder.MatchString(line) && strings.Contains(m.before, "|"):
		m.rows = 2
		m.table = Unit{Kind: "table", Start: m.beforeStart, Header: m.before}
	}
}

func (m *markdown) endTable() { m.endTableAt(m.b.n) }

func (m *markdown) endTableAt(end int) {
	if m.rows == 0 {
		return
	}
	m.rows = 0
	m.b.unit(m.table)
	if n := len(m.b.units); n > 0 && m.b.units[n-1].Start == m.table.Start {
		m.b.units[n-1].End = end
	}
}

// withoutComments drops <!-- --> from a line outside of code.
func (m *markdown) withoutComments(line string) string {
	if !m.comment && !strings.Contains(line, "<!--") {
		return line
	}
	var out strings.Builder
	dropped := false
	rest := line
	for rest != "" {
		if m.comment {
			_, after, ok := strings.Cut(rest, "-->")
			dropped = true
			if !ok {
				break
			}
			m.comment, rest = false, after
			continue
		}
		before, after, ok := strings.Cut(rest, "<!--")
		out.WriteString(before)
		if !ok {
			break
		}
		if strings.Count(out.String(), "`")%2 == 1 { // within a code span
			out.WriteString("<!--")
		} else {
			m.comment = true
		}
		rest = after
	}
	if dropped && strings.TrimSpace(out.String()) == "" {
		return ""
	}
	s := out.String()
	if !strings.HasSuffix(s, "\n") && strings.HasSuffix(line, "\n") {
		s += "\n"
	}
	return s
}

// plainTitle drops the markup of a heading.
func plainTitle(s string) string {
	if len(s) > 4*maxTitle {
		return s
	}
	s = headingID.ReplaceAllString(s, "")
	s = markdownLink.ReplaceAllString(s, "$1")
	s = inlineTag.ReplaceAllString(s, "")
	return strings.NewReplacer("`", "", "**", "", "__", "", `\`, "").Replace(s)
}
