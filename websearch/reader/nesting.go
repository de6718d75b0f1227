package reader

import (
	"slices"

	"golang.org/x/net/html/atom"
)

// nesting is the stack of the elements that are open. Its rules are those of the HTML
// standard, 13.2.6 (tree construction).
type nesting struct {
	names []string // from the outermost to the innermost
	inner []bool   // for each of them, whether its content is SVG or MathML
	count map[string]int
}

func (n *nesting) push(name string) {
	n.inner = append(n.inner, foreignRoots[name] || n.foreign() && !integration[name])
	n.names = append(n.names, name)
	n.count[name]++
}

func (n *nesting) pop() string {
	last := len(n.names) - 1
	name := n.names[last]
	n.names, n.inner = n.names[:last], n.inner[:last]
	n.count[name]--
	return name
}

// names is a set of element names.
type names map[string]bool

func setOf(all ...string) names {
	m := names{}
	for _, n := range all {
		m[n] = true
	}
	return m
}

func union(sets ...names) names {
	all := names{}
	for _, s := range sets {
		for n := range s {
			all[n] = true
		}
	}
	return all
}

func without(all names, some ...string) names {
	rest := union(all)
	for _, name := range some {
		delete(rest, name)
	}
	return rest
}

// has reports whether an element of a set is open, whatever is around it.
func (n *nesting) has(of names) bool {
	for name := range of {
		if n.count[name] > 0 {
			return true
		}
	}
	return false
}

// find returns the innermost open element that is in of and has no element of within
// inside it, or -1.
func (n *nesting) find(of, within names) int {
	if !n.has(of) {
		return -1
	}
	for i := len(n.names) - 1; i >= 0; i-- {
		if of[n.names[i]] {
			return i
		}
		if within[n.names[i]] {
			return -1
		}
	}
	return -1
}

// outermost returns the outermost of such elements, or -1.
func (n *nesting) outermost(of, within names) int {
	found := -1
	if !n.has(of) {
		return found
	}
	for i := len(n.names) - 1; i >= 0; i-- {
		if of[n.names[i]] {
			found = i
		} else if within[n.names[i]] {
			break
		}
	}
	return found
}

// findEnd returns the element that an end tag closes, or -1.
func (n *nesting) findEnd(name string) int {
	switch {
	case heading[name]:
		return n.find(heading, scope)
	case n.count[name] == 0:
		return -1
	case tableParts[name]:
		return n.findName(name, tableScope)
	case name == "li":
		return n.findName(name, listScope)
	case name == "p":
		return n.findName(name, buttonScope)
	case special[name]:
		return n.findName(name, scope)
	}
	return n.findName(name, special)
}

// findName is find for one name.
func (n *nesting) findName(name string, within names) int {
	for i := len(n.names) - 1; i >= 0; i-- {
		if n.names[i] == name {
			return i
		}
		if within[n.names[i]] {
			return -1
		}
	}
	return -1
}

// take removes the i-th element and leaves open what is inside.
func (n *nesting) take(i int) {
	n.count[n.names[i]]--
	n.names, n.inner = slices.Delete(n.names, i, i+1), slices.Delete(n.inner, i, i+1)
}

// foreign reports whether the innermost open element is inside SVG or MathML, and not in
// a part of it that has HTML.
func (n *nesting) foreign() bool { return len(n.inner) > 0 && n.inner[len(n.inner)-1] }

