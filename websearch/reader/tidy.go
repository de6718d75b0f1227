package reader

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxDepth    = 240     // elements inside each other; what is deeper is kept flat (the parser allows 512, with those that it adds)
	maxElements = 100_000 // elements of a page; the tags of further ones are ignored, not their text
	maxScripts  = 256 << 10

	// maxAttributes are of a page; of further ones only those are kept that hide an element or
	// make a link: each takes fifty times its shortest spelling.
	maxAttributes = 400_000
)

// set is a set of element names.
func set(names ...atom.Atom) map[atom.Atom]bool {
	m := make(map[atom.Atom]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

var (
	void = set(atom.Area, atom.Base, atom.Basefont, atom.Bgsound, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Image, atom.Img,
		atom.Input, atom.Keygen, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr)
	ignored = set(atom.Plaintext, atom.Frameset, atom.Frame)
	rawText = set(atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Noembed, atom.Noframes, atom.Textarea, atom.Xmp)
)

// tidier rewrites a document so that parsing it takes time and memory in proportion to its length,
// whatever it contains: without scripts, styles and comments, and with a bounded depth.
//
// It opens and closes elements by the rules of the HTML standard, as the parser does, and writes an
// end tag for each element that it closes. The parser then has nothing to repair: no element stays
// open behind its end, and no formatting is copied into the blocks that follow.
type tidier struct {
	z          *html.Tokenizer
	out        bytes.Buffer
	open       nesting
	elements   int
	attributes int
	flat       int // start tags that were ignored and not closed yet
	unshown
}

// tidy returns the rewritten document and what it does not show.
func tidy(doc []byte) (out []byte, rest unshown, err error) {
	t := &tidier{z: html.NewTokenizer(bytes.NewReader(doc)), open: nesting{count: map[string]int{}}}
	t.out.Grow(len(doc) + len(doc)/8)
	for {
		switch t.z.Next() {
		case html.ErrorToken:
			if err := t.z.Err(); !errors.Is(err, io.EOF) {
				return nil, unshown{}, err
			}
			return t.out.Bytes(), t.unshown, nil
		case html.TextToken:
			t.out.Write(t.z.Raw())
		case html.StartTagToken:
			t.start(false)
		case html.SelfClosingTagToken:
			t.start(true)
		case html.EndTagToken:
			t.end()
		case html.DoctypeToken:
			t.out.Write(t.z.Raw())
		}
	}
}

func (t *tidier) start(closed bool) {
	raw := bytes.Clone(t.z.Raw())
	name, attrs := t.z.TagName()
	tag := atom.Lookup(name)
	if rawText[tag] && !t.open.foreign() {
		t.skip(tag, attrs)
		return
	}
	raw = t.bounded(raw, name, attrs)
	foreign := t.open.foreign()
	switch {
	case foreign && breaksOut[tag]:
		t.close(t.open.find(foreignRoots, nil))
	case foreign:
		t.z.NextIsNotRawText()
		if !closed {
			t.push(nameOf(tag, name), raw)
		}
		return
	}
	if ignored[tag] || tag == atom.Form && t.open.count["form"] > 0 {
		return
	}
	if t.elements < maxElements {
		t.closeBefore(tag)
	}
	switch tag {
	case atom.Html, atom.Head, atom.Body:
		t.out.Write(raw)
	default:
		if !void[tag] {
			t.push(nameOf(tag, name), raw)
		} else if t.elements++; t.elements <= maxElements {
			t.out.Write(raw)
		}
	}
}

// bounded returns a start tag with as many attributes as there may be.
func (t *tidier) bounded(raw, name []byte, attrs bool) []byte {
	var kept [][2][]byte
	for attrs {
		var key, value []byte
		key, value, attrs = t.z.TagAttr()
		t.attributes++
		if weighty[string(key)] {
			kept = append(kept, [2][]byte{key, value})
		}
	}
	if t.attributes <= maxAttributes {
		return raw
	}
	raw = append([]byte("<"), name...)
	for _, a := range kept[:min(len(kept), len(weighty))] {
		raw = fmt.Appendf(raw, ` %s="%s"`, a[0], html.EscapeString(string(a[1])))
	}
	return append(raw, '>')
}

// weighty are the attributes that hide an element or make a link.
var weighty = setOf("hidden", "aria-hidden", "style", "href")

// push opens an element, unless there are too many.
func (t *tidier) push(name string, raw []byte) {
	if t.elements++; len(t.open.names) >= maxDepth || t.elements > maxElements {
		t.flat++
		t.out.WriteByte(' ')
		return
	}
	t.open.push(name)
	t.out.Write(raw)
}

// skip leaves out an element without markup inside, except xmp, which is shown as it is written.
func (t *tidier) skip(tag atom.Atom, attrs bool) {
	ld := false
	for attrs {
		var key, value []byte
		key, value, attrs = t.z.TagAttr()
		value = bytes.ToLower(value)
		ld = ld || string(key) == "type" && string(value) == "application/ld+json"
		t.robots = t.robots || string(key) == "src" && tag == atom.Script && robotTest.Match(value)
	}
	if t.z.Next() == html.TextToken {
		text := t.z.Raw()
		if tag == atom.Xmp {
			t.closeBefore(atom.Pre)
			t.out.WriteString("<pre>" + html.EscapeString(string(text)) + "</pre>")
		}
		if ld && tag == atom.Script && len(text) <= maxScripts && len(t.linked) < 16 {
			t.linked = append(t.linked, bytes.Clone(text))
		}
		t.scripts = t.scripts || tag == atom.Noscript && needsScripts.Match(text)
		t.z.Next() // its end tag
	}
}

// closeBefore closes the elements that a start tag closes without an end tag of theirs.
func (t *tidier) closeBefore(tag atom.Atom) {
	if rule, ok := closers[tag]; ok {
		t.close(t.open.outermost(rule.closes, rule.within))
	}
	if closesP[tag] {
		t.close(t.open.find(paragraph, buttonScope))
	}
	if heading[tag.String()] && len(t.open.names) > 0 && heading[t.open.names[len(t.open.names)-1]] {
		t.close(len(t.open.names) - 1)
	}
}

// close closes the i-th open element and all elements in it; i < 0 closes nothing.
func (t *tidier) close(i int) {
	if i < 0 {
		return
	}
	for len(t.open.names) > i {
		t.out.WriteString("</" + t.open.pop() + ">")
	}
}

func (t *tidier) end() {
	name, _ := t.z.TagName()
	tag := atom.Lookup(name)
	switch {
	case tag == atom.Br:
		t.out.WriteString("<br>")
		return
	case tag == atom.Head:
		t.out.WriteString("</head>")
		return
	case ignored[tag], rawText[tag] && !t.open.foreign(), void[tag], tag == atom.Html, tag == atom.Body: // text may follow the end of the body
		return
	case t.flat > 0:
		t.flat--
		t.out.WriteByte(' ')
		return
	}
	full := nameOf(tag, name)
	i := t.open.findEnd(full)
	switch {
	case i >= 0:
		t.close(i)
	case tag == atom.P: // the parser would make an element of it
		t.out.WriteString("<br>")
	case formatting[full]: // it goes on inside the blocks that are open, and the parser moves it there
		if i = t.open.findName(full, scope); i >= 0 {
			t.open.take(i)
			t.out.WriteString("</" + full + ">")
		}
	}
}

func nameOf(tag atom.Atom, name []byte) string {
	if tag != 0 {
		return tag.String()
	}
	return string(name)
}
