package parse

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strings"
)

// archive is a zip archive whose entries are read within limits. Nothing is ever written, and
// names are only looked up.
type archive struct {
	p     *parser
	files map[string]*zip.File
	left  int64 // bytes that may still be unpacked
}

// openArchive reads the directory of an archive and checks what it says about its entries.
func (p *parser) openArchive() (*archive, *Error) {
	r, err := zip.NewReader(bytes.NewReader(p.in.Data), int64(len(p.in.Data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fail(DamagedFile, "the archive cannot be opened")
	}
	limits := p.in.Limits
	if len(r.File) > limits.Entries {
		return nil, fail(ArchiveTooManyEntries, "the archive has "+count(len(r.File))+" entries, limit "+count(limits.Entries))
	}
	a := &archive{p: p, files: make(map[string]*zip.File, len(r.File)), left: limits.Unpacked}
	total := uint64(0)
	for _, f := range r.File {
		if unsafeName(f.Name) {
			return nil, fail(DamagedFile, "an entry of the archive has a name that leads out of it")
		}
		if total += f.UncompressedSize64; total > uint64(limits.Unpacked) || f.UncompressedSize64 > uint64(limits.Unpacked) {
			return nil, tooLarge()
		}
		if f.UncompressedSize64 > 1<<20 && f.UncompressedSize64/max(f.CompressedSize64, 1) > uint64(limits.Ratio) {
			return nil, tooLarge()
		}
		if _, twice := a.files[f.Name]; !twice {
			a.files[f.Name] = f
		}
	}
	return a, nil
}

func tooLarge() *Error { return fail(ArchiveTooLarge, "the archive unpacks to more than is allowed") }

func unsafeName(name string) bool {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	return strings.HasPrefix(clean, "/") || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(name, 0)
}

func (a *archive) has(name string) bool { return a.files[name] != nil }

// read unpacks an entry; nil = there is none of this name.
func (a *archive) read(name string) ([]byte, error) {
	f := a.files[name]
	if f == nil {
		return nil, nil
	}
	if f.Flags&1 != 0 {
		return nil, fail(EncryptedDocument, "the document is protected by a password")
	}
	in, err := f.Open()
	if err != nil {
		return nil, fail(DamagedFile, "an entry of the archive cannot be read")
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, a.left+1))
	if a.left -= int64(len(data)); a.left < 0 {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, fail(DamagedFile, "an entry of the archive is damaged")
	}
	if n := int64(len(data)); n > 1<<20 && n/max(int64(f.CompressedSize64), 1) > a.p.in.Limits.Ratio {
		return nil, tooLarge()
	}
	return data, nil
}

// need unpacks an entry without which the document is damaged.
func (a *archive) need(name string) ([]byte, error) {
	data, err := a.read(name)
	if err == nil && data == nil {
		err = fail(DamagedFile, "the document has lost one of its parts")
	}
	return data, err
}

// archiveType returns what kind of document an archive is.
func (p *parser) archiveType() (string, *Error) {
	a, err := p.openArchive()
	if err != nil {
		return "", err
	}
	p.archive = a
	mimetype, _ := a.read("mimetype")
	switch kind := strings.TrimSpace(string(mimetype)); {
	case kind == "application/epub+zip" || a.has("META-INF/container.xml") && a.has("OEBPS/content.opf"):
		return "epub", nil
	case strings.HasPrefix(kind, "application/vnd.oasis.opendocument.text") && a.has("content.xml"):
		return "odt", nil
	case a.has("word/document.xml"):
		return "docx", nil
	case a.has("xl/workbook.xml"):
		return "xlsx", nil
	case a.has("ppt/presentation.xml"):
		return "pptx", nil
	}
	return "", fail(UnsupportedType, "the archive is no document that can be read")
}

// xmlReader reads XML without entities of its own, within a depth.
type xmlReader struct {
	p     *parser
	d     *xml.Decoder
	depth int
	n     int
}

func (p *parser) xml(data []byte) (*xmlReader, error) {
	var in io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		text, err := decode(data, "")
		if err != nil {
			return nil, err
		}
		in = strings.NewReader(text)
	}
	d := xml.NewDecoder(in)
	d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		if e := lookup(label); e != nil {
			return e.NewDecoder().Reader(in), nil
		}
		return in, nil
	}
	return &xmlReader{p: p, d: d}, nil
}

