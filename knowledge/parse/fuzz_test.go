package parse

import (
	"errors"
	"os"
	"testing"
	"time"
)

// fuzzFile checks that any bytes under a name end in a sound document or a coded error.
func fuzzFile(f *testing.F, name string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	limits := Limits{Text: 100_000, Unpacked: 4 << 20, Entries: 100}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		start := time.Now()
		doc, err := Parse(t.Context(), Input{Name: name, Data: data, Limits: limits, CacheDir: cacheDir(t)})
		if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
			t.Fatalf("an error without a code: %v", err)
		} else if err != nil && e.Detail == "the parser failed on this file" {
			t.Fatal("the parser panicked")
		}
		if err == nil {
			checkDocument(t, doc)
		}
		if d := time.Since(start); d > 30*time.Second {
			t.Fatalf("it took %v", d)
		}
	})
}

func FuzzText(f *testing.F) {
	fuzzFile(f, "a.txt", "CHAPTER I\nx", "第一章\n雾", "\xb0\xa1\xb0\xa1", "\x1b]0;t\x07x\x1b[1mz", "\xff\xfea\x00", "e\u0301\r\n\x85")
}

func FuzzMarkdown(f *testing.F) {
	fuzzFile(f, "a.md", "---\ntitle: x\n---\n# a\n<!-- b -->\n```\nc\n```\n|a|b|\n|-|-|\n|1|2|", "a\n===\nb\n---")
}

func FuzzHTML(f *testing.F) {
	fuzzFile(f, "a.html", "<main><h1>a</h1><p>b<table><tr><td>c<td>d</table><pre>e\n f", "<title/><body>x", "<table><table><tr><pre>x")
}

func FuzzCode(f *testing.F) {
	fuzzFile(f, "a.py", "# c\nclass A:\n  def f(self):\n    pass", "@x\nasync def g():\n pass")
}

func FuzzCSV(f *testing.F) { fuzzFile(f, "a.csv", "a,b\n1,\"2\n3\"\n", "a;b\n;\n", "\"", "a\tb\n") }

func FuzzJSON(f *testing.F) {
	fuzzFile(f, "a.json", `{"a":[1,{"b":null}],"c":"\ud800"}`, `{"entries":[{"key":["a"],"content":"b"}]}`, `{"spec":"chara_card_v2","data":{"name":"x"}}`, "1 2")
}

func FuzzYAML(f *testing.F) {
	fuzzFile(f, "a.yaml", "a: &x [1, *x]\nb: |\n  c\n", "- a\n- b: c\n---\nd", "a: !!binary x", "<<: {a: b}")
}

func FuzzWord(f *testing.F) {
	body := `<w:p><w:pPr><w:pStyle w:val="mine"/></w:pPr><w:r><w:t>x</w:t><w:footnoteReference w:id="2"/></w:r></w:p><w:tbl><w:tr><w:tc><w:txbxContent><w:p/></w:txbxContent></w:tc></w:tr></w:tbl>`
	f.Add([]byte(body))
	fuzzBody(f, docxFile)
}

func FuzzOpenDocument(f *testing.F) {
	f.Add([]byte(`<text:list><text:p>a<text:s text:c="9999999"/></text:p></text:list><table:table><table:table-row><table:table-cell/></table:table-row></table:table>`))
	fuzzBody(f, odtFile)
}

func FuzzSheet(f *testing.F) {
	f.Add([]byte(`<row><c r="ZZZZZZZZZ1" t="s"><v>99</v></c><c s="1"><v>1e300</v></c></row>`))
	fuzzBody(f, xlsxFile)
}

func FuzzBook(f *testing.F) {
	f.Add([]byte(`<h1>a</h1><title/><p>b`))
	fuzzBody(f, func(s string) []byte { return epubFile(s, s) })
}

// fuzzBody fuzzes what is in an archive, whose checksums bytes at random would never meet.
func fuzzBody(f *testing.F, file func(string) []byte) {
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := Parse(t.Context(), Input{Name: "a", Data: file(string(body)), Limits: Limits{Text: 100_000}})
		if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Detail == "the parser failed on this file") {
			t.Fatal(err)
		}
		if err == nil {
			checkDocument(t, doc)
		}
	})
}

func FuzzArchive(f *testing.F) {
	fuzzFile(f, "a.docx", string(docxFile("<w:p/>")), string(pptxFile()), string(epubFile("x")), "PK\x03\x04")
}

// FuzzPDF needs seconds to begin, so it runs only when it is asked for.
func FuzzPDF(f *testing.F) {
	if os.Getenv("NODEST_LONG") == "" {
		f.Skip("set NODEST_LONG to fuzz the PDF reader")
	}
	fuzzFile(f, "a.pdf", string(pdfFile("one", "two")))
}
