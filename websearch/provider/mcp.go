package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/fault"
	"nodest/llm"
)

// mcpServer searches with a tool of an MCP server. Its session stays open between
// searches; one that was lost is opened again.
type mcpServer struct {
	api
	held chan *mcpSession // of capacity 1: the session, nil before the first
}

type mcpSession struct {
	*mcp.ClientSession
	tool   searchTool
	watch  *watched
	cancel context.CancelFunc // ends what belongs to the session
}

func newMCP(a api) *mcpServer {
	m := &mcpServer{api: a, held: make(chan *mcpSession, 1)}
	m.held <- nil
	return m
}

func (m *mcpServer) Search(ctx context.Context, q Query) (Results, error) {
	for {
		s, fresh, err := m.session(ctx)
		if err != nil {
			return Results{}, err
		}
		s.watch.status.Store(0)
		answer, err := s.CallTool(ctx, &mcp.CallToolParams{Name: s.tool.name, Arguments: s.tool.arguments(q)})
		switch {
		case err == nil:
			return m.read(answer, q)
		case ctx.Err() != nil:
			return Results{}, m.noAnswer(ctx, err)
		}
		m.lost(s)
		if fresh {
			return Results{}, m.failed(ctx, err, s.watch, q)
		}
	}
}

// read takes the results out of the answer of a tool.
func (m *mcpServer) read(answer *mcp.CallToolResult, q Query) (Results, error) {
	if answer.IsError {
		e := llm.Upstream(m.name, fault.UpstreamBadAnswer, 0, nil)
		e.Message = m.name + " reports an error of its search tool"
		return Results{}, llm.WithReason(e, llm.Secrets{Texts: []string{q.Text}}.Reason(textOf(answer)))
	}
	found, known := resultsOf(answer, m.now())
	if !known {
		return Results{}, llm.BadAnswer(m.name, nil, "the answer of the search tool has an unknown form")
	}
	return Results{Results: found[:min(len(found), q.Count)]}, nil
}

// session returns the open session, or a fresh one. Only one is opened at a time.
func (m *mcpServer) session(ctx context.Context) (s *mcpSession, fresh bool, err error) {
	select {
	case s = <-m.held:
	case <-ctx.Done():
		return nil, false, m.noAnswer(ctx, ctx.Err())
	}
	if s == nil {
		fresh = true
		s, err = m.open(ctx)
	}
	m.held <- s
	return s, fresh, err
}

// lost closes a session that does not work any more.
func (m *mcpServer) lost(s *mcpSession) {
	if held := <-m.held; held == s {
		m.held <- nil
	} else {
		m.held <- held
	}
	s.close()
}

// Close ends the session.
func (m *mcpServer) Close() error {
	s := <-m.held
	m.held <- nil
	if s != nil {
		s.close()
	}
	return nil
}

// close ends a session. It waits for at most a second for the server.
func (s *mcpSession) close() {
	stop := time.AfterFunc(time.Second, s.cancel)
	defer stop.Stop()
	_ = s.ClientSession.Close() // the server may be gone
	s.cancel()
}

// open connects to the server and chooses its search tool. An address that ends in /sse
// has the older transport, and so may one that refuses the newer.
func (m *mcpServer) open(ctx context.Context) (*mcpSession, error) {
	older := func(c *http.Client) mcp.Transport {
		return &mcp.SSEClientTransport{Endpoint: m.base, HTTPClient: c, MaxEventSize: maxBody}
	}
	if strings.HasSuffix(m.base, "/sse") {
		return m.connect(ctx, older)
	}
	s, err := m.connect(ctx, func(c *http.Client) mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: m.base, HTTPClient: c, MaxEventSize: maxBody, DisableStandaloneSSE: true, MaxRetries: -1}
	})
	switch llm.ProviderStatus(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		if s, olderErr := m.connect(ctx, older); olderErr == nil {
			return s, nil
		}
	}
	return s, err
}

// connect opens a session, which outlives ctx.
func (m *mcpServer) connect(ctx context.Context, transport func(*http.Client) mcp.Transport) (*mcpSession, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	watch := &watched{life: life, next: m.client.Transport}
	own := *m.client
	own.Transport = watch
	own.Timeout = 0 // a stream of events lasts; each search has its own time limit
	client := mcp.NewClient(&mcp.Implementation{Name: "nodest", Version: "1"}, nil)
	session, err := client.Connect(life, transport(&own), nil)
	if err != nil {
		stop()
		cancel()
		return nil, m.failed(ctx, err, watch, Query{})
	}
	s := &mcpSession{ClientSession: session, watch: watch, cancel: cancel}
	watch.status.Store(0)
	s.tool, err = m.choose(ctx, session, watch)
	if err == nil && !stop() {
		err = m.noAnswer(ctx, ctx.Err())
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// maxTools bounds how many tools of a server are looked at.
const maxTools = 500

// choose returns the tool that is most likely made for searching the web.
func (m *mcpServer) choose(ctx context.Context, session *mcp.ClientSession, watch *watched) (searchTool, error) {
	var best searchTool
	seen := 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return best, m.failed(ctx, err, watch, Query{})
		}
		if tool := rate(t); tool.rank > best.rank {
			best = tool
		}
		if seen++; seen == maxTools {
			break
		}
	}
	if best.rank == 0 {
		return best, llm.BadAnswer(m.name, nil, "none of its tools searches the web")
	}
	return best, nil
}

