package chunk_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
)

// at returns the position of part in text, in code points.
func at(t *testing.T, text, part string) int {
	t.Helper()
	i := strings.Index(text, part)
	if i < 0 {
		t.Fatalf("%q is not in the text", part)
	}
	return utf8.RuneCountInString(text[:i])
}

// check holds what is true of the chunks of every document.
func check(t *testing.T, d *parse.Document, r chunk.Rules) []chunk.Chunk {
	t.Helper()
	chunks, text := chunk.Cut(d, r), []rune(d.Text)
	covered := 0
	for i, c := range chunks {
		if c.Start < 0 || c.End > len(text) || c.Start >= c.End || c.Text != string(text[c.Start:c.End]) {
			t.Fatalf("chunk %d is not the text from %d to %d", i, c.Start, c.End)
		}
		if n := c.End - c.Start; n > r.Size+r.Size*15/100 {
			t.Fatalf("chunk %d has %d code points", i, n)
		}
		if i > 0 && (c.Start <= chunks[i-1].Start || c.End <= chunks[i-1].End) {
			t.Fatalf("chunk %d (%d to %d) does not go on from %d to %d", i, c.Start, c.End, chunks[i-1].Start, chunks[i-1].End)
		}
		if i > 0 && chunks[i-1].End-c.Start > r.Overlap {
			t.Fatalf("chunk %d repeats %d code points", i, chunks[i-1].End-c.Start)
		}
		for p := covered; p < c.Start; p++ {
			if !unicode.IsSpace(text[p]) {
				t.Fatalf("%q at %d is in no chunk", text[p], p)
			}
		}
		covered = max(covered, c.End)
		if unicode.IsSpace(text[c.Start]) || unicode.IsSpace(text[c.End-1]) {
			t.Fatalf("chunk %d has blanks at its edge", i)
		}
		if c.Kind == "" {
			t.Fatalf("chunk %d has no kind", i)
		}
	}
	if rest := strings.TrimSpace(string(text[covered:])); rest != "" {
		t.Fatalf("%q is in no chunk", rest)
	}
	return chunks
}

var pieces = []string{
	"word ", "Another sentence. ", "Is it? ", "中文句子。", "逗号，", "\n", "\n\n", "e\u0301", "👩‍🔬", "🇩🇪", "👍🏽", "| a | b |\n", "```go\n", "    ",
	strings.Repeat("x", 90), strings.Repeat("字", 40), "\t", "…", "”", "\r", strings.Repeat("\n", 150), "|" + strings.Repeat(" cell |", 30) + "\n",
}

func randomDocument(r *rand.Rand) *parse.Document {
	var b strings.Builder
	for range r.IntN(200) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	d := &parse.Document{Type: []string{"markdown", "pdf", "epub", "csv"}[r.IntN(4)], Text: b.String()}
	n := utf8.RuneCountInString(d.Text)
	for p := 0; p < n && r.IntN(4) > 0; p += 1 + r.IntN(300) {
		switch r.IntN(3) {
		case 0:
			d.Outline = append(d.Outline, parse.Heading{Level: 1 + r.IntN(3), Title: fmt.Sprint("H", p), Start: p})
		case 1:
			d.Pages = append(d.Pages, parse.Page{N: len(d.Pages) + 1, Start: p, End: p + r.IntN(300)})
		default:
			d.Units = append(d.Units, parse.Unit{Kind: []string{"row", "entry", "code", "table"}[r.IntN(4)], Start: p, End: p + r.IntN(400), Title: "T"})
		}
	}
	return d
}

func TestChunksAreTheTextInOrderAndCoverIt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		size := 100 + r.IntN(300)
		check(t, randomDocument(r), chunk.Rules{Size: size, Overlap: r.IntN(size/2 + 1)})
	}
}

func FuzzCut(f *testing.F) {
	f.Add("# A\n\ntext text", 100, 50, 3, 9)
	f.Add(strings.Repeat("\u0301", 900), 100, 50, 0, 900)
	f.Fuzz(func(t *testing.T, text string, size, overlap, from, to int) {
		if !utf8.ValidString(text) {
			t.Skip()
		}
		size = 100 + max(0, size)%400
		overlap = max(0, overlap) % (size/2 + 1)
		check(t, &parse.Document{
			Text: text, Outline: []parse.Heading{{Level: 1, Title: "x", Start: from}, {Level: 2, Title: "y", Start: to}},
			Units: []parse.Unit{{Kind: "row", Start: from, End: to}}, Pages: []parse.Page{{N: 1, Start: from, End: to}},
		}, chunk.Rules{Size: size, Overlap: overlap})
	})
}

func TestCharactersWithMarksFencesAndRowsAreNotCut(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var b strings.Builder
		for range 400 {
			b.WriteString([]string{"e\u0301\u0302", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "字", "a"}[r.IntN(6)])
			if r.IntN(40) == 0 {
				b.WriteString([]string{"\n| one | two |\n", "\n```python\ncode\n```\n", "\n\n"}[r.IntN(3)])
			}
		}
		d := &parse.Document{Text: b.String()}
		for _, c := range check(t, d, chunk.Rules{Size: 100, Overlap: 50}) {
			rest := strings.NewReplacer("e\u0301\u0302", "", "👩‍👩‍👧‍👦", "", "👍🏽", "", "| one | two |", "", "```python", "", "```", "").Replace(c.Text)
			if strings.ContainsAny(rest, "\u0301\u0302\u200d🏽|`") || strings.Contains(rest, "python") {
				t.Fatalf("something is cut: %q", rest)
			}
			if strings.Count(c.Text, "🇩")+strings.Count(c.Text, "🇪") != 2*strings.Count(c.Text, "🇩🇪") {
				t.Fatalf("a flag is cut: %q", c.Text)
			}
		}
	}
}

