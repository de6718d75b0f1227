package parse

import (
	"archive/zip"
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// zipFile makes an archive of entries, in the order of their names but mimetype first.
func zipFile(entries map[string]string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return names[i] == "mimetype" || names[j] != "mimetype" && names[i] < names[j] })
	for _, name := range names {
		e, _ := w.Create(name)
		e.Write([]byte(entries[name]))
	}
	w.Close()
	return out.Bytes()
}

const wordStylesXML = `<w:styles xmlns:w="w"><w:style w:styleId="h2"><w:name w:val="heading 2"/></w:style><w:style w:styleId="mine"><w:name w:val="Mine"/><w:basedOn w:val="h2"/></w:style></w:styles>`

func wordXML(body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="w" xmlns:mc="mc"><w:body>` + body + `</w:body></w:document>`
}

func docxFile(body string) []byte {
	return zipFile(map[string]string{
		"word/document.xml": wordXML(body), "word/styles.xml": wordStylesXML,
		"word/footnotes.xml": `<w:footnotes xmlns:w="w"><w:footnote w:id="2"><w:p><w:r><w:t>a note</w:t></w:r></w:p></w:footnote></w:footnotes>`,
		"docProps/core.xml":  `<cp xmlns:dc="dc"><dc:title>The Title</dc:title></cp>`,
	})
}

func odtFile(body string) []byte {
	return zipFile(map[string]string{
		"mimetype":    "application/vnd.oasis.opendocument.text",
		"content.xml": `<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="tb"><office:body><office:text>` + body + `</office:text></office:body></office:document-content>`,
	})
}

func epubFile(chapters ...string) []byte {
	entries := map[string]string{
		"mimetype":               "application/epub+zip",
		"META-INF/container.xml": `<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>`,
	}
	manifest, spine, points := "", "", ""
	for i, c := range chapters {
		manifest += fmt.Sprintf(`<item id="c%d" href="c%d.xhtml" media-type="application/xhtml+xml"/>`, i, i)
		// The order of reading is that of the spine, not of the names.
		spine = fmt.Sprintf(`<itemref idref="c%d"/>`, i) + spine
		points += fmt.Sprintf(`<navPoint><navLabel><text>Point %d</text></navLabel><content src="c%d.xhtml#x"/></navPoint>`, i, i)
		entries[fmt.Sprintf("OPS/c%d.xhtml", i)] = `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>` + c + `</body></html>`
	}
	entries["OPS/toc.ncx"] = `<ncx><navMap>` + points + `</navMap></ncx>`
	entries["OPS/book.opf"] = `<package><metadata xmlns:dc="dc"><dc:title>A Book</dc:title></metadata><manifest>` + manifest +
		`<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest><spine>` + spine + `</spine></package>`
	return zipFile(entries)
}

func xlsxFile(rows string) []byte {
	return zipFile(map[string]string{
		"xl/workbook.xml":            `<workbook xmlns:r="r"><sheets><sheet name="Stock" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="rId1" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
		"xl/sharedStrings.xml":       `<sst><si><t>Item</t></si><si><r><t>Prie</t></r><r><t>s</t></r></si><si><t>lamp</t><rPh><t>no</t></rPh></si></sst>`,
		"xl/styles.xml":              `<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
		"xl/worksheets/sheet1.xml":   `<worksheet><sheetData>` + rows + `</sheetData></worksheet>`,
	})
}

func pptxFile() []byte {
	slide := func(title, text string) string {
		return `<p:sld xmlns:p="p" xmlns:a="a"><p:sp><p:nvPr><p:ph type="title"/></p:nvPr><a:p><a:r><a:t>` + title + `</a:t></a:r></a:p></p:sp>` +
			`<p:sp><a:p><a:r><a:t>` + text + `</a:t></a:r></a:p></p:sp></p:sld>`
	}
	return zipFile(map[string]string{
		"ppt/presentation.xml":             `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId id="256" r:id="rId2"/><p:sldId id="257" r:id="rId1"/></p:sldIdLst></p:presentation>`,
		"ppt/_rels/presentation.xml.rels":  `<Relationships><Relationship Id="rId1" Target="slides/slide1.xml"/><Relationship Id="rId2" Target="slides/slide2.xml"/></Relationships>`,
		"ppt/slides/slide1.xml":            slide("Second", "later"),
		"ppt/slides/slide2.xml":            slide("First", "earlier"),
		"ppt/slides/_rels/slide2.xml.rels": `<Relationships><Relationship Id="rId1" Type="x/notesSlide" Target="../notesSlides/n.xml"/></Relationships>`,
		"ppt/notesSlides/n.xml":            `<p:notes xmlns:p="p" xmlns:a="a"><p:sp><a:p><a:r><a:t>say hello</a:t></a:r></a:p></p:sp></p:notes>`,
	})
}

// pdfFile makes a PDF with a page for each text; a newline in it begins a line.
func pdfFile(pages ...string) []byte {
	var out bytes.Buffer
	var offsets []int
	object := func(s string) {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), s)
	}
	out.WriteString("%PDF-1.4\n")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
	}
	object("<</Type/Catalog/Pages 2 0 R>>")
	object(fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", len(pages), kids))
	object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	for i, text := range pages {
		object(fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>", 5+2*i))
		content := "BT /F1 12 Tf 14 TL 20 700 Td "
		for line := range strings.SplitSeq(text, "\n") {
			content += "(" + line + ") Tj T* "
		}
		content += "ET"
		object(fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(content), content))
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&out, "trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return out.Bytes()
}
