package server

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"nodest/internal/stream/outbox"
	"nodest/server/api"
)

// protocolCommands are the commands that the connection handles itself.
var protocolCommands = []string{"hello", "ping", "subscribe", "unsubscribe", "auth.refresh"}

func TestCommandsMatchAsyncAPI(t *testing.T) {
	t.Parallel()
	c := theContract()
	described := map[string]bool{}
	for name := range c.asyncapi["components"].(map[string]any)["messages"].(map[string]any) {
		if command, ok := strings.CutPrefix(name, "command."); ok {
			described[command] = true
		}
	}
	served := api.ByCommand()
	for command, o := range served {
		if !described[command] {
			t.Errorf("%s is served but not described", command)
			continue
		}
		required, _ := at(c.asyncapi, "components", "messages", "command."+command, "payload", "required")
		if slices.Contains(required.([]any), any("key")) != o.Key {
			t.Errorf("%s: needs a key: %v; the document says something else", command, o.Key)
		}
	}
	for command := range described {
		if served[command] == nil && !slices.Contains(protocolCommands, command) {
			t.Errorf("%s is described but not served", command)
		}
	}
	for _, command := range protocolCommands {
		if !described[command] {
			t.Errorf("%s is not described", command)
		}
	}
}

// A command takes the same fields as its REST route does in path, query and body
// together.
func TestACommandAndItsRouteTakeTheSameMembers(t *testing.T) {
	t.Parallel()
	c := theContract()
	for command, o := range api.ByCommand() {
		if o.Route == "" {
			continue // it has no plain REST route
		}
		r := routeOf(o)
		data, _ := at(c.asyncapi, "components", "messages", "command."+command, "payload", "properties", "data", "properties")
		ours := slices.Sorted(maps.Keys(data.(map[string]any)))
		path := "/api/v1" + echoParam.ReplaceAllString(r.path, "{$1}")
		theirs := slices.Clone(r.params)
		for name := range r.query {
			theirs = append(theirs, name)
		}
		body, _ := at(c.openapi, "paths", path, strings.ToLower(r.method), "requestBody", "content", "application/json", "schema", "properties")
		members, _ := body.(map[string]any)
		theirs = append(theirs, slices.Collect(maps.Keys(members))...)
		slices.Sort(theirs)
		if !slices.Equal(ours, theirs) {
			t.Errorf("%s takes %v, %s %s takes %v", command, ours, r.method, path, theirs)
		}
	}
}

func TestTheAsyncAPIDocumentIsConsistent(t *testing.T) {
	t.Parallel()
	c := theContract()
	if c.asyncapi["asyncapi"] != "3.0.0" {
		t.Errorf("asyncapi: %v", c.asyncapi["asyncapi"])
	}
	components := c.asyncapi["components"].(map[string]any)
	messages := components["messages"].(map[string]any)
	ofSocket, _ := at(c.asyncapi, "channels", "socket", "messages")
	ofStream, _ := at(c.asyncapi, "channels", "events", "messages")
	operated := map[string]bool{}
	walkRefs(c.asyncapi, func(ref string) {
		doc := c.asyncapi
		path, inside, _ := strings.Cut(ref, "#/")
		if path != "" {
			doc = c.openapi
		}
		if v, _ := at(doc, strings.Split(inside, "/")...); v == nil {
			t.Errorf("%s leads nowhere", ref)
		}
		if _, name, ok := strings.Cut(inside, "/messages/"); ok && strings.HasPrefix(inside, "channels/") {
			operated[name] = true
		}
	})
	for name := range messages {
		if ofSocket.(map[string]any)[name] == nil && ofStream.(map[string]any)[name] == nil {
			t.Errorf("the message %s is in no channel", name)
		}
		if !operated[name] {
			t.Errorf("the message %s is in no operation", name)
		}
		if err := c.message(map[string]any{}, name); err == nil {
			t.Errorf("an empty object is accepted as %s", name)
		}
	}
}

func walkRefs(v any, visit func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if ref, ok := member.(string); ok && name == "$ref" {
				visit(ref)
			}
			walkRefs(member, visit)
		}
	case []any:
		for _, item := range v {
			walkRefs(item, visit)
		}
	}
}

