package parse

import "strings"

// flow writes the paragraphs and tables of a word processor.
type flow struct {
	b *builder

	text  strings.Builder // the paragraph
	level int             // level of the heading that the paragraph is; 0 = none
	item  bool            // the paragraph is an item of a list
	notes []string        // footnotes of the paragraph

	tables int      // depth
	cells  []string // cells of the row
	cell   strings.Builder
	start  int // where the table begins
	header string
	rows   int
}

// paragraph ends a paragraph.
func (f *flow) paragraph() {
	text := strings.TrimSpace(clean(f.text.String()))
	f.text.Reset()
	level, item, notes := f.level, f.item, f.notes
	f.level, f.item, f.notes = 0, false, nil
	if f.tables > 0 {
		if f.cell.Len() > 0 && text != "" {
			f.cell.WriteByte(' ')
		}
		f.cell.WriteString(text)
		for _, n := range notes {
			f.cell.WriteString(" [" + n + "]")
		}
		if f.cell.Len() > 4*f.b.limit {
			f.b.full = true
		}
		return
	}
	if text != "" {
		if item {
			f.b.newline()
		} else {
			f.b.blank()
		}
		if level > 0 {
			f.b.heading(level, text, f.b.n)
		}
		f.b.write(text + "\n")
	}
	for _, n := range notes {
		f.b.write("[" + n + "]\n")
	}
}

// note adds a footnote to the paragraph.
func (f *flow) note(text string) {
	const most = 1000 // in a paragraph; many may refer to one long note
	if text = strings.TrimSpace(clean(text)); text != "" && len(f.notes) < most {
		f.notes = append(f.notes, text)
	}
}

func (f *flow) startTable() {
	if f.tables++; f.tables == 1 {
		f.b.blank()
		f.start, f.header, f.rows, f.cells = f.b.n, "", 0, nil
		f.cell.Reset()
	}
}

func (f *flow) endCell() {
	if f.tables == 1 {
		f.cells = append(f.cells, strings.Join(strings.Fields(f.cell.String()), " "))
		f.cell.Reset()
	}
}

func (f *flow) endRow() {
	if f.tables != 1 {
		return
	}
	line := strings.Join(f.cells, " | ")
	f.cells = nil
	if strings.Trim(line, "| ") == "" {
		return
	}
	if f.rows++; f.rows == 1 {
		f.header = line
	}
	f.b.write(line + "\n")
}

func (f *flow) endTable() {
	if f.tables == 0 {
		return
	}
	if f.tables--; f.tables == 0 && f.rows > 1 {
		f.b.unit(Unit{Kind: "table", Start: f.start, Header: f.header})
	}
}
