package parse

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
)

// parseDOCX writes the paragraphs of a Word document. Deleted revisions and comments are left
// out; a footnote follows the paragraph that refers to it.
func parseDOCX(p *parser) error {
	a := p.archive
	data, err := a.need("word/document.xml")
	if err != nil {
		return err
	}
	d := &docx{p: p, f: &flow{b: p.b}}
	if err := a.coreTitle("docProps/core.xml"); err != nil {
		return err
	}
	if d.levels, err = a.wordStyles(); err != nil {
		return err
	}
	if d.notes, err = a.wordNotes(); err != nil {
		return err
	}
	x, err := p.xml(data)
	if err != nil {
		return err
	}
	return d.body(x)
}

type docx struct {
	p      *parser
	f      *flow
	levels map[string]int    // of headings, by style
	notes  map[string]string // by kind and id
	held   []string          // texts of the paragraphs around a text box
}

func (d *docx) body(x *xmlReader) error {
	for {
		t, err := x.next()
		if errors.Is(err, io.EOF) || d.p.b.full {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := d.start(x, t); err != nil {
				return err
			}
		case xml.EndElement:
			d.end(t.Name.Local)
		}
	}
}

func (d *docx) start(x *xmlReader, s xml.StartElement) error {
	switch s.Name.Local {
	case "del", "moveFrom", "Fallback", "instrText", "delText", "rPr":
		return x.skip()
	case "t":
		text, err := x.text()
		d.f.text.WriteString(text)
		return err
	case "tab":
		d.f.text.WriteByte('\t')
	case "br", "cr":
		d.f.text.WriteByte('\n')
	case "noBreakHyphen":
		d.f.text.WriteByte('-')
	case "pPr":
		return d.properties(x)
	case "footnoteReference", "endnoteReference":
		d.f.note(d.notes[strings.TrimSuffix(s.Name.Local, "Reference")+attr(s, "id")])
	case "tbl":
		d.f.startTable()
	case "txbxContent":
		d.held = append(d.held, d.f.text.String())
		d.f.text.Reset()
	}
	return nil
}

func (d *docx) end(name string) {
	switch name {
	case "p":
		d.f.paragraph()
	case "tc":
		d.f.endCell()
	case "tr":
		d.f.endRow()
	case "tbl":
		d.f.endTable()
	case "txbxContent":
		if n := len(d.held); n > 0 {
			d.f.text.Reset()
			d.f.text.WriteString(d.held[n-1])
			d.held = d.held[:n-1]
		}
	}
}

// properties reads the style of a paragraph.
func (d *docx) properties(x *xmlReader) error {
	for depth := x.depth; x.depth >= depth; {
		t, err := x.next()
		if err != nil {
			return eofIsDamage(err)
		}
		s, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		switch s.Name.Local {
		case "pStyle":
			d.f.level = d.levels[attr(s, "val")]
		case "outlineLvl":
			if n, err := strconv.Atoi(attr(s, "val")); err == nil && n >= 0 && n < 9 {
				d.f.level = n + 1
			}
		case "numPr":
			d.f.item = d.f.level == 0
		}
	}
	return nil
}

// wordStyles returns the levels of the styles that are headings.
func (a *archive) wordStyles() (map[string]int, error) {
	levels := map[string]int{"Title": 1}
	for i := 1; i <= 9; i++ {
		levels["Heading"+strconv.Itoa(i)] = i
	}
	data, err := a.read("word/styles.xml")
	if err != nil || data == nil {
		return levels, err
	}
	x, err := a.p.xml(data)
	if err != nil {
		return nil, err
	}
	id := ""
	err = x.each(func(s xml.StartElement) error {
		switch s.Name.Local {
		case "style":
			id = attr(s, "styleId")
		case "name":
			rest, ok := strings.CutPrefix(strings.ToLower(attr(s, "val")), "heading ")
			if n, err := strconv.Atoi(rest); ok && err == nil && n > 0 && n < 10 {
				levels[id] = n
			}
		case "basedOn":
			if n := levels[attr(s, "val")]; n > 0 && levels[id] == 0 {
				levels[id] = n
			}
		case "outlineLvl":
			if n, err := strconv.Atoi(attr(s, "val")); err == nil && n >= 0 && n < 9 {
				levels[id] = n + 1
			}
		}
		return nil
	})
	return levels, err
}

// wordNotes returns the texts of footnotes and endnotes.
func (a *archive) wordNotes() (map[string]string, error) {
	notes := map[string]string{}
	for _, kind := range []string{"footnote", "endnote"} {
		data, err := a.read("word/" + kind + "s.xml")
		if err != nil {
			return nil, err
		}
		if data == nil {
			continue
		}
		x, err := a.p.xml(data)
		if err != nil {
			return nil, err
		}
		id, note := "", strings.Builder{}
		err = x.each(func(s xml.StartElement) error {
			switch s.Name.Local {
			case kind:
				notes[id] = note.String()
				id = kind + attr(s, "id")
				note.Reset()
			case "del":
				return x.skip()
			case "p":
				note.WriteByte(' ')
			case "t":
				text, err := x.text()
				note.WriteString(text)
				return err
			}
			return nil
		})
		notes[id] = note.String()
		if err != nil {
			return nil, err
		}
	}
	return notes, nil
}
