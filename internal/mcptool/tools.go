package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/markup"
	"nodest/internal/op"
	"nodest/llm"
)

// Tool is a tool of a server, as models see it.
type Tool struct {
	Name        string // server_tool: letters, digits and _, at most 64; unique among all servers
	Description string // at most 1,000 code points

	remote     string // its name on the server
	parameters json.RawMessage
}

// tokens is what the tool takes of a request.
func (t Tool) tokens() int {
	return llm.EstimateTokens(t.Name) + llm.EstimateTokens(t.Description) + llm.EstimateTokens(string(t.parameters))
}

// The bounds of what a server may offer. Lengths are in code points unless noted.
const (
	mostTools       = 32
	mostRead        = 500 // tools that are looked at
	longestName     = 128 // on the server
	longestToolName = 64  // for models, in bytes
	longestAbout    = 1000
	largestSchema   = 8 << 10 // bytes
)

// read returns the tools of the server that can be used.
func (s *server) read(ctx context.Context, session *mcp.ClientSession) ([]Tool, error) {
	var tools []Tool
	seen := 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if seen++; len(tools) == mostTools || seen > mostRead {
			s.log.WarnContext(ctx, "an MCP server has more tools than are used", "server", s.name, "used", len(tools))
			break
		}
		tool, problem := s.tool(t, tools)
		if problem != "" {
			s.log.WarnContext(ctx, "a tool of an MCP server is left out", "server", s.name, "tool", op.Truncate(t.Name, longestName), "reason", problem)
			continue
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// tool is t as models see it, or the reason why they do not. before are the server's others.
func (s *server) tool(t *mcp.Tool, before []Tool) (tool Tool, problem string) {
	if n := utf8.RuneCountInString(t.Name); n == 0 || n > longestName {
		return tool, "its name is empty or too long"
	}
	if slices.ContainsFunc(before, func(b Tool) bool { return b.remote == t.Name }) {
		return tool, "another tool has its name"
	}
	parameters, problem := schemaOf(t)
	return Tool{
		Name: nameFor(s.name, t.Name, func(name string) bool {
			return slices.ContainsFunc(before, func(b Tool) bool { return b.Name == name })
		}),
		Description: op.Truncate(markup.Plain(strings.ToValidUTF8(t.Description, "\uFFFD")), longestAbout),
		remote:      t.Name, parameters: parameters,
	}, problem
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// nameFor is the name of a tool for models, as all providers take it. One that is too long or taken ends in a hash of
// its name on the server. It differs from our own tools, whose names have no underscore.
func nameFor(server, tool string, taken func(string) bool) string {
	name := server + "_" + notInNames.ReplaceAllString(tool, "_")
	if len(name) > longestToolName || taken(name) {
		sum := sha256.Sum256([]byte(tool))
		end := "_" + hex.EncodeToString(sum[:4])
		name = name[:min(len(name), longestToolName-len(end))] + end
	}
	return name
}

// schemaOf returns the schema of a tool's arguments. It always has properties: some providers
// refuse an object without.
func schemaOf(t *mcp.Tool) (parameters json.RawMessage, problem string) {
	raw, err := json.Marshal(t.InputSchema)
	var schema, properties map[string]json.RawMessage
	var required []string
	switch {
	case err != nil || len(raw) > largestSchema:
		return nil, "the schema of its arguments is too large"
	case string(raw) == "true" || string(raw) == "null":
		schema = map[string]json.RawMessage{} // anything goes
	case json.Unmarshal(raw, &schema) != nil:
		return nil, "the schema of its arguments is not that of an object"
	}
	for range mostReferences {
		if !resolve(schema) {
			break
		}
	}
	delete(schema, "$ref")
	if !takesObject(schema["type"]) {
		return nil, "the schema of its arguments is not that of an object"
	}
	schema["type"] = json.RawMessage(`"object"`)
	if json.Unmarshal(schema["properties"], &properties) != nil || properties == nil {
		schema["properties"] = json.RawMessage("{}")
	}
	if json.Unmarshal(schema["required"], &required) != nil || required == nil {
		delete(schema, "required") // a provider would refuse all tools because of it
	}
	return op.MustJSON(schema), ""
}

// mostReferences is how often a schema may refer to another as a whole.
const mostReferences = 8

// resolve puts the members of the definition that a schema refers to as a whole into it, which
// providers do not do. It reports whether there is one.
func resolve(schema map[string]json.RawMessage) bool {
	var path string
	if json.Unmarshal(schema["$ref"], &path) != nil {
		return false
	}
	delete(schema, "$ref") // the definition may have another
	for _, place := range []string{"$defs", "definitions"} {
		var all, definition map[string]json.RawMessage
		name, ok := strings.CutPrefix(path, "#/"+place+"/")
		if !ok || json.Unmarshal(schema[place], &all) != nil || json.Unmarshal(all[name], &definition) != nil {
			continue
		}
		for member, value := range definition {
			if _, has := schema[member]; !has {
				schema[member] = value
			}
		}
		return true
	}
	return false
}

// takesObject reports whether values of a type can be objects. Arguments of no given type are.
func takesObject(kind json.RawMessage) bool {
	var one string
	var several []string
	return kind == nil || json.Unmarshal(kind, &one) == nil && one == "object" ||
		json.Unmarshal(kind, &several) == nil && slices.Contains(several, "object")
}
