package reader

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// places are the blocks of an article that a sentence may be in.
var places = map[string]string{
	"paragraph": "<p>%s</p>",
	"item":      "<ul><li>The first of three items stands here for company.</li><li>%s</li><li>And the third one.</li></ul>",
	"cell":      "<table><tr><th>Year</th><th>What happened</th></tr><tr><td>1802</td><td>%s</td></tr><tr><td>1810</td><td>The second floor.</td></tr></table>",
	"heading":   "<h2>%s</h2>",
	"quote":     "<blockquote>%s</blockquote>",
	"division":  "<div>%s</div>",
}

// articleWith is a normal article with one more block.
func articleWith(block string) string {
	prose := "<p>The mill at the bend of the river was built in 1802 by two brothers who could not agree on the colour of its door, and so it has two.</p>" +
		"<p>It has ground rye and barley for six generations, and on the first Sunday in May it still does, if the water is high enough for the wheel.</p>"
	last := "<p>Visitors are welcome on every other Sunday, when the bakery next door sells loaves from the flour that was ground here in the week before.</p>"
	return "<html><head><title>The mill</title></head><body><article><h1>The mill</h1>" + prose + block + last + "</article></body></html>"
}

func readArticle(t *testing.T, doc string) string {
	t.Helper()
	page, _, err := readHTML(doc, mill, "", time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return strings.Join(strings.Fields(page.Markdown), " ")
}

const before, inside, after = "Ahead of it seventeen geese", "kestrel forty-one", "crossed the old stone bridge at noon"

func sentence(element string) string { return before + " " + element + " " + after + "." }

// The elements of HTML, by what a browser makes of their content inside of a sentence.
var (
	wordsOf = strings.Fields(`a abbr acronym b bdi bdo big blink button cite code data del dfn em font i ins kbd label map mark
		marquee meter nobr object output progress q rb ruby s samp slot small spacer span strike strong sub sup time tt u unknown
		var relative-time x-y my-element7 g-emoji`)
	blockNames = strings.Fields(`address article blockquote center dd details dir div dl dt h1 h2 h3 h4 h5 h6 hgroup li listing
		main ol p pre search section summary ul xmp`)
	// It is not shown, it is a menu, or the extractor takes it for something beside the text.
	apartFrom = strings.Fields(`applet aside audio canvas datalist fieldset figcaption figure footer form header iframe menu nav
		noembed noframes noscript picture rp rt rtc script select style svg template textarea title video`)
	empty     = strings.Fields(`area base basefont bgsound br col embed hr img input keygen link meta param source track wbr`)
	misplaced = strings.Fields(`body caption colgroup frame frameset head html legend optgroup option tbody td tfoot th thead tr`)
)

func TestASentenceArrivesWholeWhateverElementIsInIt(t *testing.T) {
	t.Parallel()
	check := func(element string, want ...string) {
		t.Helper()
		for place, block := range places {
			got := readArticle(t, articleWith(fmt.Sprintf(block, sentence(element))))
			for _, part := range append(want, before, after, "Visitors are welcome", "six generations") {
				if found := strings.ReplaceAll(got, "`", ""); !strings.Contains(found, part) {
					t.Errorf("%s in a %s: got %q, want it with %q", element, place, found, part)
				}
			}
		}
	}
	for _, name := range wordsOf {
		check(fmt.Sprintf("<%s>%s</%s>", name, inside, name), sentence(inside))
		check(fmt.Sprintf("<%s class='share'>%s</%s>", name, inside, name), sentence(inside))
		check(fmt.Sprintf("<%s><b>kestrel</b> <x-z>forty-one</x-z></%s>", name, name), sentence(inside))
		check(fmt.Sprintf("<span><%s>%s</%s></span>", name, inside, name), sentence(inside))
		check(fmt.Sprintf("<%s></%s>", name, name))
		check(fmt.Sprintf("<%s hidden>secret</%s>", name, name))
	}
	delete(places, "cell") // a table with blocks inside is there to place them
	for _, name := range blockNames {
		check(fmt.Sprintf("<%s>%s</%s>", name, inside, name), inside)
	}
	for _, name := range append(apartFrom, misplaced...) {
		check(fmt.Sprintf("<%s>%s</%s>", name, inside, name))
	}
	for _, name := range empty {
		check(fmt.Sprintf("<%s>", name))
		check(fmt.Sprintf("<%s/>", name))
	}
}

func TestATableKeepsItsCaption(t *testing.T) {
	t.Parallel()
	got := readArticle(t, articleWith("<table><caption>Grain in <b>tonnes</b></caption><tr><th>Year</th><th>Rye</th></tr>"+
		"<tr><td>1802, the first year of the mill</td><td>12 tonnes</td></tr><tr><td>1803, a dry summer</td><td>9 tonnes</td></tr></table>"))
	if !strings.Contains(got, "Grain in tonnes | Year | Rye |") {
		t.Errorf("got is %q, want it with %q", got, "Grain in tonnes | Year | Rye |")
	}
}

func TestHiddenPartsOfASentenceLeaveTheRest(t *testing.T) {
	t.Parallel()
	contents := []string{
		"secret", "<math><mi>secret</mi></math>", "<svg><title/><style>a{}</style><path/></svg>", "<my-icon>secret</my-icon>", "<u>secret", "<i>secret</i>",
		"<x-a><x-b>secret</x-a></x-b>", "<canvas>secret</canvas>", "<video><source>secret</video>", "<progress>secret</progress>",
		"<ruby>secret<rt>secret</ruby>", "<select><option>secret</select>", "<object>secret</object>", "<button>secret</button>",
	}
	hidings := []string{"hidden", `aria-hidden="true"`, `style="display: none"`, `style="visibility:hidden"`}
	names := []string{"span", "b", "small", "font", "mjx-container", "mjx-assistive-mml", "a", "code", "time", "label", "nobr"}
	for i, name := range names {
		for j, content := range contents {
			element := fmt.Sprintf("<%s %s>%s</%s>", name, hidings[(i+j)%len(hidings)], content, name)
			var doc strings.Builder
			for _, block := range places {
				fmt.Fprintf(&doc, block, sentence(element)+" Then it <b>rained</b>.")
			}
			doc.WriteString("<p>" + element + "At first" + after + "</p>")
			got := readArticle(t, articleWith(doc.String()))
			if found := strings.Count(got, before+" "+after+". Then it rained."); found != len(places) {
				t.Errorf("%s: %s: got %d, want %d", element, got, found, len(places))
			}
			if !strings.Contains(got, "At first"+after) {
				t.Errorf("%s: got is %q, want it with %q", element, got, "At first"+after)
			}
			if strings.Contains(got, "secret") {
				t.Errorf("%s: got is %q, want it without %q", element, got, "secret")
			}
		}
	}
}

func TestWordsAreReadWithoutWhatIsBetweenTheirLetters(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]string{
		"Donau<wbr>dampf<wbr/>schiff": "Donaudampfschiff",
		"<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</rt></ruby>へ":                            "東京へ",
		"<ruby>京都<rt>きょうと</ruby>の":                                                               "京都の",
		"<ruby><rb>漢</rb><rb>字</rb><rtc><rt>かん</rt><rt>じ</rt></rtc></ruby>":                      "漢字",
		"un<x-y>believ</x-y>able":                                                                "unbelievable",
		"H<sub>2</sub>O<svg><text>no</text></svg>!":                                              "H2O!",
		"Updated <relative-time>Jan 2</relative-time> by":                                        "Updated Jan 2 by",
		"press <button>Start</button> now":                                                       "press Start now",
		"half <math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> of":                               "half 1/2 of",
		"<math><msup><mi>x</mi><mn>2</mn></msup></math> is":                                      "x^2 is",
		"<math alttext='a+b'><mi>a</mi></math> is":                                               "a+b is",
		"<math><mi>E</mi><annotation encoding='application/x-tex'>E=mc^2</annotation></math> is": "E=mc^2 is",
		"a<template shadowrootmode=open>b<slot></slot></template>c":                              "abc",
		"a<object data=x.swf>no</object>b":                                                       "ab",
		"<nobr>one <nobr>two</nobr> three":                                                       "one two three",
	} {
		for place, block := range places {
			got := readArticle(t, articleWith(fmt.Sprintf(block, sentence(element))))
			if !strings.Contains(got, before+" "+want) {
				t.Errorf("%s in a %s: got is %q, want it with %q", element, place, got, before+" "+want)
			}
			if !strings.Contains(got, after) {
				t.Errorf("%s in a %s: got is %q, want it with %q", element, place, got, after)
			}
		}
	}
}

