package server

import (
	"cmp"
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
	e.POST(base+"/characters/import", s.signedIn(only(s.importCharacter)))
	e.POST(base+"/characters/sample", s.signedIn(only(s.sampleCharacter)))
	e.GET(base+"/characters/:id/export", s.signedIn(only(s.exportCharacter, "format", "spec")))
	e.GET(base+"/characters/:id/avatar", s.signedIn(only(s.avatar, "size")))
	e.PUT(base+"/characters/:id/avatar", s.signedIn(only(s.putAvatar)))
	s.archiveRoutes(e)
	for _, r := range resourcePaths {
		if r.kind == character.Persona {
			continue // there is no file form of a persona
		}
		e.POST(base+r.path+"/import", s.signedIn(only(s.importResource(forKind(r.kind)))))
		e.GET(base+r.path+"/:id/export", s.signedIn(only(s.exportResource(forKind(r.kind)))))
	}
}

// upload reads the file of a form: one file of at most limit bytes in the field
// "file".
func (s *Server) upload(c echo.Context, limit int64) (data []byte, filename string, err error) {
	r := c.Request()
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return nil, "", fault.New(fault.UnsupportedMedia, "the body must be multipart/form-data with the file in the field file")
	}
	defer func() {
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll() // temporary files of the form
		}
	}()
	err = s.readBody(c, limit, func(r *http.Request) error { return r.ParseMultipartForm(formMemory) })
	if err != nil {
		return nil, "", err
	}
	if err := s.takePlace(c); err != nil {
		return nil, "", err
	}
	files := r.MultipartForm.File["file"]
	if len(files) != 1 {
		return nil, "", fault.InvalidField("file", "required", "must be exactly one file, not %d", len(files))
	}
	file, err := files[0].Open()
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = file.Close() }()
	data = make([]byte, files[0].Size) // it is read once, not copied while it grows
	if _, err = io.ReadFull(file, data); err != nil {
		return nil, "", err
	}
	return data, plainFilename(files[0].Filename), nil
}

// fileOrBody reads a file that is the body itself, of one of types, or in a form.
func (s *Server) fileOrBody(c echo.Context, limit int64, types ...string) (data []byte, err error) {
	switch kind, _, _ := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); {
	case kind == "multipart/form-data":
		data, _, err = s.upload(c, limit)
		return data, err
	case slices.Contains(types, kind):
		return s.readAll(c, limit)
	}
	return nil, fault.New(fault.UnsupportedMedia, "the body must be %s, or multipart/form-data with the file in the field file", types[0])
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

// attachment answers a file.
func attachment(c echo.Context, data []byte, contentType, filename string) error {
	h := c.Response().Header()
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": filename})
	h.Set("Content-Disposition", cmp.Or(disposition, "attachment")) // "" for a name that cannot be written
	h.Set("Cache-Control", "no-store")
	return c.Blob(http.StatusOK, contentType, data)
}

func (s *Server) importCharacter(c echo.Context, who *account.Identity) error {
	data, filename, err := s.upload(c, fileBytes)
	if err != nil {
		return err
	}
	return s.storeCharacter(c, who, data, filename)
}

// sampleCharacter imports the built-in character, for users who have no card yet.
func (s *Server) sampleCharacter(c echo.Context, who *account.Identity) error {
	return s.storeCharacter(c, who, card.SampleFile(), "sample.json")
}

func (s *Server) storeCharacter(c echo.Context, who *account.Identity, data []byte, filename string) error {
	call, err := s.fileCall(c, who, "character.import", data)
	if err != nil {
		return err
	}
	got, err := s.Characters.Import(detached(c.Request().Context()), call, data, filename)
	if err != nil {
		return err
	}
	return answer(c, http.StatusCreated, call, imported{"character", got.Character.ID, wireCharacterOf(got.Character), got.Warnings})
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

func (s *Server) exportCharacter(c echo.Context, who *account.Identity) error {
	data, contentType, filename, err := s.Characters.Export(c.Request().Context(), who.User.ID, c.Param("id"),
		cmp.Or(c.QueryParam("format"), "json"), cmp.Or(c.QueryParam("spec"), "v3"))
	if err != nil {
		return err
	}
	return attachment(c, data, contentType, filename)
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

func (s *Server) putAvatar(c echo.Context, who *account.Identity) error {
	data, _, err := s.upload(c, fileBytes)
	if err != nil {
		return err
	}
	call, err := s.fileCall(c, who, "character.avatar/"+c.Param("id"), data)
	if err != nil {
		return err
	}
	got, err := characterOf(s.Characters.PutAvatar(detached(c.Request().Context()), call, c.Param("id"), data))
	if err != nil {
		return err
	}
	return answer(c, 0, call, got)
}

func (s *Server) importResource(k forKind) handler {
	return func(c echo.Context, who *account.Identity) error {
		data, filename, err := s.upload(c, fileBytes)
		if err != nil {
			return err
		}
		call, err := s.fileCall(c, who, string(k)+".import", data)
		if err != nil {
			return err
		}
		got, err := s.Characters.ImportResource(detached(c.Request().Context()), call, k.kind(), data, filename)
		if err != nil {
			return err
		}
		return answer(c, http.StatusCreated, call, imported{"resource", got.Resource.ID, wireResourceOf(got.Resource), got.Warnings})
	}
}

func (s *Server) exportResource(k forKind) handler {
	return func(c echo.Context, who *account.Identity) error {
		data, filename, err := s.Characters.ExportResource(c.Request().Context(), who.User.ID, k.kind(), c.Param("id"))
		if err != nil {
			return err
		}
		return attachment(c, data, "application/json", filename)
	}
}

// fileCall returns the engine's Call for an upload: the content of the file is
// part of what an idempotency key stands for.
func (s *Server) fileCall(c echo.Context, who *account.Identity, name string, data []byte) (*op.Call, error) {
	call := s.call(c, who)
	if call.Key != "" && !plainKey.MatchString(call.Key) {
		return nil, badKey()
	}
	call.Hash = hashOf(name, data)
	return call, nil
}
