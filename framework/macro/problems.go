package macro

import "strings"

// Kind says what is wrong with a macro.
type Kind string

// The kinds of problems. A macro of the first three stays as it is written.
const (
	Unknown   Kind = "unknown"
	Arguments Kind = "arguments" // too few or too many
	Unclosed  Kind = "unclosed"  // a block without its end
	Empty     Kind = "no_effect" // it is always the same here
	Old       Kind = "deprecated"
)

// Problem is a macro in a text that will not do what its author meant.
type Problem struct {
	Macro string // as written, the first maxQuoted bytes
	Name  string // in lower case; "" without one
	Kind  Kind
	About string // description of a known macro
}

// The limits of Problems.
const (
	maxProblems = 1000
	maxQuoted   = 256
)

// Problems lists what is wrong with the macros in a text; names are further macros, in
// lower case, that are known where the text is used, such as original in a card's own prompt.
func Problems(text string, names ...string) []Problem {
	if !strings.Contains(text, "{{") {
		return nil
	}
	t := Parse(text)
	c := critic{text: t, known: names}
	c.nodes(t.nodes)
	return c.found
}

type critic struct {
	text  *Text
	known []string
	found []Problem
}

func (c *critic) nodes(nodes []node) {
	for _, n := range nodes {
		if n.call != nil {
			c.call(n.call)
		}
	}
}

func (c *critic) call(m *call) {
	if c.text.source[m.at] == '<' || len(c.found) >= maxProblems {
		return
	}
	kind, about := Kind(""), ""
	switch {
	case m.variable != nil:
		c.nodes(m.variable.operand)
		return
	case m.def != nil && m.def.Name == "original" && !c.knows("original"):
		kind = Unknown // it stays, too
	case m.def != nil:
		kind, about = m.problem(), m.def.About
	case m.name == "" || !c.knows(m.name):
		kind = Unknown
	}
	if kind != "" {
		quoted := c.text.source[m.at:m.end]
		if len(quoted) > maxQuoted {
			quoted = strings.ToValidUTF8(quoted[:maxQuoted], "")
		}
		c.found = append(c.found, Problem{Macro: quoted, Name: m.name, Kind: kind, About: about})
	}
	if m.def != nil && m.def.Name == "//" {
		return
	}
	c.nodes(m.inner)
	if m.block {
		c.nodes(m.args[len(m.args)-1])
	}
}

func (c *critic) knows(name string) bool {
	for _, known := range c.known {
		if known == name {
			return true
		}
	}
	return false
}

// problem is that of a macro which the language has.
func (c *call) problem() Kind {
	switch {
	case c.closes:
		return Arguments
	case c.def == elseMacro:
		return "" // it is in a block, or there is another problem
	case !c.def.takes(len(c.args)) && c.def.takes(len(c.args)+1) && c.def.write != nil:
		return Unclosed
	case !c.def.takes(len(c.args)):
		return Arguments
	case c.def.Status == NoEffect:
		return Empty
	case c.def.Status == Deprecated:
		return Old
	}
	return ""
}
