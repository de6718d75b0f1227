package parse

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

func titles(d *Document) string {
	var out []string
	for _, h := range d.Outline {
		out = append(out, fmt.Sprintf("%d %s", h.Level, h.Title))
	}
	return strings.Join(out, " · ")
}

// units lists the kinds, titles and headers of a document's units.
func units(d *Document) string {
	var out []string
	for _, u := range d.Units {
		out = append(out, strings.TrimRight(strings.Join([]string{u.Kind, u.Title, u.Header}, "/"), "/"))
	}
	return strings.Join(out, " · ")
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name, file string
		data       string
		typ        string
		text       string // all of it
		outline    string
		units      string
		title      string
	}{
		{"plain chapters", "a.txt", "CHAPTER I\n\nIt began.\n\nChapter II. The End\n\nPart one of it was over, and nobody knew why that was so at all.\n", "text",
			"CHAPTER I\n\nIt began.\n\nChapter II. The End\n\nPart one of it was over, and nobody knew why that was so at all.", "1 CHAPTER I · 1 Chapter II. The End", "", ""},
		{"Chinese chapters", "a.txt", "第三章 雾起\n江上有雾。\n第二节 夜\n第三章里说过。\n", "text", "第三章 雾起\n江上有雾。\n第二节 夜\n第三章里说过。", "1 第三章 雾起 · 2 第二节 夜", "", ""},
		{"front matter and comments", "a.md", "---\ntitle: The *T*\n---\n# One {#one}\n<!-- gone\ngone --> kept `<!-- code -->`\n\nTwo\n---\n", "markdown",
			"# One {#one}\n kept `<!-- code -->`\n\nTwo\n---", "1 One · 2 Two", "", "The *T*"},
		{"fences and tables", "a.md", "```go\n# no heading\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend", "markdown",
			"```go\n# no heading\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend", "", "code/go · table//| a | b |", ""},
		{"HTML with a main part", "a.html", `<title>T</title><nav>skip</nav><main><h1>Head <i>line</i></h1><p>One
  two<br>three</p><nav>skip</nav><table><tr><th>k</th><th>v</th></tr><tr><td>a<p>b</p></td><td>c</td></tr></table><pre>x
  y</pre></main><footer>skip</footer>`, "html",
			"Head line\n\nOne two\nthree\n\nk | v\na b | c\n\nx\n  y", "1 Head line", "table//k | v · code", "T"},
		{"HTML without", "a.html", `<nav>menu</nav><script>no</script><p>text`, "html", "menu\n\ntext", "", "", ""},
		{"Go", "a.go", "package a\n\n// F is.\nfunc F() {\n}\n\ntype T struct {\n\tn int\n}\n", "code",
			"package a\n\n// F is.\nfunc F() {\n}\n\ntype T struct {\n\tn int\n}", "1 func F() · 1 type T struct", "code · code/func F() · code/type T struct", ""},
		{"Python", "a.py", "class A:\n    def f(self):\n        pass\n", "code", "class A:\n    def f(self):\n        pass", "1 class A · 2 def f(self)", "code/class A", ""},
		{"CSV", "a.csv", "name,note\n\"Ann\",\"first\nline\"\nBo,\"x,y\"\n", "csv",
			"name,note\nname: Ann; note: first line\n\"Ann\",\"first line\"\nname: Bo; note: x,y\nBo,\"x,y\"", "", "row · row", ""},
		{"CSV with semicolons and numbers", "a.csv", "1;2\n3;4\n", "csv", "1; 2\n3; 4", "", "row · row", ""},
		{"TSV", "a.tsv", "k\tv\na\tb\n", "csv", "k\tv\nk: a; v: b\na\tb", "", "row", ""},
		{"JSON", "a.json", `{"a":{"b":[1,true,null,"x"]},"list":[{"name":"n1","v":1.50},{"v":"2"}]}`, "json",
			"a.b: 1, true, x\nlist[1].name: n1\nlist[1].v: 1.50\nlist[2].v: 2", "1 a", "entry/a.b · entry/n1 · entry/list[2]", ""},
		{"YAML", "a.yaml", "a: &x\n  b: c\nd: *x\n", "yaml", "a.b: c", "1 a", "entry/a.b", ""},
		{"world book", "a.json", `{"entries":{"0":{"uid":0,"key":["k1","k2"],"comment":"C","content":"Text.","depth":4},"1":{"key":[],"comment":"","content":"More."}}}`, "json",
			"uid: 0\nkey: k1, k2\ncomment: C\ncontent: Text.\n\ncontent: More.", "1 C", "entry/C · entry", ""},
		{"card", "a.json", `{"spec":"chara_card_v2","data":{"name":"Ann","first_mes":"Hi","extensions":{"x":"y"},"character_book":{"entries":[{"keys":["k"],"content":"Lore"}]}}}`, "json",
			"name: Ann\n\nfirst_mes: Hi\n\nkey: k\ncontent: Lore", "1 k", "entry/name · entry/first_mes · entry/k", "Ann"},
		{"DOCX", "a.docx", string(docxFile(`<w:p><w:pPr><w:pStyle w:val="mine"/></w:pPr><w:r><w:t>Head</w:t></w:r></w:p><w:p><w:r><w:t xml:space="preserve">One </w:t></w:r><w:del><w:r><w:delText>old</w:delText><w:t>x</w:t></w:r></w:del><w:ins><w:r><w:t>new</w:t><w:footnoteReference w:id="2"/></w:r></w:ins></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>k</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>v</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>`)), "docx",
			"Head\n\nOne new\n[a note]\n\nk | v\na |", "2 Head", "table//k | v", "The Title"},
		{"ODT", "a.odt", string(odtFile(`<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:h text:outline-level="2">Head</text:h><text:p>One<text:s text:c="2"/>two<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p></text:note-body></text:note></text:p><text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>`)), "odt",
			"Head\n\nOne  two\n[note]\nitem", "2 Head", "", ""},
		{"EPUB", "a.epub", string(epubFile("<h1>Last</h1><p>end</p>", "<p>begin</p>")), "epub", "begin\n\nLast\n\nend", "1 Point 1 · 1 Last", "", "A Book"},
		{"XLSX", "a.xlsx", string(xlsxFile(`<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row><row><c r="A2" t="s"><v>2</v></c><c r="B2"><v>7</v></c><c r="C2" s="1"><v>45292</v></c></row>`)), "xlsx",
			"Stock\nItem: lamp; 7; Pries: 2024-01-01", "1 Stock", "row", ""},
		{"PPTX", "a.pptx", string(pptxFile()), "pptx", "First\nearlier\n\nsay hello\n\nSecond\nlater", "1 First · 1 Second", "", ""},
		{"unknown extension", "notes", "# Head\n\ntext", "markdown", "# Head\n\ntext", "1 Head", "", "Head"},
		{"code units stay separate", "é.txt", "e\u0301 \r\n\x1b[31mred\x1b[0m\x00\tend\r", "text", "é \nred\tend", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mustParse(t, Input{Name: c.file, Data: []byte(c.data)})
			checkDocument(t, d)
			title := c.title
			if title == "" && c.typ == "markdown" && strings.HasPrefix(c.outline, "1 ") {
				title = "Head"
			}
			if d.Type != c.typ || d.Text != c.text || titles(d) != c.outline || units(d) != c.units || d.Title != title {
				t.Errorf("got  %s %q\n     outline %s\n     units %s\n     title %q\nwant %s %q\n     outline %s\n     units %s\n     title %q", d.Type, d.Text, titles(d), units(d), d.Title, c.typ, c.text, c.outline, c.units, title)
			}
		})
	}
}

