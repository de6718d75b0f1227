package api

import (
	"context"
	"errors"
	"net/http"

	"nodest/card/picture"
	"nodest/internal/op"
	"nodest/internal/tavern"
	"nodest/internal/tavern/folder"
)

// tavernUploads bring the folder of a SillyTavern user in.
var tavernUploads = []Upload{
	{Route: "POST /sillytavern/imports", Name: "sillytavern.import", Limit: tavern.MaxArchive, Spooled: true, Sink: folderSink, Status: http.StatusAccepted, Run: importFolder},
}

// tavernOperations are about imports of folders.
var tavernOperations = []Operation{
	{Route: "GET /sillytavern/imports", Data: takes(func(ctx context.Context, c *Call, in pageData) (any, error) {
		return Pages(tavern.Wire)(c.Tavern.List(ctx, c.UserID, in.Cursor, int(in.Limit)))
	})},
	{Route: "GET /sillytavern/imports/:id", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return folderImportOf(c.Tavern.Get(ctx, c.UserID, in.ID))
	})},
	{Route: "GET /sillytavern/imports/:id/files", Data: takes(func(ctx context.Context, c *Call, in folderFilesData) (any, error) {
		f := tavern.Filter{Outcome: tavern.Outcome(in.Outcome), Kind: folder.Kind(in.Kind)}
		return Pages(tavern.WireFile)(c.Tavern.Files(ctx, c.UserID, in.ID, f, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /sillytavern/imports/:id/stop", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return folderImportOf(c.Tavern.Stop(ctx, c.Call, in.ID))
	})},
	{Route: "DELETE /sillytavern/imports/:id", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return nil, c.Tavern.Delete(ctx, c.Call, in.ID)
	})},
	{Route: "GET /sillytavern/files", Data: takes(func(ctx context.Context, c *Call, in keptFilesData) (any, error) {
		return Pages(tavern.WireKept)(c.Tavern.KeptFiles(ctx, c.UserID, folder.Kind(in.Kind), in.ObjectID, in.Cursor, int(in.Limit)))
	})},
	{Route: "DELETE /sillytavern/files/:id", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return nil, c.Tavern.DeleteKept(ctx, c.Call, in.ID)
	})},
}

// tavernStreams are the contents of files that are kept byte for byte.
var tavernStreams = []Stream{
	{Route: "GET /sillytavern/files/:id/content", Open: func(ctx context.Context, s *Services, userID, id string) (*Content, error) {
		k, body, err := s.Tavern.KeptFile(ctx, userID, id)
		if err != nil {
			return nil, err
		}
		kind, err := picture.Kind(body)
		if err != nil {
			return nil, errors.Join(err, body.Close())
		}
		return &Content{body, k.Path, k.Digest, kind}, nil
	}},
}

type keptFilesData struct {
	pageData
	Kind     string `json:"kind,omitempty"`
	ObjectID string `json:"objectId,omitempty"`
}

var folderImportOf = Result(tavern.Wire)

type folderFilesData struct {
	idData
	pageData
	Outcome string `json:"outcome,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

func importFolder(ctx context.Context, s *Services, c *op.Call, f File) (any, error) {
	dry, make, check := false, true, &op.Checks{}
	for _, flag := range []struct {
		field, text string
		to          *bool
	}{{"dryRun", f.DryRun, &dry}, {"makeCharacters", f.MakeCharacters, &make}} {
		check.That(flag.text == "" || flag.text == "true" || flag.text == "false", flag.field, "value", "must be true or false")
		if flag.text != "" {
			*flag.to = flag.text == "true"
		}
	}
	if check.Err() != nil {
		return nil, check.Err()
	}
	return folderImportOf(s.Tavern.Start(ctx, c, tavern.Upload{Name: f.Name, Archive: f.Sink.(*tavern.Intake), DryRun: dry, MakeCharacters: make}))
}

// folderSink stores an archive while it arrives.
func folderSink(ctx context.Context, s *Services, userID string) Sink {
	return s.Tavern.Intake(ctx, userID)
}