func TestRowsAreKeptWholeAndTheirHeaderIsInTheHeading(t *testing.T) {
	d := &parse.Document{Type: "csv"}
	for i := range 60 {
		row := fmt.Sprintf("%d, some value of row %d, %s", i, i, strings.Repeat("more ", 5))
		start := utf8.RuneCountInString(d.Text)
		d.Units = append(d.Units, parse.Unit{Kind: "row", Start: start, End: start + len(row), Header: "number, value, rest"})
		d.Text += row + "\n"
	}
	for _, c := range check(t, d, chunk.Rules{Size: 300, Overlap: 100}) {
		if c.Kind != "row" || c.Heading != "number, value, rest" {
			t.Errorf("kind %s, heading %q", c.Kind, c.Heading)
		}
		for line := range strings.Lines(c.Text) {
			if !strings.Contains(line, "some value of row") || !strings.HasSuffix(strings.TrimSpace(line), "more more more more more") {
				t.Errorf("a row is cut: %q", line)
			}
		}
	}
}

func TestSectionsHavePathsAndHeadingsDoNotEndChunks(t *testing.T) {
	long := strings.Repeat("A sentence of some length about the matter. ", 12)
	text := "# People\n\n## Maren\n\n" + long + "\n\n## Ilse\n\n" + long + "\n\n# Places\n\n## Harbour\n\n" + long
	d := &parse.Document{Type: "markdown", Text: text}
	for _, h := range []struct {
		level int
		title string
	}{{1, "People"}, {2, "Maren"}, {2, "Ilse"}, {1, "Places"}, {2, "Harbour"}} {
		d.Outline = append(d.Outline, parse.Heading{Level: h.level, Title: h.title, Start: at(t, text, strings.Repeat("#", h.level)+" "+h.title)})
	}
	var paths []string
	for _, c := range check(t, d, chunk.Rules{Size: 600, Overlap: 300}) {
		paths = append(paths, c.Heading)
		last := c.Text[strings.LastIndex(c.Text, "\n")+1:]
		if strings.HasPrefix(last, "#") {
			t.Errorf("a heading ends a chunk: %q", last)
		}
		if strings.Contains(c.Text, "# People") && strings.Contains(c.Text, "# Places") {
			t.Error("a chunk reaches over a heading of the top level")
		}
	}
	if got, want := strings.Join(paths, "|"), "People|People › Ilse|Places"; got != want {
		t.Errorf("paths %s, want %s", got, want)
	}
}

func TestPagesAndDeclarationsAreNamed(t *testing.T) {
	text := strings.Repeat("First page. ", 30) + "\n" + strings.Repeat("func two() {}\n", 40)
	two := at(t, text, "func")
	d := &parse.Document{
		Type: "pdf", Text: text, Pages: []parse.Page{{N: 1, Start: 0, End: two}, {N: 2, Start: two, End: utf8.RuneCountInString(text)}},
		Units: []parse.Unit{{Kind: "code", Start: two, End: utf8.RuneCountInString(text), Title: "two"}},
	}
	chunks := check(t, d, chunk.Rules{Size: 200, Overlap: 0})
	first, last := chunks[0], chunks[len(chunks)-1]
	if first.Page != 1 || first.Kind != "text" || last.Page != 2 || last.Kind != "code" || last.Heading != "two" {
		t.Errorf("first %+v\nlast %+v", first, last)
	}
}

func TestAShortRestIsJoined(t *testing.T) {
	text := strings.Repeat("A sentence of forty letters, more less. ", 25) + "Rest."
	chunks := check(t, &parse.Document{Text: text}, chunk.Rules{Size: 1000, Overlap: 0})
	if len(chunks) != 1 {
		t.Errorf("%d chunks", len(chunks))
	}
}

func TestRulesOutOfRangeAreMoved(t *testing.T) {
	d := &parse.Document{Text: strings.Repeat("word ", 100)}
	for _, r := range []chunk.Rules{{}, {-1, -1}, {1 << 40, 1 << 40}, {200, 5000}} {
		if len(chunk.Cut(d, r)) == 0 {
			t.Errorf("%+v: no chunks", r)
		}
	}
}

// Twice the text takes about twice the work: a line of 10 million code points is cut in seconds,
// whatever it consists of.
func TestLongLinesTakeLinearTime(t *testing.T) {
	for name, piece := range map[string]string{"words": "lorem ipsum 雾渡城 dolor ", "one token": "x", "marks": "\u0301", "blanks": " ", "lines": "\n", "flags": "🇩", "closing": "”"} {
		n := 2_000_000 / utf8.RuneCountInString(piece)
		begin := time.Now()
		chunks := chunk.Cut(&parse.Document{Text: "a" + strings.Repeat(piece, n) + "b"}, chunk.Default)
		t.Logf("%s: %d chunks in %v", name, len(chunks), time.Since(begin))
		if len(chunks) > 20_000 {
			t.Errorf("%s: %d chunks", name, len(chunks))
		}
	}
}

func BenchmarkCut(b *testing.B) {
	text := strings.Repeat("Some words that make a sentence, and a clause. 还有一些中文句子，也要切开。\n", 20_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		chunk.Cut(&parse.Document{Text: text}, chunk.Default)
	}
}
