package markdown

import (
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/internal/cite"
	"nodest/websearch/weburl"
)

func TestRepairs(t *testing.T) {
	ref := func(n string) cite.Reference {
		return cite.Reference{ExactQuote: "Quote " + n + ".", URL: "https://a.org/" + n, Title: "Page " + n}
	}
	footnotes := func(s string) string { return Footnotes(s, []cite.Reference{ref("1"), ref("2")}) }
	list := "\n\n[^1]: Quote 1 [Page 1](https://a.org/1)\n\n[^2]: Quote 2 [Page 2](https://a.org/2)"
	for _, c := range []struct {
		promise  string
		change   func(string) string
		in, want string
	}{
		{"marks of unknown sources leave no comma", footnotes, "a[^1], [^7], [^2] b[^8], [^9]", "a[^1], [^2] b" + list},
		{"groups are divided", footnotes, "a[^1，2]", "a[^1], [^2]" + list},
		{"links and escapes are no marks", footnotes, `[1](https://a.org) \[2] a[^2][1]`, `[1](https://a.org) \[2] a[^2][^1]` + list},
		{"code has no marks", footnotes, "a[1] b[2]\n```\nx[1]\n```", "a[^1] b[^2]\n```\nx[1]\n```" + list},
		{"numbers of definitions are kept apart", repair, "A[^3] b[^1].\n\n[^1]: Quote 1 [Page 1](https://a.org/1)\n[^3]: Quote 2 [Page 2](https://a.org/2)", "A[^2] b[^1].\n\n" + list},
		{"a bare address is a source", repair, "A[^1].\n[^1]: Quote https://a.org/x", "A[^1].\n\n\n[^1]: Quote [a.org](https://a.org/x)"},
		{"an address may have parentheses", repair, "A[^1].\n[^1]: Quote [b](https://a.org/x_(y))", "A[^1].\n\n\n[^1]: Quote [b](https://a.org/x_%28y%29)"},
		{"definitions in code are code", repair, "```\n[^1]: x https://a.org\n```", "```\n[^1]: x https://a.org\n```"},
		{"colons leave emphasis", Tidy, "**Note: **x and *y:* z", "**Note**:x and *y*: z"},
		{"times, links and code keep their colons", Tidy, "**12:30** **[a](https://a.org)** `**a:**`", "**12:30** **[a](https://a.org)** `**a:**`"},
		{"powers are no emphasis", Tidy, "2 ** 3: x ** 2", "2 ** 3: x ** 2"},
		{"self-closing tags go", Tidy, "a<br/>b<hr />c <center>d</center>\n```\n<br>\n```", "abc d\n```\n<br>\n```"},
		{"HTML tables keep breaks", Tidy, "<table><tr><td>a<br>b</td></tr></table><br>", "<table><tr><td>a<br>b</td></tr></table>"},
		{"tables stand apart", Tables, "see <table><tr><td>a|b</td></tr></table> end", "see \n\n| a\\|b |\n| --- |\n\n end"},
		{"the head comes first", Tables, "<table><tr><td>1</td></tr><thead><tr><th>A</th></tr></thead></table>", "| A |\n| --- |\n| 1 |\n"},
		{"columns may be covered", Tables, "<table><tr><td colspan=2>a</td></tr><tr><td>b<td>c</tr></table>", "| a | a |\n| --- | --- |\n| b | c |\n"},
		{"lists in cells are lists", Tables, "<table><tr><td><ul><li>a</li><li><b>b</b></li></ul></td></tr></table>", "| • a<br>• **b** |\n| --- |\n"},
		{"cells cannot write tags", Tables, "<table><tr><td>&lt;script&gt;</td></tr></table>", "| &lt;script> |\n| --- |\n"},
		{"tables in code and without an end stay", Tables, "`<table><tr><td>a</td></tr></table>` <table><tr>", "`<table><tr><td>a</td></tr></table>` <table><tr>"},
		{"code in nested lists is indented", IndentCode, "- a\n  - b\n    ```\n    x\n      y\n```", "- a\n  - b\n    ```\n      x\n        y\n    ```"},
		{"other fences within code are code", IndentCode, "  ~~~\n  ```\n~~~", "  ~~~\n  ```\n  ~~~"},
		{"less-than is no tag", WithoutTags, "a < b, x<y and <b>c</b>", "a < b, x<y and c"},
	} {
		t.Run(c.promise, func(t *testing.T) {
			if got := c.change(c.in); got != c.want {
				t.Fatalf("c.change(c.in) is %q, want %q", got, c.want)
			}
		})
	}
}

