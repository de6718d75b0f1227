package parse

import (
	"strings"
	"testing"
)

// Words are found as a reader sees them: without the readings above them, without
// characters that only say where a line may break, and without hidden text.
func TestTextIsAsAReaderSeesIt(t *testing.T) {
	t.Parallel()
	const ruby = `<ruby>東<rp>（</rp><rt>とう</rt><rp>）</rp>京<rt>きょう</rt></ruby>と<ruby><rb>京</rb><rb>都</rb><rtc><rt>きょう</rt><rt>と</rt></rtc></ruby>`
	run := func(text string) string { return `<w:r><w:t>` + text + `</w:t></w:r>` }
	wordRuby := `<w:r><w:ruby><w:rubyPr/><w:rt>` + run("きょうと") + `</w:rt><w:rubyBase>` + run("京都") + `</w:rubyBase></w:ruby></w:r>`
	for _, c := range []struct{ name, file, data, text string }{
		{"ruby in HTML", "a.html", `<p>` + ruby + `へ行く。`, "東京と京都へ行く。"},
		{"ruby without end tags", "a.html", `<p><ruby>京<rt>きょう<rb>都<rt>と</ruby>へ`, "京都へ"},
		{"ruby in a heading and a cell", "a.html", `<h1>` + ruby + `</h1><table><tr><td>a<td>b<tr><td>` + ruby + `<td>c</table>`, "東京と京都\n\na | b\n東京と京都 | c"},
		{"ruby in a book", "a.epub", string(epubFile(`<h1>` + ruby + `</h1><p>` + ruby + `へ</p>`)), "東京と京都\n\n東京と京都へ"},
		{"ruby in Word", "a.docx", string(docxFile(`<w:p>` + run("私は") + wordRuby + run("へ") + `</w:p>`)), "私は京都へ"},
		{"ruby in OpenDocument", "a.odt", string(odtFile(`<text:p>私は<text:ruby><text:ruby-base>京都</text:ruby-base><text:ruby-text>きょうと</text:ruby-text></text:ruby>へ</text:p>`)), "私は京都へ"},
		{"ruby in Markdown", "a.md", "# " + ruby + "\n\n`<ruby>x<rt>y</rt></ruby>`\n", "# 東京と京都\n\n`<ruby>x<rt>y</rt></ruby>`"},
		{"readings in a sheet", "a.xlsx", string(xlsxFile(`<row><c r="A1" t="s"><v>2</v></c><c r="B1" t="inlineStr"><is><t>京都</t><rPh><t>きょうと</t></rPh></is></c></row>`)), "Stock\nlamp; 京都"},

		{"soft hyphens in HTML", "a.html", "<p>Donau&shy;dampf&#173;schiff und Wör\u2060ter, 京&ZeroWidthSpace;都", "Donaudampfschiff und Wörter, 京都"},
		{"soft hyphens in a book", "a.epub", string(epubFile("<p>Donau\u00addampf\u00adschiff</p>")), "Donaudampfschiff"},
		{"soft hyphens in Word", "a.docx", string(docxFile(`<w:p>` + run("Donau\u00addampf") + `<w:r><w:softHyphen/></w:r>` + run("schiff") + `</w:p>`)), "Donaudampfschiff"},
		{"soft hyphens in OpenDocument", "a.odt", string(odtFile("<text:p>Donau\u00addampf\u200bschiff</text:p>")), "Donaudampfschiff"},
		{"soft hyphens in plain text", "a.txt", "Donau\u00addampf\u2060schiff 京\u200b都 \ufeffend", "Donaudampfschiff 京都 end"},
		{"soft hyphens in Markdown", "a.md", "# Donau\u00addampfschiff\n", "# Donaudampfschiff"},
		{"soft hyphens in JSON", "a.json", `{"a":"Donau\u00addampfschiff"}`, "a: Donaudampfschiff"},
		{"soft hyphens in a table", "a.csv", "a,b\nDonau\u00addampf,schiff\n", "a,b\na: Donaudampf; b: schiff\nDonaudampf,schiff"},
		{"joiners of words and emoji stay", "a.html", "<p>می\u200cخواهم क्\u200dष 👨\u200d👩\u200d👧", "می\u200cخواهم क्\u200dष 👨\u200d👩\u200d👧"},

		{"hidden elements of HTML", "a.html", `<p>seen<span hidden> no</span><b style="color: red; Display : none"> no</b><i style="visibility:hidden"> no</i><u style="font-size:0px"> no</u>` +
			`<template>no</template><noscript>no</noscript><div hidden><p>no</div><dialog>no</dialog>`, "seen"},
		{"what only looks hidden", "a.html", `<p><span aria-hidden="true">seen</span> <span hidden="until-found">too</span> <span style="font-size:0.9em; background:url(x?display:none)">and this</span>`, "seen too and this"},
		{"hidden parts of a table and a heading", "a.html", `<h2>Head<span hidden> no</span></h2><table><tr><td>k<td>v<tr style="display:none"><td>no<td>no<tr><td>a<td hidden>no<td>b</table>`, "Head\n\nk | v\na | b"},
		{"hidden text of Word", "a.docx", string(docxFile(`<w:p>` + run("seen") + `<w:r><w:rPr><w:b/><w:vanish/></w:rPr><w:t> no</w:t></w:r><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t> too</w:t></w:r>` + run(" end") + `</w:p>`)), "seen too end"},
		{"hidden text of OpenDocument", "a.odt", string(odtFile(`<text:p>seen<text:hidden-text text:is-hidden="true">no</text:hidden-text><text:hidden-text text:is-hidden="false"> too</text:hidden-text></text:p><text:section text:display="none"><text:p>no</text:p></text:section>`)), "seen too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := mustParse(t, Input{Name: c.file, Data: []byte(c.data)})
			checkDocument(t, d)
			if d.Text != c.text {
				t.Errorf("got  %q\nwant %q", d.Text, c.text)
			}
			for _, h := range d.Outline {
				if strings.Contains(h.Title, "きょう") || strings.Contains(h.Title, "no") {
					t.Errorf("heading %q", h.Title)
				}
			}
		})
	}
}

