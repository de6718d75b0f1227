package server

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"nodest/internal/fault"
)

// docsPage is openapi.yaml for people: every operation with its parameters, the members of its
// request and its answers, every object, and every error code; before them the first request and the
// WebSocket. Without its script it lacks the search alone.
var docsPage = sync.OnceValue(func() string {
	var b strings.Builder
	if err := docsTemplate.Execute(&b, readReference()); err != nil {
		panic(fmt.Errorf("docs page: %w", err)) // a test asks for the page
	}
	return b.String()
})

//go:embed docs.gohtml
var docsHTML string

//go:embed docs_start.gohtml
var docsStartHTML string

//go:embed docs.css
var docsStyle []byte

//go:embed docs.js
var docsScript []byte

var docsTemplate = template.Must(template.New("docs").Funcs(template.FuncMap{
	"paragraphs": func(text string) []string { return strings.Split(text, "\n\n") },
	"codes": func() []fault.Code {
		return slices.SortedFunc(slices.Values(fault.Codes()), func(a, b fault.Code) int {
			return cmp.Or(fault.Status(a)-fault.Status(b), cmp.Compare(a, b))
		})
	},
	"status": fault.Status, "meaning": fault.Meaning, "retry": fault.Retry, "frames": readFrames,
}).Parse(docsHTML + docsStartHTML))

// docsFrames are the frames of the WebSocket, by what sends them.
type docsFrames struct{ Commands, Events []docsFrame }

type docsFrame struct{ Name, Summary string }

// readFrames lists the frames of asyncapi.yaml, by name.
func readFrames() (f docsFrames, err error) {
	var doc struct {
		Components struct {
			Messages map[string]struct{ Summary string }
		}
	}
	if err := yaml.Unmarshal(asyncapiYAML, &doc); err != nil {
		return f, fmt.Errorf("asyncapi.yaml: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Messages)) {
		summary := doc.Components.Messages[name].Summary
		if command, ok := strings.CutPrefix(name, "command."); ok {
			f.Commands = append(f.Commands, docsFrame{command, summary})
		} else if event, ok := strings.CutPrefix(name, "event."); ok {
			f.Events = append(f.Events, docsFrame{event, summary})
		}
	}
	return f, nil
}

// node is an object of the document.
type node = map[string]any

// reference is the whole OpenAPI document.
type reference node

func readReference() (r reference) {
	if err := json.Unmarshal(openapiJSON(), &r); err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err)) // a test asks for the page
	}
	return r
}

// At returns the object v, or the one that it refers to; nil where v is none.
func (r reference) At(v any) node {
	n, _ := v.(node)
	if ref, ok := n["$ref"].(string); ok {
		n = node(r)
		for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			n, _ = n[name].(node)
		}
	}
	return n
}

// docsOperation is one operation of a tag.
type docsOperation struct {
	Method, Path string
	Is           node
}

// Operations are those of a tag, by path and method.
func (r reference) Operations(tag string) (list []docsOperation) {
	paths, _ := r["paths"].(node)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			o := r.At(r.At(paths[path])[method])
			if tags, _ := o["tags"].([]any); slices.Contains(tags, any(tag)) {
				list = append(list, docsOperation{strings.ToUpper(method), path, o})
			}
		}
	}
	return list
}

// docsMember is one row of a table of members or parameters.
type docsMember struct {
	Name, In, Description, Default, Example string
	Type                                    template.HTML
	Required                                bool
}

// ParametersOf are the rows of an operation's parameters.
func (r reference) ParametersOf(o docsOperation) (rows []docsMember) {
	list, _ := o.Is["parameters"].([]any)
	for _, v := range list {
		p := r.At(v)
		name, _ := p["name"].(string)
		m := r.member(name, p["schema"])
		m.In, _ = p["in"].(string)
		m.Required = p["required"] == true
		if text, _ := p["description"].(string); text != "" {
			m.Description = text
		}
		if p["example"] != nil {
			m.Example = literal(p["example"])
		}
		rows = append(rows, m)
	}
	return rows
}

// TypesOf says what the content of an answer or a request is, by media type.
func (r reference) TypesOf(answer any) (types []template.HTML) {
	content, _ := r.At(answer)["content"].(node)
	for _, media := range slices.Sorted(maps.Keys(content)) {
		text := template.HTML(media) //nolint:gosec // our own document
		if s, ok := r.At(content[media])["schema"].(node); ok {
			text += ": " + r.TypeOf(s)
		}
		types = append(types, text)
	}
	return types
}

