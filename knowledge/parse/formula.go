package parse

import (
	"encoding/xml"
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"nodest/internal/mathml"
)

// officeFormulas are the elements of MathML that say the same as those of a formula in an Office document;
// all others are rows.
var officeFormulas = map[string]string{
	"f": "mfrac", "sSup": "msup", "sSub": "msub", "sSubSup": "msubsup", "limLow": "munder", "limUpp": "mover",
	"rad": "mroot", "d": "mfenced", "eqArr": "mtable", "m": "mtable", "mr": "mtr",
	"func": "mtr", // its name and its argument stand apart
}

// formulaPart is a number, a word or a sign in a run of a formula.
var formulaPart = regexp.MustCompile(`\d+(?:[.,]\d+)*|\p{L}+|\S`)

// formula reads the formula whose start was read last, as one line.
func (x *xmlReader) formula() (string, error) {
	math := &html.Node{Type: html.ElementNode, Data: "math"}
	open := []*html.Node{math} // the nodes into which the elements around are read
	err := x.inside(func(t xml.Token) error {
		at := open[len(open)-1]
		switch t := t.(type) {
		case xml.StartElement:
			switch name := t.Name.Local; {
			case name == "del", name == "moveFrom":
				return x.skip()
			case name == "t":
				text, err := x.text()
				for _, part := range formulaPart.FindAllString(text, -1) {
					at.AppendChild(&html.Node{Type: html.TextNode, Data: part})
				}
				return err
			case strings.HasSuffix(name, "Pr"):
				return x.signs(at)
			case name == "r": // a part of the row around
				open = append(open, at)
			default:
				open = append(open, formulaElement(at, name))
			}
		case xml.EndElement:
			if t.Name.Local == "rad" {
				asRoot(at)
			}
			open = open[:max(1, len(open)-1)]
		}
		return nil
	})
	return mathml.Text(math), err
}

// formulaElement begins an element in another one.
func formulaElement(at *html.Node, name string) *html.Node {
	data := officeFormulas[name]
	if data == "" {
		data = "mrow"
	}
	n := &html.Node{Type: html.ElementNode, Data: data}
	if at.Data == "munderover" && name == "e" { // stands behind its sign
		at = at.Parent
	}
	at.AppendChild(n)
	if name != "nary" {
		return n
	}
	sign, text := &html.Node{Type: html.ElementNode, Data: "mo"}, &html.Node{Type: html.TextNode, Data: "∫"}
	whole := &html.Node{Type: html.ElementNode, Data: "munderover"}
	n.AppendChild(whole)
	whole.AppendChild(sign)
	sign.AppendChild(text)
	return whole
}

// signs reads the brackets of an element, or the sign of a sum, from its properties.
func (x *xmlReader) signs(at *html.Node) error {
	return x.inside(func(t xml.Token) error {
		s, _ := t.(xml.StartElement)
		switch value := attr(s, "val"); {
		case s.Name.Local == "chr" && at.Data == "munderover":
			at.FirstChild.FirstChild.Data = value
		case s.Name.Local == "begChr":
			at.Attr = append(at.Attr, html.Attribute{Key: "open", Val: value})
		case s.Name.Local == "endChr":
			at.Attr = append(at.Attr, html.Attribute{Key: "close", Val: value})
		}
		return nil
	})
}

// asRoot puts the degree of a root behind what it is taken of; without one it is a square root.
func asRoot(n *html.Node) {
	switch degree := n.FirstChild; {
	case degree == nil || degree == n.LastChild:
		n.Data = "msqrt"
	case degree.FirstChild == nil:
		n.RemoveChild(degree)
		n.Data = "msqrt"
	default:
		n.RemoveChild(degree)
		n.AppendChild(degree)
	}
}