// next returns the next token; io.EOF = the end.
func (x *xmlReader) next() (xml.Token, error) {
	if x.n++; x.n%1024 == 0 && x.p.ctx.Err() != nil {
		return nil, x.p.ctx.Err()
	}
	t, err := x.d.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fail(DamagedFile, "a part of the document is not valid XML")
	}
	switch t := t.(type) {
	case xml.StartElement:
		if x.depth++; x.depth > x.p.in.Limits.Depth {
			return nil, fail(DamagedFile, "the elements of the document are nested too deeply")
		}
	case xml.EndElement:
		x.depth--
	case xml.Directive:
		if bytes.Contains(t, []byte("ENTITY")) || bytes.ContainsRune(t, '[') {
			return nil, fail(DamagedFile, "the document defines entities, which are not allowed")
		}
	}
	return t, nil
}

// walk calls f with each token, until the end or until no more text is wanted.
func (x *xmlReader) walk(f func(xml.Token) error) error {
	for {
		t, err := x.next()
		if errors.Is(err, io.EOF) || x.p.b.full {
			return nil
		}
		if err == nil {
			err = f(t)
		}
		if err != nil {
			return err
		}
	}
}

// eachElement calls f with the start of each element of data.
func (p *parser) eachElement(data []byte, f func(*xmlReader, xml.StartElement) error) error {
	x, err := p.xml(data)
	if err != nil {
		return err
	}
	for {
		t, err := x.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if s, ok := t.(xml.StartElement); ok && err == nil {
			err = f(x, s)
		}
		if err != nil {
			return err
		}
	}
}

// elements calls f with the start of each element of an entry, if it is there.
func (a *archive) elements(entry string, f func(*xmlReader, xml.StartElement) error) error {
	data, err := a.read(entry)
	if err != nil || data == nil {
		return err
	}
	return a.p.eachElement(data, f)
}

// inside calls f with each token up to the end of the element whose start was read last.
func (x *xmlReader) inside(f func(xml.Token) error) error {
	for depth := x.depth; x.depth >= depth; {
		t, err := x.next()
		if err == nil {
			err = f(t)
		}
		if err != nil {
			return eofIsDamage(err)
		}
	}
	return nil
}

// skip reads to the end of the element whose start was read last.
func (x *xmlReader) skip() error { return x.inside(func(xml.Token) error { return nil }) }

// text reads the text of the element whose start was read last.
func (x *xmlReader) text() (string, error) {
	var out strings.Builder
	err := x.inside(func(t xml.Token) error {
		if c, ok := t.(xml.CharData); ok {
			out.Write(c)
		}
		return nil
	})
	return out.String(), err
}

func eofIsDamage(err error) error {
	if errors.Is(err, io.EOF) {
		return fail(DamagedFile, "a part of the document breaks off")
	}
	return err
}

func attr(s xml.StartElement, name string) string {
	for _, a := range s.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// relations returns the targets of an Office part by their id, as names of entries.
func (a *archive) relations(part string) (map[string]relation, error) {
	dir, file := path.Split(part)
	out := map[string]relation{}
	err := a.elements(dir+"_rels/"+file+".rels", func(_ *xmlReader, s xml.StartElement) error {
		if s.Name.Local == "Relationship" && attr(s, "TargetMode") != "External" {
			out[attr(s, "Id")] = relation{path.Base(attr(s, "Type")), target(dir, attr(s, "Target"))}
		}
		return nil
	})
	return out, err
}

// relation leads from a part of an Office document to another one.
type relation struct{ kind, target string }

// target resolves the name of an entry that is given relative to a folder of the archive.
func target(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, "/"); ok {
		return path.Clean(rest)
	}
	return path.Join(dir, name)
}

// coreTitle sets the title that the properties of an Office document name.
func (a *archive) coreTitle(name string) error {
	return a.elements(name, func(x *xmlReader, s xml.StartElement) error {
		if s.Name.Local != "title" {
			return nil
		}
		title, err := x.text()
		if a.p.b.title == "" {
			a.p.b.title = title
		}
		return err
	})
}
