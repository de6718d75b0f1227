// Package markup writes the XML that models read.
package markup

import (
	"strconv"
	"strings"
	"unicode"
)

// Builder writes elements. Names and texts come from documents, so every value
// is escaped: none can end its element or pass for an instruction.
type Builder struct{ strings.Builder }

// Attr is an attribute: its name and its value.
type Attr struct{ Name, Value string }

// Str is an attribute with a text.
func Str(name, value string) Attr { return Attr{name, value} }

// Num is an attribute with a number.
func Num(name string, n int) Attr { return Attr{name, strconv.Itoa(n)} }

// Share is an attribute with a number from 0 to 1.
func Share(name string, f float64) Attr { return Attr{name, strconv.FormatFloat(f, 'f', 2, 64)} }

// Open begins an element on a line of its own.
func (m *Builder) Open(name string, attrs ...Attr) {
	m.tag(name, attrs)
	m.WriteString(">\n")
}

// Shut ends an element.
func (m *Builder) Shut(name string) { m.WriteString("</" + name + ">\n") }

// Empty is an element without content.
func (m *Builder) Empty(name string, attrs ...Attr) {
	m.tag(name, attrs)
	m.WriteString("/>\n")
}

// Text is an element with a text.
func (m *Builder) Text(name, text string, attrs ...Attr) {
	m.tag(name, attrs)
	m.WriteString(">" + Escape(text) + "</" + name + ">\n")
}

func (m *Builder) tag(name string, attrs []Attr) {
	m.WriteString("<" + name)
	for _, a := range attrs {
		m.WriteString(" " + a.Name + `="` + Escape(strings.Join(strings.Fields(a.Value), " ")) + `"`)
	}
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// Escape is Plain, escaped for text and attributes.
func Escape(s string) string { return escapes.Replace(Plain(s)) }

// Plain is s without control characters, other than line ends and tabs, and without direction
// marks.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, s)
}
