package reader

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// view is what a page shows before anything is removed from it, in its order.
type view struct {
	title, h1 string
	said      []phrase // about mostSaid at most; those beside the content only if they are in a gate
	password  bool     // it has a field for one
	fields    int      // for other texts
	buttons   int
	robots    bool // it has a test for them
	closed    bool // it tells search engines that it is not free to read
	scripts   bool // it says that it needs them
}

// phrase is a sentence of a page, or the text of a button or link that stands alone.
type phrase struct {
	text   string
	weight int
	gate   Kind // that of the element around it, or ""
	label  bool
	side   bool // in a header, footer or menu
}

const (
	mostSaid  = 500 // walls have fewer sentences and labels
	mostLabel = 60  // weight
	mostGate  = 800 // weight; a longer element has more than a wall in it
)

// unshown is what a page has without showing it.
type unshown struct {
	linked  [][]byte // the text of its JSON-LD scripts, at most 256 KB each
	robots  bool     // a test for them
	scripts bool     // it says that it needs them
}

var (
	// robotTest is what the scripts and elements of tests for robots are called.
	robotTest = regexp.MustCompile(`captcha|turnstile|geetest|challenge-?(?:platform|form|running)|datadome|perimeterx|_incapsula_|human-?check|robot-?check`)

	needsScripts = regexp.MustCompile(`(?i)java ?script|\bjs\b`)

	notFree = regexp.MustCompile(`(?i)"isAccessibleForFree"\s*:\s*"?(?:https?://schema\.org/)?false`)

	// gates is what classes and ids call walls, in whatever language the page is.
	gates = []struct {
		kind Kind
		name *regexp.Regexp
	}{
		{KindPaywall, regexp.MustCompile(`(?:pay|reg|meter|subscri(?:be|ption))-?wall|(?:article|content|premium)-?(?:lock|gate|wall)|locked-?content`)},
		{KindLogin, regexp.MustCompile(`(?:log-?in|sign-?in|auth)-?(?:wall|gate|required)`)},
		{KindAge, regexp.MustCompile(`age-?(?:gate|check|wall|verif|confirm)`)},
		{KindConsent, regexp.MustCompile(`\bcookies?\b|cookie-?(?:wall|banner|notice)|consent|gdpr|privacy-?(?:wall|banner)`)},
		{KindApp, regexp.MustCompile(`(?:open|download)-?(?:in-?)?app\b|app-?(?:wall|interstitial)`)},
	}
)

// viewOf returns what a parsed page shows.
func viewOf(doc *html.Node, h head, out unshown) *view {
	b := viewer{view: view{title: fold(h.title), h1: fold(text(first(doc, atom.H1))), robots: out.robots, scripts: out.scripts}}
	b.closed = strings.EqualFold(h.meta["isaccessibleforfree"], "false") || strings.EqualFold(h.meta["article:content_tier"], "locked")
	for _, script := range out.linked {
		b.closed = b.closed || notFree.Match(script)
	}
	if body := first(doc, atom.Body); body != nil {
		tour(body, b.enter, b.leave)
		b.flush()
	}
	return &b.view
}

// viewer collects a view. A sentence has the links in it; buttons stand alone.
type viewer struct {
	view
	open  []element // around the place where it is
	block []piece   // texts since the last element that is no line
}

type element struct {
	gate  Kind
	side  bool
	label *html.Node // the button or link
}

type piece struct {
	text string
	at   element
}

// enter reads a node, and reports whether those in it are read.
func (b *viewer) enter(n *html.Node) bool {
	switch n.Type {
	case html.TextNode:
		b.block = append(b.block, piece{n.Data, b.here()})
	case html.ElementNode:
		return b.enterElement(n)
	}
	return true
}

// here is the element around the place where the viewer is.
func (b *viewer) here() element {
	if len(b.open) == 0 {
		return element{}
	}
	return b.open[len(b.open)-1]
}

func (b *viewer) enterElement(n *html.Node) bool {
	if !inline[n.DataAtom] || n.DataAtom == atom.Br {
		b.flush()
	}
	if len(b.said) >= mostSaid {
		b.open = append(b.open, b.here())
		return false
	}
	name := split(cut(attr(n, "class")+" "+attr(n, "id"), maxLabel))
	e := b.here().with(n, name)
	b.open = append(b.open, e)
	if e.label == n && !is(n, atom.A) && !e.side && !hidden(n) {
		b.buttons++
	}
	if b.passes(n) {
		return false
	}
	b.robots = b.robots || testsRobots(n, name)
	b.field(n)
	return !is(n, atom.Textarea, atom.Iframe)
}

