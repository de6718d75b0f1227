package gemini

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"nodest/llm"
)

// The bounds of a schema: how deep it goes, and how many schemas it has once its references are
// followed. What is beyond is a schema that cannot be said.
const (
	schemaDepth = 16
	schemaCount = 2000
)

// schemas translates one JSON Schema into the part of it that Gemini models take. Members that the
// API refuses or that only some models know (default, additionalProperties, minimum, maxItems …) are
// left out: tools check their arguments themselves. A schema that cannot be said, such as true,
// costs that one property its type: it becomes a text that holds JSON.
type schemas struct {
	root   any
	refs   []string // that are being followed
	count  int
	unsaid []string // paths of the schemas that cannot be said
}

// parametersOf translates the parameters of a tool; nil = they are no object. The paths of what
// cannot be said come with them.
func parametersOf(raw json.RawMessage) (parameters *genai.Schema, unsaid []string) {
	var root any
	if json.Unmarshal(raw, &root) != nil {
		return nil, nil
	}
	s := &schemas{root: root}
	parameters = s.schema(root, "")
	if parameters.Type != genai.TypeObject {
		return nil, s.unsaid
	}
	return parameters, s.unsaid
}

// schema translates the schema at a path.
func (s *schemas) schema(value any, path string) *genai.Schema {
	if s.count++; s.count > schemaCount || strings.Count(path, ".") >= schemaDepth {
		return s.giveUp(path, "")
	}
	node, isObject := value.(map[string]any)
	if !isObject {
		return s.giveUp(path, "")
	}
	if ref, ok := node["$ref"].(string); ok {
		return s.reference(ref, node, path)
	}
	if parts, ok := node["allOf"].([]any); ok {
		return s.schema(s.merged(node, parts), path)
	}
	about, _ := node["description"].(string)
	kinds, nullable := kindsOf(node)
	choices := s.choices(node)
	switch {
	case len(kinds) == 1:
		return s.typed(node, kinds[0], nullable, about, path)
	case len(kinds) > 1:
		for _, kind := range kinds {
			choice := maps.Clone(node)
			choice["type"] = kind
			choices = append(choices, choice)
		}
	}
	return s.choice(choices, nullable, about, path)
}

// reference follows a reference within the document. One that leads back to itself cannot be said.
func (s *schemas) reference(ref string, node map[string]any, path string) *genai.Schema {
	about, _ := node["description"].(string)
	target, ok := s.resolve(ref)
	if !ok || slices.Contains(s.refs, ref) {
		return s.giveUp(path, about)
	}
	if object, isObject := target.(map[string]any); isObject {
		merged := maps.Clone(object)
		for name, member := range node { // the members beside it describe this use
			if name != "$ref" {
				merged[name] = member
			}
		}
		target = merged
	}
	s.refs = append(s.refs, ref)
	defer func() { s.refs = s.refs[:len(s.refs)-1] }()
	return s.schema(target, path)
}

// resolve finds what a reference such as #/$defs/Point names.
func (s *schemas) resolve(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	at := s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		object, isObject := at.(map[string]any)
		if !isObject || object[step] == nil {
			return nil, false
		}
		at = object[step]
	}
	return at, true
}

// merged is a schema with all the parts that must hold at once.
func (s *schemas) merged(node map[string]any, parts []any) map[string]any {
	out := maps.Clone(node)
	delete(out, "allOf")
	for _, part := range parts {
		object, _ := part.(map[string]any)
		if ref, ok := object["$ref"].(string); ok {
			target, _ := s.resolve(ref)
			object, _ = target.(map[string]any)
		}
		for name, member := range object {
			switch has := out[name].(type) {
			case nil:
				out[name] = member
			case map[string]any: // properties
				if more, ok := member.(map[string]any); ok {
					all := maps.Clone(more)
					maps.Copy(all, has)
					out[name] = all
				}
			case []any: // required
				if more, ok := member.([]any); ok && name == "required" {
					out[name] = slices.Concat(has, more)
				}
			}
		}
	}
	return out
}

