package server

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"

	"nodest/account"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/fault"
)

// archiveRoutes serves conversations and save points as files.
func (s *Server) archiveRoutes(e *echo.Echo) {
	e.POST(base+"/conversations/import", s.signedIn(only(s.importChat)))
	e.GET(base+"/conversations/:id/export", s.signedIn(only(s.exportChat, "format")))
	e.POST(base+"/conversations/:id/saves/import", s.signedIn(only(s.importSave)))
	e.GET(base+"/saves/:id/export", s.signedIn(only(s.exportSave)))
}

// importChat reads a chat log (JSONL and others) or an archive of ours as a new
// conversation with the character of the form's field characterId.
func (s *Server) importChat(c echo.Context, who *account.Identity) error {
	data, filename, err := s.upload(c, fileBytes)
	if err != nil {
		return err
	}
	character := c.FormValue("characterId")
	if character == "" {
		return fault.InvalidField("characterId", "required", "required: the id of the character")
	}
	call, err := s.fileCall(c, who, "chat.import/"+character, data)
	if err != nil {
		return err
	}
	ctx := detached(c.Request().Context())
	var got *archive.ImportedChat
	if archive.IsArchive(data) {
		got = &archive.ImportedChat{}
		got.Conversation, err = s.Archives.ImportArchive(ctx, call, character, data)
	} else {
		got, err = s.Archives.ImportChat(ctx, call, character, data, filename)
	}
	if err != nil {
		return err
	}
	conv := got.Conversation
	return answer(c, http.StatusCreated, call, versioned{
		imported{"conversation", conv.ID, chat.WireConversation(conv), got.Warnings}, conv.Version,
	})
}

// exportChat writes the shown branch as a chat log, or all that there is of the
// conversation as an archive.
func (s *Server) exportChat(c echo.Context, who *account.Identity) error {
	var data []byte
	var filename string
	var err error
	contentType := "application/json"
	switch format := cmp.Or(c.QueryParam("format"), "jsonl"); format {
	case "jsonl":
		contentType = "application/jsonl; charset=utf-8"
		data, filename, err = s.Archives.ExportChat(c.Request().Context(), who.User.ID, c.Param("id"))
	case "json":
		data, filename, err = s.Archives.ExportArchive(c.Request().Context(), who.User.ID, c.Param("id"))
	default:
		return fault.InvalidField("format", "value", "must be jsonl or json, not %q", format)
	}
	if err != nil {
		return err
	}
	return attachment(c, data, contentType, filename)
}

// importSave reads the file of a save point, ours or the app's: the body itself,
// or the file of a form.
func (s *Server) importSave(c echo.Context, who *account.Identity) error {
	data, err := s.fileOrBody(c, fileBytes, "application/json")
	if err != nil {
		return err
	}
	id := c.Param("id")
	call, err := s.fileCall(c, who, "save.import/"+id, data)
	if err != nil {
		return err
	}
	save, err := s.Archives.ImportSave(detached(c.Request().Context()), call, id, data)
	if err != nil {
		return err
	}
	return answer(c, http.StatusCreated, call, imported{"save", save.ID, chat.WireSave(save), nil})
}

func (s *Server) exportSave(c echo.Context, who *account.Identity) error {
	data, filename, err := s.Archives.ExportSave(c.Request().Context(), who.User.ID, c.Param("id"))
	if err != nil {
		return err
	}
	return attachment(c, data, "application/json", filename)
}