// with is an element that has the node n, whose classes and id are name, in e.
func (e element) with(n *html.Node, name string) element {
	e.gate = cmp.Or(gateOf(n, name), e.gate)
	e.side = e.side || accompanies(n)
	if is(n, atom.Button, atom.A) || attr(n, "role") == "button" {
		e.label = n
	}
	return e
}

// testsRobots reports whether an element is a test for robots, by its name or by where its frame comes from.
func testsRobots(n *html.Node, name string) bool {
	return robotTest.MatchString(name) || is(n, atom.Iframe) && robotTest.MatchString(strings.ToLower(attr(n, "src")))
}

// passes reports whether an element shows nothing that counts.
func (*viewer) passes(n *html.Node) bool {
	return hidden(n) || unseen(n) && !is(n, atom.Button, atom.Nav, atom.Menu, atom.Input, atom.Textarea, atom.Iframe)
}

// gateOf returns the kind of wall that an element is by its name, or "".
func gateOf(n *html.Node, name string) (kind Kind) {
	for _, g := range gates {
		if name != " " && g.name.MatchString(name) && first(n, atom.H1) == nil && weight(text(n)) <= mostGate {
			kind = g.kind
		}
	}
	return kind
}

func (b *viewer) leave(n *html.Node) {
	if !inline[n.DataAtom] {
		b.flush()
	}
	b.open = b.open[:len(b.open)-1]
}

// accompanies reports whether an element is beside the content of a page.
func accompanies(n *html.Node) bool {
	switch attr(n, "role") {
	case "navigation", "banner", "contentinfo", "search":
		return true
	}
	return is(n, atom.Nav, atom.Footer, atom.Menu, atom.Aside) || is(n, atom.Header) && first(n, atom.H1) == nil
}

// field counts a field of a form.
func (b *viewer) field(n *html.Node) {
	if is(n, atom.Textarea) {
		b.fields += 2
	}
	if !is(n, atom.Input) {
		return
	}
	switch kind := strings.ToLower(attr(n, "type")); kind {
	case "password":
		b.password = true
	case "submit", "button":
		b.buttons++
		b.add(attr(n, "value"), b.here(), true)
	case "", "text", "email", "tel", "number", "date":
		b.fields++
	}
}

// flush ends a block. If it has no words outside its links, they are labels.
func (b *viewer) flush() {
	var line strings.Builder
	var labels []piece
	words := false
	for _, p := range b.block {
		if p.at.label == nil {
			words = words || weight(p.text) > 2
		} else if n := len(labels); n > 0 && labels[n-1].at.label == p.at.label {
			labels[n-1].text += p.text
		} else {
			labels = append(labels, p)
		}
		if !is(p.at.label, atom.Button) {
			line.WriteString(p.text)
		}
	}
	if words {
		e := b.block[0].at
		for t := range sentencesOf(line.String()) {
			if !slices.ContainsFunc(labels, func(l piece) bool { return strings.TrimSpace(l.text) == strings.TrimSpace(t) }) {
				b.add(t, e, false)
			}
		}
	}
	for _, l := range labels {
		if !words || weight(l.text) <= mostLabel {
			b.add(l.text, l.at, true)
		}
	}
	b.block = b.block[:0]
}

func (b *viewer) add(said string, e element, label bool) {
	said = fold(said)
	if w := weight(said); w > 0 && (!e.side || e.gate != "") {
		b.said = append(b.said, phrase{text: said, weight: w, gate: e.gate, label: label, side: e.side})
	}
}

// fold is a text in one line with plain apostrophes.
func fold(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(plain(s)), " "), "’", "'")
}

var sentenceEnd = regexp.MustCompile(`[.!?…]+(?:\s+|$)|[。！？]+`)

// sentencesOf yields the sentences of a block.
func sentencesOf(block string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for _, end := range sentenceEnd.FindAllStringIndex(block, -1) {
			if !yield(block[from:end[1]]) {
				return
			}
			from = end[1]
		}
		if from < len(block) {
			yield(block[from:])
		}
	}
}
