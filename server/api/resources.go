package api

import (
	"context"
	"encoding/json"
	"net/http"

	"nodest/character"
	"nodest/framework"
	"nodest/internal/op"
)

// resourcePaths names the kinds of free-standing documents in paths.
var resourcePaths = []struct {
	path string
	kind character.ResourceKind
}{
	{"/worldbooks", character.WorldBook},
	{"/presets", character.Preset},
	{"/regexscripts", character.RegexScript},
	{"/personas", character.Persona},
	{"/templates", character.Template},
}

// resourceOperations makes the operations of every kind, and those that test a document.
func resourceOperations() []Operation {
	table := []Operation{
		{Route: "POST /worldbooks/test", Bytes: DocumentBytes, Alone: true, Data: takes(worldBookTest)},
		{Route: "POST /regexscripts/test", Bytes: DocumentBytes, Alone: true, Data: takes(func(ctx context.Context, c *Call, in character.ScriptTest) (any, error) {
			return c.Characters.TestScripts(ctx, c.UserID, in)
		})},
	}
	for _, r := range resourcePaths {
		of := forKind(r.kind)
		table = append(table, []Operation{
			{Route: "GET " + r.path, Data: takes(of.list)},
			{Route: "GET " + r.path + "/:id", Bytes: DocumentBytes, Data: takes(of.get)},
			{Route: "DELETE " + r.path + "/:id", Status: http.StatusNoContent, Data: takes(of.remove)},
		}...)
		if r.kind == character.Template { // it comes from a file, and stays as it came
			continue
		}
		table = append(table, []Operation{
			{Route: "POST " + r.path, Status: http.StatusCreated, Bytes: DocumentBytes, Data: takes(of.create)},
			{Route: "PUT " + r.path + "/:id", IfMatch: true, Bytes: DocumentBytes, Data: takes(of.replace)},
			{Route: "PATCH " + r.path + "/:id", IfMatch: true, Bytes: DocumentBytes, Data: takes(of.update)},
		}...)
	}
	return table
}

// forKind is the operations on one kind.
type forKind character.ResourceKind

func (k forKind) kind() character.ResourceKind { return character.ResourceKind(k) }

type wireResource struct {
	ID         string          `json:"id"`
	Kind       string          `json:"kind"`
	Name       string          `json:"name"`
	Dialect    string          `json:"dialect,omitempty"`
	Document   json.RawMessage `json:"document,omitempty"` // not in lists
	BindAll    bool            `json:"bindAll"`
	Characters []string        `json:"characterIds"`
	Version    int64           `json:"version"`
	CreatedAt  op.Time         `json:"createdAt"`
	UpdatedAt  op.Time         `json:"updatedAt"`
}

func wireResourceOf(r *character.Resource) wireResource {
	return wireResource{
		ID: r.ID, Kind: string(r.Kind), Name: r.Name, Dialect: r.Dialect, Document: r.Document, BindAll: r.BindAll,
		Characters: OrEmpty(r.Characters), Version: r.Version, CreatedAt: op.Time(r.CreatedAt), UpdatedAt: op.Time(r.UpdatedAt),
	}
}

var resourceOf = Result(func(r *character.Resource) Versioned { return Versioned{wireResourceOf(r), r.Version} })

func (k forKind) create(ctx context.Context, c *Call, in character.ResourceInput) (any, error) {
	return resourceOf(c.Characters.CreateResource(ctx, c.Call, k.kind(), in))
}

func (k forKind) list(ctx context.Context, c *Call, in pageData) (any, error) {
	return Pages(wireResourceOf)(c.Characters.Resources(ctx, c.UserID, k.kind(), in.Cursor, int(in.Limit)))
}

func (k forKind) get(ctx context.Context, c *Call, in idData) (any, error) {
	return resourceOf(c.Characters.Resource(ctx, c.UserID, k.kind(), in.ID))
}

type resourceData struct {
	character.ResourceInput
	ID        string `json:"id"`
	IfVersion int64  `json:"ifVersion,omitempty"`
}

func (k forKind) replace(ctx context.Context, c *Call, in resourceData) (any, error) {
	return resourceOf(c.Characters.UpdateResource(ctx, c.Call, k.kind(), in.ID, in.ResourceInput, true, in.IfVersion))
}

func (k forKind) update(ctx context.Context, c *Call, in resourceData) (any, error) {
	return resourceOf(c.Characters.UpdateResource(ctx, c.Call, k.kind(), in.ID, in.ResourceInput, false, in.IfVersion))
}

func (k forKind) remove(ctx context.Context, c *Call, in idData) (any, error) {
	return nil, c.Characters.DeleteResource(ctx, c.Call, k.kind(), in.ID)
}

type bookTested struct {
	Entries   []framework.BookEntry `json:"entries"`
	Tokens    int                   `json:"tokens"`
	WorldInfo *worldReport          `json:"worldInfo,omitempty"`
}

func worldBookTest(ctx context.Context, c *Call, in character.BookTest) (any, error) {
	entries, world, err := c.Characters.TestBook(ctx, c.UserID, in)
	if err != nil {
		return nil, err
	}
	tokens := 0
	for _, e := range entries {
		if e.Fires {
			tokens += e.Tokens
		}
	}
	return bookTested{OrEmpty(entries), tokens, worldOf(world)}, nil
}
