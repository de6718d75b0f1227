package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"nodest/chat"
	"nodest/chat/archive"
	"nodest/fault"
	"nodest/op"
)

// archiveRoutes serves conversations and save points as files.
func (s *Server) archiveRoutes(e *echo.Echo) {
	e.POST(base+"/conversations/import", s.uploaded(upload{name: "chat.import", status: http.StatusCreated, run: s.importChat}))
	e.GET(base+"/conversations/:id/export", s.exported(s.exportChat, "format"))
	e.POST(base+"/conversations/:id/saves/import", s.uploaded(upload{
		name: "save.import", types: []string{"application/json"}, status: http.StatusCreated, run: s.importSave,
	}))
	e.GET(base+"/saves/:id/export", s.exported(s.exportSave))
}

// importChat reads a chat log (JSONL and others) or an archive of ours as a new
// conversation with the character of the form's field characterId.
func (s *Server) importChat(ctx context.Context, call *op.Call, f file) (any, error) {
	if f.characterID == "" {
		return nil, fault.InvalidField("characterId", "required", "required: the id of the character")
	}
	return s.importConversation(ctx, call, f)
}

func (s *Server) importConversation(ctx context.Context, call *op.Call, f file) (any, error) {
	got := &archive.ImportedChat{}
	var err error
	if archive.IsArchive(f.data) {
		got.Conversation, err = s.Archives.ImportArchive(ctx, call, f.characterID, f.data)
	} else {
		got, err = s.Archives.ImportChat(ctx, call, f.characterID, f.data, f.name)
	}
	if err != nil {
		return nil, err
	}
	conv := got.Conversation
	return versioned{imported{"conversation", conv.ID, chat.WireConversation(conv), got.Warnings}, conv.Version}, nil
}

// exportChat writes the shown branch as a chat log, or all that there is of the
// conversation as an archive.
func (s *Server) exportChat(c echo.Context, userID string) (data []byte, contentType, filename string, err error) {
	switch format := cmp.Or(c.QueryParam("format"), "jsonl"); format {
	case "jsonl":
		data, filename, err = s.Archives.ExportChat(c.Request().Context(), userID, c.Param("id"))
		return data, "application/jsonl; charset=utf-8", filename, err
	case "json":
		data, filename, err = s.Archives.ExportArchive(c.Request().Context(), userID, c.Param("id"))
		return data, "application/json", filename, err
	default:
		return nil, "", "", fault.InvalidField("format", "value", "must be jsonl or json, not %q", format)
	}
}

// importSave reads the file of a save point, ours or the app's.
func (s *Server) importSave(ctx context.Context, call *op.Call, f file) (any, error) {
	return result(func(save *chat.Save) imported { return imported{"save", save.ID, chat.WireSave(save), nil} })(
		s.Archives.ImportSave(ctx, call, f.id, f.data))
}

func (s *Server) exportSave(c echo.Context, userID string) (data []byte, contentType, filename string, err error) {
	data, filename, err = s.Archives.ExportSave(c.Request().Context(), userID, c.Param("id"))
	return data, "application/json", filename, err
}
