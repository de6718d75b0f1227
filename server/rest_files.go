package server

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"nodest/card"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/server/api"
)

// fileBytes limits the size of an uploaded file.
const fileBytes = 64 << 20

// Memory that making an answer takes besides the answer, in bytes.
const (
	exportWork  = 64 << 20
	pictureWork = 32 << 20 // to read a picture, and to decode it
)

// fileRoutes serves what is a file and not JSON: imports, exports, avatars.
func (s *Server) fileRoutes(e *echo.Echo) {
	for _, u := range api.Uploads {
		method, path, _ := strings.Cut(u.Route, " ")
		e.Add(method, base+path, s.uploaded(u))
	}
	for _, d := range api.Downloads {
		method, path, _ := strings.Cut(d.Route, " ")
		e.Add(method, base+path, s.exported(d))
	}
	for _, d := range api.Streams {
		method, path, _ := strings.Cut(d.Route, " ")
		e.Add(method, base+path, s.streamed(d))
	}
	sample := func(c echo.Context, who *account.Identity) error { // for users who have no card yet
		language := c.QueryParam("language")
		if !slices.Contains([]string{"", "en", "zh"}, language) {
			return fault.InvalidField("language", "value", "must be en or zh")
		}
		return s.take(c, who, api.CharacterImport, api.File{Data: card.SampleFile(language), Name: "sample.json"})
	}
	e.POST(base+"/characters/sample", s.signedIn(only(sample, "language")))
	e.GET(base+"/characters/:id/avatar", s.signedIn(only(s.avatar, "size", "version")))
	e.GET(base+"/attachments/:id/content", s.signedIn(only(s.attachment, "size")))
}

// uploaded is the handler of an upload.
func (s *Server) uploaded(u api.Upload) echo.HandlerFunc {
	if u.Spooled {
		return s.signedIn(only(s.spooled(u)))
	}
	return s.signedIn(only(func(c echo.Context, who *account.Identity) error {
		f, err := s.file(c, cmp.Or(u.Limit, fileBytes), u.Types...)
		if err != nil {
			return err
		}
		return s.take(c, who, u, f)
	}))
}

// take runs an upload with its file. An idempotency key is bound to the file's content.
func (s *Server) take(c echo.Context, who *account.Identity, u api.Upload, f api.File) error {
	call := s.call(c, who)
	if call.Key != "" && !plainKey.MatchString(call.Key) {
		return badKey()
	}
	about := []string{u.Name, f.ID, f.CharacterID, f.ConversationID, f.As}
	if f.MakeCharacter != "" {
		about = append(about, f.MakeCharacter)
	}
	if u.Spooled {
		about = []string{u.Name, f.ID, f.KnowledgeBaseID, f.Name, f.Rename, f.Source, f.DryRun, f.Hash}
		if f.MakeCharacters != "" {
			about = append(about, f.MakeCharacters)
		}
	}
	call.Hash = api.Hash(strings.Join(about, "/"), f.Data)
	ctx := detached(c.Request().Context())
	result, err := s.once(ctx, c.Request().Context(), call, func() (any, error) { return u.Run(ctx, &s.Services, call, f) })
	if err != nil {
		return err
	}
	return answer(c, u.Status, call, result)
}

// file reads the file of a request: of a form, where it is the only one in the field
// "file", or the body, if it is of one of types.
func (s *Server) file(c echo.Context, limit int64, types ...string) (f api.File, err error) {
	f.ID = c.Param("id")
	switch kind, _, _ := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); {
	case slices.Contains(types, kind):
		f.Data, err = s.readAll(c, limit)
		return f, err
	case kind != "multipart/form-data":
		also := ""
		if len(types) > 0 {
			also = types[0] + ", or "
		}
		return f, fault.New(fault.UnsupportedMedia, "the body must be %smultipart/form-data with the file in the field file", also)
	}
	body := newSpill(c)
	defer body.drop()
	err = s.readBody(c, limit+formOverhead, func(r *http.Request) error { return readForm(r, body, &f, limit) })
	if err != nil {
		return f, err
	}
	f.Name = plainFilename(f.Name)
	f.Data, err = body.load(c.Request().Context())
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
func (s *Server) exported(d api.Download) echo.HandlerFunc {
	return s.signedIn(only(func(c echo.Context, who *account.Identity) error {
		ctx, h := c.Request().Context(), holdOf(c)
		made := &hold{s: h.s, g: h.g, who: h.who}
		if err := made.take(ctx, exportWork); err != nil {
			return err
		}
		defer made.release()
		out := newSpill(c)
		defer out.drop()
		contentType, filename, err := d.Run(ctx, &s.Services, who.User.ID, api.Asked{ID: c.Param("id"), Query: c.QueryParams()}, out)
		if err != nil {
			return err
		}
		made.release()
		header := c.Response().Header()
		header.Set("Content-Disposition", attached(filename))
		header.Set("Cache-Control", "no-store")
		return sendSpill(c, http.StatusOK, contentType, out)
	}, d.Query...))
}

func (s *Server) avatar(c echo.Context, who *account.Identity) error {
	size, err := thumbnailSize(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	whole, err := s.Characters.AvatarTag(ctx, who.User.ID, c.Param("id"))
	if err != nil {
		return err
	}
	if hasTag(c.Request().Header.Get("If-None-Match"), avatarTag(whole, size)) {
		cacheAvatar(c, whole, size)
		return c.NoContent(http.StatusNotModified)
	}
	if size > 0 {
		if small, contentType, err, ok := s.pictures.Cached(whole, size); ok && err == nil {
			cacheAvatar(c, whole, size)
			return sendData(c, http.StatusOK, contentType, small)
		}
	}
	if err := holdOf(c).take(ctx, pictureWork); err != nil {
		return err
	}
	a, err := s.Characters.Avatar(ctx, who.User.ID, c.Param("id"))
	if err != nil {
		return err
	}
	data, contentType := a.Data, a.ContentType
	if size > 0 {
		if data, contentType, err = s.pictures.Of(ctx, a.ETag, a.Data, size); err != nil {
			return err
		}
	}
	cacheAvatar(c, a.ETag, size) // it may have been replaced just now
	return sendData(c, http.StatusOK, contentType, data)
}

// avatarTag is the ETag of a picture (size 0) with this tag, or of its thumbnail.
func avatarTag(tag string, size int) string {
	if size > 0 {
		tag = fmt.Sprintf("%s-%d", tag, size)
	}
	return tag
}

// cacheAvatar lets the client keep the answer.
func cacheAvatar(c echo.Context, tag string, size int) {
	h := c.Response().Header()
	h.Set("ETag", `"`+avatarTag(tag, size)+`"`)
	h.Set("Cache-Control", "private, no-cache")
	if c.QueryParam("version") != "" { // another picture has another address
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
}

// attachment answers an image that the user has uploaded. It never changes.
func (s *Server) attachment(c echo.Context, who *account.Identity) error {
	size, err := thumbnailSize(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	image, err := s.Attachments.Cached(ctx, who.User.ID, c.Param("id"), size)
	if err == nil && image == nil {
		if err := holdOf(c).take(ctx, pictureWork); err != nil {
			return err
		}
		image, err = s.Attachments.Content(ctx, who.User.ID, c.Param("id"), size)
	}
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	return sendData(c, http.StatusOK, image.ContentType, image.Data)
}

// thumbnailSize is the parameter size of a picture, in pixels; 0 = the picture as it was uploaded.
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
