package mcpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/fault"
	"nodest/llm"
)

// open connects to the server. One that refuses the newer transport may have the older.
func (s *Server) open(ctx context.Context) (*session, error) {
	older := func(c *http.Client) mcp.Transport {
		return &mcp.SSEClientTransport{Endpoint: s.cfg.Address, HTTPClient: c, MaxEventSize: MaxBody}
	}
	if strings.HasSuffix(s.cfg.Address, "/sse") {
		return s.connect(ctx, older)
	}
	open, err := s.connect(ctx, func(c *http.Client) mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: s.cfg.Address, HTTPClient: c, MaxEventSize: MaxBody, DisableStandaloneSSE: true, MaxRetries: -1}
	})
	switch llm.ProviderStatus(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		if open, olderErr := s.connect(ctx, older); olderErr == nil {
			return open, nil
		}
	}
	return open, err
}

// connect opens a session, which outlives ctx.
func (s *Server) connect(ctx context.Context, transport func(*http.Client) mcp.Transport) (*session, error) {
	refused := &refusal{}
	life, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), refusalKey{}, refused))
	stop := context.AfterFunc(ctx, cancel)
	own := *s.cfg.Client
	own.Transport = &watched{life: life, next: s.cfg.Client.Transport, key: s.cfg.Key, origin: originOf(s.cfg.Address)}
	own.Timeout = 0 // a stream of events lasts; each call has its own time limit
	client := mcp.NewClient(&mcp.Implementation{Name: "nodest", Version: "1"}, nil)
	open, err := client.Connect(life, transport(&own), nil)
	if err != nil {
		stop()
		cancel()
		return nil, s.failed(ctx, err, refused, llm.Secrets{Key: s.cfg.Key})
	}
	fresh := &session{open, cancel}
	if !stop() {
		fresh.close()
		return nil, s.noAnswer(ctx, ctx.Err())
	}
	return fresh, nil
}

// originOf is the scheme and the host of an address.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// failed reports a call that failed: by the HTTP status that the server answered with, by its
// own message, or because there was no answer.
func (s *Server) failed(ctx context.Context, err error, refused *refusal, hide llm.Secrets) error {
	if status := int(refused.status.Load()); status != 0 && ctx.Err() == nil {
		e := llm.StatusError(s.cfg.Name, status, 0, nil)
		if after := refused.retryAfter.Load(); after != nil {
			_ = e.After(llm.RetryAfter(http.Header{"Retry-After": {*after}}, time.Now()))
		}
		if e.Code == fault.UpstreamBadAnswer {
			return llm.WithReason(e, llm.StatusReason(status))
		}
		return e
	}
	var u *url.Error
	if ctx.Err() != nil || errors.As(err, &u) || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return s.noAnswer(ctx, err)
	}
	return llm.WithReason(llm.Upstream(s.cfg.Name, fault.UpstreamBadAnswer, 0, nil), hide.Reason(err.Error()))
}

func (s *Server) noAnswer(ctx context.Context, err error) error {
	if s.cfg.Public {
		return llm.NoAnswer(ctx, s.cfg.Name, originOf(s.cfg.Address), err)
	}
	return llm.NetworkError(ctx, s.cfg.Name, err)
}

// refusal is the last HTTP status of failure of the requests with a context.
type refusal struct {
	status     atomic.Int64
	retryAfter atomic.Pointer[string]
}

type refusalKey struct{}

// watched is the transport of a session. It adds the key, bounds answers, notes refusals, and
// ends all requests with the session.
type watched struct {
	life   context.Context
	next   http.RoundTripper
	key    llm.Key
	origin string // where all requests go
}

var errOrigin = errors.New("the server sends requests to another host")

func (w *watched) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme+"://"+req.URL.Host != w.origin { // a server with the older transport chooses where they go
		return nil, errOrigin
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(w.life, cancel)
	req = req.Clone(ctx)
	if !w.key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+w.key.Reveal())
	}
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	if refused, ok := ctx.Value(refusalKey{}).(*refusal); ok && resp.StatusCode >= 300 && req.Method != http.MethodDelete {
		after := resp.Header.Get("Retry-After")
		refused.retryAfter.Store(&after)
		refused.status.Store(int64(resp.StatusCode))
	}
	body := watchedBody{resp.Body, resp.Body, func() { stop(); cancel() }}
	// The stream of the older transport lasts as long as the session. Its events are
	// bounded one by one.
	if req.Method != http.MethodGet {
		body.Reader = io.LimitReader(resp.Body, MaxBody)
	}
	resp.Body = body
	if req.Method == http.MethodPost && resp.StatusCode == http.StatusOK {
		lenient(resp)
	}
	return resp, nil
}

type watchedBody struct {
	io.Reader
	io.Closer
	done func()
}

func (b watchedBody) Close() error {
	defer b.done()
	return b.Closer.Close()
}
