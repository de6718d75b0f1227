package parse

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// parseODT writes the paragraphs of an OpenDocument text, without deleted changes and comments.
func parseODT(p *parser) error {
	if data, err := p.archive.read("META-INF/manifest.xml"); err != nil {
		return err
	} else if strings.Contains(string(data), "encryption-data") {
		return fail(EncryptedDocument, "the document is protected by a password")
	}
	data, err := p.archive.need("content.xml")
	if err != nil {
		return err
	}
	if err := p.archive.coreTitle("meta.xml"); err != nil {
		return err
	}
	x, err := p.xml(data)
	if err != nil {
		return err
	}
	o := &odt{f: &flow{b: p.b}, unseen: map[string]bool{}}
	return x.walk(func(t xml.Token) error { return o.token(x, t) })
}

type odt struct {
	f      *flow
	style  string          // that is being read
	unseen map[string]bool // styles of hidden text
	body   bool
	open   int // paragraphs that are open: a frame may have some of its own
	lists  int
}

func (o *odt) token(x *xmlReader, t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		return o.start(x, t)
	case xml.EndElement:
		o.end(t.Name.Local)
	case xml.CharData:
		if o.open > 0 {
			o.f.text.WriteString(strings.Join(splitSpace(string(t)), " "))
		}
	}
	return nil
}

// splitSpace cuts at white space like strings.Fields, but keeps empty fields at both ends, so
// that joining the fields leaves a space there.
func splitSpace(s string) []string {
	fields := strings.Fields(s)
	if s != "" && strings.TrimLeft(s, " \t\n\r") != s {
		fields = append([]string{""}, fields...)
	}
	if len(fields) > 0 && strings.TrimRight(s, " \t\n\r") != s {
		fields = append(fields, "")
	}
	return fields
}

func (o *odt) start(x *xmlReader, s xml.StartElement) error {
	if o.leavesOut(s) {
		return x.skip()
	}
	switch s.Name.Local {
	case "text":
		o.body = true
	case "style":
		o.style = attr(s, "name")
	case "text-properties":
		o.unseen[o.style] = attr(s, "display") == "none"
	case "h", "p":
		o.open++
		if s.Name.Local == "h" {
			o.f.level, _ = strconv.Atoi(attr(s, "outline-level"))
			o.f.level = max(o.f.level, 1)
		}
		o.f.item = o.lists > 0
	case "s":
		n, _ := strconv.Atoi(attr(s, "c"))
		o.f.text.WriteString(strings.Repeat(" ", min(max(n, 1), 100)))
	case "tab":
		o.f.text.WriteByte('\t')
	case "line-break":
		o.f.text.WriteByte('\n')
	case "note":
		text, err := o.note(x)
		o.f.note(text)
		return err
	case "list":
		o.lists++
	case "table":
		o.f.startTable()
	}
	return nil
}

// leavesOut reports whether an element is no text that a reader sees in its place.
func (o *odt) leavesOut(s xml.StartElement) bool {
	switch s.Name.Local {
	case "tracked-changes", "annotation", "sequence-decls", "forms", "note-citation", "ruby-text":
		return true
	case "section", "hidden-text", "span", "h", "p":
		return attr(s, "display") == "none" || attr(s, "is-hidden") == "true" || o.unseen[attr(s, "style-name")]
	}
	return false
}

func (o *odt) end(name string) {
	switch name {
	case "h", "p":
		o.open--
		o.f.paragraph()
	case "list":
		o.lists--
	case "table":
		o.f.endTable()
	case "table-row":
		o.f.endRow()
	case "table-cell":
		o.f.endCell()
	}
}

// note reads a footnote without its number.
func (o *odt) note(x *xmlReader) (string, error) {
	var out strings.Builder
	err := x.inside(func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			if t.Name.Local == "note-citation" || t.Name.Local == "ruby-text" {
				return x.skip()
			}
		case xml.CharData:
			out.Write(t)
		}
		return nil
	})
	return strings.Join(strings.Fields(out.String()), " "), err
}
