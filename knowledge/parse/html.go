package parse

import (
	"errors"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"nodest/internal/mathml"
)

// parseHTML writes the visible text of a page. If it says which part is its content, what
// surrounds that is left out.
func parseHTML(p *parser, text string) error {
	h := &htmlWriter{p: p, b: p.b}
	return h.document(text, true)
}

// emptyElement is an element of XHTML whose content HTML would take to be text.
var emptyElement = regexp.MustCompile(`<(title|script|style|textarea|iframe|noscript)(\s[^<>]*)?/>`)

type htmlWriter struct {
	p *parser
	b *builder

	space   bool // a space stands before what follows
	pre     int  // depth of pre
	inside  int  // depth of the part that is the content; its nav and the like are left out
	cell    int  // depth of table cells; they are one line
	heading int  // level of a heading that is being written; 0 = none
	visited int
}

// document writes a page, and with its title sets that of the file.
func (h *htmlWriter) document(text string, title bool) error {
	text = emptyElement.ReplaceAllString(text, "<$1$2></$1>")
	root, err := html.Parse(strings.NewReader(text))
	if err != nil { // nested more deeply than the parser accepts
		return h.flat(text)
	}
	mathml.OneForm(root)
	if title && h.b.title == "" {
		if t := findElement(root, func(n *html.Node) bool { return n.DataAtom == atom.Title }); t != nil {
			h.b.title = textOf(t)
		}
	}
	content := findElement(root, func(n *html.Node) bool {
		return n.DataAtom == atom.Main || attribute(n, "role") == "main"
	})
	if content == nil {
		content = onlyArticle(root)
	}
	if content != nil {
		h.inside++
		root = content
	}
	h.node(root)
	h.b.newline()
	return h.p.ctx.Err()
}

// findElement returns the first element that fits.
func findElement(root *html.Node, fits func(*html.Node) bool) *html.Node {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && fits(n) {
			return n
		}
	}
	return nil
}

// onlyArticle returns the article of a page with one.
func onlyArticle(root *html.Node) *html.Node {
	var article *html.Node
	for n := range root.Descendants() {
		if n.DataAtom == atom.Article {
			if article != nil {
				return nil
			}
			article = n
		}
	}
	return article
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttribute(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// textOf returns the visible text of an element on one line.
func textOf(n *html.Node) string {
	var out strings.Builder
	var add func(*html.Node)
	add = func(n *html.Node) {
		if n.Type == html.TextNode {
			out.WriteString(n.Data)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if !isHidden(c) {
				add(c)
			}
		}
	}
	add(n)
	return strings.Join(strings.Fields(out.String()), " ")
}

// hidden elements have no text, or none that a reader sees; the readings above ruby are no
// part of the words.
var hidden = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Head: true, atom.Template: true, atom.Iframe: true, atom.Object: true,
	atom.Svg: true, atom.Noscript: true, atom.Select: true, atom.Audio: true, atom.Video: true, atom.Canvas: true, atom.Datalist: true, atom.Noembed: true, atom.Noframes: true,
	atom.Rp: true, atom.Rt: true, atom.Rtc: true,
}

// hiding are styles of text that nobody sees, in a style attribute without white space.
var hiding = regexp.MustCompile(`(?i)(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|font-size:0(?:\.0+)?(?:px|pt|r?em|%)?(?:!|;|$))`)

// isHidden reports whether a reader does not see an element. Elements with aria-hidden are seen.
func isHidden(n *html.Node) bool {
	if n.Type != html.ElementNode || n.DataAtom == atom.Html || n.DataAtom == atom.Body {
		return false
	}
	if hidden[n.DataAtom] || n.DataAtom == atom.Dialog && !hasAttribute(n, "open") {
		return true
	}
	if hasAttribute(n, "hidden") && !strings.EqualFold(attribute(n, "hidden"), "until-found") {
		return true
	}
	style := attribute(n, "style")
	return style != "" && hiding.MatchString(strings.Join(strings.Fields(style), ""))
}

// beside elements stand around the content.
var beside = map[atom.Atom]bool{atom.Nav: true, atom.Footer: true, atom.Aside: true, atom.Form: true}

var blocks = map[atom.Atom]bool{
	atom.Address: true, atom.Article: true, atom.Aside: true, atom.Blockquote: true, atom.Body: true, atom.Center: true,
	atom.Dd: true, atom.Details: true, atom.Dialog: true, atom.Dir: true, atom.Div: true, atom.Dl: true, atom.Dt: true,
	atom.Fieldset: true, atom.Figcaption: true, atom.Figure: true, atom.Footer: true, atom.Form: true, atom.Header: true,
	atom.Hgroup: true, atom.Hr: true, atom.Legend: true, atom.Li: true, atom.Main: true, atom.Menu: true, atom.Nav: true,
	atom.Ol: true, atom.P: true, atom.Section: true, atom.Summary: true, atom.Ul: true, atom.Caption: true, atom.Option: true,
	atom.Tr: true, atom.Td: true, atom.Th: true, // for a table that only lays out the page
}

// paragraphs are blocks with an empty line before them.
var paragraphs = map[atom.Atom]bool{
	atom.P: true, atom.Blockquote: true, atom.Section: true, atom.Article: true, atom.Figure: true, atom.Ul: true,
	atom.Ol: true, atom.Dl: true, atom.Hr: true, atom.Details: true,
}

func headingLevel(a atom.Atom) int {
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return int(a.String()[1] - '0')
	}
	return 0
}

