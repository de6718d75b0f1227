package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// problem is the body of a failed request (RFC 9457) and the error object of a
// WebSocket frame; only the first has a type.
type problem struct {
	Type string `json:"type,omitempty"`
	*op.Failure
	RetryAfterMs *int64 `json:"retryAfterMs,omitempty"` // absent where that of a stored failure is null
	RequestID    string `json:"requestId"`
}

// problemOf returns what may be shown of err, and logs what must be fixed: this
// is the only place where the failure of a request is logged.
func (s *Server) problemOf(requestID, what string, err error) *problem {
	f := fault.Public(err)
	quota, _ := f.Details["quota"].(string)
	s.opts.Metrics.Refused(string(f.Code), quota)
	if f.Code == fault.Internal {
		s.opts.Log.Error("request failed", "requestId", requestID, "op", what, "err", err)
	}
	failure := op.FailureOf(f)
	return &problem{Failure: failure, RetryAfterMs: failure.RetryAfterMs, RequestID: requestID}
}

// handleError answers a failed REST request.
func (s *Server) handleError(err error, c echo.Context) {
	if c.Response().Committed {
		return // a stream that broke off; there is no way to say so any more
	}
	p := s.problemOf(idOf(c), c.Request().Method+" "+c.Path(), fromEcho(err))
	p.Type = "urn:nodest:error:" + string(p.Code)
	writeProblem(c.Response(), p)
}

func writeProblem(w http.ResponseWriter, p *problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.RetryAfterMs != nil {
		h.Set("Retry-After", strconv.FormatInt((*p.RetryAfterMs+999)/1000, 10))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="nodest"`)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone; there is nothing to do
}

// fromEcho gives the router's own errors their codes.
func fromEcho(err error) error {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return fault.Wrap(err, fault.TooLarge, "request body too large, limit %s", fault.Size(int(big.Limit)))
	}
	var he *echo.HTTPError
	if !errors.As(err, &he) {
		return err
	}
	switch he.Code {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fault.Wrap(err, fault.NotFound, "no such route")
	case http.StatusRequestEntityTooLarge:
		return fault.Wrap(err, fault.TooLarge, "request body too large")
	case http.StatusUnsupportedMediaType:
		return fault.Wrap(err, fault.UnsupportedMedia, "unsupported content type")
	case http.StatusUnauthorized:
		return fault.Wrap(err, fault.Unauthenticated, "sign in first")
	case http.StatusTooManyRequests:
		return fault.Wrap(err, fault.RateLimited, "too many requests").After(time.Second)
	}
	if he.Code >= 500 {
		return err
	}
	return fault.Wrap(err, fault.BadRequest, "malformed request")
}

const headerRequestID = "X-Request-Id"

// requestID gives each request an id: the caller's own, if it is a plain one.
func (s *Server) requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(headerRequestID)
		if !op.IsClientID(id) {
			id = op.NewID()
		}
		c.Response().Header().Set(headerRequestID, id)
		return next(c)
	}
}

func idOf(c echo.Context) string { return c.Response().Header().Get(headerRequestID) }

// logRequests writes one line per request: never the query (it may hold a
// ticket), a header or a body.
func (s *Server) logRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		s.opts.Metrics.Request(methodOf(c.Request()), c.Path(), strconv.Itoa(c.Response().Status))
		s.opts.Log.Debug("request", "requestId", idOf(c), "method", c.Request().Method, "path", c.Request().URL.Path,
			"status", c.Response().Status, "bytes", c.Response().Size, "ms", time.Since(start).Milliseconds())
		return nil
	}
}

// recoverPanics turns a panic into an internal error, so that no user sees one.
func (s *Server) recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if r := recover(); r != nil {
				if r == http.ErrAbortHandler { //nolint:errorlint // the value itself is the signal
					panic(r)
				}
				err = panicked(r)
			}
		}()
		return next(c)
	}
}
