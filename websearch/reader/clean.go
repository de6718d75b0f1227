package reader

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"nodest/internal/mathml"
)

var (
	// neverText has the elements whose content a browser does not show, or shows as
	// something else than text; wbr has none, and would only part a word.
	neverText = set(atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Embed, atom.Applet, atom.Canvas, atom.Audio,
		atom.Video, atom.Select, atom.Datalist, atom.Textarea, atom.Input, atom.Nav, atom.Menu, atom.Link, atom.Meta, atom.Title,
		atom.Rt, atom.Rp, atom.Rtc, atom.Wbr)

	// hiding styles, in a style attribute without white space.
	hiding = regexp.MustCompile(`display:none|visibility:(hidden|collapse)|font-size:0(\.0*)?([a-z%]*)(;|!|$)|` +
		`(left|top|right|text-indent|margin-left):-\d{3,}|clip:rect\((0|1px)|clip-path:inset\((50|100)%`)

	// furniture is what classes and ids call the parts of a page that are not its content.
	furniture = regexp.MustCompile(`(?:^|[-_ ])(?:` +
		`cookies?|gdpr|ccpa|consent(?:s|box|banner)?|` +
		`newsletters?|subscribe|sign-?up|mailing-?list|` +
		`share|sharing|share-?(?:bar|box|links?|buttons?|this)|social(?:-?(?:bar|links|media|share|icons))?|addthis|` +
		`related|recommend(?:ed|ations?)|trending|most-?(?:read|popular|viewed)|read-?(?:also|next)|see-?also|you-?may-?like|more-?stories|` +
		`promos?|promoted|ads?|adverts?|advertise(?:ment|ments)?|ad-?(?:slot|box|unit|container)|sponsors?|sponsored|taboola|outbrain|` +
		`breadcrumbs?|pager|pagination|page-?nav|prev-?next|side-?bar|nav-?bar|top-?bar|tool-?bar|(?:main-?|top-?|site-?)?menu|` +
		`comments?(?:-?(?:list|area|section|form))?|disqus|` +
		`cart|basket|buy|checkout|` +
		`helpful|feedback|rate-?this|` +
		`skip(?:-?(?:link|nav|to-content))?|sr-only|visually-?hidden|screen-?reader(?:-text)?|` +
		`modal|pop-?up|overlay|lightbox|tooltip|log-?in|sign-?in|` +
		`edit-?section|no-?print|copyright|(?:hit-?|visitor-?)?counter|(?:quick-?)?reply(?:-?(?:box|form))|(?:quick|fast)-?reply` +
		`)(?:$|[-_ ])`)

	heads = data.Rule("other-pages") // the headings of lists of other pages
	lines = data.Rule("site-line")   // short blocks that accompany every page of a site

	// apart is what classes call the inline elements that are not shown in their line.
	apart = regexp.MustCompile(`(?:^|[-_ ])(?:sr-only|visually-?hidden|screen-?reader(?:-text)?|tooltip|modal|pop-?up|overlay|` +
		`edit-?section|no-?print|skip(?:-?(?:link|nav|to-content))?)(?:$|[-_ ])`)

	anchorMark = regexp.MustCompile(`^[¶#§🔗]+$`)
	noteMark   = regexp.MustCompile(`^\[(?:\d{1,3}|[a-z]|note \d{1,3}|注 ?\d{1,3}|citation needed|edit)\]$`)
)

// strip removes from a parsed page what a visitor does not see or cannot read.
func strip(doc *html.Node) {
	mathml.OneForm(doc)
	for n := range nodes(doc) {
		switch n.Type {
		case html.CommentNode, html.DoctypeNode:
			remove(n)
		case html.TextNode:
			if n.Data = plain(n.Data); n.Data == "" {
				remove(n)
			}
		case html.ElementNode:
			if unseen(n) || hidden(n) {
				remove(n)
			}
		}
	}
	joinTexts(doc)
}

// clean removes from a stripped page the boxes and lines that accompany the content.
func clean(doc *html.Node) {
	s := measure(doc)
	body := first(doc, atom.Body)
	if body == nil {
		return
	}
	for n := range nodes(body) {
		if n.Type == html.ElementNode && s[n]*5 < s[body]*2 && boilerplate(n, s) {
			remove(n)
		}
	}
}