func (h *htmlWriter) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		h.node(c)
	}
}

// node writes an element and what is in it. The parser bounds how deep they nest.
func (h *htmlWriter) node(n *html.Node) {
	if h.visited++; h.b.full || h.visited%1024 == 0 && h.p.ctx.Err() != nil {
		return
	}
	switch n.Type {
	case html.TextNode:
		h.words(n.Data)
		return
	case html.ElementNode:
	default:
		h.children(n)
		return
	}
	switch {
	case isHidden(n) || h.inside > 0 && beside[n.DataAtom]:
	case n.DataAtom == atom.Br:
		h.breakLine()
	case h.cell > 0:
		h.inCell(n)
	default:
		h.element(n)
	}
}

// element writes an element outside of table cells.
func (h *htmlWriter) element(n *html.Node) {
	level := headingLevel(n.DataAtom)
	switch {
	case n.DataAtom == atom.Table && isData(n):
		h.table(n)
	case n.DataAtom == atom.Pre:
		h.verbatim(n)
	case level > 0 && h.heading == 0:
		h.title(n, level)
	case blocks[n.DataAtom] || level > 0:
		h.block(n)
	default:
		h.children(n)
	}
}

// inCell writes an element in a table cell, which is a part of a line.
func (h *htmlWriter) inCell(n *html.Node) {
	block := blocks[n.DataAtom] || headingLevel(n.DataAtom) > 0
	h.space = h.space || block
	h.children(n)
	h.space = h.space || block
}

func (h *htmlWriter) block(n *html.Node) {
	h.breakLine()
	if paragraphs[n.DataAtom] && h.heading == 0 && !inList(n) {
		h.b.blank()
	}
	h.children(n)
	h.breakLine()
}

func inList(n *html.Node) bool { return n.Parent != nil && n.Parent.DataAtom == atom.Li }

func (h *htmlWriter) breakLine() {
	h.space = false
	if h.cell > 0 || h.heading > 0 {
		h.space = true
		return
	}
	h.b.newline()
}

// words writes text with its white space collapsed.
func (h *htmlWriter) words(s string) {
	if h.pre > 0 {
		h.b.write(clean(s))
		return
	}
	for s != "" {
		i := strings.IndexAny(s, " \t\n\r\f")
		if i == 0 {
			h.space = true
			s = strings.TrimLeft(s, " \t\n\r\f")
			continue
		}
		word := s
		if i > 0 {
			word = s[:i]
		}
		s = s[len(word):]
		if h.space && h.b.n > 0 && h.b.last[1] != '\n' && h.b.last[1] != ' ' {
			h.b.write(" ")
		}
		h.space = false
		h.b.write(clean(word))
	}
}

