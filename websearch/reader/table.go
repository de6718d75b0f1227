package reader

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxColumns = 40
	maxRows    = 2000
	maxSpan    = 20  // rows or columns that one cell covers
	maxRepeat  = 60  // bytes; a longer text is not repeated in them
	maxCell    = 400 // weight; a larger cell is layout
)

// rows returns the rows of a table, without those of tables inside it.
func rows(table *html.Node) (all []*html.Node) {
	for n := range nodes(table) {
		if is(n, atom.Tr) && within(n, atom.Table) == table && len(all) < maxRows {
			all = append(all, n)
		}
	}
	return all
}

func cells(tr *html.Node) (all []*html.Node) {
	for n := tr.FirstChild; n != nil; n = n.NextSibling {
		if is(n, atom.Td, atom.Th) && len(all) < maxColumns {
			all = append(all, n)
		}
	}
	return all
}

// isData reports whether a table has data, and is not there to place things on the page.
func isData(table *html.Node) bool {
	if attr(table, "role") == "presentation" || attr(table, "role") == "none" {
		return false
	}
	for n := range nodes(table) {
		if is(n, atom.Table, atom.H1, atom.H2, atom.H3, atom.Ul, atom.Ol, atom.Pre, atom.Article, atom.Section) {
			return false
		}
	}
	broad, heads := 0, false
	for _, tr := range rows(table) {
		columns := cells(tr)
		for _, c := range columns {
			heads = heads || is(c, atom.Th)
			if weight(text(c)) > maxCell {
				return false
			}
		}
		if len(columns) > 1 {
			broad++
		}
	}
	return broad > 1 || broad > 0 && heads
}

// table writes a data table. Cells that cover several rows or columns are repeated, and
// the rows of a head are made one.
func (m *markdown) table(table *html.Node) {
	for n := range nodes(table) {
		if is(n, atom.Caption) {
			if t := m.cell(n); t != "" {
				m.write(t)
			}
			break
		}
	}
	grid, heads := m.grid(table)
	if len(grid) == 0 {
		return
	}
	columns := 0
	for _, row := range grid {
		columns = max(columns, len(row))
	}
	lines := []string{tableLine(joinHeads(grid[:max(heads, 1)], columns), columns)}
	lines = append(lines, "|"+strings.Repeat(" --- |", columns))
	for _, row := range grid[max(heads, 1):] {
		lines = append(lines, tableLine(row, columns))
	}
	m.write(strings.Join(lines, "\n"))
}

// grid returns the texts of a table with all spans filled in, without empty rows, and
// the number of rows that are its head.
func (m *markdown) grid(table *html.Node) (grid [][]string, heads int) {
	type open struct {
		rows int
		text string
	}
	covered := map[int]open{} // by column
	head := true
	for _, tr := range rows(table) {
		var row []string
		fill := func() {
			for c, ok := covered[len(row)]; ok && c.rows > 0 && len(row) < maxColumns; c, ok = covered[len(row)] {
				covered[len(row)] = open{c.rows - 1, c.text}
				row = append(row, c.text)
			}
		}
		onlyHeads := true
		for _, c := range cells(tr) {
			fill()
			onlyHeads = onlyHeads && is(c, atom.Th)
			t := m.cell(c)
			down, again := span(c, "rowspan"), t
			if len(t) > maxRepeat {
				again = ""
			}
			for i := range min(span(c, "colspan"), maxColumns-len(row)) {
				if i > 0 {
					t = again
				}
				covered[len(row)] = open{down - 1, again}
				row = append(row, t)
			}
		}
		fill()
		if strings.Join(row, "") == "" {
			continue
		}
		head = head && (onlyHeads || is(tr.Parent, atom.Thead))
		if head {
			heads++
		}
		grid = append(grid, row)
	}
	return grid, heads
}

func span(c *html.Node, key string) int {
	n, err := strconv.Atoi(attr(c, key))
	if err != nil || n < 1 {
		return 1
	}
	return min(n, maxSpan)
}

// joinHeads puts the rows of a head into one: "Train" above "R 101" is "Train R 101".
func joinHeads(rows [][]string, columns int) []string {
	head := make([]string, columns)
	for _, row := range rows {
		for i, t := range row {
			if t != "" && head[i] != t && !strings.HasSuffix(head[i], " "+t) {
				head[i] = strings.TrimSpace(head[i] + " " + t)
			}
		}
	}
	return head
}

func tableLine(row []string, columns int) string {
	var b strings.Builder
	b.WriteByte('|')
	for i := range columns {
		t := ""
		if i < len(row) {
			t = row[i]
		}
		b.WriteString(" " + t + " |")
	}
	return b.String()
}

// cell returns the kept text of a cell in one line.
func (m *markdown) cell(n *html.Node) string {
	inner := &markdown{kept: m.kept, number: map[*html.Node]int{}, code: -1}
	tour(n, func(n *html.Node) bool {
		if n.Type == html.ElementNode && (is(n, atom.Br) || !inline[n.DataAtom]) {
			inner.block = append(inner.block, ' ')
			return true
		}
		return inner.enter(n)
	}, func(n *html.Node) {
		if is(n, atom.Code, atom.Kbd, atom.Samp, atom.Tt) {
			inner.endCode()
		}
	})
	s := strings.Join(strings.Fields(string(inner.block)), " ")
	return strings.ReplaceAll(s, "|", `\|`)
}
