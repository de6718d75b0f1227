package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"nodest/internal/fault"
)

func TestTheOpenAPIDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(openapiJSON())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
}

// Echo writes :id and *, OpenAPI writes {id}.
var echoParam = regexp.MustCompile(`:(\w+)`)

func TestRoutesMatchOpenAPI(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	served := map[string]bool{}
	for _, r := range h.server.echo.Routes() {
		path := echoParam.ReplaceAllString(r.Path, "{$1}")
		served[r.Method+" "+strings.Replace(path, "/*", "/{file}", 1)] = true
	}
	described := map[string]bool{}
	for path, item := range theContract().openapi["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			described[strings.ToUpper(method)+" "+path] = true
		}
	}
	for _, route := range slices.Sorted(maps.Keys(served)) {
		if !described[route] {
			t.Errorf("%s is served but not described", route)
		}
	}
	for _, route := range slices.Sorted(maps.Keys(described)) {
		if !served[route] {
			t.Errorf("%s is described but not served", route)
		}
	}
	t.Logf("%d routes", len(served))
}

func TestEveryErrorCodeIsDescribed(t *testing.T) {
	t.Parallel()
	list, _ := at(theContract().openapi, "components", "schemas", "Code", "enum")
	var described, known []string
	for _, v := range list.([]any) {
		described = append(described, v.(string))
	}
	for _, code := range fault.Codes() {
		known = append(known, string(code))
		if fault.Title(code) == "" {
			t.Errorf("%s has no title", code)
		}
		if fault.Meaning(code) == "" {
			t.Errorf("%s has no meaning", code)
		}
	}
	slices.Sort(described)
	slices.Sort(known)
	if !slices.Equal(described, known) {
		t.Errorf("described %v\nknown %v", described, known)
	}
}

// Every error code of REST has a correct example, and every response includes the
// examples of exactly the codes that it mentions.
func TestEveryErrorHasAnExample(t *testing.T) {
	t.Parallel()
	components, _ := at(theContract().openapi, "components")
	examples := components.(map[string]any)["examples"].(map[string]any)
	for _, code := range fault.Codes() {
		if code == fault.UnknownCommand { // WebSocket only
			continue
		}
		p, _ := at(examples, string(code), "value")
		value, _ := p.(map[string]any)
		if value["code"] != string(code) || value["type"] != "urn:nodest:error:"+string(code) || value["title"] != fault.Title(code) ||
			fmt.Sprint(value["status"]) != fmt.Sprint(fault.Status(code)) || value["retry"] != fault.Retry(code) || value["detail"] == "" {
			t.Errorf("the example of %s is %v", code, value)
		}
		if !strings.Contains(docsPage(), "Example: "+template.HTMLEscapeString(value["detail"].(string))) {
			t.Errorf("/docs has no example of %s", code)
		}
	}
	for name, answer := range components.(map[string]any)["responses"].(map[string]any) {
		v, _ := at(answer, "content", "application/problem+json", "examples")
		given, _ := v.(map[string]any)
		for _, code := range fault.Codes() {
			described := regexp.MustCompile(`\b` + string(code) + `[:,] `).MatchString(answer.(map[string]any)["description"].(string))
			if _, ok := given[string(code)]; ok != described {
				t.Errorf("%s: described %t, with an example %t: %s", name, described, ok, code)
			}
		}
	}
}

// Every operation describes its path parameters and has an id of its own, every
// schema is used, and every example matches its schema.
func TestTheOpenAPIDocumentIsConsistent(t *testing.T) {
	t.Parallel()
	c := theContract()
	ids := map[string]string{}
	for path, item := range c.openapi["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			where := method + " " + path
			o, _ := at(c.openapi, "paths", path, method)
			operation := o.(map[string]any)
			id, _ := operation["operationId"].(string)
			if other, taken := ids[id]; taken || id == "" {
				t.Errorf("%s has the operationId of %s", where, other)
			}
			ids[id] = where
			if got, want := pathParams(c, operation), strings.Count(path, "{"); got != want {
				t.Errorf("%s describes %d of the %d parameters of its path", where, got, want)
			}
		}
	}
	text := string(openapiJSON()) + string(asyncapiYAML)
	for name, schema := range c.openapi["components"].(map[string]any)["schemas"].(map[string]any) {
		if !strings.Contains(text, "/schemas/"+name+`"`) && !strings.Contains(text, "/schemas/"+name+`'`) {
			t.Errorf("the schema %s is unused", name)
		}
		examples, _ := schema.(map[string]any)["examples"].([]any)
		for i, example := range examples {
			if err := c.validate(example, openapiAt, "components", "schemas", name); err != nil {
				t.Errorf("example %d of %s: %v", i, name, err)
			}
		}
	}
}

func pathParams(c *contract, operation map[string]any) (n int) {
	list, _ := operation["parameters"].([]any)
	for _, p := range list {
		param := p.(map[string]any)
		if ref, ok := param["$ref"].(string); ok {
			v, _ := at(c.openapi, strings.Split(ref[2:], "/")...)
			param = v.(map[string]any)
		}
		if param["in"] == "path" {
			n++
		}
	}
	return n
}

