package parse

import (
	"errors"
	"io"
	"math"

	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// pdfMemory is the most memory that PDFium may use, in bytes.
const pdfMemory = 384 << 20

// parsePDF writes the text of a PDF page by page. PDFium runs in a WebAssembly sandbox without
// files, network or clock.
func parsePDF(p *parser) error {
	pool, err := openPDFium(p)
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }() // the text is read by then
	reader, err := pool.GetInstanceWithContext(p.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	doc, err := reader.OpenDocument(&requests.OpenDocument{File: &p.in.Data})
	switch {
	case errors.Is(err, pdferrors.ErrPassword) || errors.Is(err, pdferrors.ErrSecurity):
		return fail(EncryptedDocument, "the document is protected by a password")
	case err != nil:
		return fail(DamagedFile, "the PDF cannot be opened")
	}
	r := &pdfReader{p: p, reader: reader, doc: doc.Document}
	if err := r.pages(); err != nil {
		return err
	}
	r.write()
	return p.ctx.Err()
}

// openPDFium compiles PDFium, or loads it from the cache.
func openPDFium(p *parser) (pdfium.Pool, error) {
	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(uint32(min(p.in.Limits.Memory*3/4, pdfMemory) >> 16))
	if p.in.CacheDir != "" {
		pool, _ := codeCache{p.in.CacheDir}.open(func(cache wazero.CompilationCache) (pdfium.Pool, error) {
			return newPDFium(p, config.WithCompilationCache(cache))
		})
		if pool != nil {
			return pool, nil
		}
	}
	return newPDFium(p, config) // without a cache, which may not be writable
}

func newPDFium(p *parser, config wazero.RuntimeConfig) (pdfium.Pool, error) {
	return webassembly.Init(webassembly.Config{
		Context: p.ctx, MaxIdle: 1, MaxTotal: 1, RuntimeConfig: config,
		FSConfig: wazero.NewFSConfig(), // no files
		Stdout:   io.Discard, Stderr: io.Discard,
	})
}

type pdfReader struct {
	p      *parser
	reader pdfium.Pdfium
	doc    references.FPDF_DOCUMENT

	texts [][]pdfLine // lines of each page
}

// pages reads the text of all pages.
func (r *pdfReader) pages() error {
	n, err := r.reader.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: r.doc})
	if err != nil || n.PageCount <= 0 {
		return fail(DamagedFile, "the PDF has no pages")
	}
	const smallest = 8 // bytes of a page in a compressed file
	total := n.PageCount
	lies := total > len(r.p.in.Data)/smallest
	if total > r.p.in.Limits.Pages && !lies {
		return fail(TooManyPages, "the PDF has "+count(total)+" pages, limit "+count(r.p.in.Limits.Pages))
	}
	failed, length := 0, 0
	for i := range min(total, r.p.in.Limits.Pages) {
		if r.p.ctx.Err() != nil {
			return r.p.ctx.Err()
		}
		page := requests.Page{ByIndex: &requests.PageByIndex{Document: r.doc, Index: i}}
		text, err := r.reader.GetPageText(&requests.GetPageText{Page: page})
		if err != nil {
			if failed++; lies || failed > 100 && failed > i/2 {
				break
			}
			r.texts = append(r.texts, nil)
			continue
		}
		if length += len(text.Text); length/4 > r.p.in.Limits.Text {
			r.p.b.full = true
			return nil
		}
		r.texts = append(r.texts, pdfLines(text.Text))
	}
	return r.damage(failed, lies)
}

// damage warns of pages that could not be read, and fails if there are no others.
func (r *pdfReader) damage(failed int, lies bool) error {
	if failed > 0 || lies {
		r.p.warn("damaged_pdf")
	}
	if failed >= len(r.texts) && failed > 0 {
		return fail(DamagedFile, "no page of the PDF can be read")
	}
	return nil
}

// write writes the pages without running heads, and the headings of the table of contents.
func (r *pdfReader) write() {
	b := r.p.b
	meta, err := r.reader.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: r.doc, Tag: "Title"})
	if err == nil {
		b.title = meta.Value
	}
	heads := runningHeads(r.texts)
	for _, lines := range r.texts {
		b.newline()
		start := b.n
		b.write(joinLines(withoutHeads(lines, heads)))
		b.page("", start)
	}
	if b.n == 0 || b.full {
		return
	}
	f := newFinder(b)
	for _, m := range r.bookmarks() {
		b.heading(m.level, m.title, f.find(m.title, m.page))
	}
}

type bookmark struct {
	title string
	level int
	page  int // from 0
}

// bookmarks reads the table of contents that the file has for viewers. It may be a graph with
// circles; the number of steps ends them.
func (r *pdfReader) bookmarks() []bookmark {
	const most, deepest = 2000, 6
	var out []bookmark
	var walk func(parent *references.FPDF_BOOKMARK, level int)
	walk = func(parent *references.FPDF_BOOKMARK, level int) {
		first, err := r.reader.FPDFBookmark_GetFirstChild(&requests.FPDFBookmark_GetFirstChild{Document: r.doc, Bookmark: parent})
		if err != nil {
			return
		}
		for at := first.Bookmark; at != nil && len(out) < most && r.p.ctx.Err() == nil; {
			title, err := r.reader.FPDFBookmark_GetTitle(&requests.FPDFBookmark_GetTitle{Bookmark: *at})
			if err != nil {
				return
			}
			out = append(out, bookmark{title.Title, level, r.pageOf(*at)})
			if level < deepest {
				walk(at, level+1)
			}
			next, err := r.reader.FPDFBookmark_GetNextSibling(&requests.FPDFBookmark_GetNextSibling{Document: r.doc, Bookmark: *at})
			if err != nil {
				return
			}
			at = next.Bookmark
		}
	}
	walk(nil, 1)
	return out
}

// pageOf returns the page that a bookmark leads to; -1 = none.
func (r *pdfReader) pageOf(b references.FPDF_BOOKMARK) int {
	var dest *references.FPDF_DEST
	if d, err := r.reader.FPDFBookmark_GetDest(&requests.FPDFBookmark_GetDest{Document: r.doc, Bookmark: b}); err == nil {
		dest = d.Dest
	}
	if dest == nil {
		a, err := r.reader.FPDFBookmark_GetAction(&requests.FPDFBookmark_GetAction{Bookmark: b})
		if err != nil || a.Action == nil {
			return -1
		}
		d, err := r.reader.FPDFAction_GetDest(&requests.FPDFAction_GetDest{Document: r.doc, Action: *a.Action})
		if err != nil || d.Dest == nil {
			return -1
		}
		dest = d.Dest
	}
	i, err := r.reader.FPDFDest_GetDestPageIndex(&requests.FPDFDest_GetDestPageIndex{Document: r.doc, Dest: *dest})
	if err != nil || i.Index < 0 || i.Index > math.MaxInt32 {
		return -1
	}
	return i.Index
}