func TestPDFKeepsPagesAndJoinsLines(t *testing.T) {
	long := "this line of the page is as long as the others and ends within a sen-\ntence that goes on and on to be longer than forty columns in all,\nand then ends."
	d := mustParse(t, Input{Name: "a.pdf", Data: pdfFile("Running Head 1\n"+long, "Running Head 2\nsecond", "Running Head 3\nthird", "Running Head 4\nfourth")})
	checkDocument(t, d)
	if strings.Contains(d.Text, "Running") || !strings.Contains(d.Text, "within a sentence that goes on") || len(d.Pages) != 4 {
		t.Errorf("%d pages: %q", len(d.Pages), d.Text)
	}
	if p := d.Pages[1]; string([]rune(d.Text)[p.Start:p.End]) != "second" {
		t.Errorf("page 2 is %q", string([]rune(d.Text)[p.Start:p.End]))
	}
}

func TestPDFWithTooManyPagesIsRejected(t *testing.T) {
	_, err := Parse(t.Context(), Input{Name: "a.pdf", Data: pdfFile("one", "two", "three"), CacheDir: cacheDir(t), Limits: Limits{Pages: 2}})
	wantCode(t, err, TooManyPages)
}

func TestEncodingsAreRecognised(t *testing.T) {
	for name, c := range map[string]struct {
		e    encoding.Encoding
		text string
	}{
		"GB18030":      {simplifiedchinese.GB18030, "江边的小城在雾里醒来，人们说这是一年中最好的时候。他看了看天，又看了看手里的信。"},
		"Big5":         {traditionalchinese.Big5, "江邊的小城在霧裡醒來，人們說這是一年中最好的時候。他看了看天，又看了看手裡的信。"},
		"Shift-JIS":    {japanese.ShiftJIS, "川のほとりの町は霧の中で目を覚ました。人々はこれが一年でいちばんよい時だと言う。"},
		"EUC-JP":       {japanese.EUCJP, "川のほとりの町は霧の中で目を覚ました。人々はこれが一年でいちばんよい時だと言う。"},
		"EUC-KR":       {korean.EUCKR, "강가의 작은 도시는 안개 속에서 깨어났다. 사람들은 지금이 일 년 중 가장 좋은 때라고 말한다."},
		"Windows-1252": {charmap.Windows1252, "Das Städtchen am Fluß erwachte – man sagt, es sei die schönste Zeit. “Déjà vu”, said he."},
		"Windows-1251": {charmap.Windows1251, "Городок у реки проснулся в тумане. Люди говорят, что это лучшее время года, и он им верит."},
	} {
		data, err := c.e.NewEncoder().Bytes([]byte(strings.Repeat(c.text+"\n", 3)))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(t.Context(), Input{Name: "a.txt", Data: data})
		if err != nil || !strings.HasPrefix(d.Text, c.text) {
			t.Errorf("%s: %v, %+v", name, err, d)
		}
	}
	d := mustParse(t, Input{Name: "a.html", Data: append([]byte(`<meta charset="koi8-r"><p>`), 0xd0, 0xd2, 0xc9, 0xd7, 0xc5, 0xd4)})
	if d.Text != "привет" {
		t.Errorf("the declared encoding is not believed: %q", d.Text)
	}
}

