package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/server/api"
)

// formOverhead bounds what a form has beside its file, in bytes, and formField one of its
// other fields.
const (
	formOverhead = 64 << 10
	formField    = 4 << 10
)

// spooled is the handler of an upload that is written to a temporary file while it
// arrives. No memory is held meanwhile.
func (s *Server) spooled(u api.Upload) handler {
	return func(c echo.Context, who *account.Identity) error {
		f := api.File{ID: c.Param("id")}
		if u.IfMatch {
			var err error
			if f.IfVersion, err = versionOf(c.Request()); err != nil {
				return err
			}
		}
		limit := u.Limit
		if u.Room != nil {
			room, err := u.Room(c.Request().Context(), &s.Services, s.call(c, who), f.ID)
			if err != nil {
				return err
			}
			limit = min(limit, room)
		}
		if !s.spools.enter(who.User.ID) {
			return fault.New(fault.RateLimited, "you may upload %d files at once", spoolsAtOnce).After(time.Second)
		}
		defer s.spools.leave(who.User.ID)
		if u.Sink != nil {
			return s.sunk(c, who, u, f)
		}
		temp, err := s.newTemp()
		if err != nil {
			return err
		}
		defer temp.drop()
		out := &diskWriter{w: temp, sum: sha256.New(), held: hold{s: s, g: &s.disk, who: holdOf(c).who}}
		defer out.held.release()
		err = s.readBody(c, limit+formOverhead, func(r *http.Request) error { return readForm(r, out, &f, limit) })
		if err != nil {
			return err
		}
		f.Body, f.Hash = temp, hex.EncodeToString(out.sum.Sum(nil))
		return s.take(c, who, u, f)
	}
}

// sunk handles an upload that a sink takes while it arrives.
func (s *Server) sunk(c echo.Context, who *account.Identity, u api.Upload, f api.File) error {
	f.Sink = u.Sink(detached(c.Request().Context()), &s.Services, who.User.ID)
	defer f.Sink.Drop()
	sum := sha256.New()
	err := s.readBody(c, u.Limit+formOverhead, func(r *http.Request) error { return readForm(r, io.MultiWriter(f.Sink, sum), &f, u.Limit) })
	if err != nil {
		return err
	}
	f.Hash = hex.EncodeToString(sum.Sum(nil))
	return s.take(c, who, u, f)
}

// spoolsAtOnce is how many uploads of one user are written to temporary files at the same time.
const spoolsAtOnce = 8

// spools counts uploads by user.
type spools struct {
	mu sync.Mutex
	by map[string]int
}

// enter reports whether a user may begin another upload; leave ends one.
func (s *spools) enter(userID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[userID] >= spoolsAtOnce {
		return false
	}
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.by[userID]++
	return true
}

func (s *spools) leave(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[userID]--; s.by[userID] == 0 {
		delete(s.by, userID)
	}
}

// temp is a temporary file. It has no name in its folder where the system allows that, so
// that it is gone with the process, however that ends.
type temp struct{ *os.File }

func (s *Server) newTemp() (temp, error) {
	f, err := os.CreateTemp(s.opts.TempDir, "upload-*")
	if err != nil {
		return temp{}, cannotSpool(err)
	}
	_ = os.Remove(f.Name()) // drop does it again, for systems that do not remove open files
	return temp{f}, nil
}

func (t temp) drop() {
	_ = t.Close()
	_ = os.Remove(t.Name())
}

// cannotSpool makes a full or read-only disk an error that says so.
func cannotSpool(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.StorageFull, "the disk is full")
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fault.Wrap(err, fault.StorageFull, "the server cannot write to its disk")
	}
	return fault.Wrap(err, fault.Internal, "the file could not be written")
}

// readForm reads a form: its file into out, and its fields into f.
func readForm(r *http.Request, out io.Writer, f *api.File, limit int64) error {
	form, err := r.MultipartReader()
	if errors.Is(err, http.ErrNotMultipart) {
		return fault.Wrap(err, fault.UnsupportedMedia, "the body must be multipart/form-data with the file in the field file")
	}
	if err != nil {
		return err
	}
	fields := map[string]*string{
		"name": &f.Rename, "knowledgeBaseId": &f.KnowledgeBaseID, "source": &f.Source,
		"dryRun": &f.DryRun, "as": &f.As, "characterId": &f.CharacterID, "conversationId": &f.ConversationID,
		"makeCharacter": &f.MakeCharacter, "makeCharacters": &f.MakeCharacters,
	}
	files := 0
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		field := part.FormName()
		if to := fields[field]; to != nil {
			*to, err = readField(part, field)
		} else if field == "file" {
			if files++; files == 1 {
				err = readFile(part, out, f, limit)
			}
		}
		if err != nil {
			return err
		}
	}
	if files != 1 {
		return fault.InvalidField("file", "required", "must be exactly one file, not %d", files)
	}
	return nil
}

// readFile copies the file of a form.
func readFile(part *multipart.Part, out io.Writer, f *api.File, limit int64) (err error) {
	f.Name, f.Type = part.FileName(), part.Header.Get("Content-Type")
	f.Size, err = io.Copy(out, io.LimitReader(part, limit+1))
	if err == nil && f.Size > limit {
		err = fault.New(fault.TooLarge, "file too large, limit %s", fault.Size(int(limit)))
	}
	return err
}

// diskWriter writes an upload to its temporary file, and counts it.
type diskWriter struct {
	w    io.Writer
	held hold
	sum  hash.Hash // SHA-256
}

// Write implements io.Writer. Its errors differ from those of the network.
func (d *diskWriter) Write(p []byte) (n int, err error) {
	if !d.held.try(int64(len(p))) {
		return 0, errCrowded()
	}
	if n, err = d.w.Write(p); err != nil {
		return n, cannotSpool(err)
	}
	return d.sum.Write(p)
}

func readField(part io.Reader, field string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(part, formField+1))
	if err == nil && (len(text) > formField || !utf8.Valid(text)) {
		err = fault.InvalidField(field, "range", "must have at most %d bytes of UTF-8", formField)
	}
	return string(text), err
}

// streamed is the handler of a route that sends a file, or ranges of it. Whatever the file
// is, browsers get it as data to save: opened on this origin, it could act for the user.
func (s *Server) streamed(d api.Stream) echo.HandlerFunc {
	return s.signedIn(only(func(c echo.Context, who *account.Identity) error {
		r := c.Request()
		content, err := d.Open(r.Context(), &s.Services, who.User.ID, c.Param("id"))
		if err != nil {
			return err
		}
		defer func() { _ = content.Close() }()
		h := c.Response().Header()
		h.Set("Content-Type", cmp.Or(content.Picture, echo.MIMEOctetStream))
		h.Set("Content-Disposition", attached(path.Base(content.Name)))
		h.Set("Cache-Control", "private, no-cache")
		h.Set("ETag", fmt.Sprintf("%q", content.Hash))
		if strings.Contains(r.Header.Get("Range"), ",") { // each of many ranges would read a part of the file
			r.Header.Del("Range")
		}
		http.ServeContent(c.Response(), r, "", time.Time{}, content)
		return nil
	}))
}

// attached is the header Content-Disposition of a file to save.
func attached(name string) string {
	if header := mime.FormatMediaType("attachment", map[string]string{"filename": name}); header != "" {
		return header
	}
	return "attachment" // for a name that cannot be written
}
