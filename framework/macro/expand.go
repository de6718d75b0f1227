package macro

import "strings"

// run expands one text.
type run struct {
	env    *Env
	text   *Text
	fields []string // fields of the card that are being expanded

	escape func(string) string // for values outside of arguments; nil = none
	inside int                 // arguments that are being expanded
}

// Expand returns the text with its macros replaced by what e has for them.
func (t *Text) Expand(e *Env) string {
	if len(t.nodes) == 1 && t.nodes[0].call == nil {
		return t.nodes[0].text
	}
	e.start()
	r := run{env: e, text: t}
	o := out{b: make([]byte, 0, len(t.source)+len(t.source)/4)}
	r.nodes(&o, t.nodes)
	return o.String()
}

// out is what nodes become.
type out struct {
	b     []byte
	trims []int // where {{trim}} stood, ascending

	solid    bool // a macro gave something
	from, to int  // the first and the end of the last
}

func (o *out) literal(s string) { o.b = append(o.b, s...) }

func (o *out) value(s string) {
	if s == "" {
		return
	}
	if !o.solid {
		o.solid, o.from = true, len(o.b)
	}
	o.b = append(o.b, s...)
	o.to = len(o.b)
}

// include appends what the nodes of a block became.
func (o *out) include(part *out) {
	at := len(o.b)
	for _, t := range part.trims {
		o.trims = append(o.trims, at+t)
	}
	if part.solid {
		if !o.solid {
			o.solid, o.from = true, at+part.from
		}
		o.to = at + part.to
	}
	o.b = append(o.b, part.b...)
}

// strip removes blanks at the ends that no macro gave.
func (o *out) strip() {
	end := len(o.b)
	least := 0
	if o.solid {
		least = o.to
	}
	for end > least && strings.IndexByte(blanks, o.b[end-1]) >= 0 {
		end--
	}
	start := 0
	most := end
	if o.solid {
		most = o.from
	}
	for start < most && strings.IndexByte(blanks, o.b[start]) >= 0 {
		start++
	}
	o.b = o.b[start:end]
	o.from, o.to = o.from-start, o.to-start
	for i, t := range o.trims {
		o.trims[i] = min(max(t-start, 0), len(o.b))
	}
}

// String is the text, without the newlines around each {{trim}}.
func (o *out) String() string {
	if len(o.trims) == 0 {
		return string(o.b)
	}
	var b strings.Builder
	done := 0
	for _, t := range o.trims {
		if t > done {
			b.WriteString(trimNewlines(string(o.b[done:t]), strings.TrimRight))
		}
		for done = max(done, t); done < len(o.b) && (o.b[done] == '\n' || o.b[done] == '\r' && done+1 < len(o.b) && o.b[done+1] == '\n'); {
			done++
		}
	}
	b.WriteString(string(o.b[done:]))
	return b.String()
}

func trimNewlines(s string, trim func(s, cutset string) string) string {
	if !strings.HasSuffix(s, "\n") {
		return s
	}
	return trim(s, "\r\n")
}

// string expands nodes that are an argument, or a whole text.
func (r *run) string(nodes []node) string {
	switch {
	case len(nodes) == 0:
		return ""
	case len(nodes) == 1 && nodes[0].call == nil:
		return nodes[0].text
	}
	var o out
	r.nodes(&o, nodes)
	return o.String()
}

func (r *run) nodes(o *out, nodes []node) {
	for i := range nodes {
		if c := nodes[i].call; c != nil {
			r.call(o, c)
		} else {
			o.literal(nodes[i].text)
		}
	}
}

func (r *run) call(o *out, c *call) {
	if len(o.b) > maxText || !r.env.spent.charge(0) {
		o.literal(r.text.source[c.at:c.end])
		return
	}
	if v, ok := r.env.Extra[c.name]; ok && len(c.args) == 0 {
		r.put(o, c, v)
		return
	}
	switch {
	case c.variable != nil:
		r.put(o, c, r.variable(c.variable))
	case c.closes || c.def == nil || !c.def.takes(len(c.args)):
		r.raw(o, c)
	case c.def.write != nil:
		c.def.write(r, o, c)
	default:
		args := make([]string, len(c.args))
		r.inside++
		for i, arg := range c.args {
			args[i] = r.arg(c, i, arg)
		}
		r.inside--
		if r.env.spent.over {
			o.literal(r.text.source[c.at:c.end])
		} else if v, ok := c.def.value(r, c, args); ok {
			r.put(o, c, v)
		} else {
			r.raw(o, c)
		}
	}
}

