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

	"nodest/fault"
)

// docsPage is openapi.yaml for people: every operation with its parameters, the
// members of its request and its answers, every object, and every error code. It
// needs no script.
var docsPage = sync.OnceValue(func() string {
	var r reference
	if err := json.Unmarshal(openapiJSON(), &r); err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err)) // a test asks for the page
	}
	var b strings.Builder
	if err := docsTemplate.Execute(&b, &r); err != nil {
		panic(fmt.Errorf("docs page: %w", err))
	}
	return b.String()
})

//go:embed docs.gohtml
var docsHTML string

var docsTemplate = template.Must(template.New("docs").Parse(docsHTML))

// reference is the part of the OpenAPI document that the page shows.
type reference struct {
	Info  struct{ Title, Description string }
	Tags  []docsTag
	Paths map[string]map[string]json.RawMessage

	Components struct {
		Parameters map[string]docsParameter
		Responses  map[string]docsAnswer
		Schemas    map[string]*docsSchema
		Examples   map[fault.Code]struct { // of errors, by code
			Value struct{ Detail string }
		}
	}
}

type docsTag struct{ Name, Description string }

// docsOperation is one operation.
type docsOperation struct {
	Method, Path string                // not in the document's own object
	ID           string                `json:"operationId"`
	Summary      string                `json:"summary"`
	Description  string                `json:"description"`
	Tags         []string              `json:"tags"`
	Parameters   []docsParameter       `json:"parameters"`
	RequestBody  docsAnswer            `json:"requestBody"`
	Responses    map[string]docsAnswer `json:"responses"`
}

type docsParameter struct {
	Ref         string      `json:"$ref"`
	Name        string      `json:"name"`
	In          string      `json:"in"`
	Description string      `json:"description"`
	Required    bool        `json:"required"`
	Example     any         `json:"example"`
	Schema      *docsSchema `json:"schema"`
}

// docsAnswer is a response, or the body of a request.
type docsAnswer struct {
	Ref         string `json:"$ref"`
	Description string `json:"description"`
	Content     map[string]struct {
		Schema *docsSchema `json:"schema"`
	} `json:"content"`
}

// docsSchema is a JSON schema as far as the page tells of it.
type docsSchema struct {
	any bool // the schema is true: anything

	Ref         string                 `json:"$ref"`
	Type        any                    `json:"type"` // a string or a list of them
	Description string                 `json:"description"`
	Properties  map[string]*docsSchema `json:"properties"`
	Required    []string               `json:"required"`
	Items       *docsSchema            `json:"items"`
	More        json.RawMessage        `json:"additionalProperties"`
	AllOf       []*docsSchema          `json:"allOf"`
	OneOf       []*docsSchema          `json:"oneOf"`
	Enum        []any                  `json:"enum"`
	Const       any                    `json:"const"`
	Default     any                    `json:"default"`
	Examples    []any                  `json:"examples"`
	Minimum     *float64               `json:"minimum"`
	Maximum     *float64               `json:"maximum"`
	MinLength   *float64               `json:"minLength"`
	MaxLength   *float64               `json:"maxLength"`
	MaxItems    *float64               `json:"maxItems"`
}

// UnmarshalJSON reads an object, or the schema true.
func (s *docsSchema) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		s.any = true
		return nil
	}
	type plain docsSchema
	return json.Unmarshal(data, (*plain)(s))
}

// docsMember is one row of a table of members or parameters.
type docsMember struct {
	Name, In, Description, Default, Example string
	Type                                    template.HTML
	Required                                bool
}

// Introduction is the description of the whole interface, by paragraphs.
func (r *reference) Introduction() []string { return strings.Split(r.Info.Description, "\n\n") }

// Operations are those of a tag, by path and method.
func (r *reference) Operations(tag string) ([]docsOperation, error) {
	var list []docsOperation
	for _, path := range slices.Sorted(maps.Keys(r.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			raw, ok := r.Paths[path][method]
			if !ok {
				continue
			}
			o := docsOperation{Method: strings.ToUpper(method), Path: path}
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, err
			}
			if slices.Contains(o.Tags, tag) {
				list = append(list, o)
			}
		}
	}
	return list, nil
}

// ParametersOf are the rows of an operation's parameters.
func (r *reference) ParametersOf(o docsOperation) []docsMember {
	var rows []docsMember
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = r.Components.Parameters[lastOf(p.Ref)]
		}
		m := r.member(p.Name, p.Schema)
		m.In, m.Required = p.In, p.Required
		if p.Description != "" {
			m.Description = p.Description
		}
		if p.Example != nil {
			m.Example = literal(p.Example)
		}
		rows = append(rows, m)
	}
	return rows
}

// TypesOf says what the content of an answer or a request is, by media type.
func (r *reference) TypesOf(a docsAnswer) []template.HTML {
	if a.Ref != "" {
		a = r.Components.Responses[lastOf(a.Ref)]
	}
	var types []template.HTML
	for _, media := range slices.Sorted(maps.Keys(a.Content)) {
		text := template.HTMLEscapeString(media)
		if s := a.Content[media].Schema; s != nil && !s.any {
			text += ": " + string(r.TypeOf(s))
		}
		types = append(types, template.HTML(text)) //nolint:gosec // of our own document, escaped
	}
	return types
}

