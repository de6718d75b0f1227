// Package mcpclient keeps sessions with MCP servers. A session is opened when it is first
// needed, stays open between calls, and is opened again after it was lost.
//
// Answers are read leniently: by their form, and without members of odd types (lenient.go). What a
// server sends is untrusted: an answer may have 2 MiB, and errors show of it only what
// llm.Secrets.Reason lets through.
package mcpclient

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/fault"
	"nodest/llm"
)

// MaxBody bounds an answer, in bytes.
const MaxBody = 2 << 20

// Config says how to reach a server.
type Config struct {
	Name    string       // the name of the server in errors
	Address string       // http or https; one that ends in /sse has the older transport. All requests go to its host
	Key     llm.Key      // sent as a bearer token; zero = none
	Client  *http.Client // for all requests; it follows no redirects
	Public  bool         // errors may name the host of Address
}

// Server is an MCP server and the session with it. It is safe for concurrent use.
type Server struct {
	cfg  Config
	held chan *session // has capacity 1: the session, nil while there is none
}

type session struct {
	*mcp.ClientSession
	cancel context.CancelFunc // ends what belongs to the session
}

// New returns a server. Nothing is sent before the first Do.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, held: make(chan *session, 1)}
	s.held <- nil
	return s
}

// Do calls f with the session and a context for its calls. If the session was lost before the
// server could carry out what f asked for, f is called a second time, with a new one.
//
// The error is a *fault.Error: that of f, or one with an upstream_ code that does not show
// what hide names.
func (s *Server) Do(ctx context.Context, hide llm.Secrets, f func(context.Context, *mcp.ClientSession) error) error {
	hide.Key = s.cfg.Key
	for {
		refused := &refusal{}
		ctx := context.WithValue(ctx, refusalKey{}, refused)
		open, fresh, err := s.session(ctx)
		if err != nil {
			return err
		}
		err = f(ctx, open.ClientSession)
		var own *fault.Error
		switch {
		case err == nil || errors.As(err, &own):
			return err
		case ctx.Err() != nil:
			return s.noAnswer(ctx, err)
		}
		failure := s.failed(ctx, err, refused, hide)
		status := refused.status.Load()
		if !errors.Is(err, mcp.ErrConnectionClosed) && status != http.StatusNotFound && status != http.StatusBadRequest {
			return failure
		}
		if s.lost(open); fresh {
			return failure
		}
	}
}

// session returns the open session, or a fresh one. Only one is opened at a time.
func (s *Server) session(ctx context.Context) (open *session, fresh bool, err error) {
	select {
	case open = <-s.held:
	case <-ctx.Done():
		return nil, false, s.noAnswer(ctx, ctx.Err())
	}
	if open == nil {
		fresh = true
		open, err = s.open(ctx)
	}
	s.held <- open
	return open, fresh, err
}

// lost closes a session that does not work any more.
func (s *Server) lost(gone *session) {
	if held := <-s.held; held == gone {
		s.held <- nil
	} else {
		s.held <- held
	}
	gone.close()
}

// Close ends the session. It waits for at most a second for the server.
func (s *Server) Close() error {
	open := <-s.held
	s.held <- nil
	if open != nil {
		open.close()
	}
	return nil
}

func (s *session) close() {
	stop := time.AfterFunc(time.Second, s.cancel)
	defer stop.Stop()
	_ = s.ClientSession.Close() // the server may be gone
	s.cancel()
}