func TestLinksGetTitles(t *testing.T) {
	known := []weburl.Hit{{URL: "https://a.org/x_(y)", Title: "A [draft]\nof x"}}
	in := "[https://a.org/x_(y)](https://a.org/x_(y)) `[https://a.org](https://a.org)`"
	if got := FixLinks(in, known); got != `[A \[draft\] of x - a.org](https://a.org/x_(y)) `+"`[https://a.org](https://a.org)`" {
		t.Fatalf("FixLinks(in, known) is %q, want %q", got, `[A \[draft\] of x - a.org](https://a.org/x_(y)) `+"`[https://a.org](https://a.org)`")
	}
}

// all runs every repair in the order of an answer.
func all(md string) string {
	md = repair(md)
	for _, change := range []func(string) string{IndentCode, Tables, Tidy} {
		md = change(md)
	}
	return Footnotes(FixLinks(md, nil), []cite.Reference{{ExactQuote: md, URL: "https://a.org/(b)", Title: "]["}})
}

func FuzzRepair(f *testing.F) {
	for _, s := range []string{
		"", "a[^1], [^2]\n\n[^1]: q [t](https://a.org)", "```html\n<table><tr><td rowspan=9>x|\n```", "| a |\n| - |\n| **b:** <br> |",
		"- a\n  - b\n    ```go\n x[1]\n```", "****a：***b:**\n~~~\n<br>", "<table><td><p>* a\n* b", "[https://a.org](https://a.org) <a b='", "\xff`[^99999999999999999999]`",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(all(s)) {
			t.Fatal("utf8.ValidString(all(s)) is false, want true")
		}
		valid := strings.ToValidUTF8(s, "")
		if !utf8.ValidString(WithoutTags(valid)) {
			t.Fatal("utf8.ValidString(WithoutTags(valid)) is false, want true")
		}
		body := strings.NewReplacer("\n", "\n.", "`", "'", "~", "-", string(utf8.RuneError), "").Replace("." + valid)
		code := "```text\n" + body + "\n```"
		if got := all("See\n\n" + code + "\n\nend"); !strings.Contains(got, code) {
			t.Fatalf("code was changed: got %q, want it with %q", got, code)
		}
	})
}

func TestRepeatedPiecesTakeTimeInProportion(t *testing.T) {
	for _, piece := range []string{"[", "[^1", "[^1], ", "`", "`` ` ", "```\n", "```html\n", "**a", "*a: ", "<table>", "<table><tr><td>", "<td rowspan=20 colspan=20>x", "[https://a.org](", "[^1]: ", "\n[^1]: [", "|", "| |\n", "<br", "<", "- a\n", "<b>", "\n \n"} {
		all(strings.Repeat(piece, 50_000/len(piece)))
		WithoutTags(strings.Repeat(piece, 50_000/len(piece)))
		Tables("<table><tr><td>" + strings.Repeat(piece, 50_000/len(piece)) + "</table>")
	}
	wide := "<tr>" + strings.Repeat("<td rowspan=20 colspan=20>"+strings.Repeat("x", maxRepeat), 2) + strings.Repeat("<tr>", 19)
	table := "<table>" + strings.Repeat(wide, 400) + "</table>"
	if got := len(Tables(table)); got >= 10*len(table) {
		t.Fatalf("len(Tables(table)) is %d, want less than %d", got, 10*len(table))
	}
}

func TestMarksAreLedToSources(t *testing.T) {
	sources := []cite.Source{{URL: "https://a.org/1"}, {URL: "https://a.org/2"}}
	in := "A[^7]. B[^8]. C[^9].\n\n[^7]: Quote [T](https://www.a.org/2)\n[^8]: Quote https://a.org/1\n[^9]: Quote https://b.org"
	if got, want := LeadNotes(in, sources), "A[^2]. B[^1]. C."; got != want {
		t.Errorf("LeadNotes is %q, want %q", got, want)
	}
	if got := LeadNotes("A[^2].", sources); got != "A[^2]." {
		t.Errorf("without definitions it is %q", got)
	}
	if got, want := Renumber("A[^1], [2] `[^1]` B[^3].", []int{5, 4}), "A[^5], [^4] `[^1]` B."; got != want {
		t.Errorf("Renumber is %q, want %q", got, want)
	}
}
