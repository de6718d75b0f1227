package knowledge

import (
	"strconv"
	"strings"
	"unicode"
)

// markup writes the XML that models read. Names and texts come from documents, so every value
// is escaped: none can end its element or pass for an instruction.
type markup struct{ strings.Builder }

// attr is an attribute: its name and its value.
type attr struct{ name, value string }

// num is an attribute with a number.
func num(name string, n int) attr { return attr{name, strconv.Itoa(n)} }

// share is an attribute with a number from 0 to 1.
func share(name string, f float64) attr { return attr{name, strconv.FormatFloat(f, 'f', 2, 64)} }

// open begins an element on a line of its own.
func (m *markup) open(name string, attrs ...attr) {
	m.tag(name, attrs)
	m.WriteString(">\n")
}

// shut ends an element.
func (m *markup) shut(name string) { m.WriteString("</" + name + ">\n") }

// empty is an element without content.
func (m *markup) empty(name string, attrs ...attr) {
	m.tag(name, attrs)
	m.WriteString("/>\n")
}

// text is an element with a text.
func (m *markup) text(name, text string, attrs ...attr) {
	m.tag(name, attrs)
	m.WriteString(">" + escape(text) + "</" + name + ">\n")
}

func (m *markup) tag(name string, attrs []attr) {
	m.WriteString("<" + name)
	for _, a := range attrs {
		m.WriteString(" " + a.name + `="` + escape(strings.Join(strings.Fields(a.value), " ")) + `"`)
	}
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// escape is s without control characters and direction marks, escaped for text and attributes.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, s)
	return escapes.Replace(s)
}