// Says is the description of an answer.
func (r *reference) Says(a docsAnswer) string {
	return cmp.Or(a.Description, r.Components.Responses[lastOf(a.Ref)].Description)
}

// Schemas are the names of all objects, in order.
func (r *reference) Schemas() []string { return slices.Sorted(maps.Keys(r.Components.Schemas)) }

// Schema is the object of a name.
func (r *reference) Schema(name string) *docsSchema { return r.Components.Schemas[name] }

// MembersOf are the rows of an object's members, those of its parts included.
func (r *reference) MembersOf(s *docsSchema) []docsMember {
	properties, required := map[string]*docsSchema{}, map[string]bool{}
	r.collect(s, properties, required)
	var rows []docsMember
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		m := r.member(name, properties[name])
		m.Required = required[name]
		rows = append(rows, m)
		rows = append(rows, r.inner(name, properties[name])...)
	}
	return rows
}

// inner are the members of an object that has no name of its own.
func (r *reference) inner(name string, s *docsSchema) []docsMember {
	if s.Items != nil && s.Items.Ref == "" {
		name, s = name+"[]", s.Items
	}
	if len(s.Properties) == 0 {
		return nil
	}
	rows := r.MembersOf(s)
	for i := range rows {
		rows[i].Name = name + "." + rows[i].Name
	}
	return rows
}

func (r *reference) collect(s *docsSchema, properties map[string]*docsSchema, required map[string]bool) {
	if s.Ref != "" {
		s = r.Components.Schemas[lastOf(s.Ref)]
	}
	for _, part := range s.AllOf {
		r.collect(part, properties, required)
	}
	maps.Copy(properties, s.Properties)
	for _, name := range s.Required {
		required[name] = true
	}
}

// member is the row of one schema; what it leaves open is that of its parts.
func (r *reference) member(name string, s *docsSchema) docsMember {
	m := docsMember{Name: name, Type: r.TypeOf(s)}
	for _, s := range append([]*docsSchema{s}, s.AllOf...) {
		if s.Ref != "" {
			s = r.Components.Schemas[lastOf(s.Ref)]
		}
		m.Description = cmp.Or(m.Description, s.Description)
		if m.Default == "" && s.Default != nil {
			m.Default = literal(s.Default)
		}
		if m.Example == "" && len(s.Examples) > 0 && len(s.Properties) == 0 {
			m.Example = literal(s.Examples[0])
		}
	}
	return m
}

// TypeOf says in a few words what values a schema takes.
func (r *reference) TypeOf(s *docsSchema) template.HTML {
	var text string
	switch {
	case s.any:
		text = "any"
	case s.Ref != "":
		name := template.HTMLEscapeString(lastOf(s.Ref))
		text = `<a href="#schema-` + name + `">` + name + `</a>`
	case len(s.AllOf) > 0 && len(s.Properties) == 0:
		text = string(r.TypeOf(s.AllOf[0]))
	case len(s.OneOf) > 0:
		var parts []string
		for _, one := range s.OneOf {
			parts = append(parts, string(r.TypeOf(one)))
		}
		text = strings.Join(parts, " or ")
	case len(s.Enum) > 0:
		var words []string
		for _, v := range s.Enum {
			words = append(words, "<code>"+template.HTMLEscapeString(literal(v))+"</code>")
		}
		text = strings.Join(words, ", ")
	case s.Const != nil:
		text = "<code>" + template.HTMLEscapeString(literal(s.Const)) + "</code>"
	default:
		text = template.HTMLEscapeString(typeWord(s.Type)) + rangeOf(s)
		if s.Items != nil {
			text += " of " + string(r.TypeOf(s.Items))
		}
	}
	return template.HTML(text) //nolint:gosec // of our own document, escaped
}

func typeWord(t any) string {
	switch t := t.(type) {
	case string:
		return t
	case []any:
		var words []string
		for _, w := range t {
			words = append(words, fmt.Sprint(w))
		}
		return strings.Join(words, " or ")
	}
	return "object"
}

// rangeOf is the range of numbers, or of lengths.
func rangeOf(s *docsSchema) string {
	between := func(least, most *float64, unit string) string {
		switch {
		case least != nil && most != nil:
			return fmt.Sprintf(", %.10g to %.10g%s", *least, *most, unit)
		case least != nil && *least > 0:
			return fmt.Sprintf(", at least %.10g%s", *least, unit)
		case most != nil:
			return fmt.Sprintf(", at most %.10g%s", *most, unit)
		}
		return ""
	}
	return between(s.Minimum, s.Maximum, "") + between(s.MinLength, s.MaxLength, " characters") + between(nil, s.MaxItems, " items")
}

// literal is a value as it stands in JSON.
func literal(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // it comes out of JSON
		return fmt.Sprint(v)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
}

// docsCode is one error code.
type docsCode struct {
	Code    fault.Code
	Status  int
	Meaning string
	Example string // of detail
	Retry   string
}

// Codes are the error codes by their status.
func (r *reference) Codes() []docsCode {
	var rows []docsCode
	for _, c := range fault.Codes() {
		rows = append(rows, docsCode{c, fault.Status(c), fault.Meaning(c), r.Components.Examples[c].Value.Detail, fault.Retry(c)})
	}
	slices.SortFunc(rows, func(a, b docsCode) int { return cmp.Or(a.Status-b.Status, cmp.Compare(a.Code, b.Code)) })
	return rows
}

func lastOf(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }
