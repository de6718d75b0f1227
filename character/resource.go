package character

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"nodest/card"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/llm"
)

// Bounds of resources.
const (
	maxResourceName = 200    // code points
	maxPersonaName  = 100    // code points: every prompt has it
	maxPersonaText  = 32_000 // code points
	maxBindings     = 1000   // characters that one resource is bound to
)

// CreateResource stores a world book, preset, set of regex scripts or persona.
// Its name is the given one, else the document's.
//
// Errors: Invalid with the field, InvalidWorldBook, InvalidImport; NotFound for
// a character that the user does not have.
func (svc *Service) CreateResource(ctx context.Context, c *op.Call, kind ResourceKind, in ResourceInput) (*Resource, error) {
	if op.IsNull(in.Document) {
		return nil, fault.InvalidField("document", "required", "required")
	}
	checked, err := in.check(kind, true)
	if err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Resource, error) {
		r := &Resource{Kind: kind}
		if err := checked.apply(tx, r, true); err != nil {
			return nil, err
		}
		return r, insertResource(tx, c, r)
	})
}

// ImportedResource is an imported resource with the warnings about its file.
type ImportedResource struct {
	Resource *Resource      `json:"resource"`
	Warnings []card.Warning `json:"warnings"`
}

// Read reads the resource of a kind and an id.
func (i *ImportedResource) Read(tx Tx) error { return i.Resource.Read(tx) }

var fileReaders = map[ResourceKind]func(data []byte, filename string, limits card.Limits) (*card.Resource, error){
	WorldBook: card.ImportWorldBook, Preset: card.ImportPreset, RegexScript: card.ImportRegexScripts, Persona: card.ImportPersona,
	Template: card.ImportTemplate,
}

// ImportResource stores a resource from a file, in any of the forms that package
// card reads for its kind, and binds it to a character ("" = none). A group of scripts of
// the NodeST app that is for all characters is bound to all. Scripts that are bound to a
// character are switched on for the user. A template is never bound.
//
// Errors: TooLarge, InvalidWorldBook, InvalidImport; NotFound for the character.
func (svc *Service) ImportResource(ctx context.Context, c *op.Call, kind ResourceKind, data []byte, filename, characterID string) (*ImportedResource, error) {
	doc, err := TryResource(kind, data, filename)
	if err != nil {
		return nil, err
	}
	var group struct {
		BindType string `json:"bindType"`
	}
	all := kind == RegexScript && json.Unmarshal(data, &group) == nil && group.BindType == "all"
	return op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (*ImportedResource, error) {
		r := &Resource{
			Kind: kind, Name: cmp.Or(op.Truncate(OneLine(doc.Name), maxResourceName), string(kind)),
			Dialect: string(doc.Dialect), Document: doc.Doc, Characters: []string{}, BindAll: all,
		}
		got := &ImportedResource{r, append([]card.Warning{}, doc.Warnings...)}
		if characterID != "" && kind != Template { // no character uses one
			if err := got.bind(tx, c, characterID); err != nil {
				return nil, err
			}
		}
		return got, insertResource(tx, c, r)
	})
}

// TryResource returns the document that ImportResource would store, with the warnings about its file.
//
// Errors: as ImportResource, except those about the character.
func TryResource(kind ResourceKind, data []byte, filename string) (*card.Resource, error) {
	read := fileReaders[kind]
	if read == nil {
		return nil, fault.New(fault.NotFound, "a %s cannot be imported", kind)
	}
	doc, err := read(data, filename, card.Limits{})
	if err != nil {
		return nil, err
	}
	if kind == Persona {
		if _, err := readPersona("file", doc.Doc); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// bind binds a resource that is not stored yet to a character.
func (i *ImportedResource) bind(tx Tx, c *op.Call, characterID string) error {
	if _, err := tx.CharacterCard(characterID); err != nil {
		return op.InField("characterId", err)
	}
	i.Resource.Characters = []string{characterID}
	if i.Resource.Kind != RegexScript {
		return nil
	}
	changed, err := switchScriptsOn(tx, c)
	if changed {
		i.Warnings = append(i.Warnings, card.Warning{
			Path: "globalRegexEnabled", Code: "switched_on", Detail: "regex scripts were off in your settings and have been turned on",
		})
	}
	return err
}

// Resource returns one of the user's resources of a kind.
func (svc *Service) Resource(ctx context.Context, userID string, kind ResourceKind, id string) (*Resource, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Resource, error) { return tx.Resource(kind, id) })
}

// Resources lists the user's resources of a kind without their documents, newest
// first; limit is 1 to 200, 0 = 50.
func (svc *Service) Resources(ctx context.Context, userID string, kind ResourceKind, cursor string, limit int) (*op.Page[*Resource], error) {
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Resource, string, error) {
		return tx.Resources(kind, cursor, limit)
	})
}

