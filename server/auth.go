package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// sessionCookie holds the token of a browser that signed in.
const sessionCookie = "nodest_session"

// handler is a REST handler for a signed-in user.
type handler func(c echo.Context, who *account.Identity) error

// signedIn lets h see requests with a valid token only.
func (s *Server) signedIn(h handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := s.authenticate(c.Request())
		if err != nil {
			return err
		}
		if err := s.ourPath(c, who); err != nil {
			return err
		}
		return s.holding(c, holder{user: who.User.ID}, func() error { return h(c, who) })
	}
}

// only refuses query parameters other than those named, as operations do.
func only(h handler, query ...string) handler {
	return func(c echo.Context, who *account.Identity) error {
		for name := range c.QueryParams() {
			if !slices.Contains(query, name) {
				return unknownParameter(name)
			}
		}
		return h(c, who)
	}
}

func unknownParameter(name string) error {
	return fault.InvalidField(name, "unknown", "no such parameter")
}

// authenticate identifies the user by bearer token, else by the browser's session
// cookie. A browser sends its cookies whichever page makes the request, so a request
// that changes something and has only a cookie must name an allowed origin.
func (s *Server) authenticate(r *http.Request) (*account.Identity, error) {
	if token, ok := bearer(r); ok {
		return s.Accounts.Authenticate(r.Context(), token)
	}
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || cookie.Value == "" {
		return nil, fault.New(fault.Unauthenticated, "sign in first: send Authorization: Bearer <token>")
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if origin := r.Header.Get("Origin"); (origin == "" && !reads) || !s.originAllowed(r) {
		return nil, foreignOrigin()
	}
	return s.Accounts.Authenticate(r.Context(), cookie.Value)
}

// bearer returns the token of the Authorization header; ok is false without one.
func bearer(r *http.Request) (token string, ok bool) {
	value := r.Header.Get("Authorization")
	if value == "" {
		return "", false
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true // another scheme, which we do not support
	}
	return strings.TrimSpace(token), true
}

// call returns the engine's Call for a REST request; perform fills in the hash.
func (s *Server) call(c echo.Context, who *account.Identity) *op.Call {
	h := c.Request().Header
	call := &op.Call{UserID: who.User.ID, Key: h.Get("Idempotency-Key"), Room: holdOf(c).room(c.Request().Context())}
	if device := h.Get("X-Device-Id"); op.IsClientID(device) {
		call.Device = device
	}
	return call
}

// detached is ctx without its cancellation: a client that disconnects does not cancel
// what it asked for.
func detached(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func panicked(r any) error { return fmt.Errorf("panic: %v\n%s", r, debug.Stack()) }
