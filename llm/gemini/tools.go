package gemini

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"

	"google.golang.org/genai"

	"nodest/llm"
)

// declarations are the tools for the API. unsaid names the parameters whose types it cannot be
// told, as "tool: path".
func declarations(tools []llm.Tool) (list []*genai.FunctionDeclaration, unsaid []string) {
	for _, t := range tools {
		d := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
		parameters, lost := parametersOf(t.Parameters)
		if parameters != nil && len(parameters.Properties) > 0 { // without parameters it must be left out
			d.Parameters = parameters
		}
		for _, path := range lost {
			unsaid = append(unsaid, t.Name+": "+path)
		}
		list = append(list, d)
	}
	return list, unsaid
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
