package reader

import (
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const maxFrames = 12 // quotes and lists inside each other that are shown as such

// frame is a quote or a list item around the current block.
type frame struct {
	node   *html.Node
	marker string // mark of an item: "- " or "3. "; empty for a quote
	used   bool   // the marker was written
}

// markdown writes the kept texts of a page.
type markdown struct {
	kept   map[*html.Node]bool
	out    strings.Builder
	frames []frame
	number map[*html.Node]int // number of the next item of a list
	block  []byte             // the text of the current block, white space not collapsed
	level  int                // level of the current heading
	code   int                // where the current inline code begins in block, or -1
	quotes int                // around the last block that was written
	item   bool               // the last block belonged to a list item
}

// toMarkdown renders the kept texts under root: headings, lists, quotes, code and tables.
// Links and emphasis are plain text; images are left out.
func toMarkdown(root *html.Node, kept map[*html.Node]bool) string {
	m := &markdown{kept: kept, number: map[*html.Node]int{}, code: -1}
	tour(root, m.enter, m.leave)
	m.flush()
	return m.out.String()
}

func (m *markdown) enter(n *html.Node) bool {
	switch n.Type {
	case html.TextNode:
		if m.kept[n] {
			m.block = append(m.block, strings.ReplaceAll(n.Data, "\n", " ")...)
		}
		return false
	case html.ElementNode:
	default:
		return true
	}
	switch n.DataAtom {
	case atom.Br:
		m.block = append(m.block, '\n')
		return false
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		if m.code < 0 {
			m.code = len(m.block)
		}
	case atom.Pre:
		m.flush()
		m.fence(n)
		return false
	case atom.Table:
		m.flush()
		if isData(n) {
			m.table(n)
			return false
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		m.flush()
		m.level = int(n.Data[1] - '0')
	case atom.Li:
		m.flush()
		m.push(frame{node: n, marker: "- "})
	case atom.Blockquote:
		m.flush()
		m.push(frame{node: n})
	default:
		if !inline[n.DataAtom] {
			m.flush()
		}
	}
	return true
}

func (m *markdown) leave(n *html.Node) {
	switch n.DataAtom {
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		m.endCode()
	case atom.Li, atom.Blockquote:
		m.flush()
		if last := len(m.frames) - 1; last >= 0 && m.frames[last].node == n {
			m.frames = m.frames[:last]
		}
	default:
		if !inline[n.DataAtom] && n.DataAtom != atom.Br {
			m.flush()
		}
	}
}

func (m *markdown) push(f frame) {
	if len(m.frames) < maxFrames {
		m.frames = append(m.frames, f)
	}
}

// endCode puts the inline code that ends here between backticks.
func (m *markdown) endCode() {
	if m.code < 0 || m.code > len(m.block) {
		m.code = -1
		return
	}
	s := strings.Join(strings.Fields(string(m.block[m.code:])), " ")
	m.block = append(m.block[:m.code], inlineCode(s)...)
	m.code = -1
}

func inlineCode(s string) string {
	switch {
	case s == "":
		return ""
	case strings.Contains(s, "`"):
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

// flush writes the current block.
func (m *markdown) flush() {
	paragraphs := paragraphs(string(m.block))
	level := m.level
	m.block, m.level, m.code = m.block[:0], 0, -1
	if level > 0 && len(paragraphs) > 0 {
		all := strings.Join(strings.Fields(strings.Join(paragraphs, " ")), " ")
		paragraphs = []string{strings.Repeat("#", level) + " " + all}
	}
	for _, p := range paragraphs {
		m.write(p)
	}
}

// paragraphs splits a text at empty lines and collapses the white space of its lines.
func paragraphs(s string) []string {
	var all, lines []string
	end := func() {
		if len(lines) > 0 {
			all = append(all, strings.Join(lines, "\n"))
		}
		lines = nil
	}
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.Join(strings.Fields(l), " "); l == "" {
			end()
			continue
		}
		lines = append(lines, l)
	}
	end()
	return all
}

// write writes a block behind the markers of the quotes and items around it.
func (m *markdown) write(block string) {
	start, rest, item, quotes := m.prefix()
	if m.out.Len() > 0 {
		m.out.WriteByte('\n')
		if !item || !m.item {
			m.out.WriteString(strings.TrimRight(strings.Repeat("> ", min(quotes, m.quotes)), " "))
			m.out.WriteByte('\n')
		}
	}
	for i, l := range strings.Split(block, "\n") {
		if i > 0 {
			m.out.WriteByte('\n')
			start = rest
		}
		m.out.WriteString(strings.TrimRight(start+l, " "))
	}
	m.item, m.quotes = len(m.frames) > 0 && m.frames[len(m.frames)-1].marker != "", quotes
}

// prefix returns what the first line and the others of a block begin with, whether the
// block begins an item, and how many quotes are around it.
func (m *markdown) prefix() (start, rest string, item bool, quotes int) {
	for i := range m.frames {
		f := &m.frames[i]
		if f.marker == "" {
			quotes++
			start, rest = start+"> ", rest+"> "
			continue
		}
		indent := strings.Repeat(" ", len(f.marker))
		if !f.used {
			f.used, item = true, true
			f.marker = m.markerOf(f.node)
			indent = strings.Repeat(" ", len(f.marker))
			start, rest = start+f.marker, rest+indent
			continue
		}
		start, rest = start+indent, rest+indent
	}
	return start, rest, item, quotes
}

// markerOf returns "- ", or the number of an item of an ordered list.
func (m *markdown) markerOf(li *html.Node) string {
	list := li.Parent
	if !is(list, atom.Ol) {
		return "- "
	}
	n, ok := m.number[list]
	if !ok {
		n = 1
		if start, err := strconv.Atoi(attr(list, "start")); err == nil && start >= 0 && start < 1_000_000 {
			n = start
		}
	}
	m.number[list] = n + 1
	return strconv.Itoa(n) + ". "
}

var language = regexp.MustCompile(`(?:^|\s)(?:language-|lang-|highlight-source-|brush:\s*)([A-Za-z0-9+#-]{1,20})`)

// fence writes a program with its indentation.
func (m *markdown) fence(pre *html.Node) {
	var b strings.Builder
	any, lang := false, languageOf(pre)
	for n := range nodes(pre) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
			any = any || m.kept[n]
		case is(n, atom.Br):
			b.WriteByte('\n')
		case n.Type == html.ElementNode:
			if lang == "" {
				lang = languageOf(n)
			}
			if !inline[n.DataAtom] && b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
		}
	}
	code := strings.Trim(b.String(), "\n")
	if !any || strings.TrimSpace(code) == "" {
		return
	}
	m.write(fenced(code, lang))
}

// fenced puts code into a block that nothing in it can end.
func fenced(code, lang string) string {
	run, longest := 0, 2
	for i := range len(code) {
		if run++; code[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + lang + "\n" + code + "\n" + fence
}

func languageOf(n *html.Node) string {
	for _, s := range []string{attr(n, "class"), attr(n.Parent, "class")} {
		if found := language.FindStringSubmatch(s); found != nil {
			return strings.ToLower(found[1])
		}
	}
	return ""
}