// kindsOf are the types that a schema names, or that its other members imply, without null.
func kindsOf(node map[string]any) (kinds []string, nullable bool) {
	var named []any
	switch t := node["type"].(type) {
	case string:
		named = []any{t}
	case []any:
		named = t
	}
	if len(named) == 0 {
		switch {
		case node["properties"] != nil:
			named = []any{"object"}
		case node["items"] != nil:
			named = []any{"array"}
		default:
			for _, v := range valuesOf(node) {
				named = append(named, kindOfValue(v))
			}
		}
	}
	for _, kind := range named {
		switch kind, _ := kind.(string); kind {
		case "null":
			nullable = true
		case "string", "number", "integer", "boolean", "array", "object":
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, nullable
}

// valuesOf are the only values that a schema allows; none = it does not list them.
func valuesOf(node map[string]any) []any {
	if value, ok := node["const"]; ok {
		return []any{value}
	}
	values, _ := node["enum"].([]any)
	return values
}

func kindOfValue(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

// choices are the schemas of which one must hold.
func (s *schemas) choices(node map[string]any) []any {
	for _, name := range []string{"anyOf", "oneOf"} {
		if list, ok := node[name].([]any); ok {
			return list
		}
	}
	return nil
}

// choice says that one of several schemas holds. Texts that are listed become one list.
func (s *schemas) choice(choices []any, nullable bool, about, path string) *genai.Schema {
	var said []*genai.Schema
	for _, c := range choices {
		object, _ := c.(map[string]any)
		if kinds, null := kindsOf(object); null && len(kinds) == 0 && object["$ref"] == nil {
			nullable = true
			continue
		}
		next := s.schema(c, path)
		if last := len(said) - 1; last >= 0 && joined(said[last], next) {
			continue
		}
		said = append(said, next)
	}
	if len(said) == 0 {
		return s.giveUp(path, about)
	}
	if nullable {
		said[0].Nullable = new(true)
	}
	said[0].Description = cmp.Or(about, said[0].Description)
	if len(said) == 1 {
		return said[0]
	}
	return &genai.Schema{AnyOf: said} // the API takes nothing beside it
}

// joined adds the values of b to those of a, if both are lists of texts.
func joined(a, b *genai.Schema) bool {
	if a.Type != genai.TypeString || b.Type != genai.TypeString || len(a.Enum) == 0 || len(b.Enum) == 0 {
		return false
	}
	a.Enum = append(a.Enum, b.Enum...)
	return true
}

// formats are those that the API takes.
var formats = []string{"float", "double", "int32", "int64", "date-time"}

// typed says a schema of one type.
func (s *schemas) typed(node map[string]any, kind string, nullable bool, about, path string) *genai.Schema {
	out := &genai.Schema{Type: genai.Type(strings.ToUpper(kind)), Description: about}
	values := slices.DeleteFunc(slices.Clone(valuesOf(node)), func(v any) bool { return v == nil })
	if nullable || len(values) < len(valuesOf(node)) {
		out.Nullable = new(true)
	}
	if format, _ := node["format"].(string); slices.Contains(formats, format) {
		out.Format = format
	}
	switch kind {
	case "string":
		for _, v := range values {
			if text, ok := v.(string); ok {
				out.Enum = append(out.Enum, text)
			}
		}
		return out
	case "array":
		out.Items = s.items(node, path)
	case "object":
		if s.addProperties(out, node, path); len(out.Properties) == 0 && path != "" {
			return s.giveUp(path, about) // the API refuses an object without properties
		}
	}
	if len(values) > 0 { // the API lists texts only
		said := make([]string, len(values))
		for i, v := range values {
			said[i] = llm.JSONLine(v)
		}
		out.Description = strings.TrimSpace(fmt.Sprintf("%s (one of: %s)", about, strings.Join(said, ", ")))
	}
	return out
}

// items says the schema of the elements of a list, which the API needs.
func (s *schemas) items(node map[string]any, path string) *genai.Schema {
	items, ok := node["items"]
	if !ok {
		return &genai.Schema{Type: genai.TypeString}
	}
	if list, isTuple := items.([]any); isTuple && len(list) > 0 {
		items = list[0]
	}
	return s.schema(items, path+"[]")
}

func (s *schemas) addProperties(out *genai.Schema, node map[string]any, path string) {
	properties, _ := node["properties"].(map[string]any)
	out.Properties = map[string]*genai.Schema{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		out.Properties[name] = s.schema(properties[name], strings.TrimPrefix(path+"."+name, "."))
	}
	required, _ := node["required"].([]any)
	for _, r := range required {
		if name, _ := r.(string); out.Properties[name] != nil && !slices.Contains(out.Required, name) {
			out.Required = append(out.Required, name)
		}
	}
}

// giveUp says as much as can be said of a schema that the API has no words for.
func (s *schemas) giveUp(path, about string) *genai.Schema {
	s.unsaid = append(s.unsaid, cmp.Or(path, "all parameters"))
	return &genai.Schema{Type: genai.TypeString, Description: strings.TrimSpace(about + " (any JSON value, written as text)")}
}
