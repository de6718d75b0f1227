package reader

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

var mill, _ = url.Parse("http://mill.test/a/b")

// render returns the Markdown of the body of a page, with everything kept.
func render(t *testing.T, body string) string {
	t.Helper()
	doc, _, err := parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	strip(doc)
	main := doc.FirstChild
	return toMarkdown(main, content(main, doc, nothing))
}

// nothing keeps no text, so that content keeps all.
var nothing extractor = func(*html.Node, []*html.Node) map[*html.Node]bool { return map[*html.Node]bool{} }

func TestMarkdownKeepsTheStructureOfAPage(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"headings":              {"<h1>A</h1><p>b <b>c</b>\n d<h3>E\nf</h3>", "# A\n\nb c d\n\n### E f"},
		"lists":                 {"<ul><li>a<li>b<ol start=3><li>c<li>d</ol><li>e</ul>f", "- a\n- b\n  3. c\n  4. d\n- e\n\nf"},
		"paragraphs in an item": {"<ul><li><p>a</p><p>b</p><li>c</ul>", "- a\n\n  b\n- c"},
		"quotes":                {"<blockquote><p>a</p><p>b<br>c</p><ul><li>d</ul></blockquote>e", "> a\n>\n> b\n> c\n>\n> - d\n\ne"},
		"code with its indents": {"<pre><code class='hljs language-go'>if x {\n    y()\n}\n</code></pre>", "```go\nif x {\n    y()\n}\n```"},
		"code with backticks":   {"<pre>a ``` b</pre>", "````\na ``` b\n````"},
		"code in lines":         {"<pre class=highlight><span>a</span><br>  b<div>c</div></pre>", "```\na\n  b\nc\n```"},
		"inline code":           {"<p>use <code>a  b</code> or <code>x`y</code>, <code> </code>", "use `a b` or `` x`y ``,"},
		"a table": {
			"<table><caption>All</caption><tr><th>A<th>B<tr><td>1|2<td><code>x</code><br>y</table>",
			"All\n\n| A | B |\n| --- | --- |\n| 1\\|2 | `x` y |",
		},
		"spans": {
			"<table><thead><tr><th rowspan=2>S<th colspan=2>T<tr><th>a<th>b<tbody><tr><td rowspan=2>x<td>1<td>2<tr><td>3<td>4</table>",
			"| S | T a | T b |\n| --- | --- | --- |\n| x | 1 | 2 |\n| x | 3 | 4 |",
		},
		"a layout table":            {"<table><tr><td><h2>Menu</h2><td><p>Text</p></table>", "## Menu\n\nText"},
		"tables inside tables":      {"<table><tr><td>a<td><table><tr><th>b<th>c<tr><td>d<td>e</table></table>", "a\n\n| b | c |\n| --- | --- |\n| d | e |"},
		"line breaks":               {"<p>a<br>b<br><br>c</p>", "a\nb\n\nc"},
		"links and images are text": {"<p>see <a href=/x>this <img src=y alt=z></a> page", "see this page"},
		"notes are not citations":   {"<p>fact<sup><a href=#n>[1]</a></sup> and<sup>[note 2]</sup> x<sup>2</sup>", "fact and x2"},
		"what is hidden":            {"<p>a<span style='display : none'>b</span><i hidden>c</i><b aria-hidden=true>d</b><u style='FONT-SIZE:0px'>e</u><s style='position:absolute;left:-9999px'>f</s>g<template>h</template><!-- i --></p>", "ag"},
		"invisible characters":      {"<p>a\u200bb\u00adc\u2060d\U000E0041e\u00a0f\u202eg 👩\u200d👧", "abcde fg 👩\u200d👧"},
		"small fonts are shown":     {"<p style='font-size:0.9em'>a</p>", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "notes are not citations" {
				doc, _, _ := parse([]byte(c.html + strings.Repeat("<p>more text of the page, so that the note is a small part of it", 5)))
				strip(doc)
				clean(doc)
				if got := toMarkdown(doc.FirstChild, content(doc.FirstChild, doc, nothing)); !strings.HasPrefix(got, c.want+"\n") {
					t.Errorf("got\n%s", got)
				}
				return
			}
			if got := render(t, c.html); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestTheEncodingOfAPageIsFound(t *testing.T) {
	zh, ja, ko := "云溪镇灯会始于清乾隆三十二年，最初是为了纪念修建石堤的七位工匠。", "星見岬の灯台守である佐伯千尋は、毎朝四時半に起きて、まず風速計の目盛りを確かめる。", "등대지기는 매일 아침 네 시 반에 일어나 먼저 풍속계의 눈금을 확인한다."
	gb, _ := simplifiedchinese.GB18030.NewEncoder().String(zh)
	big5, _ := traditionalchinese.Big5.NewEncoder().String("燈塔的看守人每天早上四點半起床，首先查看風速計的刻度。")
	sjis, _ := japanese.ShiftJIS.NewEncoder().String(ja)
	euc, _ := japanese.EUCJP.NewEncoder().String(ja)
	kr, _ := korean.EUCKR.NewEncoder().String(ko)
	for name, c := range map[string]struct{ body, header, text, charset string }{
		"nothing is said, UTF-8":        {zh, "text/html", zh, "utf-8"},
		"nothing is said, GB18030":      {strings.Repeat(gb, 3), "text/html", zh, "gbk"},
		"nothing is said, Shift JIS":    {strings.Repeat(sjis, 3), "", ja, "shift_jis"},
		"nothing is said, EUC-JP":       {strings.Repeat(euc, 3), "", ja, "euc-jp"},
		"nothing is said, EUC-KR":       {strings.Repeat(kr, 3), "", ko, "euc-kr"},
		"the header":                    {sjis, "text/html; charset=Shift_JIS", ja, "shift_jis"},
		"the header before the meta":    {"<meta charset=euc-jp>" + sjis, "text/html; charset=Shift_JIS", ja, "shift_jis"},
		"the meta":                      {"<meta http-equiv=x content='text/html; charset=gb2312'>" + gb, "text/html", zh, "gbk"},
		"big5":                          {big5, "text/html; charset=big5", "燈塔的看守人", "big5"},
		"latin-1 means windows-1252":    {"l\x92\xe9t\xe9", "text/html; charset=iso-8859-1", "l’été", "windows-1252"},
		"latin-1 that is UTF-8":         {zh, "text/html; charset=iso-8859-1", zh, "utf-8"},
		"a mark before everything":      {"\xef\xbb\xbf" + zh, "text/html; charset=gbk", zh, "utf-8"},
		"UTF-16 with a mark":            {"\xff\xfea\x00\x01\x4e", "text/html", "a丁", "utf-16le"},
		"UTF-16 said in ASCII":          {"<meta charset=utf-16>" + zh, "text/html", zh, "utf-8"},
		"an unknown name":               {zh, "text/html; charset=klingon", zh, "utf-8"},
		"UTF-8 that is broken, as said": {"a\xffb", "text/html; charset=utf-8", "a\uFFFDb", "utf-8"},
	} {
		t.Run(name, func(t *testing.T) {
			got, charset := decode([]byte(c.body), c.header)
			if !strings.Contains(got, c.text) || charset != c.charset || !utf8.ValidString(got) || strings.HasPrefix(got, "\uFEFF") {
				t.Errorf("got %s %.80q", charset, got)
			}
		})
	}
}

func TestTitlesLoseTheNameOfTheSite(t *testing.T) {
	for _, c := range []struct{ title, h1, site, want string }{
		{"The mill | The Coastal Courier", "", "", "The mill"},
		{"The mill at the bend of the river - Courier", "", "", "The mill at the bend of the river"},
		{"Courier | The mill at the bend of the river", "", "Courier", "The mill at the bend of the river"},
		{"云溪镇灯会_云溪在线", "", "", "云溪镇灯会"},
		{"The mill: a history", "The mill: a history", "", "The mill: a history"},
		{"The mill: a history", "", "", "The mill: a history"},
		{"The mill - a long history of grinding", "The mill", "", "The mill"},
		{"The mill", "Another heading", "", "The mill"},
		{"", "Heading", "", "Heading"},
		{"Self-made", "", "", "Self-made"},
		{"", "", "", ""},
	} {
		h := newHead(c.title, c.site)
		if got := h.pageTitle(c.h1); got != c.want {
			t.Errorf("%q, %q: got %q, want %q", c.title, c.h1, got, c.want)
		}
	}
}

func newHead(title, site string) head {
	return head{title: title, site: site, meta: map[string]string{}}
}

func TestDatesAreFoundAndWeighed(t *testing.T) {
	now := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		html, modified, want string
		sure                 int
	}{
		"meta":                     {`<meta property="article:published_time" content="2024-05-02T08:00:00+02:00"><h1>x</h1>`, "", "2024-05-02", sureMeta},
		"JSON-LD":                  {`<script type="application/ld+json">{"@graph":[{"datePublished":"2023-01-05"}]}</script>`, "", "2023-01-05", sureLinked},
		"a time element":           {`<h1>x</h1><p>By A <time datetime="2024-05-02">2 May</time>`, "", "2024-05-02", sureTime},
		"visible, English":         {`<h1>x</h1><div>Published 11 March 2025, 09:30</div>`, "", "2025-03-11", sureVisible},
		"visible, American":        {`<h1>x</h1><div>March 3rd, 2025</div>`, "", "2025-03-03", sureVisible},
		"visible, Chinese":         {`<h1>x</h1><div>2025年02月11日 10:20　来源</div>`, "", "2025-02-11", sureVisible},
		"visible, Japanese":        {`<h1>x</h1><div>公開日：2024年3月7日</div>`, "", "2024-03-07", sureVisible},
		"modified":                 {`<script type="application/ld+json">{"dateModified":"2023-01-05T10:00:00Z"}</script><h1>x</h1>`, "", "2023-01-05", sureModified},
		"the header is not relied": {`<h1>x</h1>`, "Mon, 02 Jan 2023 10:00:00 GMT", "2023-01-02", sureHeader},
		"in the future":            {`<meta property="article:published_time" content="2031-05-02">`, "", "0001-01-01", 0},
		"in the text far below":    {`<h1>x</h1>` + strings.Repeat("<p>a paragraph about something else", 20) + "<p>On 11 March 2025 it rained", "", "0001-01-01", 0},
		"not a date":               {`<h1>x</h1><p>99 May 2024</p><meta name=date content="yesterday">`, "", "0001-01-01", 0},
	} {
		t.Run(name, func(t *testing.T) {
			doc, rest, err := parse([]byte(c.html))
			if err != nil {
				t.Fatal(err)
			}
			got := published(readHead(doc, mill), rest.linked, doc, c.modified, now)
			if got.Time.Format(time.DateOnly) != c.want || got.Confidence != c.sure {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheHeadIsResolvedAgainstTheBase(t *testing.T) {
	for html, want := range map[string][3]string{
		`<link rel=canonical href="/c?x=1#f"><meta http-equiv=refresh content="0;url=next">`: {"http://mill.test/c?x=1", "http://mill.test/a/next", "http://mill.test/a/b"},
		`<base href="/d/"><link rel=canonical href=c>`:                                       {"http://mill.test/d/c", "", "http://mill.test/d/"},
		`<link rel=canonical href="http://other.test/c">`:                                    {"", "", "http://mill.test/a/b"},
		`<link rel=canonical href="https://www.mill.test/c">`:                                {"https://www.mill.test/c", "", "http://mill.test/a/b"},
		`<meta http-equiv=refresh content="300">`:                                            {"", "", "http://mill.test/a/b"},
		`<meta http-equiv=refresh content="60;url=/x"><base href="javascript:1">`:            {"", "", "http://mill.test/a/b"},
	} {
		doc, _, err := parse([]byte(html))
		if err != nil {
			t.Fatal(err)
		}
		h := readHead(doc, mill)
		next := ""
		if u := resolve(h.base, h.refresh); u != nil {
			next = u.String()
		}
		if got := [3]string{h.canonical, next, h.base.String()}; got != want {
			t.Errorf("%s: got %q", html, got)
		}
	}
}

func TestFeedsAreLists(t *testing.T) {
	for name, c := range map[string]struct{ doc, title, want, link string }{
		"RSS": {`<?xml version="1.0"?><rss><channel><title>T &amp; U</title><link>http://x.test/</link><item><title>One</title><link>/1</link><pubDate>Mon, 2 Jan 2023</pubDate><description><![CDATA[<p>Text <b>one</b></p><script>x</script>]]></description></item></channel></rss>`,
			"T & U", "- One (Mon, 2 Jan 2023)\n  Text one", "http://mill.test/1"},
		"Atom": {`<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><title>Two</title><link rel="self" href="/self"/><link href="/2"/><updated>2024-01-01</updated><summary>S</summary></entry></feed>`,
			"T", "- Two (2024-01-01)\n  S", "http://mill.test/2"},
	} {
		title, markdown, links, err := readFeed(c.doc, mill)
		if err != nil || title != c.title || markdown != c.want || len(links) != 1 || links[0].URL != c.link {
			t.Errorf("%s: %q %q %v %v", name, title, markdown, links, err)
		}
	}
	if _, _, _, err := readFeed("<svg><g/></svg>", mill); OutcomeOf(err) != Unsupported {
		t.Error("another kind of XML was read")
	}
}

func TestWallsAreToldFromPagesAboutThem(t *testing.T) {
	prose := "The clerk measured the length of the old harbour wall and wrote it down in a small green book. " +
		"Nobody had asked for this figure since the last flood, when eleven boats were lifted over the quay. " +
		"His grandmother remembered that night; she kept a jar of river mud on her kitchen shelf ever after. " +
		"Engineers from two provinces later argued whether granite or brick would have held against such water. " +
		"A bronze plate shows how high it rose, and children stretch their arms to touch its upper edge. "
	for name, c := range map[string]struct {
		html string
		want Outcome
		kind Kind
	}{
		"a page":                       {"<p>" + prose, OK, ""},
		"a challenge":                  {"<title>Just a moment...</title><p>Checking your browser", Blocked, KindChallenge},
		"a Chinese challenge":          {"<title>安全验证</title><p>请拖动滑块完成验证", Blocked, KindChallenge},
		"an article about captchas":    {"<title>How a captcha works</title><p>" + prose, OK, ""},
		"a paywall":                    {"<p>Short. Subscribe to continue reading", Blocked, KindPaywall},
		"a Chinese paywall":            {"<p>正文开头。开通会员阅读全文", Blocked, KindPaywall},
		"a long text with an offer":    {"<p>" + strings.Repeat(prose, 4) + "<p>Subscribe to continue reading", OK, ""},
		"a consent wall":               {"<p>We value your privacy<p><button>Accept all</button>", Blocked, KindConsent},
		"a page with a cookie note":    {"<p>" + prose + "<p>We use cookies. <button>Accept all</button>", OK, ""},
		"a soft 404":                   {"<title>Page not found</title><p>Sorry.", NotFound, ""},
		"a Chinese soft 404":           {"<h1>页面不存在</h1><p>请返回", NotFound, ""},
		"a long page about status 404": {"<title>Why 404?</title><p>" + strings.Repeat(prose, 3), OK, ""},
		"a shell":                      {"<script></script><p>Loading", Empty, ""},
		"nothing":                      {"<p>", Empty, ""},
		"spam":                         {"<p>" + strings.Repeat("best casino bonus free spins ", 40), Spam, ""},
		"a table of numbers":           {"<table>" + strings.Repeat("<tr><td>12<td>13.5<td>99", 100) + "</table>", OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readHTML(c.html, mill, "", time.Unix(1_700_000_000, 0))
			var e *Error
			if got := OutcomeOf(err); got != c.want || errors.As(err, &e) && e.Kind != c.kind {
				t.Errorf("got %v, want %s %s", err, c.want, c.kind)
			}
		})
	}
}

func TestNearDuplicatesShareTheirText(t *testing.T) {
	words := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			b.WriteString("word" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + " ")
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"the same":                  {words(0, 300), words(0, 300), true},
		"most of it":                {words(0, 300), words(0, 200), true},
		"a small part":              {words(0, 300), words(0, 60), false},
		"half of it and other text": {words(0, 200), words(100, 300), false},
		"two short texts":           {"a b c d e", "a b c d e", false},
		"long texts":                {words(0, 20_000), words(500, 20_000), true},
		"Chinese":                   {strings.Repeat("云溪镇灯会始于清乾隆三十二年最初是为了纪念修建石堤的七位工匠", 1) + "甲", "云溪镇灯会始于清乾隆三十二年，最初是为了纪念修建石堤的七位工匠。", true},
	} {
		if got := NearDuplicate(ShinglesOf(c.a), ShinglesOf(c.b)); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func FuzzReadHTML(f *testing.F) {
	for _, shape := range shapes {
		if doc := shape(300); len(doc) < 1000 {
			f.Add([]byte(doc), "text/html")
		}
	}
	f.Add([]byte("\xff\xfe<\x00p\x00>\x00"), "text/html; charset=utf-16")
	f.Add([]byte("<p>a<table><tr><td>b<td>c<tr><th rowspan=9>d</table><pre>`</pre>"), "text/html; charset=gbk")
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		text, _ := decode(body, header)
		if !utf8.ValidString(text) {
			t.Fatal("decode returned invalid UTF-8")
		}
		page, _, err := readHTML(text, mill, "", time.Unix(1_700_000_000, 0))
		if err != nil {
			return
		}
		if page != nil && (!utf8.ValidString(page.Markdown) || !utf8.ValidString(page.Title)) {
			t.Fatal("the page has invalid UTF-8")
		}
		again, _, err := readHTML(text, mill, "", time.Unix(1_700_000_000, 0))
		if err != nil || page != nil && again.Markdown != page.Markdown {
			t.Fatal("the same page was read in two ways")
		}
	})
}

func FuzzReadFeed(f *testing.F) {
	f.Add("<rss><channel><title>a</title><item><title>b</title><link>c</link></item></channel></rss>")
	f.Add("<feed><entry><title>b</title><link href='c'/><content>&lt;p&gt;x</content></entry>")
	f.Fuzz(func(t *testing.T, doc string) {
		if _, markdown, _, _ := readFeed(plain(doc), mill); !utf8.ValidString(markdown) {
			t.Fatal("invalid UTF-8")
		}
	})
}