func TestLanguageIsThatOfMostOfTheText(t *testing.T) {
	for want, text := range map[string]string{
		"en": "The lamp in the tower is lit by the keeper of the harbour, and it is not put out before the day has come to the town.",
		"de": "Die Lampe in dem Turm wird von dem Wächter des Hafens angezündet und ist nicht vor dem Tag zu löschen, wie man es im Dorf von ihm sagt.",
		"zh": "守塔的人每天点灯。He lights it.",
		"ja": "灯台守は毎日ランプをつける。",
		"ko": "등대지기는 매일 등불을 켠다.",
		"":   "12345",
	} {
		if got := language(text); got != want {
			t.Errorf("language of %q is %q, want %q", text, got, want)
		}
	}
}

func TestArchivesAreBounded(t *testing.T) {
	many := map[string]string{"word/document.xml": wordXML("")}
	for i := range 20 {
		many[fmt.Sprint("x", i)] = ""
	}
	deep := strings.Repeat("<w:a>", 600) + strings.Repeat("</w:a>", 600)
	for name, c := range map[string]struct {
		data   []byte
		limits Limits
		code   string
	}{
		"ratio":         {data: docxFile("<w:p><w:r><w:t>" + strings.Repeat("a", 3<<20) + "</w:t></w:r></w:p>"), code: ArchiveTooLarge},
		"size":          {data: docxFile("<w:p><w:r><w:t>" + strings.Repeat("ab c", 1000) + "</w:t></w:r></w:p>"), limits: Limits{Unpacked: 2000}, code: ArchiveTooLarge},
		"entries":       {data: zipFile(many), limits: Limits{Entries: 20}, code: ArchiveTooManyEntries},
		"depth":         {data: docxFile(deep), code: DamagedFile},
		"entities":      {data: zipFile(map[string]string{"word/document.xml": `<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><w:document xmlns:w="w"><w:p><w:t>&b;</w:t></w:p></w:document>`}), code: DamagedFile},
		"traversal":     {data: zipFile(map[string]string{"word/document.xml": wordXML(""), "../evil": "x"}), code: DamagedFile},
		"backslashes":   {data: zipFile(map[string]string{"word/document.xml": wordXML(""), `..\evil`: "x"}), code: DamagedFile},
		"absolute":      {data: zipFile(map[string]string{"word/document.xml": wordXML(""), "/etc/passwd": "x"}), code: DamagedFile},
		"broken XML":    {data: zipFile(map[string]string{"word/document.xml": "<w:document><w:p>"}), code: DamagedFile},
		"other archive": {data: zipFile(map[string]string{"a.zip": "x"}), code: UnsupportedType},
		"no text":       {data: docxFile(""), code: EmptyDocument},
		"cut off":       {data: docxFile("<w:p/>")[:200], code: DamagedFile},
		"protected":     {data: zipFile(map[string]string{"mimetype": "application/epub+zip", "META-INF/encryption.xml": `<e a="http://www.w3.org/2001/04/xmlenc#aes128"/>`}), code: EncryptedDocument},
		"long text":     {data: docxFile("<w:p><w:r><w:t>" + strings.Repeat("ab c", 1000) + "</w:t></w:r></w:p>"), limits: Limits{Text: 100}, code: TextTooLong},
		"book in loops": {data: zipFile(map[string]string{"mimetype": "application/epub+zip", "META-INF/container.xml": `<c><rootfile full-path="META-INF/container.xml"/></c>`}), code: EmptyDocument},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(t.Context(), Input{Name: "a.docx", Data: c.data, Limits: c.limits})
			wantCode(t, err, c.code)
		})
	}
}