// The validation itself rejects responses that violate openapi.yaml.
func TestTheContractIsStrict(t *testing.T) {
	t.Parallel()
	user := `{"id":"u1","username":"mia","role":"owner","limits":{"tokensPerDay":0,"generations":0},"hasPassword":false,"createdAt":"2026-11-21T23:31:18.042Z","quotas":{}%s}`
	ok := func() *exchange {
		return &exchange{
			method: "GET", path: "/api/v1/me", status: 200, body: fmt.Appendf(nil, user, ""),
			header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"r1"}},
		}
	}
	if err := theContract().check(ok()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*exchange){
		"a member that is not described":          func(x *exchange) { x.body = fmt.Appendf(nil, user, `,"more":1`) },
		"a time without milliseconds":             func(x *exchange) { x.body = bytes.Replace(x.body, []byte(".042"), nil, 1) },
		"a role that does not exist":              func(x *exchange) { x.body = bytes.Replace(x.body, []byte("owner"), []byte("king"), 1) },
		"a missing member":                        func(x *exchange) { x.body = bytes.Replace(x.body, []byte(`"id":"u1",`), nil, 1) },
		"a status that is not described":          func(x *exchange) { x.status = 206 },
		"another content type":                    func(x *exchange) { x.header.Set("Content-Type", "text/plain") },
		"no request id":                           func(x *exchange) { x.header.Del("X-Request-Id") },
		"an error that is not a problem document": func(x *exchange) { x.status = 500 },
		"a path that is not described":            func(x *exchange) { x.path = "/api/v1/you" },
		"a method that is not described":          func(x *exchange) { x.method = "PUT" },
		"a body where there must be none":         func(x *exchange) { x.method = "HEAD" },
	} {
		t.Run(name, func(t *testing.T) {
			x := ok()
			change(x)
			if theContract().check(x) == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestTheDocsPageShowsEveryOperation(t *testing.T) {
	t.Parallel()
	page := docsPage()
	for path := range theContract().openapi["paths"].(map[string]any) {
		if !strings.Contains(page, path+"</code>") {
			t.Errorf("%s is not on the page", path)
		}
	}
	var doc map[string]any
	if err := json.Unmarshal(openapiJSON(), &doc); err != nil || doc["openapi"] != "3.1.0" {
		t.Errorf("%v %v", doc["openapi"], err)
	}
}

// Every parameter and every field has a description, and an example, a default, a
// range or a list of allowed values, its own or that of its type.
func TestEveryParameterAndMemberIsDescribed(t *testing.T) {
	t.Parallel()
	r := readReference()
	for _, tag := range r["tags"].([]any) {
		for _, o := range r.Operations(tag.(node)["name"].(string)) {
			for _, m := range r.ParametersOf(o) {
				requireDescription(t, fmt.Sprint(o.Is["operationId"])+" "+m.Name, m)
				if m.Example == "" { // a reader who tries out a request needs a value to start with
					t.Errorf("the parameter %s of %s has no example", m.Name, fmt.Sprint(o.Is["operationId"]))
				}
			}
		}
	}
	for name, schema := range r["components"].(node)["schemas"].(node) {
		for _, m := range r.MembersOf(schema) {
			requireDescription(t, name+" "+m.Name, m)
		}
	}
}

func requireDescription(t *testing.T, what string, m docsMember) {
	t.Helper()
	if m.Description == "" {
		t.Errorf("%s has no description", what)
	}
	typed := string(m.Type)
	open := typed == "string" || typed == "integer" || typed == "number"
	if open && m.Example == "" && m.Default == "" {
		t.Errorf("%s has no example", what)
	}
}

// Times in responses are RFC 3339, except in events and in fields that the NodeST
// app's own formats define. A save point and a summary have both createdAt and
// timestamp; the log of a conversation has the format of its document.
func TestTimesHaveOneForm(t *testing.T) {
	t.Parallel()
	r := readReference()
	inMillis := map[string]bool{
		"Event at": true, "ChatSave messages[].timestamp": true, "ChatHistoryEntity parts[].timestamp": true,
		"CharacterSettings memory.lastSummarizedAt": true, "CharacterSettingsFields memory.lastSummarizedAt": true, "CharacterSettingsInput memory.lastSummarizedAt": true,
	}
	for name, schema := range r["components"].(node)["schemas"].(node) {
		members := map[string]docsMember{}
		for _, m := range r.MembersOf(schema) {
			members[m.Name] = m
		}
		for _, m := range members {
			what := name + " " + m.Name
			isTime := strings.Contains(string(m.Type), "schema-Time")
			switch millis := strings.Contains(m.Description, "epoch milliseconds"); {
			case m.Name == "timestamp" && (name == "Extraction" || name == "CognitionEvent"):
				if millis {
					t.Errorf("%s is in epoch milliseconds, want RFC 3339", what)
				}
			case m.Name == "timestamp":
				if _, ok := members["createdAt"]; !ok || !millis {
					t.Errorf("%s needs epoch milliseconds and createdAt beside it", what)
				}
			case millis != inMillis[what]:
				t.Errorf("%s: epoch milliseconds %v, want %v", what, millis, inMillis[what])
			case !millis && !isTime && strings.HasSuffix(m.Name, "At"):
				t.Errorf("%s is %s, want a Time", what, m.Type)
			}
		}
	}
}
