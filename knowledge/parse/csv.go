package parse

import (
	"strconv"
	"strings"
)

// parseCSV writes for each row a line "header: value; …", and the row as it is in the file, so
// that it can be found and quoted in the form that its owner knows.
func parseCSV(p *parser, text string) error {
	delimiter := sniffDelimiter(text)
	rows := &csvReader{text: text, delimiter: delimiter}
	w := &rowWriter{b: p.b, raw: true}
	for n := 0; ; n++ {
		row, raw, ok := rows.next()
		if !ok {
			break
		}
		if n%1024 == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if w.add(cells(row), raw); p.b.full {
			return nil
		}
	}
	if rows.broken {
		return p.plainly(text, "invalid_csv")
	}
	w.finish()
	return nil
}

// csvReader reads rows in time linear in the text. It accepts quotes within a field, and rows
// of any length.
type csvReader struct {
	text      string
	delimiter byte
	broken    bool // a quote was never closed
}

// next returns the fields of the next row that has any, and its text.
func (r *csvReader) next() (row []string, raw string, ok bool) {
	for r.text != "" && !r.broken {
		rest := r.text
		row := r.row()
		for _, f := range row {
			if strings.TrimSpace(f) != "" {
				raw = strings.TrimRight(rest[:len(rest)-len(r.text)], "\n")
				return row, strings.ReplaceAll(raw, "\n", " "), true
			}
		}
	}
	return nil, "", false
}

func (r *csvReader) row() []string {
	var row []string
	for {
		field, more := r.field()
		row = append(row, field)
		if !more {
			return row
		}
	}
}

// field reads a field with what ends it; more says that another one follows in this row.
func (r *csvReader) field() (field string, more bool) {
	if strings.HasPrefix(r.text, `"`) {
		field = r.quoted()
	}
	i := strings.IndexAny(r.text, string(r.delimiter)+"\n")
	if i < 0 {
		field, r.text = field+r.text, ""
		return field, false
	}
	field += r.text[:i]
	more = r.text[i] == r.delimiter
	r.text = r.text[i+1:]
	return field, more
}

func (r *csvReader) quoted() string {
	var out strings.Builder
	rest := r.text[1:]
	for {
		i := strings.IndexByte(rest, '"')
		if i < 0 {
			r.broken = true
			r.text = ""
			return out.String()
		}
		out.WriteString(rest[:i])
		rest = rest[i+1:]
		if !strings.HasPrefix(rest, `"`) {
			r.text = rest
			return out.String()
		}
		out.WriteByte('"')
		rest = rest[1:]
	}
}

// sniffDelimiter returns the delimiter with which the first rows have the same number of
// fields, above one.
func sniffDelimiter(text string) byte {
	head := text[:min(len(text), 64<<10)]
	best, score := byte(','), 0
	for _, d := range []byte{',', ';', '\t', '|'} {
		r := &csvReader{text: head, delimiter: d}
		counts := map[int]int{}
		for range 20 {
			row, _, ok := r.next()
			if !ok {
				break
			}
			counts[len(row)]++
		}
		for fields, rows := range counts {
			if s := rows * min(fields-1, 8); fields > 1 && s > score {
				best, score = d, s
			}
		}
	}
	return best
}

// cell is a value with the number of its column, from 0.
type cell struct {
	col  int
	text string
}

func cells(row []string) []cell {
	out := make([]cell, len(row))
	for i, f := range row {
		out[i] = cell{i, f}
	}
	return out
}

// rowWriter writes the rows of a table, the first of which may be its header.
type rowWriter struct {
	b      *builder
	raw    bool // write the text of a row as well
	header map[int]string
	first  []cell // kept back until it is known to be no header
	rows   int
}

func (w *rowWriter) add(row []cell, raw string) {
	if len(row) == 0 {
		return
	}
	w.rows++
	if w.rows == 1 {
		if isHeader(row) {
			w.header = map[int]string{}
			for _, c := range row {
				w.header[c.col] = strings.Join(strings.Fields(clean(c.text)), " ")
			}
			w.first = row
			if w.raw {
				w.b.write(raw + "\n")
			}
			return
		}
	}
	w.write(row, raw)
	w.first = nil
}

// finish writes a header that no row follows.
func (w *rowWriter) finish() {
	if w.first != nil && !w.raw {
		w.header = nil
		w.write(w.first, "")
	}
}

func (w *rowWriter) write(row []cell, raw string) {
	start := w.b.n
	var line strings.Builder
	for _, c := range row {
		value := strings.Join(strings.Fields(clean(c.text)), " ")
		if value == "" {
			continue
		}
		if line.Len() > 0 {
			line.WriteString("; ")
		}
		if name := w.header[c.col]; name != "" {
			line.WriteString(name + ": ")
		}
		line.WriteString(value)
		if line.Len() > 4*w.b.limit { // cells may share one long string
			w.b.full = true
			return
		}
	}
	if line.Len() == 0 {
		return
	}
	w.b.write(line.String() + "\n")
	if w.raw && w.header != nil {
		w.b.write(raw + "\n")
	}
	w.b.unit(Unit{Kind: "row", Start: start})
}

// isHeader reports whether the first row names the columns: every field is filled, short,
// different and no number.
func isHeader(row []cell) bool {
	seen := map[string]bool{}
	for i, c := range row {
		f := strings.TrimSpace(c.text)
		_, err := strconv.ParseFloat(f, 64)
		if f == "" && i == 0 { // a column of row names
			continue
		}
		if f == "" || len(f) > 120 || err == nil || seen[f] {
			return false
		}
		seen[f] = true
	}
	return len(row) > 1
}
