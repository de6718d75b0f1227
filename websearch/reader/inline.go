package reader

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

var (
	// inline has the elements that stand in a line.
	inline = set(atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Button, atom.Cite, atom.Code,
		atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Img, atom.Input, atom.Ins, atom.Kbd, atom.Label, atom.Map,
		atom.Mark, atom.Marquee, atom.Meter, atom.Nobr, atom.Object, atom.Option, atom.Output, atom.Picture, atom.Progress, atom.Q, atom.Rb,
		atom.Ruby, atom.S, atom.Samp, atom.Select, atom.Slot, atom.Small, atom.Source, atom.Span, atom.Strike, atom.Strong,
		atom.Sub, atom.Sup, atom.Template, atom.Time, atom.Tt, atom.U, atom.Var)

	// styled has those of them that say something about their text that is used later:
	// links, code, marks of notes, and what the extractor weighs.
	styled = set(atom.A, atom.B, atom.Code, atom.Del, atom.Em, atom.I, atom.Img, atom.Kbd, atom.Q, atom.S, atom.Samp, atom.Span,
		atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Tt, atom.U, atom.Var)

	// phrases are blocks that contain nothing but lines.
	phrases = set(atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Dt, atom.Pre, atom.Figcaption, atom.Caption,
		atom.Summary, atom.Legend)
)

// custom reports whether an element has a name that HTML does not know, such as
// relative-time. Browsers show it in the line, unless a style says otherwise.
func custom(n *html.Node) bool {
	return n.Type == html.ElementNode && n.Namespace == "" && !inline[n.DataAtom] && !void[n.DataAtom] && !special[n.Data] && !structure[n.DataAtom]
}

// structure are elements that are neither in a line nor ordinary blocks.
var structure = set(atom.Html, atom.Head, atom.Body, atom.Frameset, atom.Legend, atom.Optgroup)

// unwrap puts the texts of a sentence in one place: an element in it that says nothing about its
// text is replaced by its content, because the extractor drops many of them with their text, or
// with all that follows. Other elements of unknown names become blocks.
func unwrap(root *html.Node) {
	for n := root.FirstChild; n != nil; {
		next := n.FirstChild
		if next == nil {
			next = following(n, root)
		}
		if known, ok := alike[n.DataAtom]; ok {
			rename(n, known)
		}
		switch own := custom(n); {
		case !own && (n.Type != html.ElementNode || void[n.DataAtom] || !inline[n.DataAtom] || styled[n.DataAtom] && n.FirstChild != nil):
		case n.FirstChild == nil, besidesText(n):
			next = following(n, root)
			remove(n)
		case is(n, atom.Template), inSentence(n):
			replaceByContent(n)
		case own:
			rename(n, atom.Div)
		}
		n = next
	}
	joinTexts(root)
	wrapLines(root)
}

func rename(n *html.Node, to atom.Atom) { n.Data, n.DataAtom = to.String(), to }

// alike has blocks that the extractor does not know, and those that are shown alike.
var alike = map[atom.Atom]atom.Atom{atom.Center: atom.Div, atom.Dir: atom.Div, atom.Search: atom.Div, atom.Listing: atom.Pre}

// flows are the elements in which lines and blocks may stand side by side.
var flows = set(atom.Body, atom.Article, atom.Main, atom.Section, atom.Div, atom.Form, atom.Fieldset, atom.Blockquote)

// wrapLines makes paragraphs of the lines beside blocks, such as those behind a list that
// has ended the paragraph around it: the extractor knows no text without one.
func wrapLines(root *html.Node) {
	for n := range nodes(root) {
		if n.Type != html.ElementNode || !flows[n.DataAtom] || is(n, atom.Div) && !hasBlocks(n) {
			continue
		}
		var line *html.Node
		for c := n.FirstChild; c != nil; {
			next := c.NextSibling
			switch {
			case c.Type == html.ElementNode && !inline[c.DataAtom]: // br too: it parts lines
				line = nil
			case line != nil:
				n.RemoveChild(c)
				line.AppendChild(c)
			case c.Type == html.TextNode && strings.TrimSpace(c.Data) != "":
				line = &html.Node{Type: html.ElementNode, Data: "p", DataAtom: atom.P}
				n.InsertBefore(line, c)
				n.RemoveChild(c)
				line.AppendChild(c)
			}
			c = next
		}
	}
}

func hasBlocks(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && !inline[c.DataAtom] && !void[c.DataAtom] {
			return true
		}
	}
	return false
}

func replaceByContent(n *html.Node) {
	for c := n.FirstChild; c != nil; c = n.FirstChild {
		n.RemoveChild(c)
		n.Parent.InsertBefore(c, n)
	}
	remove(n)
}

// inSentence reports whether an inline element is part of a line of text.
func inSentence(n *html.Node) bool {
	around := n.Parent
	for around != nil && inline[around.DataAtom] {
		around = around.Parent
	}
	return around != nil && phrases[around.DataAtom] || beside(n, previousNode) || beside(n, nextNode)
}

// amidst reports whether text of the same line is before and behind an element.
func amidst(n *html.Node) bool { return beside(n, previousNode) && beside(n, nextNode) }

func previousNode(n *html.Node) *html.Node { return n.PrevSibling }
func nextNode(n *html.Node) *html.Node     { return n.NextSibling }

const maxBeside = 100 // nodes that are looked at for the text beside one

// beside reports whether text of the same line is on one side of an element.
func beside(n *html.Node, step func(*html.Node) *html.Node) bool {
	left := maxBeside
	for at := n; at != nil; at = at.Parent {
		for s := step(at); s != nil && left > 0; s = step(s) {
			left--
			switch {
			case s.Type == html.TextNode && strings.TrimSpace(s.Data) != "":
				return true
			case s.Type != html.ElementNode:
			case is(s, atom.Br) || !inline[s.DataAtom] && !custom(s):
				return false
			case custom(s): // it may be a block
			default:
				if has, looked := hasText(s, left); has {
					return true
				} else if left -= looked; left < 0 {
					return false
				}
			}
		}
		if at.Parent == nil || !inline[at.Parent.DataAtom] {
			return false
		}
	}
	return false
}

// hasText reports whether one of the first nodes of an element, at most so many, has text. It looked
// at more than most if there are more.
func hasText(n *html.Node, most int) (has bool, looked int) {
	for c := range nodes(n) {
		if looked++; looked > most {
			break
		}
		if c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			return true, looked
		}
	}
	return false, looked
}
