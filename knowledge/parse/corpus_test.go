package parse

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/sharedtest"
)

// corpus returns the folder of the data set kb; the test is skipped without it.
func corpus(t testing.TB) string {
	t.Helper()
	return sharedtest.Require(t, "data/kb")
}

func readFile(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bare is text as quotes are compared: NFKC, straight quotes, lower case, without soft hyphens
// and white space.
func bare(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || r == '\u00ad':
			return -1
		case r == '“' || r == '”':
			return '"'
		case r == '‘' || r == '’':
			return '\''
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(s))
}

func trigrams(s string) (map[[3]rune]int, int) {
	out := map[[3]rune]int{}
	r := []rune(s)
	for i := 0; i+2 < len(r); i++ {
		out[[3]rune(r[i:i+3])]++
	}
	return out, max(len(r)-2, 0)
}

// likeness compares the trigrams of two texts: which share of both is common, and which share
// of want is in got.
func likeness(got, want string) (both, recall float64) {
	g, n := trigrams(got)
	w, m := trigrams(want)
	common := 0
	for k, c := range w {
		common += min(c, g[k])
	}
	return 2 * float64(common) / float64(n+m), float64(common) / float64(m)
}

func wordRecall(got, want string) float64 {
	words := func(s string) map[string]int {
		out := map[string]int{}
		for w := range strings.FieldsFuncSeq(strings.ToLower(norm.NFKC.String(s)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			out[w]++
		}
		return out
	}
	g, total, hits := words(got), 0, 0
	for w, n := range words(want) {
		total += n
		hits += min(n, g[w])
	}
	return float64(hits) / float64(total)
}

type goldQuote struct{ ID, File, Quote string }

func quotes(t testing.TB, dir string) map[string][]goldQuote {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]goldQuote{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var q goldQuote
		if err := json.Unmarshal(s.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		if q.File != "" {
			out[q.File] = append(out[q.File], q)
		}
	}
	return out
}

// structured types are written with the path or column of each value, so only what they keep is
// compared.
var structured = map[string]bool{"csv": true, "json": true, "yaml": true}

func TestDocumentsKeepTheirText(t *testing.T) {
	dir := corpus(t)
	gold := quotes(t, dir)
	files, err := os.ReadDir(filepath.Join(dir, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) {
			doc := mustParse(t, Input{Name: f.Name(), Data: readFile(t, dir, "docs", f.Name())})
			want := string(readFile(t, dir, "reftext", f.Name()+".txt"))
			got := bare(doc.Text)
			both, recall := likeness(got, bare(want))
			words := wordRecall(doc.Text, want)
			t.Logf("%s %s: similarity %.4f, recall %.4f, words %.4f; %d characters, %d headings, %d pages, %d units, title %q",
				doc.Parser, doc.Language, both, recall, words, utf8.RuneCountInString(doc.Text), len(doc.Outline), len(doc.Pages), len(doc.Units), doc.Title)
			bar := 0.98
			if doc.Type == "pdf" {
				bar = 0.95
			}
			if structured[doc.Type] {
				if both, bar = recall, 0.8; words < 0.98 {
					t.Errorf("only %.4f of the words", words)
				}
			}
			if both < bar {
				t.Errorf("similarity %.4f, want %.2f", both, bar)
			}
			if doc.Language == "en" && words < 0.97 {
				t.Errorf("word recall %.4f, want 0.97", words)
			}
			for _, q := range gold[f.Name()] {
				if !strings.Contains(got, bare(q.Quote)) {
					t.Errorf("%s: the quote %q is not in the text", q.ID, q.Quote)
				}
			}
			checkDocument(t, doc)
		})
	}
}

func mustParse(t testing.TB, in Input) *Document {
	t.Helper()
	if in.CacheDir == "" {
		in.CacheDir = cacheDir(t)
	}
	doc, err := Parse(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// checkDocument checks what holds for every document.
func checkDocument(t testing.TB, d *Document) {
	t.Helper()
	if !utf8.ValidString(d.Text) || !norm.NFC.IsNormalString(d.Text) {
		t.Error("the text is not UTF-8 in NFC")
	}
	n := 0
	for _, r := range d.Text {
		if n++; isUnclean(r) {
			t.Fatalf("the text has the control character %U", r)
		}
	}
	last := 0
	for _, h := range d.Outline {
		if h.Start < last || h.Start >= n || h.Level < 1 || h.Title == "" {
			t.Fatalf("bad heading %+v in a text of %d", h, n)
		}
		last = h.Start
	}
	last = 0
	for _, u := range d.Units {
		if u.Start < last || u.End <= u.Start || u.End > n || u.Kind == "" {
			t.Fatalf("bad unit %+v in a text of %d", u, n)
		}
		last = u.Start
	}
	last = 0
	for i, p := range d.Pages {
		if p.N != i+1 || p.Start < last || p.End < p.Start || p.End > n {
			t.Fatalf("bad page %+v in a text of %d", p, n)
		}
		last = p.End
	}
}

// cacheDir is where PDFium is kept compiled between runs of the tests.
func cacheDir(t testing.TB) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		return t.TempDir()
	}
	dir = filepath.Join(dir, "nodest-test-pdfium")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return t.TempDir()
	}
	return dir
}
