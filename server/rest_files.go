package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"nodest/account"
	"nodest/card"
	"nodest/character"
	"nodest/fault"
	"nodest/op"
)

// Bounds of uploads, in bytes. What is larger than formMemory is read through a
// temporary file.
const (
	fileBytes  = 64 << 20
	formMemory = 16 << 20
)

// fileRoutes serves what is a file and not JSON: imports, exports, avatars.
func (s *Server) fileRoutes(e *echo.Echo) {
	characters := upload{name: "character.import", status: http.StatusCreated, run: s.importCharacter}
	sample := func(c echo.Context, who *account.Identity) error { // for users who have no card yet
		return s.take(c, who, characters, file{data: card.SampleFile(), name: "sample.json"})
	}
	e.POST(base+"/import", s.uploaded(upload{name: "import", status: http.StatusCreated, run: s.importAny}))
	e.POST(base+"/characters/import", s.uploaded(characters))
	e.POST(base+"/characters/sample", s.signedIn(only(sample)))
	e.GET(base+"/characters/:id/export", s.exported(s.exportCharacter, "format", "spec"))
	e.GET(base+"/characters/:id/avatar", s.signedIn(only(s.avatar, "size")))
	e.PUT(base+"/characters/:id/avatar", s.uploaded(upload{name: "character.avatar", run: s.putAvatar}))
	s.archiveRoutes(e)
	for _, r := range resourcePaths {
		if r.kind == character.Persona {
			continue // POST /import reads them
		}
		e.POST(base+r.path+"/import", s.uploaded(upload{name: string(r.kind) + ".import", status: http.StatusCreated, run: s.importResource(r.kind)}))
		e.GET(base+r.path+"/:id/export", s.exported(s.exportResource(r.kind)))
	}
}

// upload is a route that takes a file: the file of a form, or the body itself.
type upload struct {
	name   string   // of the operation, for its idempotency key
	types  []string // content types of a body that is the file itself; nil = only a form will do
	limit  int64    // in bytes; 0 = fileBytes
	status int      // of a success; 0 = 200
	run    func(ctx context.Context, c *op.Call, f file) (any, error)
}

// file is an uploaded file, and what it is for.
type file struct {
	data           []byte
	name           string
	id             string // in the path
	as             string // fields of the form, as are the next two
	characterID    string
	conversationID string
}

// uploaded is the handler of an upload.
func (s *Server) uploaded(u upload) echo.HandlerFunc {
	return s.signedIn(only(func(c echo.Context, who *account.Identity) error {
		f, err := s.file(c, cmp.Or(u.limit, fileBytes), u.types...)
		if err != nil {
			return err
		}
		return s.take(c, who, u, f)
	}))
}

// take runs an upload with its file. An idempotency key is bound to the file's content.
func (s *Server) take(c echo.Context, who *account.Identity, u upload, f file) error {
	call := s.call(c, who)
	if call.Key != "" && !plainKey.MatchString(call.Key) {
		return badKey()
	}
	call.Hash = hashOf(strings.Join([]string{u.name, f.id, f.characterID, f.conversationID, f.as}, "/"), f.data)
	result, err := u.run(detached(c.Request().Context()), call, f)
	if err != nil {
		return err
	}
	return answer(c, u.status, call, result)
}

// file reads the file of a request: of a form, where it is the only one in the field
// "file", or the body, if it is of one of types.
func (s *Server) file(c echo.Context, limit int64, types ...string) (f file, err error) {
	r := c.Request()
	f.id = c.Param("id")
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case slices.Contains(types, kind):
		f.data, err = s.readAll(c, limit)
		return f, err
	case kind != "multipart/form-data":
		also := ""
		if len(types) > 0 {
			also = types[0] + ", or "
		}
		return f, fault.New(fault.UnsupportedMedia, "the body must be %smultipart/form-data with the file in the field file", also)
	}
	defer func() {
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll() // temporary files of the form
		}
	}()
	err = s.readBody(c, limit, func(r *http.Request) error { return r.ParseMultipartForm(formMemory) })
	if err != nil {
		return f, err
	}
	if err := s.takePlace(c); err != nil {
		return f, err
	}
	files := r.MultipartForm.File["file"]
	if len(files) != 1 {
		return f, fault.InvalidField("file", "required", "must be exactly one file, not %d", len(files))
	}
	opened, err := files[0].Open()
	if err != nil {
		return f, err
	}
	defer func() { _ = opened.Close() }()
	f.data = make([]byte, files[0].Size) // it is read once, not copied while it grows
	f.name, f.as = plainFilename(files[0].Filename), c.FormValue("as")
	f.characterID, f.conversationID = c.FormValue("characterId"), c.FormValue("conversationId")
	_, err = io.ReadFull(opened, f.data)
	return f, err
}

