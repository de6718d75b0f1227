package reader

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxDepth    = 300     // elements inside each other; what is deeper is kept flat (the parser allows 512)
	maxElements = 100_000 // of a page; the tags of further ones are ignored, not their text
	maxScripts  = 256 << 10
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
	void = set(atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input,
		atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr)

	// formatting elements are opened again by the parser in every block that follows, so
	// a few of them can make a small page huge.
	formatting = set(atom.B, atom.Code, atom.Em, atom.I, atom.S, atom.Strike, atom.Strong, atom.U, atom.Tt)
	dropped    = set(atom.Font, atom.Nobr, atom.Big, atom.Small, atom.Plaintext, atom.Frameset, atom.Frame)
	rawText    = set(atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Noembed, atom.Noframes, atom.Textarea, atom.Xmp)

	inline = set(atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code,
		atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Ins, atom.Kbd, atom.Label, atom.Mark,
		atom.Nobr, atom.Q, atom.Rb, atom.Rp, atom.Rt, atom.Ruby, atom.S, atom.Samp, atom.Small, atom.Span,
		atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr,
		atom.Img, atom.Picture, atom.Source, atom.Button, atom.Input, atom.Select, atom.Option)

	// closedBy has the elements whose end tag is optional.
	closedBy = map[atom.Atom]map[atom.Atom]bool{
		atom.Li: set(atom.Li), atom.Option: set(atom.Option),
		atom.Dt: set(atom.Dt, atom.Dd), atom.Dd: set(atom.Dt, atom.Dd),
		atom.Td: set(atom.Td, atom.Th, atom.Tr, atom.Tbody), atom.Th: set(atom.Td, atom.Th, atom.Tr, atom.Tbody),
		atom.Tr: set(atom.Tr, atom.Tbody),
	}
)

// tidier rewrites a document so that parsing it takes time and memory in proportion to
// its length, whatever it contains: without scripts, styles and comments, with a bounded
// depth, and without formatting that crosses the border of a block.
type tidier struct {
	z        *html.Tokenizer
	out      bytes.Buffer
	open     []atom.Atom       // elements, as far as the parser will see them; 0 for an unknown name
	count    map[atom.Atom]int // of each name in open
	format   []atom.Atom       // formatting elements that are open
	elements int
	flat     int // start tags that were ignored and not closed yet
	linked   [][]byte
}

// tidy returns the rewritten document and the text of its JSON-LD scripts, at most
// 256 KB of them.
func tidy(doc []byte) (out []byte, linked [][]byte, err error) {
	t := &tidier{z: html.NewTokenizer(bytes.NewReader(doc)), count: map[atom.Atom]int{}}
	t.out.Grow(len(doc))
	for {
		switch t.z.Next() {
		case html.ErrorToken:
			if err := t.z.Err(); !errors.Is(err, io.EOF) {
				return nil, nil, err
			}
			return t.out.Bytes(), t.linked, nil
		case html.TextToken:
			t.out.Write(t.z.Raw())
		case html.StartTagToken, html.SelfClosingTagToken:
			t.start()
		case html.EndTagToken:
			t.end()
		case html.DoctypeToken:
			t.out.Write(t.z.Raw())
		}
	}
}

func (t *tidier) start() {
	raw := bytes.Clone(t.z.Raw())
	name, attrs := t.z.TagName()
	tag := atom.Lookup(name)
	switch {
	case rawText[tag]:
		t.skip(tag, attrs)
		return
	case dropped[tag]:
		return
	case void[tag]:
		if t.elements++; t.elements <= maxElements {
			t.out.Write(raw)
		}
		return
	case formatting[tag]:
		t.startFormat(tag, raw)
		return
	}
	if !inline[tag] {
		t.closeFormat()
		t.imply(tag)
	}
	if t.elements++; len(t.open) >= maxDepth || t.elements > maxElements {
		t.flat++
		t.out.WriteByte(' ')
		return
	}
	t.open = append(t.open, tag)
	t.count[tag]++
	t.out.Write(raw)
}

// skip leaves out an element without markup inside.
func (t *tidier) skip(tag atom.Atom, attrs bool) {
	ld := false
	for attrs {
		var key, value []byte
		key, value, attrs = t.z.TagAttr()
		ld = ld || string(key) == "type" && string(bytes.ToLower(value)) == "application/ld+json"
	}
	if t.z.Next() == html.TextToken {
		text := t.z.Raw()
		if ld && tag == atom.Script && len(text) <= maxScripts && len(t.linked) < 16 {
			t.linked = append(t.linked, bytes.Clone(text))
		}
		t.z.Next() // its end tag
	}
}

func (t *tidier) startFormat(tag atom.Atom, raw []byte) {
	for _, f := range t.format {
		if f == tag {
			return
		}
	}
	if t.elements++; t.elements > maxElements {
		return
	}
	t.format = append(t.format, tag)
	t.out.Write(raw)
}

// closeFormat ends all formatting, at the border of a block.
func (t *tidier) closeFormat() {
	for i := len(t.format) - 1; i >= 0; i-- {
		t.out.WriteString("</" + t.format[i].String() + ">")
	}
	t.format = t.format[:0]
}

// imply closes the elements that the start of a block closes without an end tag.
func (t *tidier) imply(tag atom.Atom) {
	if t.count[atom.P] > 0 {
		t.pop(atom.P)
	}
	others := closedBy[tag]
	for others != nil && len(t.open) > 0 {
		top := t.open[len(t.open)-1]
		if !others[top] && !inline[top] {
			return
		}
		if inline[top] && !t.closes(others) {
			return
		}
		t.drop()
	}
}

// closes reports whether one of others is open right above some inline elements.
func (t *tidier) closes(others map[atom.Atom]bool) bool {
	for i := len(t.open) - 1; i >= max(0, len(t.open)-8); i-- {
		if others[t.open[i]] {
			return true
		}
		if !inline[t.open[i]] {
			return false
		}
	}
	return false
}

func (t *tidier) drop() {
	top := len(t.open) - 1
	t.count[t.open[top]]--
	t.open = t.open[:top]
}

// pop closes the innermost element of a name and all elements in it.
func (t *tidier) pop(tag atom.Atom) {
	for t.count[tag] > 0 {
		last := t.open[len(t.open)-1]
		t.drop()
		if last == tag {
			return
		}
	}
}

func (t *tidier) end() {
	raw := t.z.Raw()
	end := bytes.Clone(raw)
	name, _ := t.z.TagName()
	tag := atom.Lookup(name)
	switch {
	case tag == atom.P || tag == atom.Br: // the parser makes an element of a lonely one
		end = []byte("<br>")
		if tag == atom.P && t.count[atom.P] > 0 {
			end = []byte("</p>")
		}
	case dropped[tag] || rawText[tag] || void[tag]:
		return
	case formatting[tag]:
		t.endFormat(tag, end)
		return
	case t.flat > 0:
		t.flat--
		t.out.WriteByte(' ')
		return
	case t.count[tag] == 0:
		return
	}
	if !inline[tag] {
		t.closeFormat()
	}
	t.pop(tag)
	t.out.Write(end)
}

func (t *tidier) endFormat(tag atom.Atom, raw []byte) {
	for i, f := range t.format {
		if f == tag {
			t.format = append(t.format[:i], t.format[i+1:]...)
			t.out.Write(raw)
			return
		}
	}
}