var (
	paragraph    = setOf("p")
	heading      = setOf("h1", "h2", "h3", "h4", "h5", "h6")
	foreignRoots = setOf("svg", "math")

	// integration are the parts of SVG and MathML that have HTML.
	integration = setOf("foreignobject", "desc", "title", "annotation-xml", "mi", "mo", "mn", "ms", "mtext")

	// scope are the elements that hide those around them from an end tag inside.
	scope       = union(integration, setOf("applet", "caption", "html", "table", "td", "th", "marquee", "object", "template", "select"))
	buttonScope = union(scope, setOf("button"))
	listScope   = union(scope, setOf("ol", "ul"))
	tableScope  = setOf("html", "table", "template")
	tableParts  = setOf("table", "caption", "colgroup", "tbody", "thead", "tfoot", "tr", "td", "th")

	// special are the elements that an end tag of another kind does not close.
	special = union(buttonScope, listScope, tableParts, heading, paragraph, setOf("address", "article", "aside", "blockquote", "center",
		"dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup",
		"li", "listing", "main", "menu", "nav", "pre", "search", "section", "summary"))

	// formatting may end inside of a block that it began outside of.
	formatting = setOf("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")

	// closesP has the elements that end a paragraph. No other element does, whether it is
	// known or not.
	closesP = set(atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details, atom.Dialog, atom.Dir, atom.Div,
		atom.Dl, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Header, atom.Hgroup, atom.Main, atom.Menu, atom.Nav,
		atom.Ol, atom.P, atom.Search, atom.Section, atom.Summary, atom.Ul, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Pre, atom.Listing, atom.Form, atom.Table, atom.Hr, atom.Li, atom.Dd, atom.Dt)

	// breaksOut has the elements that end SVG and MathML around them.
	breaksOut = set(atom.B, atom.Big, atom.Blockquote, atom.Body, atom.Br, atom.Center, atom.Code, atom.Dd, atom.Div, atom.Dl, atom.Dt,
		atom.Em, atom.Embed, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Head, atom.Hr, atom.I, atom.Img, atom.Li,
		atom.Listing, atom.Menu, atom.Meta, atom.Nobr, atom.Ol, atom.P, atom.Pre, atom.Ruby, atom.S, atom.Small, atom.Span,
		atom.Strong, atom.Strike, atom.Sub, atom.Sup, atom.Table, atom.Tt, atom.U, atom.Ul, atom.Var)
)

// closing is what a start tag closes without an end tag of it: the elements of closes
// that have no element of within inside.
type closing struct{ closes, within names }

var (
	inList  = without(special, "address", "div", "p")
	inCells = setOf("table", "template", "html")
	section = setOf("tbody", "thead", "tfoot", "caption", "colgroup", "tr", "td", "th")

	closers = map[atom.Atom]closing{
		atom.Li:       {setOf("li"), inList},
		atom.Dt:       {setOf("dt", "dd"), inList},
		atom.Dd:       {setOf("dt", "dd"), inList},
		atom.Option:   {setOf("option"), special},
		atom.Optgroup: {setOf("option", "optgroup"), special},
		atom.Rb:       {setOf("rb", "rt", "rp", "rtc"), union(special, setOf("ruby"))},
		atom.Rtc:      {setOf("rb", "rt", "rp", "rtc"), union(special, setOf("ruby"))},
		atom.Rt:       {setOf("rb", "rt", "rp"), union(special, setOf("ruby", "rtc"))},
		atom.Rp:       {setOf("rb", "rt", "rp"), union(special, setOf("ruby", "rtc"))},
		atom.Button:   {setOf("button"), scope},
		atom.Select:   {setOf("select"), scope},
		atom.A:        {setOf("a"), special},
		atom.Nobr:     {setOf("nobr"), special},
		atom.Table:    {setOf("table"), setOf("td", "th", "caption", "template", "html")},
		atom.Caption:  {section, inCells},
		atom.Colgroup: {section, inCells},
		atom.Tbody:    {section, inCells},
		atom.Thead:    {section, inCells},
		atom.Tfoot:    {section, inCells},
		atom.Tr:       {setOf("tr", "td", "th", "caption", "colgroup"), inCells},
		atom.Td:       {setOf("td", "th", "caption", "colgroup"), inCells},
		atom.Th:       {setOf("td", "th", "caption", "colgroup"), inCells},
	}
)
