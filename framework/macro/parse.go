package macro

import (
	"hash/fnv"
	"strings"
)

// Text is a parsed text. It is immutable and safe for concurrent use, so it can be kept and
// expanded again and again.
type Text struct {
	source string
	nodes  []node
	hash   uint64 // hash of the source, if it has {{pick}}
}

// node is a piece of a text: a literal, or a macro.
type node struct {
	text string // text of a literal
	call *call  // nil = a literal
}

// call is a macro in a text.
type call struct {
	at, end int    // in the source, with its braces and its block
	name    string // in lower case; "" = what is in the braces is no macro
	def     *definition
	closes  bool // {{/name}}
	keeps   bool // {{#name}}: the spaces in its block stay

	inner []node   // between the braces
	args  [][]node // with the block as the last one

	variable *variable // {{.x}}

	block   bool   // it has a block, which is the last argument
	closing string // the source of {{/name}}
}

// open is a macro whose closing braces were not met yet.
type open struct {
	at    int
	nodes []node
}

// Parse reads the macros in a text, in time linear in its length. Nothing is an error:
// what cannot be read is a literal.
func Parse(text string) *Text { return parse(text, false) }

func parse(text string, pattern bool) *Text {
	p := parser{src: text, pattern: pattern, stack: make([]open, 1, 4)}
	p.stack[0].nodes = make([]node, 0, min(2*strings.Count(text, "{{")+1, 100)) // a guess
	p.scan()
	t := &Text{source: text, nodes: pair(p.rest(), 0)}
	if p.picks {
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		t.hash = h.Sum64()
	}
	return t
}

type parser struct {
	src   string
	done  int // the source before it is in a node
	stack []open
	deep  int // braces that were opened beyond maxNested
	picks bool

	pattern bool // the text is a regular expression: see ExpandPattern
}

func (p *parser) scan() {
	for i := p.next(0); i < len(p.src); i = p.next(i) {
		switch rest := p.src[i:]; {
		case rest[0] == '\\': // an escaped brace
			if !p.pattern {
				p.literal(i)
				p.done = i + 1
			}
			i += 2
		case rest[0] == '<':
			if name, size := oldName(rest); size > 0 {
				p.literal(i)
				p.add(node{call: &call{at: i, end: i + size, name: name, def: definitions[name], inner: []node{{text: rest[:size]}}}})
				i += size
				p.done = i
			} else {
				i++
			}
		case rest[0] == '{':
			p.literal(i)
			if len(p.stack) <= maxNested {
				p.stack = append(p.stack, open{at: i})
				p.done = i + 2
			} else {
				p.deep++
			}
			i += 2
		case p.deep > 0:
			p.deep--
			i += 2
		default:
			p.close(i)
			i += 2
		}
	}
	p.literal(len(p.src))
}

// next finds the next place that matters.
func (p *parser) next(i int) int {
	for ; i < len(p.src); i++ {
		at := strings.IndexAny(p.src[i:], `{}\<`)
		if at < 0 {
			return len(p.src)
		}
		if i += at; p.matters(p.src[i:]) {
			return i
		}
	}
	return i
}

// matters reports that a text begins with "{{" that no further brace follows, "}}" that
// closes something, `\{`, `\}` or "<".
func (p *parser) matters(s string) bool {
	if s[0] == '<' {
		return !p.pattern
	}
	if len(s) < 2 {
		return false
	}
	switch s[:2] {
	case `\{`, `\}`:
		return true
	case "}}":
		return len(p.stack) > 1
	case "{{":
		return len(s) == 2 || s[2] != '{'
	}
	return false
}

func (p *parser) add(n node) {
	top := &p.stack[len(p.stack)-1]
	top.nodes = append(top.nodes, n)
}

// literal adds what was read before until as a literal.
func (p *parser) literal(until int) {
	if until > p.done {
		p.add(node{text: p.src[p.done:until]})
		p.done = until
	}
}

func (p *parser) close(i int) {
	p.literal(i)
	o := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	p.done = i + 2
	c := newCall(p.src, o.at, p.done, o.nodes)
	p.picks = p.picks || c.def == pickMacro
	p.add(node{call: c})
}

// rest returns all nodes, with the braces that nothing closed as literals.
func (p *parser) rest() []node {
	all := p.stack[0].nodes
	for _, o := range p.stack[1:] {
		all = append(all, node{text: "{{"})
		all = append(all, o.nodes...)
	}
	return all
}

// oldName reads <USER> and its like, without regard to case.
func oldName(s string) (name string, size int) {
	for _, old := range [...]struct{ tag, name string }{
		{"<user>", "user"}, {"<bot>", "char"}, {"<char>", "char"}, {"<group>", "group"}, {"<charifnotgroup>", "charifnotgroup"},
	} {
		if len(s) >= len(old.tag) && strings.EqualFold(s[:len(old.tag)], old.tag) {
			return old.name, len(old.tag)
		}
	}
	return "", 0
}