// failed reports a call that failed: by the HTTP status that the server answered with,
// by its own message, or because there was no answer.
func (m *mcpServer) failed(ctx context.Context, err error, watch *watched, q Query) error {
	if status := int(watch.status.Load()); status != 0 && ctx.Err() == nil {
		h := http.Header{}
		if after := watch.retryAfter.Load(); after != nil {
			h.Set("Retry-After", *after)
		}
		return m.refused(answer{status: status, header: h}, "", llm.Secrets{})
	}
	var u *url.Error
	if ctx.Err() != nil || errors.As(err, &u) || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return m.noAnswer(ctx, err)
	}
	e := llm.Upstream(m.name, fault.UpstreamBadAnswer, 0, nil)
	return llm.WithReason(e, llm.Secrets{Texts: []string{q.Text}}.Reason(err.Error()))
}

// watched is the transport of a session. It bounds answers, remembers the last status of
// failure, and ends all requests with the session.
type watched struct {
	life       context.Context
	next       http.RoundTripper
	status     atomic.Int64
	retryAfter atomic.Pointer[string]
}

func (w *watched) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(w.life, cancel)
	resp, err := w.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	if resp.StatusCode >= 300 && req.Method != http.MethodDelete {
		after := resp.Header.Get("Retry-After")
		w.retryAfter.Store(&after)
		w.status.Store(int64(resp.StatusCode))
	}
	body := watchedBody{resp.Body, resp.Body, func() { stop(); cancel() }}
	// The stream of the older transport lasts as long as the session. Its events are
	// bounded one by one.
	if req.Method != http.MethodGet {
		body.Reader = io.LimitReader(resp.Body, maxBody)
	}
	resp.Body = body
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

// searchTool is a tool of an MCP server that takes a query.
type searchTool struct {
	name     string
	rank     int    // how well it fits; 0 = not a search tool
	query    string // the parameter for the query
	count    string // the one for the number of results, "" = none
	maxCount int
}

var (
	queryParameters = strings.Fields("query q search_query searchQuery search_term searchTerm question keywords keyword term search text input")
	countParameters = strings.Fields("count num limit max_results maxResults num_results numResults top_k topK size n")
	otherSearches   = strings.Fields("image video news local file code map academic paper repo doc issue database company people linkedin history memory note email")
)

// rate says how well a tool fits, from its name, description and parameters.
func rate(t *mcp.Tool) searchTool {
	tool := searchTool{name: t.Name}
	var schema struct {
		Properties map[string]struct {
			Type    any
			Maximum float64
		}
		Required []string
	}
	raw, err := json.Marshal(t.InputSchema)
	if err != nil || json.Unmarshal(raw, &schema) != nil {
		return tool
	}
	typed := func(name string, types ...any) bool {
		p, ok := schema.Properties[name]
		return ok && slices.Contains(types, p.Type)
	}
	if i := slices.IndexFunc(queryParameters, func(n string) bool { return typed(n, "string") }); i >= 0 {
		tool.query = queryParameters[i]
	}
	if i := slices.IndexFunc(countParameters, func(n string) bool { return typed(n, "integer", "number") }); i >= 0 {
		tool.count = countParameters[i]
		tool.maxCount = int(min(schema.Properties[tool.count].Maximum, maxCount))
	}
	for _, name := range schema.Required {
		if name != tool.query && name != tool.count {
			return tool // we have nothing to give for it
		}
	}
	if tool.query != "" {
		tool.rank = rankOf(strings.ToLower(t.Name), strings.ToLower(t.Description))
	}
	return tool
}

func rankOf(name, description string) int {
	var rank int
	switch {
	case !strings.Contains(name, "search") && !strings.Contains(description, "search"):
		return 0
	case strings.Contains(name, "search") && strings.Contains(name, "web"), name == "search":
		rank = 40
	case strings.Contains(name, "search"):
		rank = 30
	default:
		rank = 10
	}
	if strings.Contains(description, "web") || strings.Contains(description, "internet") {
		rank += 5
	}
	if slices.ContainsFunc(otherSearches, func(w string) bool { return strings.Contains(name, w) }) {
		rank -= 25
	}
	return max(rank, 1)
}

func (t searchTool) arguments(q Query) map[string]any {
	arguments := map[string]any{t.query: q.wordsWithLocation()}
	if t.count != "" {
		arguments[t.count] = q.Count
		if t.maxCount > 0 {
			arguments[t.count] = min(q.Count, t.maxCount)
		}
	}
	return arguments
}

// textOf joins the texts of an answer.
func textOf(answer *mcp.CallToolResult) string {
	var texts []string
	for _, c := range answer.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// resultsOf takes results out of an answer: from its structured content, from links, or
// from its text. known is false if there is text in which nothing was found and which
// does not read like "no results".
func resultsOf(answer *mcp.CallToolResult, now time.Time) (found []Result, known bool) {
	if answer.StructuredContent != nil {
		if found, known = fromValue(answer.StructuredContent, now); len(found) > 0 {
			return found, true
		}
	}
	for _, c := range answer.Content {
		if l, ok := c.(*mcp.ResourceLink); ok {
			found = add(found, cmp.Or(l.Title, l.Name), l.URI, l.Description, time.Time{})
		}
	}
	for _, c := range answer.Content {
		if t, ok := c.(*mcp.TextContent); ok && len(found) < maxCount {
			more, ok := fromText(t.Text, now)
			found, known = append(found, more...), known || ok
		}
	}
	return found, known || len(found) > 0 || len(answer.Content) == 0
}