// MembersOf are the rows of an object's members, those of its parts included.
func (r reference) MembersOf(schema any) (rows []docsMember) {
	properties, required := node{}, map[any]bool{}
	r.collect(schema, properties, required)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		m := r.member(name, properties[name])
		m.Required = required[name]
		rows = append(rows, m)
		// The members of an object that has no name of its own.
		s, _ := properties[name].(node)
		if items, ok := s["items"].(node); ok && items["$ref"] == nil {
			name, s = name+"[]", items
		}
		if s["properties"] == nil {
			continue
		}
		for _, inner := range r.MembersOf(s) {
			inner.Name = name + "." + inner.Name
			rows = append(rows, inner)
		}
	}
	return rows
}

func (r reference) collect(schema any, properties node, required map[any]bool) {
	s := r.At(schema)
	parts, _ := s["allOf"].([]any)
	for _, part := range parts {
		r.collect(part, properties, required)
	}
	own, _ := s["properties"].(node)
	maps.Copy(properties, own)
	names, _ := s["required"].([]any)
	for _, name := range names {
		required[name] = true
	}
}

// member is the row of one schema; what it leaves open is that of its parts.
func (r reference) member(name string, schema any) docsMember {
	m := docsMember{Name: name, Type: r.TypeOf(schema)}
	whole, _ := schema.(node)
	parts, _ := whole["allOf"].([]any)
	for _, part := range append([]any{schema}, parts...) {
		s := r.At(part)
		if m.Description == "" {
			m.Description, _ = s["description"].(string)
		}
		if m.Default == "" && s["default"] != nil {
			m.Default = literal(s["default"])
		}
		if list, _ := s["examples"].([]any); m.Example == "" && len(list) > 0 && s["properties"] == nil {
			m.Example = literal(list[0])
		}
	}
	return m
}

// TypeOf says in a few words what values a schema takes.
func (r reference) TypeOf(schema any) template.HTML {
	s, ok := schema.(node)
	if !ok { // true
		return "any"
	}
	code := func(v any) string { return "<code>" + template.HTMLEscapeString(literal(v)) + "</code>" }
	typeOf := func(v any) string { return string(r.TypeOf(v)) }
	var text string
	switch parts, _ := s["allOf"].([]any); {
	case s["$ref"] != nil:
		ref := fmt.Sprint(s["$ref"])
		name := ref[strings.LastIndex(ref, "/")+1:]
		text = `<a href="#schema-` + name + `">` + name + `</a>`
	case len(parts) > 0 && s["properties"] == nil:
		text = typeOf(parts[0])
	case s["oneOf"] != nil:
		text = joined(s["oneOf"], " or ", typeOf)
	case s["enum"] != nil:
		text = joined(s["enum"], ", ", code)
	case s["const"] != nil:
		text = code(s["const"])
	default:
		text = joined(s["type"], " or ", func(v any) string { return fmt.Sprint(v) }) + rangeOf(s)
		if s["items"] != nil {
			text += " of " + typeOf(s["items"])
		}
	}
	return template.HTML(text) //nolint:gosec // our own document, escaped
}

// joined are the words of a list; "object" stands for a type that is not given.
func joined(v any, between string, word func(any) string) string {
	list, ok := v.([]any)
	if !ok {
		list = []any{cmp.Or(v, "object")}
	}
	var words []string
	for _, v := range list {
		words = append(words, word(v))
	}
	return strings.Join(words, between)
}

// rangeOf is the range of numbers, or of lengths.
func rangeOf(s node) (text string) {
	for _, of := range []struct{ least, most, unit string }{
		{"minimum", "maximum", ""}, {"minLength", "maxLength", " characters"}, {"", "maxItems", " items"},
	} {
		least, from := s[of.least].(float64)
		most, to := s[of.most].(float64)
		switch {
		case from && to:
			text += fmt.Sprintf(", %.10g to %.10g%s", least, most, of.unit)
		case least > 0:
			text += fmt.Sprintf(", at least %.10g%s", least, of.unit)
		case to:
			text += fmt.Sprintf(", at most %.10g%s", most, of.unit)
		}
	}
	return text
}

// literal is a value as it stands in JSON.
func literal(v any) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it comes out of JSON
	return strings.TrimSpace(text.String())
}
