package server

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/internal/fault"
)

// bodyStep is how much of a body, in bytes, must arrive within Options.BodyWithin.
const bodyStep = 256 << 10

// readBody reads at most limit bytes of a body with read, which gets the request
// with its body bounded, in size and in time: a client that sends a byte now and
// then must not hold a connection for ever.
func (s *Server) readBody(c echo.Context, limit int64, read func(r *http.Request) error) error {
	r := c.Request()
	if r.ContentLength > limit { // nothing of it is read
		return fromEcho(&http.MaxBytesError{Limit: limit})
	}
	body := &pacedBody{ReadCloser: http.MaxBytesReader(c.Response(), r.Body, limit), conn: http.NewResponseController(c.Response()), within: s.opts.BodyWithin}
	body.extend()
	r.Body = body
	err := read(r)
	if err == nil {
		_ = body.conn.SetReadDeadline(time.Time{}) // an answer may take as long as it likes
		return nil
	}
	var known *fault.Error
	if err = fromEcho(err); errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.BadRequest, "request body incomplete or timed out")
}

// pacedBody ends a body that does not make progress.
type pacedBody struct {
	io.ReadCloser
	conn   *http.ResponseController
	within time.Duration
	got    int // bytes since the deadline was set
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.got += n; b.got >= bodyStep {
		b.extend()
	}
	return n, err
}

func (b *pacedBody) extend() {
	b.got = 0
	_ = b.conn.SetReadDeadline(time.Now().Add(b.within)) // fails only without a connection, in tests
}

// readAll reads a body into memory.
func (s *Server) readAll(c echo.Context, limit int64) (data []byte, err error) {
	body := newSpill(c)
	defer body.drop()
	err = s.readBody(c, limit, func(r *http.Request) error {
		_, err := io.Copy(body, r.Body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return body.load(c.Request().Context())
}