func (h *htmlWriter) title(n *html.Node, level int) {
	h.breakLine()
	h.b.blank()
	start := h.b.n
	h.heading = level
	h.children(n)
	h.heading, h.space = 0, false
	if h.b.n > start {
		h.b.heading(level, textOf(n), start)
	}
	h.breakLine()
}

func (h *htmlWriter) verbatim(n *html.Node) {
	h.breakLine()
	h.b.blank()
	start := h.b.n
	h.pre++
	h.children(n)
	h.pre--
	h.b.newline()
	h.b.unit(Unit{Kind: "code", Start: start})
}

// isData reports whether a table holds data: it has no table, heading or code in it.
func isData(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.DataAtom == atom.Table || d.DataAtom == atom.Pre || headingLevel(d.DataAtom) > 0 {
			return false
		}
	}
	return true
}

// table writes a line for each row.
func (h *htmlWriter) table(n *html.Node) {
	h.breakLine()
	h.b.blank()
	start := h.b.n
	header := ""
	rows := 0
	for d := range partsOf(n) {
		if d.DataAtom == atom.Caption {
			h.children(d)
			h.breakLine()
		} else if line := h.row(d); line != "" {
			if rows++; rows == 1 {
				header = line
			}
		}
	}
	if rows > 1 {
		h.b.unit(Unit{Kind: "table", Start: start, Header: header})
	}
	h.b.newline()
}

// partsOf yields the captions and rows of a table that are seen.
func partsOf(table *html.Node) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		var walk func(n *html.Node) bool
		walk = func(n *html.Node) bool {
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				part := c.DataAtom == atom.Caption || c.DataAtom == atom.Tr
				if !isHidden(c) && (part && !yield(c) || !part && !walk(c)) {
					return false
				}
			}
			return true
		}
		walk(table)
	}
}

// row writes the cells of a row on a line and returns it.
func (h *htmlWriter) row(tr *html.Node) string {
	out := newBuilder(h.b.limit)
	cells := &htmlWriter{p: h.p, b: out, cell: 1}
	first := true
	for c := tr.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th || isHidden(c) {
			continue
		}
		if !first {
			out.write(" | ")
		}
		first, cells.space = false, false
		cells.children(c)
	}
	line := strings.Join(strings.Fields(out.text.String()), " ")
	if strings.Trim(line, "| ") == "" {
		return ""
	}
	h.b.write(line + "\n")
	return line
}

// flat writes the text of a page whose elements nest too deeply for a tree.
func (h *htmlWriter) flat(text string) error {
	z := html.NewTokenizer(strings.NewReader(text))
	z.SetMaxBuf(1 << 20)
	skip := atom.Atom(0)
	for n := 0; ; n++ {
		if n%1024 == 0 && h.p.ctx.Err() != nil {
			return h.p.ctx.Err()
		}
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			if errors.Is(z.Err(), io.EOF) {
				return nil
			}
			return fail(DamagedFile, "the page has a tag that is too long")
		case html.TextToken:
			if skip == 0 {
				h.words(string(z.Text()))
			}
		case html.StartTagToken, html.EndTagToken:
			name, _ := z.TagName()
			skip = h.flatTag(atom.Lookup(name), kind == html.StartTagToken, skip)
		}
	}
}

// readings are the elements above ruby. Their end tags may be left out.
var readings = map[atom.Atom]bool{atom.Rt: true, atom.Rp: true, atom.Rtc: true}

// unread are the elements whose text flat skips.
var unread = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Title: true, atom.Rt: true, atom.Rp: true, atom.Rtc: true}

// flatTag writes the line break of a tag, and returns the element whose text is skipped now.
func (h *htmlWriter) flatTag(a atom.Atom, start bool, skip atom.Atom) atom.Atom {
	if !start {
		if a == skip || readings[skip] && a == atom.Ruby {
			return 0
		}
		return skip
	}
	if readings[skip] && (a == atom.Rb || blocks[a]) {
		skip = 0
	}
	if unread[a] && (skip == 0 || readings[skip]) {
		return a
	}
	if blocks[a] || headingLevel(a) > 0 || a == atom.Br {
		h.breakLine()
	}
	return skip
}
