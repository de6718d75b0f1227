// Package mcptool lets characters call the tools of MCP servers.
//
// The operator names the servers, and the settings of a character which of them it may use:
// the arguments of a call, which a model writes, take text of the chat there. What a server
// sends is untrusted. Names, descriptions, schemas and results are bounded, and a result is
// escaped text in an element of its own. A server that fails costs a reply only its tools.
package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/fault"
	"nodest/internal/mcpclient"
	"nodest/llm"
)

// Options configure a Service.
type Options struct {
	Servers []Server
	Client  *http.Client // for all requests; required if there are servers
	Public  bool         // errors may name the hosts of the servers
	Log     *slog.Logger
	Now     func() time.Time // nil = time.Now
}

// Service knows the servers and their tools. It is safe for concurrent use.
type Service struct {
	servers []*server
}

// How long it is known what a server offers, or that it does not answer.
const (
	keepTools  = 5 * time.Minute
	keepFailed = 30 * time.Second
)

// listTime is how long a reply waits for the tools of the servers, callTime how long a call
// may take.
const (
	listTime = 3 * time.Second
	callTime = 20 * time.Second
)

// server is a server and what it offers.
type server struct {
	name   string
	client *mcpclient.Server
	log    *slog.Logger
	now    func() time.Time
	stale  atomic.Bool // the known tools may be wrong: a call has failed

	asking chan struct{} // has capacity 1: full while somebody reads or asks
	at     time.Time     // when the server was asked; zero = never
	tools  []Tool
	err    error
}

// New returns a Service. Nothing is sent before somebody asks for tools.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{}
	for _, srv := range o.Servers {
		s.servers = append(s.servers, &server{
			name: srv.Name, log: o.Log, now: o.Now, asking: make(chan struct{}, 1),
			client: mcpclient.New(mcpclient.Config{Name: srv.Name, Address: srv.Address, Key: srv.Key, Client: o.Client, Public: o.Public}),
		})
	}
	return s
}

// Close ends the sessions, side by side. It takes a second at most.
func (s *Service) Close() error {
	failed := make([]error, len(s.servers))
	var group sync.WaitGroup
	for i, srv := range s.servers {
		group.Go(func() { failed[i] = srv.client.Close() })
	}
	group.Wait()
	return errors.Join(failed...)
}

// Names are those of the servers, as the operator has ordered them.
func (s *Service) Names() []string {
	var names []string
	for _, srv := range s.servers {
		names = append(names, srv.name)
	}
	return names
}

// Has reports whether there is a server of that name.
func (s *Service) Has(name string) bool {
	return slices.ContainsFunc(s.servers, func(srv *server) bool { return srv.name == name })
}

// Offer is what a server offers.
type Offer struct {
	Server string
	Tools  []Tool
	Err    error // *fault.Error: why it cannot be reached; nil = it can

	from *server
}

// Offers returns what the servers offer that are named; without names, all. Servers that are
// not known are left out. It takes three seconds at most.
func (s *Service) Offers(ctx context.Context, names ...string) []Offer {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var offers []Offer
	for _, srv := range s.servers {
		if len(names) == 0 || slices.Contains(names, srv.name) {
			offers = append(offers, Offer{Server: srv.name, from: srv})
		}
	}
	var group sync.WaitGroup
	for i := range offers {
		o := &offers[i]
		group.Go(func() { o.Tools, o.Err = o.from.list(ctx) })
	}
	group.Wait()
	return offers
}

// list returns the tools of the server, as they were at most keepTools ago.
func (s *server) list(ctx context.Context) ([]Tool, error) {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, llm.NetworkError(ctx, s.name, ctx.Err())
	}
	keep := keepTools
	if s.err != nil {
		keep = keepFailed
	}
	if s.now().Sub(s.at) < keep && !s.stale.Load() {
		return s.tools, s.err
	}
	s.stale.Store(false)
	var tools []Tool
	begun := time.Now()
	err := s.client.Do(ctx, llm.Secrets{}, func(ctx context.Context, session *mcp.ClientSession) (err error) {
		tools, err = s.read(ctx, session)
		return err
	})
	if ctx.Err() != nil && time.Since(begun) < listTime/2 { // nobody waits any more, or had little time left, which says nothing about the server
		return nil, err
	}
	s.at, s.tools, s.err = s.now(), tools, err
	return tools, err
}

// call calls a tool of the server and returns the text of its result.
func (s *server) call(ctx context.Context, tool Tool, arguments json.RawMessage) (string, error) {
	var result *mcp.CallToolResult
	hide := llm.Secrets{Texts: textsIn(arguments)}
	err := s.client.Do(ctx, hide, func(ctx context.Context, session *mcp.ClientSession) (err error) {
		result, err = session.CallTool(ctx, &mcp.CallToolParams{Name: tool.remote, Arguments: arguments})
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			s.stale.Store(true) // it may have other tools now
		}
		return "", err
	}
	text := textOf(result)
	if result.IsError {
		return "", llm.WithReason(fault.New(fault.UpstreamBadAnswer, "the tool reports an error"), hide.Reason(text))
	}
	return text, nil
}
