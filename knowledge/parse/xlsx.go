package parse

import (
	"encoding/xml"
	"strconv"
	"strings"
	"time"
)

// parseXLSX writes the rows of each sheet, as those of a CSV file.
func parseXLSX(p *parser) error {
	a := p.archive
	w := &workbook{p: p, a: a}
	if err := w.load(); err != nil {
		return err
	}
	for _, s := range w.sheets {
		if p.b.full {
			return nil
		}
		if err := w.sheet(s); err != nil {
			return err
		}
	}
	return nil
}

type workbook struct {
	p      *parser
	a      *archive
	sheets []sheet
	shared []string
	dates  []bool // by the style of a cell
	days   int    // from the first day of the workbook's calendar to 1970-01-01
}

type sheet struct{ name, entry string }

func (w *workbook) load() error {
	if err := w.a.coreTitle("docProps/core.xml"); err != nil {
		return err
	}
	relations, err := w.a.relations("xl/workbook.xml")
	if err != nil {
		return err
	}
	data, err := w.a.need("xl/workbook.xml")
	if err != nil {
		return err
	}
	w.days = 25569
	err = w.p.eachElement(data, func(_ *xmlReader, s xml.StartElement) error {
		switch s.Name.Local {
		case "workbookPr":
			if v := attr(s, "date1904"); v == "1" || v == "true" {
				w.days = 24107
			}
		case "sheet":
			if r, ok := relations[relationID(s)]; ok {
				w.sheets = append(w.sheets, sheet{attr(s, "name"), r.target})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.strings(); err != nil {
		return err
	}
	return w.styles()
}

// relationID returns the attribute r:id, which is not the plain id.
func relationID(s xml.StartElement) string {
	for _, a := range s.Attr {
		if a.Name.Local == "id" && a.Name.Space != "" {
			return a.Value
		}
	}
	return ""
}

func (w *workbook) strings() error {
	text, first := strings.Builder{}, true
	err := w.a.elements("xl/sharedStrings.xml", func(x *xmlReader, s xml.StartElement) error {
		switch s.Name.Local {
		case "si":
			if !first {
				w.shared = append(w.shared, text.String())
			}
			first = false
			text.Reset()
		case "rPh": // how it is pronounced
			return x.skip()
		case "t":
			part, err := x.text()
			text.WriteString(part)
			return err
		}
		return nil
	})
	w.shared = append(w.shared, text.String())
	return err
}

// styles finds the formats that show a number as a date.
func (w *workbook) styles() error {
	custom := map[int]bool{}
	inside := false
	return w.a.elements("xl/styles.xml", func(_ *xmlReader, s xml.StartElement) error {
		switch s.Name.Local {
		case "numFmt":
			n, _ := strconv.Atoi(attr(s, "numFmtId"))
			custom[n] = isDateFormat(attr(s, "formatCode"))
		case "cellXfs":
			inside = true
		case "cellStyles", "dxfs":
			inside = false
		case "xf":
			if inside {
				n, _ := strconv.Atoi(attr(s, "numFmtId"))
				w.dates = append(w.dates, n >= 14 && n <= 22 || n >= 45 && n <= 47 || custom[n])
			}
		}
		return nil
	})
}

// errFull ends the reading of a sheet when the text is as long as it may be.
var errFull = fail(TextTooLong, "the text is too long")

func isDateFormat(code string) bool {
	plain, quoted := "", false
	for _, r := range strings.ToLower(code) {
		switch {
		case r == '"':
			quoted = !quoted
		case !quoted:
			plain += string(r)
		}
		if len(plain) > 100 {
			break
		}
	}
	return strings.ContainsAny(plain, "yd") && !strings.Contains(plain, "red") || strings.Contains(plain, "h:m") || strings.Contains(plain, "mm/")
}

func (w *workbook) sheet(s sheet) error {
	data, err := w.a.read(s.entry)
	if err != nil || data == nil {
		return err
	}
	b := w.p.b
	b.blank()
	start := b.n
	if name := oneLine(s.name, maxTitle); name != "" {
		b.write(name + "\n")
		b.heading(1, name, start)
	}
	rows := &rowWriter{b: b}
	row := []cell(nil)
	col := 0
	err = w.p.eachElement(data, func(x *xmlReader, el xml.StartElement) error {
		switch el.Name.Local {
		case "row":
			if b.full {
				return errFull
			}
			rows.add(row, "")
			row, col = nil, 0
		case "c":
			if n := column(attr(el, "r")); n >= 0 {
				col = n
			}
			text, err := w.cell(x, el)
			if text != "" {
				row = append(row, cell{col, text})
			}
			col++
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	rows.add(row, "")
	rows.finish()
	b.page(s.name, start)
	return nil
}

// column returns the number of a cell's column, from 0; -1 = it is not said.
func column(ref string) int {
	n := 0
	for _, c := range ref {
		if c < 'A' || c > 'Z' || n > 1<<20 {
			break
		}
		n = n*26 + int(c-'A') + 1
	}
	return n - 1
}

// cell reads what a cell shows.
func (w *workbook) cell(x *xmlReader, s xml.StartElement) (string, error) {
	var out strings.Builder
	err := x.inside(func(t xml.Token) error {
		el, _ := t.(xml.StartElement)
		switch el.Name.Local {
		case "f", "rPh":
			return x.skip()
		case "v", "t":
			text, err := x.text()
			out.WriteString(text)
			return err
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	value := out.String()
	switch attr(s, "t") {
	case "s":
		if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && n >= 0 && n < len(w.shared) {
			return w.shared[n], nil
		}
		return "", nil
	case "b":
		return map[string]string{"0": "FALSE", "1": "TRUE"}[value], nil
	case "", "n":
		return w.number(value, attr(s, "s")), nil
	}
	return value, nil
}

// number writes a number, or the date that it stands for.
func (w *workbook) number(value, style string) string {
	n, err := strconv.Atoi(style)
	if err != nil || n < 0 || n >= len(w.dates) || !w.dates[n] {
		return value
	}
	days, err := strconv.ParseFloat(value, 64)
	if err != nil || days < 0 || days > 3_000_000 {
		return value
	}
	at := time.Unix(0, 0).UTC().Add(0).AddDate(0, 0, int(days)-w.days).Add(time.Duration((days - float64(int(days))) * 86400 * float64(time.Second))).Round(time.Second)
	switch {
	case days < 1:
		return at.Format("15:04:05")
	case at.Hour() == 0 && at.Minute() == 0 && at.Second() == 0:
		return at.Format("2006-01-02")
	}
	return at.Format("2006-01-02 15:04:05")
}
