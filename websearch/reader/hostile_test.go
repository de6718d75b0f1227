package reader

import (
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shapes are documents of almost 3 MB that are expensive for a careless reader.
var shapes = map[string]func(n int) string{
	"nested divs":          func(n int) string { return strings.Repeat("<div>", n/5) + "bottom" },
	"nested lists":         func(n int) string { return strings.Repeat("<ul><li>x", n/9) },
	"nested tables":        func(n int) string { return strings.Repeat("<table><tr><td>x", n/16) },
	"nested quotes":        func(n int) string { return strings.Repeat("<blockquote>x", n/13) },
	"nested spans":         func(n int) string { return strings.Repeat("<span>x", n/7) },
	"nested unknown":       func(n int) string { return strings.Repeat("<x-y>x", n/6) },
	"nested links":         func(n int) string { return strings.Repeat("<a href=x>x", n/11) },
	"nested cells":         func(n int) string { return strings.Repeat("<table><td>", n/11) + "bottom" },
	"nested linked divs":   func(n int) string { return strings.Repeat("<a href=x><div>", n/15) + "bottom" },
	"nested bold divs":     func(n int) string { return strings.Repeat("<b><div></b>", n/12) + "bottom" },
	"nested buttons":       func(n int) string { return strings.Repeat("<p><button>", n/11) + "bottom" },
	"nested objects":       func(n int) string { return strings.Repeat("<p><object><p>", n/14) + "bottom" },
	"foreign objects":      func(n int) string { return strings.Repeat("<svg><foreignObject><p>", n/23) + "bottom" },
	"unclosed paragraphs":  func(n int) string { return strings.Repeat("<p>x", n/4) },
	"paragraphs":           func(n int) string { return strings.Repeat("<p>and again </p>", n/17) },
	"formatting":           func(n int) string { return strings.Repeat("<b><i><u><s><em>", 100) + strings.Repeat("<p>x", n/4) },
	"other formatting":     func(n int) string { return strings.Repeat("<b a=1><font b=2>x</p>", n/22) },
	"crossed":              func(n int) string { return strings.Repeat("<b><div></b></div>x", n/19) },
	"end tags":             func(n int) string { return strings.Repeat("</div></p></b>", n/14) },
	"line breaks":          func(n int) string { return strings.Repeat("x<br>", n/5) },
	"entities":             func(n int) string { return strings.Repeat("&amp;", n/5) },
	"one word":             func(n int) string { return strings.Repeat("x", n) },
	"unclosed tag":         func(n int) string { return "<a " + strings.Repeat("b=c ", n/4) },
	"attributes":           func(n int) string { return strings.Repeat("<p a=1 b=2 c=3 d=4 class='x y z'>t", n/34) },
	"short attributes":     func(n int) string { return strings.Repeat("<p a b c d e f g h i j k l m n o p q r s t>u", n/45) },
	"one tag":              func(n int) string { return "<p " + strings.Repeat("b ", n/2) + "hidden>secret<p>shown" },
	"long class":           func(n int) string { return "<p class='" + strings.Repeat("share-", n/6) + "'>x" },
	"comments":             func(n int) string { return strings.Repeat("x<!-- -->", n/9) },
	"rows":                 func(n int) string { return "<table>" + strings.Repeat("<tr><td colspan=99 rowspan=99>cell", n/34) },
	"many tables":          func(n int) string { return strings.Repeat("<table><tr><th>a<th>b<tr><td>c<td>d</table>", n/43) },
	"foster parents":       func(n int) string { return "<table>" + strings.Repeat("x<b>y</b>", n/9) },
	"headers":              func(n int) string { return strings.Repeat("<header><div>x", n/14) },
	"svg":                  func(n int) string { return "<svg>" + strings.Repeat("<g><a>x", n/7) },
	"templates":            func(n int) string { return strings.Repeat("<template><p>x", n/14) },
	"select":               func(n int) string { return "<select>" + strings.Repeat("<option>x", n/9) },
	"links":                func(n int) string { return strings.Repeat("<li><a href=/x>read also</a>", n/28) },
	"posts":                func(n int) string { return strings.Repeat("<div class=post><p>text text text</p></div>", n/43) },
	"related":              func(n int) string { return strings.Repeat("<div>Related: <a href=x>y</a>", n/29) },
	"styles":               func(n int) string { return strings.Repeat("<p style='font-size:1px'>word word", n/34) },
	"inputs":               func(n int) string { return strings.Repeat("<input>", n/7) },
	"code":                 func(n int) string { return "<pre>" + strings.Repeat("<span>`</span>", n/14) },
	"frames":               func(n int) string { return strings.Repeat("<frameset><frame>", n/17) },
	"forms":                func(n int) string { return strings.Repeat("<form><p>x", n/10) },
	"ruby":                 func(n int) string { return strings.Repeat("<ruby>x<rt>y", n/12) },
	"definition lists":     func(n int) string { return strings.Repeat("<dl><dt>a<dd>b", n/14) },
	"headings":             func(n int) string { return strings.Repeat("<h1>word", n/8) },
	"sixteen thousand":     func(int) string { return strings.Repeat("<div><section><em>", 5334) + "bottom" },
	"twenty thousand divs": func(int) string { return strings.Repeat("<div>", 20_000) + "bottom" + strings.Repeat("</div>", 20_000) },
}

// The figures are printed; NODEST_LONG=1 reads documents of the greatest length. A shape whose time grows with the square of its length would
// take minutes, and the test would not end.
func TestHostileDocumentsAreReadInTimeInProportionToTheirLength(t *testing.T) {
	at, _ := url.Parse("http://a.test/")
	lengths := []int{10_000, 50_000}
	if share, err := strconv.ParseFloat(os.Getenv("NODEST_LONG"), 64); err == nil && share >= 1 {
		lengths = []int{50_000, 200_000, 400_000, maxHTML - 1}
	}
	for name, make := range shapes {
		t.Run(name, func(t *testing.T) {
			for _, length := range lengths {
				doc := make(length)
				start := time.Now()
				_, _, err := readHTML(doc, at, "", start)
				t.Logf("%s, %d kB: %.2f s, %s", name, length/1000, time.Since(start).Seconds(), OutcomeOf(err))
			}
		})
	}
}

func TestWhatIsHiddenStaysSoWhateverTheNumberOfAttributes(t *testing.T) {
	t.Parallel()
	doc := "<p>shown</p>" + shapes["short attributes"](maxHTML/2) + "<p>at last</p><p style='display:none' x=1>secret</p>"
	if got := render(t, doc); !strings.Contains(got, "at last") || strings.Contains(got, "secret") {
		t.Error("the end is", got[max(0, len(got)-100):])
	}
	if got := render(t, shapes["one tag"](maxHTML)); !strings.Contains(got, "shown") {
		t.Error("got", got[:min(100, len(got))])
	}
}

func TestTheTextAtTheBottomOfDeepPagesIsKept(t *testing.T) {
	at, _ := url.Parse("http://a.test/")
	for _, name := range []string{"sixteen thousand", "twenty thousand divs", "nested divs", "nested cells", "nested linked divs", "nested bold divs", "nested objects"} {
		page, _, err := readHTML(shapes[name](300_000), at, "", time.Now())
		if err != nil || !strings.Contains(page.Markdown, "bottom") {
			t.Errorf("%s: got %v, %v", name, page, err)
		}
	}
}
