package side

import (
	"encoding/json"
	"maps"
	"slices"

	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
)

// mostPayload is how many bytes a payload has.
const mostPayload = 8 << 10

// member is one of a payload, with its value where a model gives none, or one of another type. A model is told of those that
// it can know from a conversation: says is their description.
type member struct{ name, def, says string }

var members = []member{
	{"task", `""`, "When it helps."},
	{"content", `""`, "The statement, at most 500 characters."},
	{"types", `[]`, "Its kinds, such as experience or fact."},
	{"tags", `{}`, "Names with texts, for search."},
	{"score", `3`, "How useful it is, from 1 to 5."},
	{"scopes", `null`, ""}, {"owner", `null`, ""}, {"resource_ids", `[]`, ""},
	{"source_name", `""`, "The source that the conversation names for it."},
	{"source_category", `"exp"`, ""},
	{"urls", `[]`, "Addresses that the conversation names for it."},
	{"agent_id", `""`, ""}, {"submitted_by", `""`, ""}, {"capability_ids", `[]`, ""}, {"tool_ids", `[]`, ""},
}

// savePending is the tool that proposes one item; its calls make the object that readExtractions reads.
var savePending = func() *llm.Offer {
	properties := map[string]any{}
	for _, m := range members {
		if m.says != "" {
			properties[m.name] = m.schema()
		}
	}
	return &llm.Offer{List: "extractions", Tool: llm.Tool{
		Name:        "knowledge_save_pending",
		Description: "Propose one item of knowledge to keep. The user reviews it later.",
		Parameters:  op.MustJSON(map[string]any{"type": "object", "required": []string{"content"}, "properties": properties}),
	}}
}()

func (m member) schema() map[string]any {
	s := map[string]any{"type": "integer", "description": m.says}
	switch m.def[0] {
	case '"':
		s["type"] = "string"
	case '[':
		s["type"], s["items"] = "array", map[string]any{"type": "string"}
	case '{':
		s["type"], s["additionalProperties"] = "object", map[string]any{"type": "string"}
	}
	return s
}

// readExtractions reads the payloads of a reply one by one, without those that say nothing that a memory can have.
func readExtractions(reply string) (all []json.RawMessage, _ error) {
	o, err := llm.ReadObject(reply, "extractions")
	if err != nil {
		return nil, err
	}
	for _, raw := range o.List("extractions") {
		one := llm.ObjectOf(string(raw), "")
		if inner := llm.ObjectOf(string(one["payload"]), "content"); one["content"] == nil && inner != nil {
			one = inner
		}
		if text := one.Text("content"); memory.CanSay(text) && len(all) < 4*mostProposed {
			all = append(all, payloadOf(one))
		}
	}
	return all, nil
}

// valueIn is the value of a member in o; its default says which type it has.
func (m member) valueIn(o llm.Object) json.RawMessage {
	given, text, list := o[m.name], o.Text(m.name), o.List(m.name)
	switch m.def[0] {
	case '"':
		if text != "" {
			return op.MustJSON(text)
		}
	case '[':
		if list != nil {
			return op.MustJSON(list)
		}
		if text != "" {
			return op.MustJSON([]string{text})
		}
	case '{':
		if llm.ObjectOf(string(given), "") != nil {
			return given
		}
	case 'n':
		if given != nil {
			return given
		}
	default:
		if score, ok := o.Number(m.name); ok {
			return op.MustJSON(min(max(score, 1), 5))
		}
	}
	return json.RawMessage(m.def)
}

// payloadOf writes a payload with all its members in their order, and behind them those that nobody knows, if there is
// room for them.
func payloadOf(o llm.Object) json.RawMessage {
	known := map[string]bool{}
	out := []byte{'{'}
	for _, m := range members {
		known[m.name] = true
		value := m.valueIn(o)
		if len(out)+len(value) > mostPayload && m.name != "content" {
			value = json.RawMessage(m.def)
		}
		out = appendMember(out, m.name, value)
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !known[name] && len(out)+len(o[name]) < mostPayload {
			out = appendMember(out, name, o[name])
		}
	}
	return append(out, '}')
}

func appendMember(out []byte, name string, value json.RawMessage) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(append(out, op.MustJSON(name)...), ':'), value...)
}
