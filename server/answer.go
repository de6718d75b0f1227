package server

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// answerStep is how much of an answer, in bytes, a client must read within Options.AnswerWithin.
const answerStep = 64 << 10

// pacedWriter cuts off an answer that its client does not read.
type pacedWriter struct {
	http.ResponseWriter
	conn   *http.ResponseController
	within time.Duration
}

// pace gives every answer its deadlines; a stream of events sets its own.
func (s *Server) pace(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := c.Response().Writer
		paced := &pacedWriter{w, http.NewResponseController(w), s.opts.AnswerWithin}
		paced.extend() // the deadline of the previous request on this connection has passed
		c.Response().Writer = paced
		return next(c)
	}
}

// Unwrap is for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *pacedWriter) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *pacedWriter) Write(p []byte) (written int, err error) {
	for {
		w.extend()
		n, err := w.ResponseWriter.Write(p[:min(len(p), answerStep)])
		written += n
		if p = p[n:]; err != nil || len(p) == 0 {
			return written, err
		}
	}
}

func (w *pacedWriter) extend() {
	_ = w.conn.SetWriteDeadline(time.Now().Add(w.within)) // fails only without a connection, in tests
}

// smallAnswer is the size in bytes up to which an answer is not counted: the connection's
// buffers take it at once.
const smallAnswer = 64 << 10

// sendData answers with data. It first releases what the request held: from here on, only the
// bytes that the client has not read count. A large answer waits in a file.
func sendData(c echo.Context, status int, contentType string, data []byte) error {
	h := holdOf(c)
	h.release()
	if size := int64(len(data)); size <= smallAnswer || size <= largeBody && h.try(size) {
		return c.Blob(status, contentType, data)
	}
	out := newSpill(c)
	defer out.drop()
	if _, err := out.Write(data); err != nil {
		return err
	}
	return sendSpill(c, status, contentType, out)
}

// sendSpill answers with the content of a spill.
func sendSpill(c echo.Context, status int, contentType string, out *spill) error {
	h := c.Response().Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.FormatInt(out.size, 10))
	c.Response().WriteHeader(status)
	_, err := io.Copy(c.Response(), out.reader())
	return err
}

// worthCompressing is the length in bytes from which an answer is compressed.
const worthCompressing = 1 << 10

var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a valid level
	return w
}}

// sendJSON answers with JSON, compressed if it is long and the client accepts that.
func sendJSON(c echo.Context, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Add("Vary", "Accept-Encoding")
	if len(data) < worthCompressing || !takesGzip(c.Request()) {
		return sendData(c, status, echo.MIMEApplicationJSON, data)
	}
	holdOf(c).release()
	out := newSpill(c)
	defer out.drop()
	if err := compress(out, data); err != nil {
		return err
	}
	h.Set("Content-Encoding", "gzip")
	return sendSpill(c, status, echo.MIMEApplicationJSON, out)
}

func compress(out io.Writer, data []byte) error {
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(out)
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}
