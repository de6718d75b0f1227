package parse

import "encoding/xml"

// parsePPTX writes the slides of a presentation, each followed by its notes.
func parsePPTX(p *parser) error {
	a := p.archive
	if err := a.coreTitle("docProps/core.xml"); err != nil {
		return err
	}
	relations, err := a.relations("ppt/presentation.xml")
	if err != nil {
		return err
	}
	data, err := a.need("ppt/presentation.xml")
	if err != nil {
		return err
	}
	var slides []string
	err = p.eachElement(data, func(_ *xmlReader, s xml.StartElement) error {
		if s.Name.Local == "sldId" && len(slides) < p.in.Limits.Entries {
			slides = append(slides, relations[relationID(s)].target)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, slide := range slides {
		if p.b.full {
			return nil
		}
		if err := a.slide(slide); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) slide(entry string) error {
	b := a.p.b
	b.blank()
	start, headings := b.n, len(b.outline)
	if err := a.shapes(entry, true); err != nil {
		return err
	}
	relations, err := a.relations(entry)
	if err != nil {
		return err
	}
	for _, r := range relations {
		if r.kind == "notesSlide" {
			b.blank()
			if err := a.shapes(r.target, false); err != nil {
				return err
			}
		}
	}
	title := ""
	if len(b.outline) > headings {
		title = b.outline[headings].Title
	}
	b.page(title, start)
	return nil
}

// shapes writes the text of a slide, or of its notes without the picture of the slide.
func (a *archive) shapes(entry string, slide bool) error {
	data, err := a.read(entry)
	if err != nil || data == nil {
		return err
	}
	x, err := a.p.xml(data)
	if err != nil {
		return err
	}
	w := &shapeWriter{f: &flow{b: a.p.b}, slide: slide}
	return x.walk(func(t xml.Token) (err error) {
		switch t := t.(type) {
		case xml.StartElement:
			err = w.start(x, t)
		case xml.EndElement:
			w.end(t.Name.Local)
		}
		return err
	})
}

// shapeWriter writes the paragraphs and tables of a slide.
type shapeWriter struct {
	f     *flow
	slide bool
	kind  string // the placeholder's
}

func (w *shapeWriter) start(x *xmlReader, s xml.StartElement) error {
	switch s.Name.Local {
	case "sp":
		w.kind = ""
	case "ph":
		w.kind = attr(s, "type")
	case "t":
		text, err := x.text()
		if w.kind != "sldNum" && w.kind != "dt" && w.kind != "ftr" {
			w.f.text.WriteString(text)
		}
		return err
	case "oMath":
		text, err := x.formula()
		w.f.text.WriteString(text)
		return err
	case "br":
		w.f.text.WriteByte('\n')
	case "tbl":
		w.f.startTable()
	}
	return nil
}

func (w *shapeWriter) end(name string) {
	switch name {
	case "p":
		w.f.item = true
		if w.slide && (w.kind == "title" || w.kind == "ctrTitle") {
			w.f.level = 1
		}
		w.f.paragraph()
	case "tc":
		w.f.endCell()
	case "tr":
		w.f.endRow()
	case "tbl":
		w.f.endTable()
	}
}