func TestContentDecidesTheType(t *testing.T) {
	for _, c := range []struct{ name, declared, data, typ, warning, code string }{
		{name: "a.pdf", data: "just a line of text", typ: "text", warning: "type_mismatch:text"},
		{name: "a.txt", data: string(docxFile("<w:p><w:r><w:t>x</w:t></w:r></w:p>")), typ: "docx", warning: "type_mismatch:docx"},
		{name: "page", data: "<!DOCTYPE html><p>x", typ: "html"},
		{name: "data", data: `{"a":"x"}`, typ: "json"},
		{name: "x", declared: "text/csv", data: "a,b\n1,2\n", typ: "csv"},
		{name: "x.md", declared: "text/csv", data: "# a", typ: "markdown"},
		{name: "a.txt", data: "\x89PNG\r\n\x1a\n", code: UnsupportedType},
		{name: "a.doc", data: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", code: UnsupportedType},
		{name: "a.docx", data: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00", code: EncryptedDocument},
		{name: "a.txt", data: "", code: EmptyDocument},
		{name: "a.txt", data: " \n\t\f\n", code: EmptyDocument},
		{name: "a.csv", data: "a,b\n1,\"2\n", typ: "text", warning: "invalid_csv"},
		{name: "a.json", data: `{"a":`, typ: "text", warning: "invalid_json"},
		{name: "a.json", data: strings.Repeat("[", 600), code: DamagedFile},
		{name: "a.yaml", data: "a: [\n", typ: "text", warning: "invalid_yaml"},
		{name: "a.yaml", data: "a: " + strings.Repeat("[", 600) + strings.Repeat("]", 600), code: DamagedFile},
		{name: "x\"><inject name=\"y.md", data: "# a", typ: "markdown"},
	} {
		d, err := Parse(t.Context(), Input{Name: c.name, DeclaredType: c.declared, Data: []byte(c.data)})
		if c.code != "" {
			wantCode(t, err, c.code)
			continue
		}
		if err != nil || d.Type != c.typ || strings.Join(d.Warnings, " ") != c.warning {
			t.Errorf("%s %.30q: %v %+v, want %s %s", c.name, c.data, err, d, c.typ, c.warning)
		}
	}
}

func TestDeepHTMLKeepsItsText(t *testing.T) {
	d := mustParse(t, Input{Name: "a.html", Data: []byte(strings.Repeat("<div>", 5000) + "<script>no</script>deep" + strings.Repeat("</div>", 5000))})
	if d.Text != "deep" {
		t.Errorf("text %.100q", d.Text)
	}
}

// TestOneLongLineTakesLinearTime parses a line of 50 MB, or of the fraction NODEST_LONG of
// that, but at least 250 kB.
func TestOneLongLineTakesLinearTime(t *testing.T) {
	fraction, _ := strconv.ParseFloat(os.Getenv("NODEST_LONG"), 64)
	n := int(max(fraction, 0.005) * 1_850_000)
	data := []byte(strings.Repeat("lorem ipsum 雾渡城 dolor ", n))
	_, err := Parse(t.Context(), Input{Name: "a.txt", Data: bytes.Repeat([]byte("a"), 10_000_001)})
	wantCode(t, err, TextTooLong)
	for _, name := range []string{"a.txt", "a.md", "a.html", "a.go", "a.csv", "a"} {
		var times []time.Duration
		for _, part := range []int{5, 1} {
			start := time.Now()
			d := mustParse(t, Input{Name: name, Data: data[:len(data)/part/26*26], Limits: Limits{Text: 200_000_000}})
			times = append(times, time.Since(start))
			if !utf8.ValidString(d.Text) {
				t.Error("a character is cut")
			}
		}
		t.Logf("%s: %v for a fifth, %v for all", name, times[0], times[1])
	}
}

func TestTextOfTheLimitIsAccepted(t *testing.T) {
	in := Input{Name: "a.txt", Data: []byte(strings.Repeat("雾", 100)), Limits: Limits{Text: 100}}
	mustParse(t, in)
	in.Data = append(in.Data, 'x')
	_, err := Parse(t.Context(), in)
	wantCode(t, err, TextTooLong)
}

func TestEveryParserHasAVersion(t *testing.T) {
	for typ, f := range parsers {
		if f.version == "" || (f.text == nil) == (f.binary == nil) {
			t.Errorf("%s: %+v", typ, f)
		}
	}
	for _, typ := range mediaTypes {
		if _, known := parsers[typ]; !known || slices.Contains([]string{""}, typ) {
			t.Errorf("%s has no parser", typ)
		}
	}
}
