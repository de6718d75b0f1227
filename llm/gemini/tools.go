package gemini

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/genai"

	"nodest/llm"
)

func declarations(tools []llm.Tool) []*genai.FunctionDeclaration {
	var list []*genai.FunctionDeclaration
	for _, t := range tools {
		d := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
		var s jsonSchema
		if json.Unmarshal(t.Parameters, &s) == nil && len(s.Properties) > 0 { // without parameters it must be left out
			d.Parameters = s.schema()
		}
		list = append(list, d)
	}
	return list
}

// jsonSchema is the part of a JSON Schema that every Gemini model takes. Members that the API
// refuses or that only newer models know (default, additionalProperties, minimum, maxItems …)
// are left out: tools check their arguments themselves.
type jsonSchema struct {
	Type        json.RawMessage       `json:"type"` // a word, or a list of words
	Description string                `json:"description"`
	Format      string                `json:"format"`
	Enum        []any                 `json:"enum"`
	Items       *jsonSchema           `json:"items"`
	Properties  map[string]jsonSchema `json:"properties"`
	Required    []string              `json:"required"`
	AnyOf       []jsonSchema          `json:"anyOf"`
}

// formats are those that the API takes.
var formats = []string{"float", "double", "int32", "int64", "date-time"}

func (s jsonSchema) schema() *genai.Schema {
	out := &genai.Schema{Description: s.Description}
	word := s.kind(out)
	for _, choice := range s.AnyOf {
		if word == "" {
			word = choice.kind(out)
			s.Enum, s.Items, s.Properties, s.Required = choice.Enum, choice.Items, choice.Properties, choice.Required
		}
	}
	if word == "" {
		word = "string"
	}
	out.Type = genai.Type(strings.ToUpper(word))
	if slices.Contains(formats, s.Format) {
		out.Format = s.Format
	}
	switch word {
	case "string":
		for _, v := range s.Enum {
			if text, ok := v.(string); ok {
				out.Enum = append(out.Enum, text)
			}
		}
	case "array":
		out.Items = &genai.Schema{Type: genai.TypeString}
		if s.Items != nil {
			out.Items = s.Items.schema()
		}
	case "object":
		out.Properties = map[string]*genai.Schema{}
		for name, p := range s.Properties {
			out.Properties[name] = p.schema()
		}
		for _, name := range s.Required {
			if out.Properties[name] != nil {
				out.Required = append(out.Required, name)
			}
		}
	}
	return out
}

// kind is the schema's type; "" = it names none. It tells out whether null is allowed.
func (s jsonSchema) kind(out *genai.Schema) string {
	var word string
	if json.Unmarshal(s.Type, &word) == nil && word != "null" {
		return word
	}
	var all []string
	_ = json.Unmarshal(s.Type, &all) // a missing type is fine
	for _, w := range all {
		if w == "null" {
			out.Nullable = new(true)
		} else if word == "" || word == "null" {
			word = w
		}
	}
	if word == "null" {
		return ""
	}
	return word
}

// wantsSignature are the models that refuse a call without a thought signature.
var wantsSignature = regexp.MustCompile(`^gemini-([3-9]|\d\d|(flash|pro|flash-lite)-latest)`)

// noSignature is what Google lets stand for the signature of a call that another model made.
const noSignature = "skip_thought_signature_validator"

// callParts are the parts of a message with calls: as Gemini sent them, or made from those of
// another provider.
func callParts(m llm.Message, model string) []*genai.Part {
	var parts []*genai.Part
	if json.Unmarshal(m.EchoFor(name), &parts) == nil && len(parts) > 0 {
		return parts
	}
	parts = nil
	if m.Text != "" {
		parts = append(parts, genai.NewPartFromText(m.Text))
	}
	for i, call := range m.Calls {
		p := &genai.Part{FunctionCall: &genai.FunctionCall{Name: call.Name}}
		_ = json.Unmarshal([]byte(call.Arguments), &p.FunctionCall.Args) // malformed ones cannot be sent
		if i == 0 && wantsSignature.MatchString(model) {
			p.ThoughtSignature = []byte(noSignature)
		}
		parts = append(parts, p)
	}
	return parts
}

// addResult adds a result to the turn behind the calls. It names the id of its call only if
// Gemini gave the call one.
func addResult(contents []content, r *llm.ToolResult) []content {
	out := &genai.FunctionResponse{Name: r.Name, Response: map[string]any{"output": r.Text}}
	last := len(contents) - 1
	if last < 0 || contents[last].results == nil {
		contents = append(contents, content{role: roleUser})
		last++
	}
	if last > 0 && slices.ContainsFunc(contents[last-1].calls, func(p *genai.Part) bool {
		return p.FunctionCall != nil && p.FunctionCall.ID == r.CallID
	}) {
		out.ID = r.CallID
	}
	contents[last].results = append(contents[last].results, out)
	return contents
}

// asked puts together the calls of an answer, and all its parts.
type asked struct {
	parts []*genai.Part
	calls []llm.ToolCall
}

// add reads the parts of a piece of an answer. It fails when the calls are more or larger than
// any use.
func (a *asked) add(parts []*genai.Part) error {
	for _, p := range parts {
		if p == nil || isNothing(p) || a.signs(p) {
			continue // a part without data would be refused when it comes back
		}
		if last := len(a.parts) - 1; last >= 0 && joins(a.parts[last], p) {
			a.parts[last].Text += p.Text
			continue
		}
		copied := *p
		a.parts = append(a.parts, &copied)
		if f := p.FunctionCall; f != nil {
			args := "{}"
			if f.Args != nil {
				args = llm.JSONLine(f.Args)
			}
			a.calls = append(a.calls, llm.ToolCall{ID: f.ID, Name: f.Name, Arguments: args})
		}
	}
	return llm.CheckCalls(name, a.calls)
}

// isNothing reports that a part has no data.
func isNothing(p *genai.Part) bool { return reflect.ValueOf(*p).IsZero() }

// signs reports whether p is only a signature. It then belongs to the part before it.
func (a *asked) signs(p *genai.Part) bool {
	signature := p.ThoughtSignature
	rest := *p
	rest.ThoughtSignature, rest.Thought = nil, false
	if len(signature) == 0 || !reflect.ValueOf(rest).IsZero() {
		return false
	}
	if last := len(a.parts) - 1; last >= 0 && len(a.parts[last].ThoughtSignature) == 0 {
		a.parts[last].ThoughtSignature = signature
	}
	return true
}

// longPart is the size in bytes from which on a text is continued in a new part.
const longPart = 64 << 10

// joins reports whether b continues a's text. A part with anything else, such as a signature,
// stays as it is.
func joins(a, b *genai.Part) bool {
	plain := func(p genai.Part) bool {
		text := p.Text
		p.Text, p.Thought = "", false
		return text != "" && reflect.ValueOf(p).IsZero()
	}
	return a.Thought == b.Thought && len(a.Text) < longPart && plain(*a) && plain(*b)
}

// end returns the calls, each with an id of its own, and the parts for the next request.
func (a *asked) end() ([]llm.ToolCall, *llm.Echo) {
	if len(a.calls) == 0 {
		return nil, nil
	}
	ids := map[string]bool{"": true}
	for i := range a.calls {
		if ids[a.calls[i].ID] {
			a.calls[i].ID = llm.NewCallID()
		}
		ids[a.calls[i].ID] = true
	}
	return a.calls, &llm.Echo{Provider: name, Raw: json.RawMessage(llm.JSONLine(a.parts))}
}
