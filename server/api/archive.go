package api

import (
	"cmp"
	"context"
	"io"
	"net/http"

	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Conversations and save points as files.
var (
	archiveUploads = []Upload{
		{Route: "POST /conversations/import", Name: "chat.import", Status: http.StatusCreated, Run: importChat},
		{Route: "POST /conversations/:id/saves/import", Name: "save.import", Status: http.StatusCreated,
			Types: []string{"application/json"}, Run: importSave},
	}
	archiveDownloads = []Download{
		{Route: "GET /conversations/:id/export", Query: []string{"format"}, Run: exportChat},
		{Route: "GET /saves/:id/export", Run: exportSave},
	}
)

// importChat reads a chat log (JSONL and others) or an archive of ours as a new
// conversation with the character of the form's field characterId.
func importChat(ctx context.Context, s *Services, call *op.Call, f File) (any, error) {
	if f.CharacterID == "" {
		return nil, fault.InvalidField("characterId", "required", "required: the id of the character")
	}
	return importConversation(ctx, s, call, f)
}

func importConversation(ctx context.Context, s *Services, call *op.Call, f File) (any, error) {
	got := &archive.ImportedChat{}
	var err error
	if archive.IsArchive(f.Data) {
		got.Conversation, err = s.Archives.ImportArchive(ctx, call, f.CharacterID, f.Data)
	} else {
		got, err = s.Archives.ImportChat(ctx, call, f.CharacterID, f.Data, f.Name)
	}
	if err != nil {
		return nil, err
	}
	conv := got.Conversation
	return Versioned{imported{"conversation", conv.ID, chat.WireConversation(conv), got.Warnings}, conv.Version}, nil
}

// exportChat writes the shown branch as a chat log, or all that there is of the
// conversation as an archive.
func exportChat(ctx context.Context, s *Services, userID string, in Asked, out io.Writer) (contentType, filename string, err error) {
	switch format := cmp.Or(in.Query.Get("format"), "jsonl"); format {
	case "jsonl":
		filename, err = s.Archives.ExportChat(ctx, userID, in.ID, out)
		return "application/jsonl; charset=utf-8", filename, err
	case "json":
		filename, err = s.Archives.ExportArchive(ctx, userID, in.ID, out)
		return "application/json", filename, err
	default:
		return "", "", fault.InvalidField("format", "value", "must be jsonl or json, not %q", format)
	}
}

// importSave reads the file of a save point, ours or the app's.
func importSave(ctx context.Context, s *Services, call *op.Call, f File) (any, error) {
	return Result(func(save *chat.Save) imported { return imported{"save", save.ID, chat.WireSave(save), nil} })(
		s.Archives.ImportSave(ctx, call, f.ID, f.Data))
}

func exportSave(ctx context.Context, s *Services, userID string, in Asked, out io.Writer) (contentType, filename string, err error) {
	filename, err = s.Archives.ExportSave(ctx, userID, in.ID, out)
	return "application/json", filename, err
}
