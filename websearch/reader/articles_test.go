package reader

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"nodest/internal/sharedtest"
)

// TestArticlesAreFound measures the extraction on saved pages whose article was marked
// by a person. The score is that of the benchmark they come from: multisets of runs of
// four words, precision and recall averaged over the pages.
func TestArticlesAreFound(t *testing.T) {
	dir := sharedtest.Require(t, "data/articles")
	var precision, recall mean
	var spent time.Duration
	pages := 0
	for _, a := range articles(t, dir) {
		start := time.Now()
		body, _ := decode(a.html, "text/html")
		page, _, err := readHTML(body, a.at, "", start)
		spent += time.Since(start)
		pages++
		if err != nil {
			t.Errorf("%s: %v", a.at, err)
			continue
		}
		want, got := runs(a.ArticleBody), runs(page.Markdown)
		common := 0
		for run, n := range want {
			common += min(n, got[run])
		}
		precision.add(common, sum(got))
		recall.add(common, sum(want))
	}
	p, r := precision.value(), recall.value()
	f1 := 2 * p * r / (p + r)
	t.Logf("%d pages: F1 %.4f, precision %.4f, recall %.4f, %.1f ms a page", pages, f1, p, r, spent.Seconds()*1000/float64(pages))
	if f1 < 0.970 {
		t.Errorf("F1 is %.4f", f1)
	}
}

type article struct {
	ID, URL, ArticleBody string
	at                   *url.URL
	html                 []byte
}

func articles(t *testing.T, dir string) (all []article) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := bufio.NewScanner(f)
	rows.Buffer(nil, 10<<20)
	for rows.Scan() {
		var a article
		if err := json.Unmarshal(rows.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		a.html = unzip(t, filepath.Join(dir, "html", a.ID+".html.gz"))
		if a.at, err = url.Parse(a.URL); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type mean struct {
	sum   float64
	count int
}

func (m *mean) add(part, all int) {
	if all > 0 {
		m.sum += float64(part) / float64(all)
		m.count++
	}
}

func (m *mean) value() float64 { return m.sum / float64(m.count) }

var token = regexp.MustCompile(`[\pL\pN\pM_]+`)

// runs counts the runs of four words in a text.
func runs(s string) map[string]int {
	words, n := token.FindAllString(s, -1), map[string]int{}
	if len(words) > 0 && len(words) < 4 {
		n[strings.Join(words, " ")]++
	}
	for i := 0; i+4 <= len(words); i++ {
		n[strings.Join(words[i:i+4], " ")]++
	}
	return n
}

func sum(n map[string]int) (all int) {
	for _, c := range n {
		all += c
	}
	return all
}
