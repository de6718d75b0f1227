package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ReadArguments reads the arguments of a call as the model wrote them and checks them
// against the tool's parameters: what is required must be there, and everything must have
// its type. Unknown members are left in. The error is for the model.
func ReadArguments(parameters json.RawMessage, written string) (map[string]any, json.RawMessage, error) {
	args, err := parseObject(written)
	if err != nil {
		return nil, nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	var schema struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	// A member of another type says nothing, and the others count.
	if err := json.Unmarshal(parameters, &schema); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil, nil, fmt.Errorf("the parameters of the tool: %w", err)
	}
	for _, name := range schema.Required {
		if IsEmptyArgument(args[name]) {
			return nil, nil, fmt.Errorf("the argument %q is required and must not be empty", name)
		}
	}
	for name, raw := range schema.Properties {
		var p struct{ Type string }
		_ = json.Unmarshal(raw, &p) // a list of types, or none at all, is not checked
		switch v := typed(args[name], raw); {
		case v == nil:
			delete(args, name)
		case p.Type != "" && !hasType(v, p.Type):
			return nil, nil, fmt.Errorf("the argument %q must be of type %s", name, p.Type)
		default:
			args[name] = v
		}
	}
	whole, err := json.Marshal(args)
	return args, whole, err
}

// typed is a value with the objects and lists that its schema asks for where it has texts that hold
// them.
func typed(v any, schema json.RawMessage) any {
	var s struct {
		Type       string
		Properties map[string]json.RawMessage
		Items      json.RawMessage
	}
	_ = json.Unmarshal(schema, &s) // a schema that cannot be read asks for nothing
	if value, ok := valueIn(v, s.Type); ok {
		v = value
	}
	switch v := v.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			if inner, has := v[name]; has {
				v[name] = typed(inner, property)
			}
		}
	case []any:
		for i, inner := range v {
			v[i] = typed(inner, s.Items)
		}
	}
	return v
}

// valueIn is the object or list that a text holds: a model that could not be told the type of a
// parameter writes one so.
func valueIn(v any, want string) (value any, ok bool) {
	text, isText := v.(string)
	if !isText || want != "object" && want != "array" {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err == nil && !d.More() && hasType(value, want)
}

// IsEmptyArgument reports whether a value says nothing.
func IsEmptyArgument(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !IsEmptyArgument(item) })
	}
	return false
}

func hasType(v any, want string) bool {
	switch v := v.(type) {
	case string:
		return want == "string"
	case json.Number:
		return want == "number" || want == "integer" && !strings.ContainsAny(v.String(), ".eE")
	case bool:
		return want == "boolean"
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

var codeFence = regexp.MustCompile("(?s)^```[a-zA-Z]*\\s*(.*?)\\s*```$")

// parseObject parses a JSON object. What models often write is read too: a code fence
// around it, commas before a closing bracket, single quotes. Nothing at all is an object
// without members. The error is that of what was written.
func parseObject(written string) (map[string]any, error) {
	text := strings.TrimSpace(written)
	if m := codeFence.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	if text == "" || text == "null" {
		return map[string]any{}, nil
	}
	args, err := decodeObject(text)
	if err == nil {
		return args, nil
	}
	if args, again := decodeObject(repairJSON(text)); again == nil {
		return args, nil
	}
	return nil, err
}

func decodeObject(text string) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var args map[string]any
	if err := d.Decode(&args); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("unexpected data after the object")
	}
	if args == nil {
		args = map[string]any{}
	}
	return args, nil
}

// repairJSON makes double quotes of single ones that delimit strings, and leaves out commas
// before closing brackets.
func repairJSON(text string) string {
	var out []byte
	quote, escaped := rune(0), false
	for _, r := range text {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
			out = append(out, '"')
		case quote == 0:
			if r == '}' || r == ']' {
				out = bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(","))
			}
			out = utf8.AppendRune(out, r)
		case escaped:
			if escaped = false; r != '\'' {
				out = append(out, '\\')
			}
			out = utf8.AppendRune(out, r)
		case r == '\\':
			escaped = true
		case r == quote:
			quote = 0
			out = append(out, '"')
		case r == '"':
			out = append(out, `\"`...)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}
