package parse

import (
	"cmp"
	"context"
	"strings"
	"time"
)

// Input is a file that is to be parsed.
type Input struct {
	Name         string // as the user named it; its extension refines the type of text
	DeclaredType string // media type that came with it, such as text/html; charset=gbk; "" = none
	Data         []byte
	Limits       Limits
	CacheDir     string // for compiled code of the PDF reader; private to this user; "" = none
}

// Limits bound what a file may be. Zero values are the defaults.
type Limits struct {
	Text     int           // code points of text, default 10,000,000
	Pages    int           // pages of a PDF, default 5,000
	Entries  int           // entries of an archive, default 2,000
	Unpacked int64         // bytes of an archive in all, default 200 MiB
	Ratio    int64         // unpacked to packed bytes, for entries above 1 MiB, default 200
	Depth    int           // nesting of XML, HTML and JSON, default 512
	Time     time.Duration // running time of a child process, default 120 s
	Memory   int64         // bytes of a child process, default 512 MiB
}

func (l Limits) withDefaults() Limits {
	l.Text = cmp.Or(l.Text, 10_000_000)
	l.Pages = cmp.Or(l.Pages, 5000)
	l.Entries = cmp.Or(l.Entries, 2000)
	l.Unpacked = cmp.Or(l.Unpacked, 200<<20)
	l.Ratio = cmp.Or(l.Ratio, 200)
	l.Depth = cmp.Or(l.Depth, 512)
	l.Time = cmp.Or(l.Time, 120*time.Second)
	l.Memory = cmp.Or(l.Memory, 512<<20)
	return l
}

// Codes of Error.
const (
	EmptyDocument         = "empty_document"
	UnsupportedType       = "unsupported_media_type"
	DamagedFile           = "damaged_file"
	EncryptedDocument     = "encrypted_document"
	NoTextLayer           = "no_text_layer"
	UndecodableText       = "undecodable_text"
	ArchiveTooLarge       = "archive_too_large"
	ArchiveTooManyEntries = "archive_too_many_entries"
	TextTooLong           = "text_too_long"
	TooManyPages          = "too_many_pages"
	ParseTimeout          = "parse_timeout"
)

func fail(code, detail string) *Error { return &Error{Code: code, Detail: detail} }

// Parse parses a file in this process. Text takes time linear in its length; a hostile PDF or
// archive may take long or much memory, so foreign files go through a Child.
//
// Errors: *Error for what is wrong with the file, and those of ctx.
func Parse(ctx context.Context, in Input) (doc *Document, err error) {
	in.Limits = in.Limits.withDefaults()
	defer func() {
		if recover() != nil {
			doc, err = nil, fail(DamagedFile, "the parser failed on this file")
		}
	}()
	p := &parser{ctx: ctx, in: in, b: newBuilder(in.Limits.Text)}
	if err := p.run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return p.finish()
}

// parser is one call of Parse.
type parser struct {
	ctx      context.Context
	in       Input
	b        *builder
	typ      string
	archive  *archive // nil for a type that is none
	warnings []string
}

// format is what parses a type, and its version. A version is raised when the text of a file
// would come out otherwise than before.
type format struct {
	version string
	text    func(p *parser, text string) error // for a type that is text
	binary  func(p *parser) error              // for a type that is not
}

var parsers = map[string]format{
	"text":     {version: "2", text: parseText},
	"markdown": {version: "2", text: parseMarkdown},
	"html":     {version: "2", text: parseHTML},
	"code":     {version: "2", text: parseCode},
	"csv":      {version: "2", text: parseCSV},
	"json":     {version: "2", text: parseJSON},
	"yaml":     {version: "2", text: parseYAML},
	"docx":     {version: "2", binary: parseDOCX},
	"odt":      {version: "2", binary: parseODT},
	"epub":     {version: "2", binary: parseEPUB},
	"xlsx":     {version: "2", binary: parseXLSX},
	"pptx":     {version: "2", binary: parsePPTX},
	"pdf":      {version: "2", binary: parsePDF},
}

func (p *parser) run() error {
	found, err := p.detect()
	if err != nil {
		return err
	}
	p.typ = found.typ
	if found.mismatch {
		p.warn("type_mismatch:" + found.typ)
	}
	how := parsers[found.typ]
	if how.binary == nil && how.text == nil {
		return fail(UnsupportedType, "files of type "+found.typ+" are not supported")
	}
	if how.binary != nil {
		return how.binary(p)
	}
	return how.text(p, found.text)
}

// plainly parses text as plain text, since it is not of the type it claims to be.
func (p *parser) plainly(text, warning string) error {
	p.b = newBuilder(p.in.Limits.Text)
	p.warn(warning)
	p.typ = "text"
	return parseText(p, text)
}

func (p *parser) warn(code string) { p.warnings = append(p.warnings, code) }

func (p *parser) finish() (*Document, error) {
	if p.b.full {
		return nil, fail(TextTooLong, "the text has more than "+count(p.in.Limits.Text)+" characters")
	}
	d := p.b.document()
	if strings.TrimSpace(d.Text) == "" {
		if p.typ == "pdf" {
			return nil, fail(NoTextLayer, "the PDF has no text: its pages are pictures, which would have to be recognised first")
		}
		return nil, fail(EmptyDocument, "the file has no text")
	}
	d.Type = p.typ
	d.Parser = p.typ + "/" + parsers[p.typ].version
	d.Language = language(d.Text)
	d.Warnings = p.warnings
	return d, nil
}