// plain removes the characters of a text that cannot be seen, and turns special spaces
// into ordinary ones.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == 0xAD, r == 0x180E, r >= 0x200B && r <= 0x200C, r == 0x200E, r == 0x200F,
			r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F, r == 0xFEFF, r == 0xFFFD,
			r >= 0xE000 && r <= 0xF8FF, r >= 0xE0000: // tags and private use
			return -1
		case r == 0x2028, r == 0x2029, r == '\r':
			return '\n'
		case unicode.IsSpace(r) && r != 0x3000, r >= 0x2000 && r <= 0x200A:
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// joinTexts makes one text of those that a removed node had separated.
func joinTexts(doc *html.Node) {
	for n := range nodes(doc) {
		if n.Type != html.TextNode {
			continue
		}
		next := n.NextSibling
		if next == nil || next.Type != html.TextNode {
			continue
		}
		var b strings.Builder
		b.WriteString(n.Data)
		for next != nil && next.Type == html.TextNode {
			b.WriteString(next.Data)
			gone := next
			next = next.NextSibling
			remove(gone)
		}
		n.Data = b.String()
	}
}

// unseen reports whether an element has no text for a visitor, whatever its style. A button
// in the middle of a sentence is a word of it.
func unseen(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Object:
		return hasAttr(n, "data") || hasAttr(n, "type") // else its content is shown
	case atom.Template:
		return !hasAttr(n, "shadowrootmode")
	case atom.Button:
		return !amidst(n)
	}
	return neverText[n.DataAtom] || n.Namespace == "svg"
}

// hidden reports whether a visitor does not see an element.
func hidden(n *html.Node) bool {
	if is(n, atom.Html, atom.Body) {
		return false
	}
	if hasAttr(n, "hidden") && attr(n, "hidden") != "until-found" || strings.EqualFold(attr(n, "aria-hidden"), "true") ||
		is(n, atom.Dialog) && !hasAttr(n, "open") {
		return true
	}
	style := attr(n, "style")
	return style != "" && hiding.MatchString(strings.Join(strings.Fields(strings.ToLower(style)), ""))
}

// boilerplate reports whether an element accompanies the content of a page.
func boilerplate(n *html.Node, s sizes) bool {
	switch n.DataAtom {
	case atom.Sup, atom.Span, atom.A:
		return isMark(text(n)) || is(n, atom.Span) && besidesText(n)
	case atom.Footer, atom.Aside:
		return within(n.Parent, atom.Article, atom.Main, atom.Blockquote) == nil || named(n)
	case atom.Header:
		return within(n.Parent, atom.Article, atom.Main) == nil && first(n, atom.H1) == nil
	case atom.Html, atom.Body, atom.Main, atom.Article, atom.Table, atom.Tbody, atom.Tr, atom.Pre, atom.Code, atom.H1:
		return false
	case atom.Td, atom.Li:
		return s[n] < 200 && line(n)
	}
	if inline[n.DataAtom] {
		return besidesText(n)
	}
	return named(n) || s[n] < 200 && line(n) || list(n, s)
}

// besidesText reports whether an inline element is furniture: its class says so, and it is
// no word of a sentence, or a class for what is not shown in the line.
func besidesText(n *html.Node) bool {
	return named(n) && (!amidst(n) || apart.MatchString(split(attr(n, "class")+" "+attr(n, "id"))))
}

// isMark reports whether a text is only there to be clicked at: the anchor of a heading,
// or the number of a note, which would look like a citation.
func isMark(s string) bool {
	return len(s) < 20 && (anchorMark.MatchString(s) || noteMark.MatchString(s))
}

// named reports whether the class, id or role of an element says that it is furniture.
func named(n *html.Node) bool {
	switch attr(n, "role") {
	case "navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu", "menubar", "toolbar":
		return true
	}
	name := attr(n, "class") + " " + attr(n, "id")
	return len(name) > 1 && len(name) < 500 && furniture.MatchString(split(name))
}

// split writes a class name in words: "relatedStories" becomes "related-stories".
func split(s string) string {
	var b strings.Builder
	lower := false
	for _, r := range s {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('-')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// line reports whether a block is one of the lines that accompany every page.
func line(n *html.Node) bool {
	if inline[n.DataAtom] || is(n, atom.H1, atom.Ul, atom.Ol) {
		return false
	}
	t := text(n)
	return t != "" && lines.MatchString(t)
}

// list reports whether an element is a list of links to other pages under a heading that says so.
func list(n *html.Node, s sizes) bool {
	if !is(n, atom.Div, atom.Section, atom.Aside, atom.Ul, atom.Dl) || s[n] == 0 {
		return false
	}
	head := firstText(n)
	if head == nil || !heads.MatchString(strings.TrimSpace(head.Data)) {
		return false
	}
	links := 0
	for a := range nodes(n) {
		if is(a, atom.A) {
			links += s[a]
		}
	}
	return links*2 > s[n]-weight(head.Data)
}

func firstText(root *html.Node) *html.Node {
	for n := range nodes(root) {
		if n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" {
			return n
		}
	}
	return nil
}