// UpdateResource replaces a resource (replace), or the members that are given.
//
// Errors: those of CreateResource; PreconditionFailed when ifVersion is not 0
// and not its version.
func (svc *Service) UpdateResource(ctx context.Context, c *op.Call, kind ResourceKind, id string, in ResourceInput, replace bool, ifVersion int64) (*Resource, error) {
	if op.IsNull(in.Document) && (replace || len(in.Document) > 0) {
		return nil, fault.InvalidField("document", "required", "required")
	}
	checked, err := in.check(kind, false)
	if err != nil {
		return nil, err
	}
	return op.LastWins(ctx, svc.store, c, ifVersion, func(tx Tx) (*Resource, error) {
		r, err := tx.Resource(kind, id)
		if err != nil {
			return nil, err
		}
		if err := op.CheckVersion(ifVersion, r.Version); err != nil {
			return nil, err
		}
		if err := checked.apply(tx, r, replace); err != nil {
			return nil, err
		}
		return r, updateResource(tx, c, r)
	})
}

// DeleteResource deletes a resource and removes it from the user's settings.
func (svc *Service) DeleteResource(ctx context.Context, c *op.Call, kind ResourceKind, id string) error {
	_, err := op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (struct{}, error) {
		r, err := tx.Resource(kind, id)
		if err != nil {
			return struct{}{}, err
		}
		if err := deleteResource(tx, c, r); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, forgetInSettings(tx, c, id)
	})
	return err
}

// ExportResource writes the document of a resource as a JSON file; a template as it came.
func (svc *Service) ExportResource(ctx context.Context, userID string, kind ResourceKind, id string) (data []byte, filename string, err error) {
	r, err := svc.Resource(ctx, userID, kind, id)
	if err != nil {
		return nil, "", err
	}
	file, err := card.ExportDocument(r.Document, r.Name)
	if err != nil {
		return nil, "", err
	}
	if kind == Template {
		file.Data = r.Document
	}
	return file.Data, file.Name, nil
}

// checkedResource is an input whose document was checked. A large document takes a while, so this is
// done before the transaction: nobody else can write meanwhile.
type checkedResource struct {
	ResourceInput
	dialect card.Dialect // dialect of a new resource, if the request names none
	title   string       // the name in the document
}

func (in ResourceInput) check(kind ResourceKind, fresh bool) (*checkedResource, error) {
	if err := checkDialect(in.Dialect); err != nil {
		return nil, err
	}
	checked := &checkedResource{ResourceInput: in}
	if fresh && in.Dialect == "" {
		checked.dialect = dialectOf(kind, in.Document)
	}
	if len(in.Document) > 0 {
		if err := checkDocument("document", kind, in.Document); err != nil {
			return nil, err
		}
		checked.title = documentName(in.Document)
	}
	return checked, nil
}

// apply puts the given members into r. With all, absent ones get their default; without it they stay.
func (in *checkedResource) apply(tx Tx, r *Resource, all bool) error {
	r.Dialect = cmp.Or(in.Dialect, r.Dialect, string(in.dialect))
	if len(in.Document) > 0 {
		r.Document = op.JSONOrNil(in.Document)
	}
	if err := in.applyName(r, all); err != nil {
		return err
	}
	if in.BindAll != nil || all {
		r.BindAll = in.BindAll != nil && *in.BindAll
	}
	if in.Characters == nil && !all {
		return nil
	}
	ids, err := boundCharacters(tx, in.Characters)
	r.Characters = ids
	return err
}

// dialectOf is the dialect of a document whose maker does not name one.
func dialectOf(kind ResourceKind, doc json.RawMessage) card.Dialect {
	if kind == WorldBook {
		return card.BookDialect(doc)
	}
	return card.NodeST
}

func (in *checkedResource) applyName(r *Resource, all bool) error {
	switch {
	case in.Name != "":
		r.Name = in.Name
	case all || r.Kind == Persona && len(in.Document) > 0:
		r.Name = cmp.Or(in.title, r.Name)
	}
	limit := maxResourceName
	if r.Kind == Persona {
		limit = maxPersonaName
		if r.Name == "" {
			return fault.InvalidField("name", "required", "required: a persona needs a name")
		}
	}
	r.Name = cmp.Or(r.Name, string(r.Kind))
	return op.CheckLine("name", r.Name, limit)
}

// documentName is the name in a document; "" = none.
func documentName(doc json.RawMessage) string {
	var in struct {
		Name   any `json:"name"`
		Script any `json:"scriptName"`
	}
	_ = json.Unmarshal(doc, &in) // an array has no name
	return firstName(in.Name, in.Script)
}

