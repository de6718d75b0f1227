package server

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/fault"
)

// slowestBody is the minimum rate at which a body must arrive, in bytes per second, after
// Options.BodyWithin.
const slowestBody = 32 << 10

// readBody reads at most limit bytes of a body with read, which gets the request
// with its body bounded, in size and in time: a client that sends a byte now and
// then must not hold a connection for ever.
func (s *Server) readBody(c echo.Context, limit int64, read func(r *http.Request) error) error {
	r := c.Request()
	if r.ContentLength > limit { // nothing of it is read
		return fromEcho(&http.MaxBytesError{Limit: limit})
	}
	r.Body = http.MaxBytesReader(c.Response(), r.Body, limit)
	within := s.opts.BodyWithin + time.Duration(limit/slowestBody)*time.Second
	conn := http.NewResponseController(c.Response())
	_ = conn.SetReadDeadline(time.Now().Add(within)) // fails only without a connection, in tests
	err := read(r)
	if err == nil {
		_ = conn.SetReadDeadline(time.Time{}) // an answer may take as long as it likes
		return nil
	}
	var known *fault.Error
	if err = fromEcho(err); errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.BadRequest, "request body incomplete or timed out")
}

func (s *Server) readAll(c echo.Context, limit int64) (data []byte, err error) {
	err = s.readBody(c, limit, func(r *http.Request) (err error) {
		data, err = io.ReadAll(r.Body)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(data) > largeBody {
		err = s.takePlace(c)
	}
	return data, err
}

// largeBody is the size in bytes above which a body needs one of the few places.
const largeBody = 1 << 20

const placeKey = "place"

// takePlace waits for one of the places for large bodies: a file takes many times
// its size while it is read, so that without a bound a few dozen clients could
// take all memory. The place is held until leavePlace.
func (s *Server) takePlace(c echo.Context) error {
	if c.Get(placeKey) != nil {
		return nil
	}
	select {
	case s.places <- struct{}{}:
		c.Set(placeKey, true)
		return nil
	case <-c.Request().Context().Done():
		return c.Request().Context().Err()
	}
}

func (s *Server) leavePlace(c echo.Context) {
	if c.Get(placeKey) != nil {
		c.Set(placeKey, nil)
		<-s.places
	}
}
