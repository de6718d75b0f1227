package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/llm"
	"nodest/llm/llmtest"
)

// A schema that the API has no words for costs that one parameter its type, and the caller is told.
func TestToolsKeepTheirParameters(t *testing.T) {
	t.Parallel()
	const free = `{"description":"(any JSON value, written as text)","type":"STRING"}`
	for _, tt := range []struct{ name, schema, want, unsaid string }{
		{name: "plain", schema: `{"type":"object","properties":{"a":{"type":"string","description":"A."},"n":{"type":"integer","minimum":1}},"required":["a","gone"],"additionalProperties":false}`,
			want: `{"properties":{"a":{"description":"A.","type":"STRING"},"n":{"type":"INTEGER"}},"required":["a"],"type":"OBJECT"}`},
		{name: "true", schema: `{"type":"object","properties":{"a":true,"b":{"type":"number"}},"required":["b"]}`,
			want: `{"properties":{"a":` + free + `,"b":{"type":"NUMBER"}},"required":["b"],"type":"OBJECT"}`, unsaid: "a"},
		{name: "no type at all", schema: `{"type":"object","properties":{"a":{"description":"A."},"b":{"type":"boolean"}}}`,
			want: `{"properties":{"a":{"description":"A. (any JSON value, written as text)","type":"STRING"},"b":{"type":"BOOLEAN"}},"type":"OBJECT"}`, unsaid: "a"},
		{name: "members of the wrong type", schema: `{"type":"object","properties":{"a":{"type":7},"b":{"type":"string","enum":"x","description":[]},"c":5},"required":"b"}`,
			want: `{"properties":{"a":` + free + `,"b":{"type":"STRING"},"c":` + free + `},"type":"OBJECT"}`, unsaid: "a c"},
		{name: "a reference", schema: `{"type":"object","properties":{"p":{"$ref":"#/$defs/Point","description":"Where."}},"$defs":{"Point":{"type":"object","description":"A point.","properties":{"x":{"$ref":"#/$defs/n~1m"}},"required":["x"]},"n/m":{"type":"number"}}}`,
			want: `{"properties":{"p":{"description":"Where.","properties":{"x":{"type":"NUMBER"}},"required":["x"],"type":"OBJECT"}},"type":"OBJECT"}`},
		{name: "the root is a reference", schema: `{"$ref":"#/definitions/T","definitions":{"T":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
			want: `{"properties":{"a":{"type":"STRING"}},"type":"OBJECT"}`},
		{name: "a reference to itself", schema: `{"type":"object","properties":{"tree":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/N"}}}}}`,
			want: `{"properties":{"tree":{"properties":{"next":` + free + `,"v":{"type":"INTEGER"}},"type":"OBJECT"}},"type":"OBJECT"}`, unsaid: "tree.next"},
		{name: "a reference to nothing", schema: `{"type":"object","properties":{"a":{"$ref":"#/$defs/Gone"},"b":{"$ref":"https://h/schema"},"c":{"type":"string"}}}`,
			want: `{"properties":{"a":` + free + `,"b":` + free + `,"c":{"type":"STRING"}},"type":"OBJECT"}`, unsaid: "a b"},
		{name: "one of several", schema: `{"type":"object","properties":{"a":{"oneOf":[{"type":"integer"},{"type":"string"}],"description":"A."}}}`,
			want: `{"properties":{"a":{"anyOf":[{"description":"A.","type":"INTEGER"},{"type":"STRING"}]}},"type":"OBJECT"}`},
		{name: "one or nothing", schema: `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/I"}]},"b":{"type":["string","null"]}},"$defs":{"I":{"type":"integer"}}}`,
			want: `{"properties":{"a":{"nullable":true,"type":"INTEGER"},"b":{"nullable":true,"type":"STRING"}},"type":"OBJECT"}`},
		{name: "several types", schema: `{"type":"object","properties":{"a":{"type":["string","integer"]}}}`,
			want: `{"properties":{"a":{"anyOf":[{"type":"STRING"},{"type":"INTEGER"}]}},"type":"OBJECT"}`},
		{name: "constants", schema: `{"type":"object","properties":{"a":{"const":"x"},"b":{"const":3,"description":"B."},"c":{"oneOf":[{"const":"x"},{"const":"y"}]}}}`,
			want: `{"properties":{"a":{"enum":["x"],"type":"STRING"},"b":{"description":"B. (one of: 3)","type":"INTEGER"},"c":{"enum":["x","y"],"type":"STRING"}},"type":"OBJECT"}`},
		{name: "values", schema: `{"type":"object","properties":{"a":{"type":"integer","enum":[1,2,3]},"b":{"enum":["x",null]},"c":{"type":"string","enum":["x","y"]}}}`,
			want: `{"properties":{"a":{"description":"(one of: 1, 2, 3)","type":"INTEGER"},"b":{"enum":["x"],"nullable":true,"type":"STRING"},"c":{"enum":["x","y"],"type":"STRING"}},"type":"OBJECT"}`},
		{name: "lists", schema: `{"type":"object","properties":{"a":{"type":"array","items":true},"b":{"items":{"type":"array","items":{"type":"integer"}}},"c":{"type":"array"}}}`,
			want: `{"properties":{"a":{"items":` + free + `,"type":"ARRAY"},"b":{"items":{"items":{"type":"INTEGER"},"type":"ARRAY"},"type":"ARRAY"},"c":{"items":{"type":"STRING"},"type":"ARRAY"}},"type":"OBJECT"}`, unsaid: "a[]"},
		{name: "all of several", schema: `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"$ref":"#/$defs/B"}],"properties":{"c":{"type":"boolean"}},"$defs":{"B":{"properties":{"b":{"type":"integer"}},"required":["b"]}}}`,
			want: `{"properties":{"a":{"type":"STRING"},"b":{"type":"INTEGER"},"c":{"type":"BOOLEAN"}},"required":["a","b"],"type":"OBJECT"}`},
		{name: "objects without properties", schema: `{"type":"object","properties":{"a":{"type":"object","description":"A."},"b":{"type":"object","properties":{}},"c":{"type":"array","items":{"type":"object"}},"d":{"type":"string"}}}`,
			want: `{"properties":{"a":{"description":"A. (any JSON value, written as text)","type":"STRING"},"b":` + free + `,"c":{"items":` + free + `,"type":"ARRAY"},"d":{"type":"STRING"}},"type":"OBJECT"}`, unsaid: "a b c[]"},
		{name: "no parameters", schema: `{"type":"object"}`, want: `null`},
		{name: "no schema", schema: ``, want: `null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list, unsaid := declarations([]llm.Tool{{Name: "f", Parameters: json.RawMessage(tt.schema)}})
			var got any
			b, err := json.Marshal(list[0].Parameters)
			if err != nil || json.Unmarshal(b, &got) != nil {
				t.Fatal(err)
			}
			if b, _ := json.Marshal(got); string(b) != tt.want {
				t.Errorf("%s\nwant\n%s", b, tt.want)
			}
			var want []string
			for _, path := range strings.Fields(tt.unsaid) {
				want = append(want, "f: "+path)
			}
			if !slices.Equal(unsaid, want) {
				t.Errorf("unsaid %q, want %q", unsaid, want)
			}
		})
	}
}

// A schema that grows when its references are followed ends.
func TestASchemaOfReferencesEnds(t *testing.T) {
	t.Parallel()
	var defs []string
	for i := range 30 {
		next := fmt.Sprint("#/$defs/D", i+1)
		defs = append(defs, `"D`+fmt.Sprint(i)+`":{"type":"object","properties":{"l":{"$ref":"`+next+`"},"r":{"$ref":"`+next+`"}}}`)
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/D0"},"b":{"type":"string"}},"$defs":{` + strings.Join(defs, ",") + `}}`,
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"allOf":[{"$ref":"#/$defs/A"}]}}}`,
	} {
		parameters, unsaid := parametersOf(json.RawMessage(schema))
		if parameters == nil || parameters.Properties["a"] == nil || len(unsaid) == 0 {
			t.Errorf("%+v, unsaid %q", parameters, unsaid)
		}
	}
}

// The caller is told what the model is not, with the first piece of the reply.
func TestTheCallerIsToldWhatTheModelIsNot(t *testing.T) {
	t.Parallel()
	f := llmtest.NewGemini(t)
	p := connect(t, f, Options{}, llm.NewKey("KEY"))
	req := llmtest.Ask("hi")
	req.Tools = []llm.Tool{{Name: "roll", Parameters: json.RawMessage(`{"type":"object","properties":{"dice":true,"sides":{"oneOf":[{"type":"integer"},{"type":"string"}]}}}`)}}
	var warnings []llm.Warning
	for c, err := range p.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		warnings = append(warnings, c.Warnings...)
	}
	if len(warnings) != 1 || warnings[0].Code != "tool_schema" || !strings.HasSuffix(warnings[0].Detail, ": roll: dice") {
		t.Errorf("warnings %+v", warnings)
	}
}
