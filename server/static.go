package server

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"nodest/internal/fault"
	"nodest/web"
)

// fixed is a document that stays the same while the server runs. It is compressed once.
type fixed struct {
	contentType  string
	cacheControl string
	etag         string
	data         []byte
	compressed   []byte // with gzip; nil = not worth it
}

func newFixed(contentType, cacheControl string, data []byte) *fixed {
	f := &fixed{contentType: contentType, cacheControl: cacheControl, data: data}
	sum := sha256.Sum256(data)
	f.etag = hex.EncodeToString(sum[:8])
	if len(data) < worthCompressing {
		return f
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a valid level
	_, _ = w.Write(data)                                  // a buffer takes everything
	_ = w.Close()
	if b.Len() < len(data)*9/10 {
		f.compressed = b.Bytes()
	}
	return f
}

// serve answers with the document, or 304 if the client has it. The ETag is weak, because
// it stands for both forms.
func (f *fixed) serve(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Cache-Control", f.cacheControl)
	h.Set("ETag", `W/"`+f.etag+`"`)
	h.Add("Vary", "Accept-Encoding")
	if hasTag(c.Request().Header.Get("If-None-Match"), f.etag) {
		return c.NoContent(http.StatusNotModified)
	}
	data := f.data
	if f.compressed != nil && takesGzip(c.Request()) {
		data = f.compressed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	return c.Blob(http.StatusOK, f.contentType, data)
}

// Values of Cache-Control. The names of files in assets change with their content.
const (
	cacheCheck   = "no-cache" // ask each time whether it has changed
	cacheForever = "public, max-age=31536000, immutable"
)

// pageFiles are the files of the page by path, such as assets/index-1a2b.js.
var pageFiles = sync.OnceValue(func() map[string]*fixed {
	files, err := readPage(web.Files())
	if err != nil {
		panic(fmt.Errorf("web/dist: %w", err)) // it is embedded
	}
	return files
})

func readPage(dist fs.FS) (map[string]*fixed, error) {
	files := map[string]*fixed{}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		cacheControl := cacheCheck
		if strings.HasPrefix(name, "assets/") {
			cacheControl = cacheForever
		}
		files[name] = newFixed(contentTypeOf(name, data), cacheControl, data)
		return nil
	})
	return files, err
}

// contentTypes by the end of a file's name; those of the operating system differ.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".webmanifest": "application/manifest+json",
	".svg": "image/svg+xml", ".png": "image/png", ".webp": "image/webp", ".ico": "image/x-icon",
	".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}

func contentTypeOf(name string, data []byte) string {
	return cmp.Or(contentTypes[path.Ext(name)], http.DetectContentType(data))
}

// index serves the page.
func (s *Server) index(c echo.Context) error {
	c.Response().Header().Set("Content-Security-Policy", s.pagePolicy(c.Request()))
	return pageFiles()["index.html"].serve(c)
}

// pageFile serves another file of the page. There is no other answer to an unknown path:
// the page finds its views behind #.
func (s *Server) pageFile(c echo.Context) error {
	f := pageFiles()[strings.TrimPrefix(c.Request().URL.Path, "/")]
	if f == nil || c.Request().URL.Path == "/index.html" {
		return fault.New(fault.NotFound, "no such route")
	}
	c.Response().Header().Set("Content-Security-Policy", s.pagePolicy(c.Request()))
	return f.serve(c)
}

// document serves a document that is made when it is first asked for.
func document(make func() *fixed) echo.HandlerFunc {
	once := sync.OnceValue(make)
	return func(c echo.Context) error { return once().serve(c) }
}

// takesGzip reports whether the client accepts gzip.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, q, weighted := strings.Cut(strings.ReplaceAll(part, " ", ""), ";q=")
		if strings.EqualFold(coding, "gzip") {
			weight, err := strconv.ParseFloat(q, 64)
			return !weighted || err == nil && weight > 0
		}
	}
	return false
}
