package parse

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// parseEPUB writes the chapters of a book in the order in which they are read.
func parseEPUB(p *parser) error {
	a := p.archive
	if data, err := a.read("META-INF/encryption.xml"); err != nil {
		return err
	} else if bytes.Contains(data, []byte("http://www.w3.org/2001/04/xmlenc#")) {
		return fail(EncryptedDocument, "the book is protected against copying")
	}
	e := &epub{p: p, a: a, titles: map[string]string{}}
	if err := e.contents(); err != nil {
		return err
	}
	if err := e.navigation(); err != nil {
		return err
	}
	for _, item := range e.spine {
		if p.b.full || p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if err := e.chapter(item); err != nil {
			return err
		}
	}
	return nil
}

type epub struct {
	p      *parser
	a      *archive
	spine  []string // names of entries
	nav    string   // entry with the table of contents, as a page
	ncx    string   // the same in the older form
	titles map[string]string
}

// contents reads the package document: which entries are chapters.
func (e *epub) contents() error {
	data, err := e.a.need("META-INF/container.xml")
	if err != nil {
		return err
	}
	root := ""
	err = e.p.eachElement(data, func(_ *xmlReader, s xml.StartElement) error {
		if s.Name.Local == "rootfile" && root == "" {
			root = path.Clean(attr(s, "full-path"))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if data, err = e.a.need(root); err != nil {
		return err
	}
	items := map[string]string{}
	return e.p.eachElement(data, func(x *xmlReader, s xml.StartElement) error {
		switch s.Name.Local {
		case "title":
			title, err := x.text()
			if e.p.b.title == "" {
				e.p.b.title = title
			}
			return err
		case "item":
			name := entryName(path.Dir(root), attr(s, "href"))
			items[attr(s, "id")] = name
			if strings.Contains(" "+attr(s, "properties")+" ", " nav ") {
				e.nav = name
			}
			if attr(s, "media-type") == "application/x-dtbncx+xml" {
				e.ncx = name
			}
		case "itemref":
			if name := items[attr(s, "idref")]; name != "" && len(e.spine) < e.p.in.Limits.Entries {
				e.spine = append(e.spine, name)
			}
		}
		return nil
	})
}

// entryName resolves a reference that may have escapes and a fragment.
func entryName(dir, href string) string {
	href, _, _ = strings.Cut(href, "#")
	if plain, err := url.PathUnescape(href); err == nil {
		href = plain
	}
	return target(dir, href)
}

// navigation reads the titles of the chapters.
func (e *epub) navigation() error {
	if e.nav != "" {
		data, err := e.a.read(e.nav)
		if err != nil {
			return err
		}
		root, err := html.Parse(bytes.NewReader(data))
		if err != nil {
			return nil //nolint:nilerr // the chapters stay without titles
		}
		for n := range root.Descendants() {
			if n.DataAtom == atom.A {
				e.named(entryName(path.Dir(e.nav), attribute(n, "href")), textOf(n))
			}
		}
		return nil
	}
	title := ""
	return e.a.elements(e.ncx, func(x *xmlReader, s xml.StartElement) (err error) {
		switch s.Name.Local {
		case "text":
			title, err = x.text()
		case "content":
			e.named(entryName(path.Dir(e.ncx), attr(s, "src")), title)
		}
		return err
	})
}

func (e *epub) named(entry, title string) {
	if e.titles[entry] == "" {
		e.titles[entry] = title
	}
}

func (e *epub) chapter(entry string) error {
	if entry == e.nav { // the table of contents is in the headings
		return nil
	}
	data, err := e.a.read(entry)
	if err != nil || data == nil {
		return err
	}
	text, err2 := decode(data, "")
	if err2 != nil {
		return err2
	}
	b := e.p.b
	b.blank()
	start, headings := b.n, len(b.outline)
	if err := (&htmlWriter{p: e.p, b: b}).document(clean(text), false); err != nil {
		return err
	}
	title := e.titles[entry]
	if title == "" && len(b.outline) > headings {
		title = b.outline[headings].Title
	}
	if len(b.outline) == headings && b.n > start {
		b.heading(1, title, start)
	}
	if b.n > start {
		b.page(title, start)
	}
	return nil
}