// personaDocument is what a persona says; other members are kept.
type personaDocument struct {
	Name        string `json:"name"`
	Description string `json:"description"`

	// As SillyTavern stores them. Invalid values, which imported files may have, count as absent.
	Position any `json:"position"` // framework.PersonaPosition
	Depth    any `json:"depth"`    // messages from the end, 0 to 10,000; absent = 2
	Role     any `json:"role"`     // 0 system, 1 user, 2 assistant

	WorldBook any `json:"worldBookId"` // the book that counts while this persona speaks; of another type, or gone = none
}

const (
	maxPersonaDepth = 10_000
	personaDepth    = 2
)

// place is where the description goes.
func (p *personaDocument) place() framework.PersonaPlace {
	number := func(v any, otherwise, most int) int {
		if n, ok := v.(float64); ok && n == math.Trunc(n) && n >= 0 && n <= float64(most) {
			return int(n)
		}
		return otherwise
	}
	place := framework.PersonaPlace{Position: framework.PersonaPosition(number(p.Position, 0, 9)), Depth: number(p.Depth, personaDepth, maxPersonaDepth)}
	if !slices.Contains(personaPositions, place.Position) {
		place.Position = framework.PersonaInPrompt
	}
	place.Role = [...]llm.Role{llm.System, llm.User, llm.Assistant}[number(p.Role, 0, 2)]
	return place
}

var personaPositions = []framework.PersonaPosition{
	framework.PersonaInPrompt, framework.PersonaTopOfNote, framework.PersonaEndOfNote, framework.PersonaAtDepth, framework.PersonaNotAtAll,
}

// checkPlace refuses values that place would read as absent.
func (p *personaDocument) checkPlace(field string) error {
	checks := op.Checks{}
	whole := func(member string, v any) (n float64, ok bool) {
		n, ok = v.(float64)
		ok = ok && n == math.Trunc(n)
		checks.That(ok || v == nil, field+"."+member, "type", "must be a whole number")
		return n, ok
	}
	if n, ok := whole("position", p.Position); ok {
		known := slices.ContainsFunc(personaPositions, func(at framework.PersonaPosition) bool { return float64(at) == n })
		checks.That(known, field+".position", "value", "must be one of 0, 2, 3, 4, 9")
	}
	if n, ok := whole("depth", p.Depth); ok {
		op.Between(&checks, field+".depth", &n, 0, maxPersonaDepth)
	}
	if n, ok := whole("role", p.Role); ok {
		op.Between(&checks, field+".role", &n, 0, 2)
	}
	_, isText := p.WorldBook.(string)
	checks.That(isText || p.WorldBook == nil, field+".worldBookId", "type", "must be a text")
	return checks.Err()
}

// readPersona reads a persona. Its place is not checked: place reads any value.
//
// Errors: Invalid with the field for a name or description that is no text, or too long.
func readPersona(field string, doc json.RawMessage) (*personaDocument, error) {
	p := &personaDocument{}
	if err := op.DecodeLenient(field, doc, p); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(p.Description) > maxPersonaText {
		return nil, fault.InvalidField(field+".description", "range", "must have at most %d characters", maxPersonaText)
	}
	return p, op.CheckLine(field+".name", p.Name, maxPersonaName)
}

// boundCharacters checks a list of characters and returns it without doubles,
// never nil.
func boundCharacters(tx Tx, ids []string) ([]string, error) {
	if len(ids) > maxBindings {
		return nil, fault.InvalidField("characterIds", "range", "must have at most %d ids", maxBindings)
	}
	bound := []string{}
	for i, id := range ids {
		if slices.Contains(bound, id) {
			continue
		}
		if _, err := tx.CharacterCard(id); err != nil {
			return nil, op.InField(fmt.Sprintf("characterIds[%d]", i), err)
		}
		bound = append(bound, id)
	}
	return bound, nil
}

func insertResource(tx Tx, c *op.Call, r *Resource) error {
	r.ID, r.Version = op.NewID(), 1
	r.CreatedAt, r.UpdatedAt = tx.Now(), tx.Now()
	if err := tx.InsertResource(r); err != nil {
		return err
	}
	return tx.Emit(resourceEvent(c, "resource.updated", r))
}

// updateResource stores r as its next version and emits its event.
func updateResource(tx Tx, c *op.Call, r *Resource) error {
	r.Version++
	r.UpdatedAt = tx.Now()
	if err := tx.UpdateResource(r); err != nil {
		return err
	}
	return tx.Emit(resourceEvent(c, "resource.updated", r))
}

func deleteResource(tx Tx, c *op.Call, r *Resource) error {
	if err := tx.DeleteResource(r.Kind, r.ID); err != nil {
		return err
	}
	return tx.Emit(resourceEvent(c, "resource.deleted", r))
}

func resourceEvent(c *op.Call, kind string, r *Resource) *stream.Event {
	return op.Event(c.UserID, kind, c.By(), struct {
		Kind    string `json:"kind"`
		ID      string `json:"id,omitempty"`
		Version int64  `json:"version,omitempty"`
	}{string(r.Kind), r.ID, r.Version})
}
