package mcptool

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// One odd member of a schema does not cost the tool.
func TestSchemasOfTools(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object"}`: `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`: `{"properties":{"q":{"type":"string"}},"required":["q"],"type":"object"}`,
		`{"type":"object","properties":{"q":{}},"required":true}`:                 `{"properties":{"q":{}},"type":"object"}`,
		`{"type":"object","properties":{"q":{}},"required":["q",5]}`:              `{"properties":{"q":{}},"type":"object"}`,
		`{"type":"object","properties":{"q":{}},"required":null}`:                 `{"properties":{"q":{}},"type":"object"}`,
		`{"type":"object","properties":[],"title":5}`:                             `{"properties":{},"title":5,"type":"object"}`,
		`{"type":"object","properties":null}`:                                     `{"properties":{},"type":"object"}`,
		`{"type":"string"}`:                                                       "", `{"type":["string","null"]}`: "", `5`: "", `false`: "", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"array"}}}`: "",

		`{}`: `{"properties":{},"type":"object"}`, `true`: `{"properties":{},"type":"object"}`, `null`: `{"properties":{},"type":"object"}`,
		`{"type":["object","null"],"properties":{"q":{}}}`:                                            `{"properties":{"q":{}},"type":"object"}`,
		`{"properties":{"q":{"type":"string"}}}`:                                                      `{"properties":{"q":{"type":"string"}},"type":"object"}`,
		`{"$ref":"https://elsewhere.test/a","properties":{}}`:                                         `{"properties":{},"type":"object"}`,
		`{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"q":{}},"required":["q"]}}}`: `{"$defs":{"A":{"properties":{"q":{}},"required":["q"],"type":"object"}},"properties":{"q":{}},"required":["q"],"type":"object"}`,
		`{"$ref":"#/definitions/A","definitions":{"A":{"$ref":"#/definitions/A"}}}`:                   `{"definitions":{"A":{"$ref":"#/definitions/A"}},"properties":{},"type":"object"}`,
	} {
		var in any
		if err := json.Unmarshal([]byte(schema), &in); err != nil {
			t.Fatal(err)
		}
		got, problem := schemaOf(&mcp.Tool{Name: "x", InputSchema: in})
		if string(got) != want || (problem == "") != (want != "") {
			t.Errorf("%s: %s, %q; want %s", schema, got, problem, want)
		}
	}
}
