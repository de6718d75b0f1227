package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// The two API documents, compiled. Everything that the tests of this package send
// and receive is validated against them.

const (
	openapiAt  = "https://nodest.test/openapi.json"
	asyncapiAt = "https://nodest.test/asyncapi.yaml"
)

// contract holds openapi.yaml and asyncapi.yaml.
type contract struct {
	openapi, asyncapi map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by address
}

var theContract = sync.OnceValue(func() *contract {
	c := &contract{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	c.openapi = c.load(openapiAt, openapiYAML)
	c.asyncapi = c.load(asyncapiAt, asyncapiYAML)
	return c
})

func (c *contract) load(at string, text []byte) map[string]any {
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		panic(fmt.Sprintf("%s: %v", at, err))
	}
	asJSON, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", at, err))
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err == nil {
		err = c.compiler.AddResource(at, resource)
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", at, err))
	}
	return resource.(map[string]any)
}

// validate checks a value against the schema at a location: the URL of a document and
// the steps from its root.
func (c *contract) validate(value any, at string, steps ...string) error {
	address := at + "#" + pointer(steps)
	c.mu.Lock()
	schema := c.schemas[address]
	if schema == nil {
		var err error
		if schema, err = c.compiler.Compile(address); err != nil {
			c.mu.Unlock()
			return err
		}
		c.schemas[address] = schema
	}
	c.mu.Unlock()
	return schema.Validate(value)
}

func pointer(steps []string) string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "*", "%2A", "%", "%25")
	for _, s := range steps {
		b.WriteString("/" + escape.Replace(s))
	}
	return b.String()
}

// at follows some steps from the root of a document, and references on the way. It
// returns the value there and its actual location.
func at(doc any, steps ...string) (any, []string) {
	v, location := doc, []string{}
	for _, s := range steps {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, nil
		}
		v, location = object[s], append(location, s)
		if object, ok = v.(map[string]any); ok {
			if ref, ok := object["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
				v, location = at(doc, strings.Split(ref[2:], "/")...)
			}
		}
	}
	return v, location
}

// pathOf returns the documented path that a request's path matches; literal
// segments win over parameters.
func (c *contract) pathOf(path string) string {
	parts := strings.Split(path, "/")
	best, bestNames := "", -1
	for candidate := range c.openapi["paths"].(map[string]any) {
		names, ok := matchPath(strings.Split(candidate, "/"), parts)
		if ok && names > bestNames {
			best, bestNames = candidate, names
		}
	}
	return best
}

func matchPath(template, parts []string) (names int, ok bool) {
	if len(template) != len(parts) {
		return 0, false
	}
	for i, t := range template {
		switch {
		case t == parts[i]:
			names++
		case !strings.HasPrefix(t, "{") || parts[i] == "":
			return 0, false
		}
	}
	return names, true
}

// exchange is a request and its response.
type exchange struct {
	method, path string
	sent         []byte // request body, if it is JSON
	status       int
	header       http.Header
	body         []byte
}

// check validates an exchange against openapi.yaml.
func (c *contract) check(x *exchange) error {
	path, method := c.pathOf(x.path), strings.ToLower(x.method)
	if method == "head" {
		method = "get"
	}
	if o, _ := at(c.openapi, "paths", path, method); path == "" || o == nil {
		return c.checkUndescribed(x, method)
	}
	response, location := at(c.openapi, "paths", path, method, "responses", fmt.Sprint(x.status))
	if response == nil && x.status >= 400 {
		response, location = at(c.openapi, "paths", path, method, "responses", "default")
	}
	if response == nil {
		return fmt.Errorf("status %d is not described", x.status)
	}
	if err := c.checkHeaders(x, location); err != nil {
		return err
	}
	if err := c.checkBody(x, location); err != nil {
		return err
	}
	failed := x.status >= 300 || bytes.HasPrefix(x.body, []byte(`{"success":false`))
	if failed || string(x.sent) == "{}" || !json.Valid(x.sent) { // an empty object counts as no body; what is not JSON is a file
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(x.sent))
	if err != nil {
		return err
	}
	if err := c.validate(withoutNulls(v), openapiAt, "paths", path, method, "requestBody", "content", "application/json", "schema"); err != nil {
		return fmt.Errorf("an accepted body is not described: %w", err)
	}
	return nil
}

