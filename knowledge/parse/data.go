package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// value is a value of JSON or YAML. Members keep their order.
type value struct {
	scalar  string // text of a value without members
	object  bool
	list    bool
	members []member
}

type member struct {
	name string // "" in a list
	value
}

// get returns a member, or an empty value.
func (v value) get(name string) value {
	for _, m := range v.members {
		if m.name == name && v.object {
			return m.value
		}
	}
	return value{}
}

func (v value) has(name string) bool {
	for _, m := range v.members {
		if v.object && m.name == name {
			return true
		}
	}
	return false
}

var errDeep = errors.New("nested too deeply")

func validJSON(text string) bool { return json.Valid([]byte(text)) }

func parseJSON(p *parser, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if tooDeep(text, p.in.Limits.Depth) {
		return fail(DamagedFile, "the values are nested too deeply")
	}
	var values []member
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for {
		v, err := readJSON(d, p.in.Limits.Depth)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errDeep) {
			return fail(DamagedFile, "the values are nested too deeply")
		}
		if err != nil {
			return p.plainly(text, "invalid_json")
		}
		values = append(values, member{value: v})
		if len(values)%1024 == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
	}
	writeValues(p, values)
	return nil
}

// tooDeep reports whether brackets outside of strings nest more deeply than limit.
func tooDeep(text string, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func readJSON(d *json.Decoder, depth int) (value, error) {
	t, err := d.Token()
	if err != nil {
		return value{}, err
	}
	open, ok := t.(json.Delim)
	if !ok {
		return value{scalar: scalarText(t)}, nil
	}
	if depth == 0 {
		return value{}, errDeep
	}
	v := value{object: open == '{', list: open == '['}
	for d.More() {
		var m member
		if v.object {
			key, err := d.Token()
			if err != nil {
				return value{}, notEOF(err)
			}
			m.name, _ = key.(string)
		}
		if m.value, err = readJSON(d, depth-1); err != nil {
			return value{}, notEOF(err)
		}
		v.members = append(v.members, m)
	}
	if _, err = d.Token(); err != nil {
		return value{}, notEOF(err)
	}
	return v, nil
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func scalarText(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return ""
	case string:
		return t
	}
	return fmt.Sprint(t)
}

func parseYAML(p *parser, text string) error {
	if tooDeep(text, p.in.Limits.Depth) && !strings.Contains(text, "\n") {
		return fail(DamagedFile, "the values are nested too deeply")
	}
	var values []member
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p.plainly(text, "invalid_yaml")
		}
		v, err := readYAML(&n, p.in.Limits.Depth)
		if err != nil {
			return fail(DamagedFile, "the values are nested too deeply")
		}
		values = append(values, member{value: v})
	}
	if len(values) == 1 && !values[0].object && !values[0].list { // no structure: prose
		return p.plainly(text, "invalid_yaml")
	}
	for line := range strings.Lines(text) { // the comment at the top of a file is part of the text
		rest, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		p.b.write(clean(rest))
	}
	writeValues(p, values)
	return nil
}

// readYAML turns a node into a value. Aliases are left out, since what they stand for is in
// the text already.
func readYAML(n *yaml.Node, depth int) (value, error) {
	if depth == 0 {
		return value{}, errDeep
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return value{}, nil
		}
		return value{scalar: n.Value}, nil
	case yaml.DocumentNode:
		if len(n.Content) == 1 {
			return readYAML(n.Content[0], depth-1)
		}
	case yaml.SequenceNode:
		v := value{list: true}
		for _, c := range n.Content {
			m, err := readYAML(c, depth-1)
			if err != nil {
				return value{}, err
			}
			v.members = append(v.members, member{value: m})
		}
		return v, nil
	case yaml.MappingNode:
		v := value{object: true}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m, err := readYAML(n.Content[i+1], depth-1)
			if err != nil {
				return value{}, err
			}
			v.members = append(v.members, member{n.Content[i].Value, m})
		}
		return v, nil
	}
	return value{}, nil
}

// writeValues writes the values of a file: world books and cards by entry, anything else as
// lines with their path.
func writeValues(p *parser, values []member) {
	w := &pathWriter{p: p, b: p.b}
	if len(values) != 1 {
		for i, v := range values {
			w.entry("", fmt.Sprintf("[%d]", i+1), v.value)
		}
		return
	}
	v := values[0].value
	switch {
	case isBook(v):
		w.book(v)
	case isCard(v):
		w.card(v)
	default:
		w.top(v)
	}
}

// pathWriter writes values as lines of a path and a scalar.
type pathWriter struct {
	p *parser
	b *builder
}

// top writes each member as an entry, or each element of a list in it.
func (w *pathWriter) top(v value) {
	if !v.object && !v.list {
		w.line("", v.scalar)
		return
	}
	for i, m := range v.members {
		if w.b.full || i%256 == 0 && w.p.ctx.Err() != nil {
			return
		}
		path := m.name
		if v.list {
			path = fmt.Sprintf("[%d]", i+1)
		}
		switch {
		case !m.object && !m.list || m.scalars():
			w.value(path, m.value)
		case m.list:
			for j, e := range m.members {
				w.entry("", fmt.Sprintf("%s[%d]", path, j+1), e.value)
			}
		default:
			w.b.blank()
			w.b.heading(1, path, w.b.n)
			for _, e := range m.members {
				w.entry("", path+"."+e.name, e.value)
			}
		}
	}
}

// scalars reports whether a list has only scalars in it.
func (v value) scalars() bool {
	for _, m := range v.members {
		if m.object || m.list {
			return false
		}
	}
	return v.list
}

// entry writes a value as a unit, after a line with its title.
func (w *pathWriter) entry(title, path string, v value) {
	start := w.b.n
	w.value(path, v)
	if title == "" {
		title = v.name()
	}
	if title == "" {
		title = path
	}
	w.b.unit(Unit{Kind: "entry", Start: start, Title: title})
}

// name returns what an object calls itself.
func (v value) name() string {
	for _, key := range []string{"name", "title", "comment", "id", "key"} {
		if m := v.get(key); m.scalar != "" {
			return m.scalar
		}
	}
	return ""
}

func (w *pathWriter) value(path string, v value) {
	switch {
	case w.b.full:
	case v.scalars():
		items := make([]string, 0, len(v.members))
		for _, m := range v.members {
			if m.scalar != "" {
				items = append(items, m.scalar)
			}
		}
		w.line(path, strings.Join(items, ", "))
	case v.list:
		for i, m := range v.members {
			w.value(fmt.Sprintf("%s[%d]", path, i+1), m.value)
		}
	case v.object:
		for _, m := range v.members {
			w.value(joinPath(path, m.name), m.value)
		}
	default:
		w.line(path, v.scalar)
	}
}

// joinPath keeps paths short however deep they are.
func joinPath(path, name string) string {
	const longest = 200
	if len(name) > longest {
		name = oneLine(name, longest/4)
	}
	if path == "" {
		return name
	}
	if len(path)+len(name) > longest {
		_, rest, _ := strings.Cut(path, ".")
		if rest == "" || len(rest)+len(name) > longest {
			return "…." + name
		}
		path = "…." + strings.TrimPrefix(rest, "….")
	}
	return path + "." + name
}

func (w *pathWriter) line(path, scalar string) {
	scalar = strings.TrimSpace(clean(scalar))
	if scalar == "" {
		return
	}
	if path = clean(path); path != "" {
		w.b.write(path + ": ")
	}
	w.b.write(scalar)
	w.b.newline()
}
