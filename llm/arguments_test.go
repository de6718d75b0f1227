package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nodest/llm"
)

var someParameters = json.RawMessage(`{"type":"object","required":["query"],"properties":{
	"query":{"type":"string"},"topK":{"type":"integer"},"ids":{"type":"array","items":{"type":"string"}}}}`)

func TestArgumentsAreReadAsModelsWriteThem(t *testing.T) {
	for written, want := range map[string]string{
		`{"query":"tea"}`: `{"query":"tea"}`,
		`{"query":"tea","topK":5,"ids":["a"],"x":1}`:  `{"ids":["a"],"query":"tea","topK":5,"x":1}`,
		"```json\n{\"query\":\"tea\"}\n```":           `{"query":"tea"}`,
		`{"query":"tea","ids":["a","b",],}`:           `{"ids":["a","b"],"query":"tea"}`,
		`{'query':'Ada\'s "tea"'}`:                    `{"query":"Ada's \"tea\""}`,
		`{"query":"it's, }here"}`:                     `{"query":"it's, }here"}`,
		`{"query":"tea","topK":null}`:                 `{"query":"tea"}`,
		`  {"query":"茶"}  `:                           `{"query":"茶"}`,
		`{"query":"1e400","topK":900000000000000000}`: `{"query":"1e400","topK":900000000000000000}`,
	} {
		_, got, err := llm.ReadArguments(someParameters, written)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", written, got, err)
		}
	}
}

// A schema that another server has written says more than our own ones do.
func TestArgumentsOfForeignSchemasAreRead(t *testing.T) {
	foreign := json.RawMessage(`{"type":"object","properties":{"city":{"type":["string","null"]},"any":true,"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`)
	_, got, err := llm.ReadArguments(foreign, `{"city":"Oslo","any":[1],"n":2}`)
	if want := `{"any":[1],"city":"Oslo","n":2}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// A model that could not be told the type of a parameter writes objects and lists as texts, also
// within others.
func TestObjectsInTextsAreRead(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"properties":{"filter":{"type":"object"},"all":{"type":"array","items":{"type":"object","properties":{"where":{"type":"array"},"note":{"type":"string"}}}}}}`)
	_, got, err := llm.ReadArguments(schema, `{"filter":"{\"a\":1.50}","all":["{\"where\":\"[1]\",\"note\":\"{}\"}",{"note":"[x]"},"{"]}`)
	if want := `{"all":[{"note":"{}","where":[1]},{"note":"[x]"},"{"],"filter":{"a":1.50}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestArgumentsThatCannotBeReadNameWhatIsWrong(t *testing.T) {
	for written, want := range map[string]string{
		`{"query":`:                     "not valid JSON",
		`["tea"]`:                       "not valid JSON",
		`{"query":"a"} {"query":"b"}`:   "not valid JSON",
		``:                              `"query" is required`,
		`{"query":"  "}`:                `"query" is required`,
		`{"query":["tea"]}`:             `"query" must be of type string`,
		`{"query":"tea","topK":"five"}`: `"topK" must be of type integer`,
		`{"query":"tea","topK":1.5}`:    `"topK" must be of type integer`,
	} {
		if _, _, err := llm.ReadArguments(someParameters, written); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", written, err, want)
		}
	}
}

func FuzzReadArguments(f *testing.F) {
	f.Add(`{'query':'tea',}`)
	f.Fuzz(func(t *testing.T, written string) {
		args, whole, err := llm.ReadArguments(someParameters, written)
		if err == nil && (!json.Valid(whole) || args == nil) {
			t.Errorf("%q became %s", written, whole)
		}
	})
}