// newCall reads the head of a macro and cuts its arguments.
func newCall(src string, at, end int, inner []node) *call {
	inner = pair(inner, 0)
	c := &call{at: at, end: end, inner: inner}
	if len(inner) == 0 || inner[0].call != nil {
		return c
	}
	head := inner[0].text
	rest := strings.TrimLeft(head, blanks)
	rest = c.flags(rest)
	if strings.HasPrefix(rest, "//") {
		c.comment(src[at+2 : end-2])
		return c
	}
	if rest != "" && (rest[0] == '.' || rest[0] == '$') && !c.closes {
		c.variable = newVariable(rest, inner[1:])
		return c
	}
	size := nameSize(rest)
	name, rest := strings.ToLower(rest[:size]), rest[size:]
	if name == "" || !c.cut(name, rest) {
		c.closes = false
		return c
	}
	c.name = name
	c.def = definitions[name]
	if c.def != nil && c.def.commas && len(c.args) == 1 {
		c.args = splitCommas(c.args[0])
	}
	return c
}

const blanks = " \t\r\n"

// flags reads what stands before a name, and returns what follows. Only / and # do something.
func (c *call) flags(rest string) string {
	for rest != "" && strings.IndexByte("/#!?~>", rest[0]) >= 0 && !strings.HasPrefix(rest, "//") {
		c.closes = c.closes || rest[0] == '/'
		c.keeps = c.keeps || rest[0] == '#'
		rest = strings.TrimLeft(rest[1:], blanks)
	}
	return rest
}

// comment reads {{// …}}, and {{///}}, which closes a block.
func (c *call) comment(inner string) {
	c.name, c.def = "//", definitions["//"]
	switch text := strings.TrimSpace(inner); {
	case text == "//" || text == "#//":
	case text[0] == '/' && strings.TrimLeft(text[1:], blanks) == "//":
		c.closes = true
	default:
		c.args = [][]node{nil}
	}
}

// nameSize is the length of the name that s begins with.
func nameSize(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || n > 0 && (s[n] >= '0' && s[n] <= '9' || s[n] == '_' || s[n] == '-')) {
		n++
	}
	const zone = "time_utc"
	if n > len(zone) && s[len(zone)] == '-' && strings.EqualFold(s[:len(zone)], zone) {
		return len(zone) // {{time_UTC-7}}
	}
	return n
}

func isLetter(c byte) bool { return c|32 >= 'a' && c|32 <= 'z' }

// cut cuts the arguments; rest is what follows the name in the first node. It returns false
// for what is no macro.
func (c *call) cut(name, rest string) bool {
	if name == "time_utc" && rest != "" && (rest[0] == '+' || rest[0] == '-') {
		c.args = [][]node{trim(append([]node{{text: "UTC" + rest}}, c.inner[1:]...))}
		return true
	}
	after := strings.TrimLeft(rest, blanks)
	more := len(c.inner) > 1
	switch {
	case after == "" && !more:
		return true
	case strings.HasPrefix(after, "::"):
		c.args = splitArgs(after[2:], c.inner[1:])
	case strings.HasPrefix(after, ":"):
		c.args = [][]node{trim(append([]node{{text: after[1:]}}, c.inner[1:]...))}
	case len(after) < len(rest):
		c.args = [][]node{trim(append([]node{{text: after}}, c.inner[1:]...))}
	default:
		return false
	}
	return true
}

// splitArgs splits at "::" in literals.
func splitArgs(first string, more []node) [][]node {
	var args [][]node
	var arg []node
	text := func(s string) {
		for {
			before, after, found := strings.Cut(s, "::")
			if before != "" {
				arg = append(arg, node{text: before})
			}
			if !found {
				return
			}
			args = append(args, trim(arg))
			arg, s = nil, after
		}
	}
	text(first)
	for _, n := range more {
		if n.call == nil {
			text(n.text)
			continue
		}
		arg = append(arg, n)
	}
	return append(args, trim(arg))
}

// splitCommas splits an argument at the commas of its literals; `\,` is a comma.
func splitCommas(arg []node) [][]node {
	var args [][]node
	var one []node
	for _, n := range arg {
		if n.call != nil {
			one = append(one, n)
			continue
		}
		parts := strings.Split(strings.ReplaceAll(n.text, `\,`, "\x00"), ",")
		for i, part := range parts {
			if i > 0 {
				args = append(args, trim(one))
				one = nil
			}
			one = append(one, node{text: strings.ReplaceAll(part, "\x00", ",")})
		}
	}
	return append(args, trim(one))
}

// trim removes the spaces that literals have at the ends of an argument.
func trim(arg []node) []node {
	for len(arg) > 0 && arg[0].call == nil {
		if arg[0].text = strings.TrimLeft(arg[0].text, blanks); arg[0].text != "" {
			break
		}
		arg = arg[1:]
	}
	for n := len(arg); n > 0 && arg[n-1].call == nil; n = len(arg) {
		if arg[n-1].text = strings.TrimRight(arg[n-1].text, blanks); arg[n-1].text != "" {
			break
		}
		arg = arg[:n-1]
	}
	return arg
}