// Each document is wrong in a way that browsers repair; nothing that they show is lost,
// and nothing that they hide is shown.
func TestElementsEndWhereBrowsersEndThem(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"<p>a<span hidden>x<p>b":                                    "a b",
		"<p>a<span hidden><div>x</div>y</span>z</p>b":               "a x yz b", // the div ends the paragraph, and the span in it
		"<div hidden>x<p>y</div>b":                                  "b",
		"<ul><li>a<span hidden>x<li>b</ul>c":                        "- a - b c",
		"<table><tr><td>a<span hidden>x<td>b<tr><td>c<td>d</table>": "| a | b | | --- | --- | | c | d |",
		"<div>a</p>b</div>":                                         "a b",
		"<p>a<object><div>b</div>c</object>d</p>":                   "a b cd",
		"<p>a<svg><g hidden><p>b</svg>c":                            "a bc",
		"<b hidden>x<p>y</b>z":                                      "z",
		"<i><i hidden>x</i>b</i>":                                   "b",
		"<table><tr><td>a</div></p>b<td>c<tr><td>d<td>e</table>f":   "| a b | c | | --- | --- | | d | e | f",
		"a</body>b</html>c":                                         "abc",
		"<dl><dt>a<dd>b<dt>c</dl>d":                                 "a b c d",
		"<select><option>x<p>y</select>b":                           "b",
		"<a href=x>a<a href=y>b</a>c":                               "abc",
	} {
		got := strings.Join(strings.Fields(render(t, doc)), " ")
		if got != want {
			t.Errorf("%s: got is %q, want %q", doc, got, want)
		}
	}
}
