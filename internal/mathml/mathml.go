// Package mathml gives formulas of pages and documents one form. Programs that draw formulas write each
// several times: as MathML, as TeX in it, and as letters or a picture for the eye. Read one after the other,
// these make numbers that nobody has written.
package mathml

import (
	"cmp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// OneForm replaces the formulas of a page by their texts, and with them what only draws them.
func OneForm(page *html.Node) {
	var formulas []*html.Node
	for n := range page.Descendants() {
		if n.Type == html.ElementNode && n.Namespace == "math" && n.Data == "math" {
			formulas = append(formulas, n)
		}
	}
	for _, n := range formulas {
		whole := withDrawing(n)
		if whole.Parent != nil { // else another formula, of which it is a part, took its place
			whole.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: Text(n)}, whole)
			whole.Parent.RemoveChild(whole)
		}
	}
}

// mostBeside is how many nodes stand beside a formula, at most, if they draw it.
const mostBeside = 8

// withDrawing returns the inline element that has a formula and drawings of it and nothing else, or
// the formula.
func withDrawing(formula *html.Node) *html.Node {
	whole := formula
	for at := formula; at.Parent != nil && isWrapper(at.Parent); at = at.Parent {
		beside, drawn := 0, false
		for n := range at.Parent.ChildNodes() {
			if beside++; beside > mostBeside || n != at && !isBlank(n) && !draws(n) {
				return whole
			}
			drawn = drawn || n != at && draws(n)
		}
		if drawn {
			whole = at.Parent
		}
	}
	return whole
}

func isWrapper(n *html.Node) bool {
	return n.DataAtom == atom.Span || n.DataAtom == atom.Nobr || strings.Contains(n.Data, "-")
}

func isBlank(n *html.Node) bool {
	return n.Type == html.CommentNode || n.Type == html.TextNode && strings.TrimSpace(n.Data) == ""
}

// draws reports whether a node beside a formula shows it to the eye.
func draws(n *html.Node) bool {
	switch {
	case n.Type != html.ElementNode:
		return false
	case n.DataAtom == atom.Img, n.DataAtom == atom.Svg:
		return true
	}
	return strings.EqualFold(attr(n, "aria-hidden"), "true")
}

// Text is a formula on one line: the form that its author has written for it, or else what its elements say.
func Text(formula *html.Node) string {
	if alt := strings.TrimSpace(attr(formula, "alttext")); alt != "" {
		return alt
	}
	for n := range formula.Descendants() {
		if n.Data == "annotation" && n.FirstChild != nil && strings.EqualFold(attr(n, "encoding"), "application/x-tex") {
			return strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
	}
	var b strings.Builder
	write(&b, formula, deepest)
	return b.String()
}

// deepest bounds how deep elements are read; the parser of pages bounds it too.
const deepest = 600

func write(b *strings.Builder, n *html.Node, deep int) {
	switch {
	case n.Type == html.TextNode:
		b.WriteString(strings.Join(strings.Fields(n.Data), " "))
	case n.Data == "annotation", n.Data == "annotation-xml", n.Data == "mphantom", deep == 0:
		return
	}
	open, end := around(n)
	b.WriteString(open)
	between := operators[n.Data]
	operands := 0
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode {
			if operands > 0 && len(between) > 0 {
				b.WriteString(between[min(operands, len(between))-1])
			}
			operands++
		}
		write(b, c, deep-1)
	}
	b.WriteString(end)
}

// around returns the brackets of an element: of a root, and of an operand with several parts.
func around(n *html.Node) (open, end string) {
	switch {
	case n.Data == "msqrt":
		return "√(", ")"
	case n.Data == "mroot":
		return "", ")"
	case n.Data == "mfenced":
		return cmp.Or(attr(n, "open"), "("), cmp.Or(attr(n, "close"), ")")
	case n.Data == "mrow" && n.Parent != nil && bracketed[n.Parent.Data] && n.FirstChild != nil && n.FirstChild != n.LastChild:
		return "(", ")"
	}
	return "", ""
}

var bracketed = map[string]bool{"mfrac": true, "msup": true, "msub": true, "msubsup": true, "mover": true, "munder": true, "munderover": true, "mroot": true}

// operators stand between the operands of an element, the last of them between all further ones.
var operators = map[string][]string{
	"mfrac": {"/"}, "msup": {"^"}, "msub": {"_"}, "msubsup": {"_", "^"}, "mover": {"^"}, "munder": {"_"}, "munderover": {"_", "^"},
	"mroot": {"^(1/"}, "mfenced": {","}, "mtr": {" "}, "mtable": {"; "},
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
