package parse

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

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
	x, err := p.xml(data)
	if err != nil {
		return err
	}
	var slides []string
	err = x.each(func(s xml.StartElement) error {
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
	f := &flow{b: a.p.b}
	kind := "" // of the placeholder
	for {
		t, err := x.next()
		if errors.Is(err, io.EOF) || a.p.b.full {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "sp":
				kind = ""
			case "ph":
				kind = attr(t, "type")
			case "t":
				text, err := x.text()
				if err != nil {
					return err
				}
				if kind != "sldNum" && kind != "dt" && kind != "ftr" {
					f.text.WriteString(text)
				}
			case "br":
				f.text.WriteByte('\n')
			case "tbl":
				f.startTable()
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "p":
				if f.item = true; slide && strings.HasSuffix(strings.ToLower(kind), "title") && kind != "subTitle" {
					f.level = 1
				}
				f.paragraph()
			case "tc":
				f.endCell()
			case "tr":
				f.endRow()
			case "tbl":
				f.endTable()
			}
		}
	}
}
