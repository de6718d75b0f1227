package markdown

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a table that is converted.
const (
	maxTable   = 256 << 10 // bytes; a larger one stays HTML, and no more is repeated
	maxColumns = 40
	maxSpan    = 20  // rows or columns that one cell covers
	maxRepeat  = 200 // bytes; a longer text is not repeated in them
)

// Tables turns the HTML tables of a Markdown text into Markdown tables. What cannot be parsed
// stays as it is.
func Tables(md string) string {
	var b strings.Builder
	code, at := codeSpans(md), 0
	for _, m := range openTable.FindAllStringIndex(md, -1) {
		var inside bool
		if _, code, inside = spanAt(code, m[0]); inside || m[0] < at {
			continue
		}
		size := tableSize(md[m[0]:])
		if size == 0 { // it never ends, so nothing behind it is outside of it
			break
		}
		text := ""
		if size <= maxTable {
			text = markdownTable(md[m[0] : m[0]+size])
		}
		if text == "" {
			continue
		}
		before := md[at:m[0]]
		b.WriteString(before)
		if line := before[strings.LastIndexByte(before, '\n')+1:]; strings.TrimSpace(line) != "" {
			b.WriteString("\n\n")
		}
		b.WriteString(text)
		if at = m[0] + size; at < len(md) && md[at] != '\n' && md[at] != '\r' {
			b.WriteString("\n")
		}
	}
	return b.String() + md[at:]
}

var openTable = regexp.MustCompile(`(?i)<table[\s>]`)

// tableSize returns the length in bytes of the table that text begins with, or 0 if it has no end.
func tableSize(text string) int {
	z := html.NewTokenizer(strings.NewReader(text))
	size, depth := 0, 0
	for {
		kind := z.Next()
		size += len(z.Raw())
		name, _ := z.TagName()
		switch isTable := string(name) == "table"; {
		case kind == html.ErrorToken:
			return 0
		case kind == html.StartTagToken && isTable:
			depth++
		case kind == html.EndTagToken && isTable:
			depth--
		}
		if depth == 0 {
			return size
		}
	}
}

// markdownTable returns a table as Markdown, or "" if it has no rows.
func markdownTable(source string) string {
	columns, grid := 0, tableGrid(tableRows(source))
	for _, row := range grid {
		columns = max(columns, len(row))
	}
	if columns == 0 {
		return ""
	}
	var b strings.Builder
	for i, row := range grid {
		b.WriteByte('|')
		for c := range columns {
			text := ""
			if c < len(row) {
				text = row[c]
			}
			b.WriteString(" " + text + " |")
		}
		b.WriteByte('\n')
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", columns) + "\n")
		}
	}
	return b.String()
}

// tableRows returns the rows of a table, without those of tables inside it; the head is first.
func tableRows(source string) (rows []*html.Node) {
	doc, err := html.Parse(strings.NewReader(source)) // refuses deep nesting
	if err != nil {
		return nil
	}
	var top *html.Node
	head := -1
	for n := range doc.Descendants() {
		switch {
		case n.DataAtom == atom.Table && top == nil:
			top = n
		case n.DataAtom == atom.Tr && n.Parent != nil && (n.Parent == top || n.Parent.Parent == top):
			if head < 0 && n.Parent.DataAtom == atom.Thead {
				head = len(rows)
			}
			rows = append(rows, n)
		}
	}
	if head > 0 { // a head behind the body
		first := rows[head]
		return slices.Insert(slices.Delete(rows, head, head+1), 0, first)
	}
	return rows
}

// tableGrid returns the texts of the rows. Cells that cover several rows or columns are repeated.
func tableGrid(rows []*html.Node) (grid [][]string) {
	type open struct {
		rows int
		text string
	}
	var covered [maxColumns]open
	repeated := 0 // bytes
	for _, tr := range rows {
		var row []string
		fill := func() {
			for len(row) < maxColumns && covered[len(row)].rows > 0 {
				c := &covered[len(row)]
				c.rows--
				repeated += len(c.text)
				row = append(row, c.text)
			}
		}
		for cell := tr.FirstChild; cell != nil; cell = cell.NextSibling {
			if cell.DataAtom != atom.Td && cell.DataAtom != atom.Th {
				continue
			}
			fill()
			text := cellText(cell)
			again := text
			if len(text) > maxRepeat || repeated > maxTable {
				again = ""
			}
			for range min(span(cell, "colspan"), maxColumns-len(row)) {
				covered[len(row)] = open{span(cell, "rowspan") - 1, again}
				row = append(row, text)
				text = again
				repeated += len(again)
			}
		}
		fill()
		if len(row) > 0 {
			grid = append(grid, row)
		}
	}
	return grid
}

func span(cell *html.Node, key string) int {
	for _, a := range cell.Attr {
		if n, err := strconv.Atoi(a.Val); a.Key == key && err == nil {
			return max(1, min(n, maxSpan))
		}
	}
	return 1
}

var (
	starItem   = regexp.MustCompile(`(?m)^[ \t]*\*[ \t]+`)
	cellBreaks = regexp.MustCompile(`\s*(?:<br>\s*)+`)
)

// cellText returns a cell in one line of Markdown.
func cellText(cell *html.Node) string {
	var b strings.Builder
	writeCell(&b, cell)
	text := strings.Join(strings.Fields(b.String()), " ")
	text = cellBreaks.ReplaceAllString(text, "<br>")
	for strings.HasPrefix(text, "<br>") || strings.HasSuffix(text, "<br>") {
		text = strings.TrimPrefix(strings.TrimSuffix(text, "<br>"), "<br>")
	}
	return text
}

// emphasis has the marks of elements in a cell.
var emphasis = map[atom.Atom]string{atom.Strong: "**", atom.B: "**", atom.Em: "_", atom.I: "_", atom.Code: "`"}

// writeCell writes what is in a node. Nesting is limited by the parser.
func writeCell(b *strings.Builder, node *html.Node) {
	for n := node.FirstChild; n != nil; n = n.NextSibling {
		switch n.DataAtom {
		case atom.Br:
			b.WriteString("<br>")
		case atom.P, atom.Div, atom.Ul, atom.Ol, atom.Tr:
			b.WriteString("<br>")
			writeCell(b, n)
			b.WriteString("<br>")
		case atom.Li:
			b.WriteString("<br>• ")
			writeCell(b, n)
		case atom.Script, atom.Style:
		case atom.Strong, atom.B, atom.Em, atom.I, atom.Code:
			var inner strings.Builder
			writeCell(&inner, n)
			if text := strings.TrimSpace(inner.String()); text != "" {
				b.WriteString(emphasis[n.DataAtom] + text + emphasis[n.DataAtom])
			}
		default:
			if n.Type == html.TextNode {
				b.WriteString(starItem.ReplaceAllString(escape.Replace(n.Data), "<br>• "))
			}
			writeCell(b, n)
		}
	}
}

var escape = strings.NewReplacer("|", `\|`, "<", "&lt;")
