package api

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"nodest/card"
	"nodest/character"
	"nodest/internal/op"
)

// Upload is a route that takes a file: the file of a form, or the body itself.
type Upload struct {
	Route string   // as in Operation
	Name  string   // the operation's name, for its idempotency key
	Types []string // content types of a body that is the file itself; nil = only a form will do
	Limit int64    // in bytes; 0 = the server's default
	// Spooled is set on uploads that are too large for memory: the file is in Body, and
	// Limit does not count the form around it.
	Spooled bool
	// Sink returns what takes the file of a spooled one, instead of a temporary file; nil = that.
	Sink func(ctx context.Context, s *Services, userID string) Sink
	// Room returns how many bytes the file may have, of a spooled one, before any of it is
	// read; nil = Limit.
	Room    func(ctx context.Context, s *Services, c *op.Call, id string) (int64, error)
	IfMatch bool // as in Operation; only of a spooled one
	Status  int  // status of a success; 0 = 200
	Run     func(ctx context.Context, s *Services, c *op.Call, f File) (any, error)
}

// File is an uploaded file, and what it is for.
type File struct {
	Data           []byte
	Name           string
	ID             string // in the path
	As             string // fields of the form, as are the next three
	CharacterID    string
	ConversationID string
	MakeCharacter  string

	// A spooled upload has these instead of Data.
	Body io.ReaderAt
	Sink Sink   // that has the file instead of Body; nil = none
	Size int64  // size of Body in bytes
	Hash string // SHA-256 of Body in hexadecimal
	Type string // that the client declares; "" = none

	Rename          string // field name of the form: the file's name with folders; "" = none
	KnowledgeBaseID string // field of the form
	Source          string // likewise; "" = none
	DryRun          string // likewise
	MakeCharacters  string // likewise
	IfVersion       int64
}

// Sink takes a file while it arrives. Drop removes it, unless Run has made something of it.
type Sink interface {
	io.Writer
	Drop()
}

// Download is a route that answers a file. Run writes it to out, piece by piece if it may be
// large. Nothing is sent before Run has ended: a slow client does not keep a transaction
// open, and a failure can be reported.
type Download struct {
	Route string   // as in Operation
	Query []string // the parameters that it knows
	Run   func(ctx context.Context, s *Services, userID string, in Asked, out io.Writer) (contentType, filename string, err error)
}

// Asked is what a request for a file names.
type Asked struct {
	ID    string // in the path
	Query url.Values
}

// CharacterImport stores the file of a card.
var CharacterImport = Upload{Route: "POST /characters/import", Name: "character.import", Status: http.StatusCreated, Run: importCharacter}

// Characters as files, and files of any kind.
var (
	characterUploads = []Upload{
		{Route: "POST /import", Name: "import", Status: http.StatusCreated, Run: importAny},
		CharacterImport,
		{Route: "PUT /characters/:id/avatar", Name: "character.avatar", Run: putAvatar},
	}
	characterDownloads = []Download{
		{Route: "GET /characters/:id/export", Query: []string{"format", "spec"}, Run: exportCharacter},
	}
)

// resourceUploads are those of every kind that has files. POST /import reads personas.
func resourceUploads() (list []Upload) {
	for _, r := range resourcePaths {
		if r.kind != character.Persona {
			list = append(list, Upload{
				Route: "POST " + r.path + "/import", Name: string(r.kind) + ".import", Status: http.StatusCreated, Run: importResource(r.kind),
			})
		}
	}
	return list
}

func resourceDownloads() (list []Download) {
	for _, r := range resourcePaths {
		if r.kind != character.Persona {
			list = append(list, Download{Route: "GET " + r.path + "/:id/export", Run: exportResource(r.kind)})
		}
	}
	return list
}

func importCharacter(ctx context.Context, s *Services, call *op.Call, f File) (any, error) {
	got, err := s.Characters.Import(ctx, call, f.Data, f.Name)
	if err != nil {
		return nil, err
	}
	return imported{"character", got.Character.ID, wireCharacterOf(got.Character), got.Warnings}, nil
}

// imported is the answer to every import.
type imported struct {
	kind, id string
	object   any // as the kind's own routes answer it
	warnings []card.Warning
}

// MarshalJSON puts the object under the name of its kind.
func (i imported) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"kind": i.kind, "id": i.id, i.kind: i.object, "warnings": OrEmpty(i.warnings)})
}

func exportCharacter(ctx context.Context, s *Services, userID string, in Asked, out io.Writer) (contentType, filename string, err error) {
	data, contentType, filename, err := s.Characters.Export(ctx, userID, in.ID, cmp.Or(in.Query.Get("format"), "json"), cmp.Or(in.Query.Get("spec"), "v3"))
	if err == nil {
		_, err = out.Write(data)
	}
	return contentType, filename, err
}

func putAvatar(ctx context.Context, s *Services, call *op.Call, f File) (any, error) {
	return characterOf(s.Characters.PutAvatar(ctx, call, f.ID, f.Data))
}

func importResource(kind character.ResourceKind) func(context.Context, *Services, *op.Call, File) (any, error) {
	return func(ctx context.Context, s *Services, call *op.Call, f File) (any, error) {
		got, err := s.Characters.ImportResource(ctx, call, kind, f.Data, f.Name, f.CharacterID)
		if err != nil {
			return nil, err
		}
		return imported{"resource", got.Resource.ID, wireResourceOf(got.Resource), got.Warnings}, nil
	}
}

func exportResource(kind character.ResourceKind) func(context.Context, *Services, string, Asked, io.Writer) (string, string, error) {
	return func(ctx context.Context, s *Services, userID string, in Asked, out io.Writer) (string, string, error) {
		data, filename, err := s.Characters.ExportResource(ctx, userID, kind, in.ID)
		if err == nil {
			_, err = out.Write(data)
		}
		return "application/json", filename, err
	}
}