// Styles hide text as well: those of characters and of paragraphs, and those based on them.
func TestStylesHideText(t *testing.T) {
	t.Parallel()
	word := zipFile(map[string]string{
		"word/styles.xml": `<w:styles xmlns:w="w"><w:style w:styleId="Secret"><w:rPr><w:vanish/></w:rPr></w:style><w:style w:styleId="Deeper"><w:basedOn w:val="Secret"/></w:style></w:styles>`,
		"word/document.xml": wordXML(`<w:p><w:r><w:t>seen</w:t></w:r><w:r><w:rPr><w:rStyle w:val="Deeper"/></w:rPr><w:t> no</w:t></w:r></w:p>` +
			`<w:p><w:pPr><w:pStyle w:val="Secret"/></w:pPr><w:r><w:t>no</w:t></w:r></w:p><w:p><w:r><w:t>end</w:t></w:r></w:p>`),
	})
	open := zipFile(map[string]string{
		"mimetype": "application/vnd.oasis.opendocument.text",
		"content.xml": `<office:document-content xmlns:office="o" xmlns:text="t" xmlns:style="s"><office:automatic-styles><style:style style:name="T1"><style:text-properties text:display="none"/></style:style></office:automatic-styles>` +
			`<office:body><office:text><text:p>seen<text:span text:style-name="T1"> no</text:span></text:p><text:p text:style-name="T1">no</text:p><text:p>end</text:p></office:text></office:body></office:document-content>`,
	})
	for name, data := range map[string][]byte{"a.docx": word, "a.odt": open} {
		d := mustParse(t, Input{Name: name, Data: data})
		if d.Text != "seen\n\nend" {
			t.Errorf("%s: %q", name, d.Text)
		}
	}
}

// A page that nests too deeply for a tree has no readings either.
func TestADeepPageHasNoReadings(t *testing.T) {
	t.Parallel()
	deep := ""
	for range 600 {
		deep += "<div>"
	}
	d := mustParse(t, Input{Name: "a.html", Data: []byte(deep + `<p><ruby>京<rp>（</rp><rt>きょう</rt><rp>）</rp>都<rt>と</ruby>へ<p>end`)})
	if d.Text != "京都へ\nend" {
		t.Errorf("%q", d.Text)
	}
}