// Durable events have a seq, their position in the log; transient events must not
// have one.
func TestOnlyDurableEventsHaveASeq(t *testing.T) {
	t.Parallel()
	for name := range theContract().asyncapi["components"].(map[string]any)["messages"].(map[string]any) {
		kind, ok := strings.CutPrefix(name, "event.")
		if !ok || kind == "skip" {
			continue
		}
		seq, _ := at(theContract().asyncapi, "components", "messages", name, "payload", "properties", "seq")
		transient := outbox.ClassOf(kind) == "deltas" || slices.Contains([]string{"hello", "typing", "auth.expiring", "server.going_away", "pong", "file.progress"}, kind) ||
			outbox.ClassOf(kind) == "research" && !slices.Contains([]string{"research.started", "research.done", "research.failed", "research.removed"}, kind)
		if transient != (seq == nil) {
			t.Errorf("%s: transient %v, seq %v", kind, transient, seq)
		}
	}
}

// The memory of a suggestion is null where the suggestion is a new memory, in the API and
// in the event.
func TestASuggestionMayNameNoMemory(t *testing.T) {
	t.Parallel()
	const id = "0198c0de-0000-7000-8000-000000000002"
	for _, memoryID := range []any{"0198c0de-0000-7000-8000-000000000001", nil} {
		suggestion := map[string]any{
			"id": id, "memoryId": memoryID, "event": "ADD", "text": "User hates tea", "reason": "r", "evidence": []any{},
			"state": "open", "createdAt": "2026-01-31T12:00:00.000Z",
		}
		if err := theContract().validate(suggestion, openapiAt, "components", "schemas", "Suggestion"); err != nil {
			t.Error(err)
		}
		event := map[string]any{
			"ev": "memory.suggestion", "seq": 1, "at": 1, "conversationId": id, "by": "server",
			"data": map[string]any{"suggestionId": id, "memoryId": memoryID, "event": "ADD"},
		}
		if err := theContract().message(event, "event.memory.suggestion"); err != nil {
			t.Error(err)
		}
	}
}

// Two entries for one command or route would hide one another.
func TestNoOperationIsListedTwice(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range api.Operations {
		for _, name := range []string{o.Command, o.Route} {
			if name != "" && seen[name] {
				t.Errorf("%s is in the table twice", name)
			}
			seen[name] = true
		}
	}
}

// Every command and event has a summary, and every field of its data and of the
// document's schemas has a description, its own or that of its $ref.
func TestEveryMessageAndMemberIsDescribed(t *testing.T) {
	t.Parallel()
	c := theContract()
	messages, _ := at(c.asyncapi, "components", "messages")
	for name, v := range messages.(map[string]any) {
		message := v.(map[string]any)
		if !strings.HasPrefix(name, "reply.") && message["summary"] == nil {
			t.Errorf("%s has no summary", name)
		}
		if payload, _ := at(message, "payload", "properties"); payload != nil {
			data, _ := payload.(map[string]any)["data"].(map[string]any)
			c.requireDescriptions(t, name, data)
		}
	}
	schemas, _ := at(c.asyncapi, "components", "schemas")
	for name, v := range schemas.(map[string]any) {
		c.requireDescriptions(t, name, v.(map[string]any))
	}
}

// requireDescriptions checks that every field of a schema has a description,
// including those of nested objects.
func (c *contract) requireDescriptions(t *testing.T, what string, schema map[string]any) {
	t.Helper()
	if items, ok := schema["items"].(map[string]any); ok {
		c.requireDescriptions(t, what+"[]", items)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range properties {
		member := v.(map[string]any)
		c.requireDescriptions(t, what+"."+name, member)
		if ref, ok := member["$ref"].(string); ok {
			doc := c.asyncapi
			if strings.HasPrefix(ref, "openapi.json") {
				doc = c.openapi
			}
			_, inside, _ := strings.Cut(ref, "#/")
			target, _ := at(doc, strings.Split(inside, "/")...)
			member = target.(map[string]any)
		}
		if member["description"] == nil && member["const"] == nil {
			t.Errorf("%s.%s has no description", what, name)
		}
	}
}
