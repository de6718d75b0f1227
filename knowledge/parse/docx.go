package parse

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// parseDOCX writes the paragraphs of a Word document. Deleted revisions, comments, hidden text
// and the readings above ruby are left out; a footnote follows the paragraph that refers to it.
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
	if d.styles, err = a.wordStyles(); err != nil {
		return err
	}
	if d.notes, err = a.wordNotes(d.styles); err != nil {
		return err
	}
	x, err := p.xml(data)
	if err != nil {
		return err
	}
	return x.walk(func(t xml.Token) (err error) {
		switch t := t.(type) {
		case xml.StartElement:
			err = d.start(x, t)
		case xml.EndElement:
			d.end(t.Name.Local)
		}
		return err
	})
}

type docx struct {
	p      *parser
	f      *flow
	styles wordStyles
	notes  map[string]string // by kind and id
	held   []string          // texts of the paragraphs around a text box
	unseen bool              // the style of the paragraph hides its text
	run    bool              // the text of the run is hidden
}

// wordStyles are the styles of a document, by their id.
type wordStyles struct {
	levels map[string]int // levels of headings
	unseen map[string]bool
}

func (d *docx) start(x *xmlReader, s xml.StartElement) error {
	switch s.Name.Local {
	case "del", "moveFrom", "Fallback", "instrText", "delText", "rt":
		return x.skip()
	case "r":
		d.run = d.unseen
	case "rPr":
		hides, err := d.styles.hide(x, d.unseen)
		d.run = hides
		return err
	case "t":
		text, err := x.text()
		if !d.run {
			d.f.text.WriteString(text)
		}
		return err
	case "oMath":
		text, err := x.formula()
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
		if d.run {
			return nil
		}
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
		d.unseen = false
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
	return x.inside(func(t xml.Token) error {
		s, _ := t.(xml.StartElement)
		switch s.Name.Local {
		case "pStyle":
			d.f.level = d.styles.levels[attr(s, "val")]
			d.unseen = d.styles.unseen[attr(s, "val")]
		case "outlineLvl":
			if n := outlineLevel(attr(s, "val"), 1); n > 0 {
				d.f.level = n
			}
		case "numPr":
			d.f.item = d.f.level == 0
		}
		return nil
	})
}

// hide reads the properties of a run and reports whether its text is hidden; so is that of
// its paragraph.
func (w wordStyles) hide(x *xmlReader, paragraph bool) (bool, error) {
	hides := paragraph
	err := x.inside(func(t xml.Token) error {
		s, _ := t.(xml.StartElement)
		switch s.Name.Local {
		case "rStyle":
			hides = hides || w.unseen[attr(s, "val")]
		case "vanish":
			hides = isOn(s)
		case "rPrChange": // properties before a revision
			return x.skip()
		}
		return nil
	})
	return hides, err
}

// isOn reads a property that is on unless it says otherwise.
func isOn(s xml.StartElement) bool {
	switch attr(s, "val") {
	case "0", "false", "off":
		return false
	}
	return true
}

// wordStyles returns the styles that are headings, and those of hidden text.
func (a *archive) wordStyles() (wordStyles, error) {
	levels := map[string]int{"Title": 1}
	styles := wordStyles{levels, map[string]bool{}}
	for i := 1; i <= 9; i++ {
		levels["Heading"+strconv.Itoa(i)] = i
	}
	id := ""
	err := a.elements("word/styles.xml", func(_ *xmlReader, s xml.StartElement) error {
		switch s.Name.Local {
		case "style":
			id = attr(s, "styleId")
		case "name":
			if rest, ok := strings.CutPrefix(strings.ToLower(attr(s, "val")), "heading "); ok {
				levels[id] = max(levels[id], outlineLevel(rest, 0))
			}
		case "basedOn":
			if n := levels[attr(s, "val")]; n > 0 && levels[id] == 0 {
				levels[id] = n
			}
			styles.unseen[id] = styles.unseen[attr(s, "val")]
		case "vanish":
			styles.unseen[id] = isOn(s)
		case "outlineLvl":
			levels[id] = max(levels[id], outlineLevel(attr(s, "val"), 1))
		}
		return nil
	})
	return styles, err
}

// outlineLevel reads a level, plus what it counts from; 0 = none.
func outlineLevel(s string, plus int) int {
	n, err := strconv.Atoi(s)
	if n += plus; err != nil || n < 1 || n > 9 {
		return 0
	}
	return n
}

// wordNotes returns the texts of footnotes and endnotes.
func (a *archive) wordNotes(styles wordStyles) (map[string]string, error) {
	notes := map[string]string{}
	for _, kind := range []string{"footnote", "endnote"} {
		id, note, unseen := "", strings.Builder{}, false
		err := a.elements("word/"+kind+"s.xml", func(x *xmlReader, s xml.StartElement) (err error) {
			switch s.Name.Local {
			case kind:
				notes[id] = note.String()
				id = kind + attr(s, "id")
				note.Reset()
			case "del", "rt":
				return x.skip()
			case "p":
				note.WriteByte(' ')
			case "r":
				unseen = false
			case "rPr":
				unseen, err = styles.hide(x, false)
			case "t":
				var text string
				if text, err = x.text(); !unseen {
					note.WriteString(text)
				}
			}
			return err
		})
		notes[id] = note.String()
		if err != nil {
			return nil, err
		}
	}
	return notes, nil
}