// put appends a value, unless that would go beyond a limit.
func (r *run) put(o *out, c *call, v string) {
	if r.escape != nil && r.inside == 0 {
		v = r.escape(v)
	}
	if len(o.b)+len(v) > maxText {
		r.env.spent.over = true
	}
	if !r.env.spent.charge(len(v)) {
		o.literal(r.text.source[c.at:c.end])
		return
	}
	o.value(v)
}

// arg expands an argument; a block loses the blanks at its ends, except with the flag #.
func (r *run) arg(c *call, i int, arg []node) string {
	if !c.block || i < len(c.args)-1 {
		return r.string(arg)
	}
	part := r.body(c, arg)
	return part.String()
}

// body expands the nodes of a block, or some of them.
func (r *run) body(c *call, nodes []node) *out {
	var part out
	r.nodes(&part, nodes)
	if !c.keeps {
		part.strip()
	}
	r.env.spent.charge(len(part.b)) // it is copied into what is around it
	return &part
}

// raw leaves a macro as text; those in it are expanded.
func (r *run) raw(o *out, c *call) {
	if source := r.text.source[c.at:c.end]; source[0] == '<' { // <USER>
		o.literal(source)
		return
	}
	o.literal("{{")
	r.nodes(o, c.inner)
	o.literal("}}")
	if c.block {
		r.nodes(o, c.args[len(c.args)-1])
		o.literal(c.closing)
	}
}

// writeIf expands the branch of {{if}} that its condition chooses.
func writeIf(r *run, o *out, c *call) {
	branch := c.args[1]
	for i, n := range branch {
		if n.call == nil || n.call.def != elseMacro || n.call.closes || len(n.call.args) > 0 {
			continue
		}
		if branch = branch[:i]; !r.condition(c.args[0]) {
			branch = c.args[1][i+1:]
		}
		o.include(r.body(c, branch))
		return
	}
	if r.condition(c.args[0]) {
		o.include(r.body(c, branch))
	}
}

// condition decides a condition: a text, a variable such as .x, or the name of a macro that needs no
// argument; a leading "!" negates it.
func (r *run) condition(arg []node) bool {
	r.inside++
	defer func() { r.inside-- }()
	yes := true
	if len(arg) > 0 && arg[0].call == nil {
		first, more := arg[0].text, arg[1:]
		for strings.HasPrefix(first, "!") {
			yes, first = !yes, strings.TrimLeft(first[1:], blanks)
		}
		if v := newVariable(first, more); v != nil {
			return truthy(r.variable(v)) == yes
		}
		if def := definitions[strings.ToLower(first)]; len(more) == 0 && def != nil && def.value != nil && def.takes(0) {
			if v, ok := def.value(r, &call{def: def}, nil); ok {
				return truthy(v) == yes
			}
		}
		arg = append([]node{{text: first}}, more...)
	}
	return truthy(r.string(arg)) == yes
}

// truthy reports that a value counts as true.
func truthy(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", "0", "false", "off":
		return false
	}
	return true
}

// field expands a text of the card. In itself it is empty.
func (r *run) field(name, text string) string {
	for _, f := range r.fields {
		if f == name {
			return ""
		}
	}
	if Plain(text) {
		return text
	}
	if !r.env.spent.charge(len(text)) {
		return ""
	}
	t := r.env.spent.fields[name]
	if t == nil || t.source != text {
		t = Parse(text)
		r.env.spent.fields[name] = t
	}
	inner := run{env: r.env, text: t, fields: append(r.fields[:len(r.fields):len(r.fields)], name)}
	return inner.string(t.nodes)
}