// plainFilename is the name of an uploaded file as it may be used in names and
// titles: without a path and control characters, at most 200 code points.
func plainFilename(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, name)
	if at := strings.LastIndexAny(name, `/\`); at >= 0 {
		name = name[at+1:]
	}
	if long := []rune(name); len(long) > 200 {
		return string(long[len(long)-200:]) // the end says what kind of file it is
	}
	return name
}

// exported is the handler of a route that answers a file.
func (s *Server) exported(export func(c echo.Context, userID string) (data []byte, contentType, filename string, err error), query ...string) echo.HandlerFunc {
	return s.signedIn(only(func(c echo.Context, who *account.Identity) error {
		data, contentType, filename, err := export(c, who.User.ID)
		if err != nil {
			return err
		}
		h := c.Response().Header()
		disposition := mime.FormatMediaType("attachment", map[string]string{"filename": filename})
		h.Set("Content-Disposition", cmp.Or(disposition, "attachment")) // "" for a name that cannot be written
		h.Set("Cache-Control", "no-store")
		return c.Blob(http.StatusOK, contentType, data)
	}, query...))
}

func (s *Server) importCharacter(ctx context.Context, call *op.Call, f file) (any, error) {
	got, err := s.Characters.Import(ctx, call, f.data, f.name)
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
	return json.Marshal(map[string]any{"kind": i.kind, "id": i.id, i.kind: i.object, "warnings": orEmpty(i.warnings)})
}

func (s *Server) exportCharacter(c echo.Context, userID string) (data []byte, contentType, filename string, err error) {
	return s.Characters.Export(c.Request().Context(), userID, c.Param("id"),
		cmp.Or(c.QueryParam("format"), "json"), cmp.Or(c.QueryParam("spec"), "v3"))
}

func (s *Server) avatar(c echo.Context, who *account.Identity) error {
	size, err := thumbnailSize(c)
	if err != nil {
		return err
	}
	a, err := s.Characters.Avatar(c.Request().Context(), who.User.ID, c.Param("id"))
	if err != nil {
		return err
	}
	tag := a.ETag
	if size > 0 {
		tag = fmt.Sprintf("%s-%d", tag, size)
	}
	h := c.Response().Header()
	h.Set("ETag", `"`+tag+`"`)
	h.Set("Cache-Control", "private, no-cache")
	if hasTag(c.Request().Header.Get("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	if size == 0 {
		return c.Blob(http.StatusOK, a.ContentType, a.Data)
	}
	if err := s.takePlace(c); err != nil { // a decoded picture is large
		return err
	}
	small, contentType, err := card.Thumbnail(a.Data, size)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, contentType, small)
}

// thumbnailSize is the parameter size of an avatar, in pixels; 0 = the picture as
// it was uploaded.
func thumbnailSize(c echo.Context) (int, error) {
	text := c.QueryParam("size")
	if text == "" {
		return 0, nil
	}
	size, err := strconv.Atoi(text)
	if err != nil || size < 16 || size > 1024 {
		return 0, fault.InvalidField("size", "range", "must be 16 to 1024")
	}
	return size, nil
}

// hasTag says whether the list of an If-None-Match header names a tag. A weak tag
// is as good as a strong one there (RFC 9110, 13.1.2).
func hasTag(list, tag string) bool {
	for _, t := range strings.Split(list, ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == `"`+tag+`"` {
			return true
		}
	}
	return false
}

func (s *Server) putAvatar(ctx context.Context, call *op.Call, f file) (any, error) {
	return characterOf(s.Characters.PutAvatar(ctx, call, f.id, f.data))
}

func (s *Server) importResource(kind character.ResourceKind) func(context.Context, *op.Call, file) (any, error) {
	return func(ctx context.Context, call *op.Call, f file) (any, error) {
		got, err := s.Characters.ImportResource(ctx, call, kind, f.data, f.name, f.characterID)
		if err != nil {
			return nil, err
		}
		return imported{"resource", got.Resource.ID, wireResourceOf(got.Resource), got.Warnings}, nil
	}
}

func (s *Server) exportResource(kind character.ResourceKind) func(echo.Context, string) ([]byte, string, string, error) {
	return func(c echo.Context, userID string) ([]byte, string, string, error) {
		data, filename, err := s.Characters.ExportResource(c.Request().Context(), userID, kind, c.Param("id"))
		return data, "application/json", filename, err
	}
}