// withoutNulls removes the fields that are null: null means absent.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else {
				v[name] = withoutNulls(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

// checkUndescribed checks the response to a request that is not in the document.
func (c *contract) checkUndescribed(x *exchange, method string) error {
	switch {
	case method == "options":
		return nil
	case x.status != http.StatusNotFound:
		return fmt.Errorf("status %d for something that is not described", x.status)
	}
	return c.checkBody(x, []string{"components", "responses", "NotFound"})
}

func (c *contract) checkHeaders(x *exchange, location []string) error {
	headers, _ := at(c.openapi, append(location, "headers")...)
	list, _ := headers.(map[string]any)
	for name := range list {
		header, headerLocation := at(c.openapi, append(append([]string{}, location...), "headers", name)...)
		value := x.header.Get(name)
		if value == "" {
			if required, _ := header.(map[string]any)["required"].(bool); required {
				return fmt.Errorf("header %s is missing", name)
			}
			continue
		}
		if err := c.validate(value, openapiAt, append(headerLocation, "schema")...); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	return nil
}

func (c *contract) checkBody(x *exchange, location []string) error {
	v, _ := at(c.openapi, append(append([]string{}, location...), "content")...)
	content, _ := v.(map[string]any)
	if x.method == http.MethodHead {
		if len(x.body) > 0 {
			return fmt.Errorf("HEAD has a body")
		}
		return nil
	}
	if len(content) == 0 {
		if len(x.body) > 0 {
			return fmt.Errorf("a body that is not described: %.200s", x.body)
		}
		return nil
	}
	kind, _, _ := strings.Cut(x.header.Get("Content-Type"), ";")
	family, _, _ := strings.Cut(kind, "/")
	for _, name := range []string{kind, family + "/*", "*/*"} {
		if content[name] == nil {
			continue
		}
		if kind != "application/json" && !strings.HasSuffix(kind, "+json") {
			return nil
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(x.body))
		if err != nil {
			return fmt.Errorf("the body is not JSON: %w", err)
		}
		return c.validate(value, openapiAt, append(append([]string{}, location...), "content", name, "schema")...)
	}
	return fmt.Errorf("content type %q is not described", kind)
}

// contractTransport is an HTTP transport that validates every exchange
// against openapi.yaml.
type contractTransport struct {
	t    testing.TB
	next http.RoundTripper
}

func (w contractTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &exchange{method: r.Method, path: r.URL.Path}
	if r.Body != nil && strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var err error
		if x.sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(x.sent))
	}
	res, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = &contractStream{ReadCloser: res.Body, t: w.t}
		return res, nil
	}
	x.status, x.header = res.StatusCode, res.Header
	x.body, err = io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(x.body))
	if res.Header.Get("Content-Encoding") == "gzip" { // asked for by the test itself
		x.body = gunzip(w.t, x.body)
	}
	if err := theContract().check(x); err != nil {
		w.t.Errorf("%s %s answered %d %.600s\nwhich violates openapi.yaml: %v", x.method, x.path, x.status, x.body, err)
	}
	return res, nil
}

// CloseIdleConnections passes the call on, so that the test server can close.
func (w contractTransport) CloseIdleConnections() {
	if t, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// contractStream validates the events of an SSE stream against asyncapi.yaml.
type contractStream struct {
	io.ReadCloser
	t    testing.TB
	line []byte // the incomplete last line
}

func (w *contractStream) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.line = append(w.line, p[:n]...)
	for {
		line, rest, ok := bytes.Cut(w.line, []byte("\n"))
		if !ok {
			return n, err
		}
		w.line = rest
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			w.check(data)
		}
	}
}

// check validates one event. When the end of a generation is sent again, it has no
// seq.
func (w *contractStream) check(data []byte) {
	for _, event := range objectsOf(data) {
		kind, _ := event["ev"].(string)
		if event["seq"] == nil && slices.Contains([]string{"message.updated", "message.deleted", "gen.done", "gen.failed"}, kind) {
			event["seq"] = json.Number("1")
		}
		if err := theContract().message(event, "event."+kind); err != nil {
			w.t.Errorf("the event %.600s\nviolates asyncapi.yaml: %v", data, err)
		}
	}
}

// wsChecker validates the frames of one WebSocket against asyncapi.yaml.
type wsChecker struct {
	mu   sync.Mutex
	sent map[string]map[string]any // commands by id
}

// recordSent remembers the commands in one of the client's frames.
func (k *wsChecker) recordSent(text []byte) {
	for _, frame := range objectsOf(text) {
		id, _ := frame["id"].(string)
		k.mu.Lock()
		if k.sent == nil {
			k.sent = map[string]map[string]any{}
		}
		k.sent[id] = frame
		k.mu.Unlock()
	}
}

// checkReceived validates a frame of the server.
func (k *wsChecker) checkReceived(t testing.TB, text []byte) {
	for _, frame := range objectsOf(text) {
		if err := k.check(frame); err != nil {
			shown, _ := json.Marshal(frame)
			t.Errorf("the frame %.600s\nviolates asyncapi.yaml: %v", shown, err)
		}
	}
}

func (k *wsChecker) check(frame map[string]any) error {
	if ev, ok := frame["ev"].(string); ok {
		return theContract().message(frame, "event."+ev)
	}
	if frame["ok"] != true {
		return theContract().message(frame, "reply.error")
	}
	id, _ := frame["id"].(string)
	k.mu.Lock()
	command := k.sent[id]
	k.mu.Unlock()
	name, _ := command["cmd"].(string)
	if err := theContract().message(command, "command."+name); err != nil {
		return fmt.Errorf("a command that succeeded is not described: %w", err)
	}
	return theContract().message(frame, "reply."+name)
}

func (c *contract) message(frame map[string]any, name string) error {
	if m, _ := at(c.asyncapi, "components", "messages", name); m == nil {
		return fmt.Errorf("no message %s", name)
	}
	return c.validate(frame, asyncapiAt, "components", "messages", name, "payload")
}

// objectsOf returns the objects in a frame, none if it is not JSON.
func objectsOf(text []byte) []map[string]any {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var objects []map[string]any
	for _, item := range list {
		if o, ok := item.(map[string]any); ok {
			objects = append(objects, o)
		}
	}
	return objects
}
