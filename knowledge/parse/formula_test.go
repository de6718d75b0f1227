package parse

import "testing"

// TestFormulasKeepOneForm reads formulas of uploaded files: no number appears that nobody has written.
func TestFormulasKeepOneForm(t *testing.T) {
	katex := `<span class="katex"><span class="katex-mathml"><math><semantics><msup><mi>a</mi><mn>2</mn></msup><annotation encoding="application/x-tex">a^2</annotation></semantics></math></span><span class="katex-html" aria-hidden="true">a<span>2</span></span></span>`
	r := func(text string) string { return `<m:r><w:rPr><w:i/></w:rPr><m:t>` + text + `</m:t></m:r>` }
	e := func(name, body string) string { return "<m:" + name + ">" + body + "</m:" + name + ">" }
	word := func(formula string) string {
		return string(docxFile(`<w:p><w:r><w:t>so </w:t></w:r><m:oMathPara xmlns:m="m"><m:oMath>` + formula + `</m:oMath></m:oMathPara><w:r><w:t> is</w:t></w:r></w:p>`))
	}
	for name, c := range map[string]struct{ file, data, want string }{
		"a cell":   {"a.html", `<table><tr><td>k<td><math><semantics><mn>1</mn><annotation encoding="application/x-tex">1.33\times 10^{-4}</annotation></semantics></math></table>`, `k | 1.33\times 10^{-4}`},
		"KaTeX":    {"a.html", "<p>area " + katex + " it is", "area a^2 it is"},
		"a title":  {"a.html", "<h1>On " + katex + "</h1>", "On a^2"},
		"a book":   {"a.epub", string(epubFile("<p>area " + katex + "</p>")), "area a^2"},
		"a ratio":  {"a.docx", word(e("f", e("fPr", "")+e("num", r("1"))+e("den", r("2")))), "so 1/2 is"},
		"powers":   {"a.docx", word(e("sSup", e("e", r("x"))+e("sup", r("n+12"))) + r("=y")), "so x^(n+12)=y is"},
		"an index": {"a.docx", word(e("sSubSup", e("e", r("a"))+e("sub", r("1"))+e("sup", r("2")))), "so a_1^2 is"},
		"roots":    {"a.docx", word(e("rad", e("radPr", "")+e("deg", "")+e("e", r("2"))) + r("+") + e("rad", e("deg", r("3"))+e("e", r("8")))), "so √(2)+8^(1/3) is"},
		"a sum":    {"a.docx", word(e("nary", `<m:naryPr><m:chr m:val="∑"/></m:naryPr>`+e("sub", r("i=1"))+e("sup", r("9"))+e("e", r("i")))), "so ∑_(i=1)^9i is"},
		"brackets": {"a.docx", word(e("func", e("fName", r("sin"))+e("e", e("d", `<m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>`+e("e", r("x")))))), "so sin [x] is"},
		"a matrix": {"a.docx", word(e("m", e("mr", e("e", r("1"))+e("e", r("2")))+e("mr", e("e", r("3"))+e("e", r("4"))))), "so 1 2; 3 4 is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := mustParse(t, Input{Name: c.file, Data: []byte(c.data)})
			checkDocument(t, d)
			if d.Text != c.want {
				t.Errorf("got  %q\nwant %q", d.Text, c.want)
			}
		})
	}
}
