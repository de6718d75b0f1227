package provider

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/fault"
)

type searchInput struct {
	Query string `json:"query"`
	Count int    `json:"count,omitempty"`
}

// toolServer is an MCP server with a tool that answers with what answer returns.
func toolServer(answer func(searchInput) (*mcp.CallToolResult, error)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "image_search", Description: "Search the web for images"}, func(context.Context, *mcp.CallToolRequest, searchInput) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("the wrong tool")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "web_search", Description: "Search the web"}, func(_ context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, any, error) {
		res, err := answer(in)
		return res, nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fetch"}, func(context.Context, *mcp.CallToolRequest, struct {
		URL string `json:"url"`
	}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("the wrong tool")
	})
	return s
}

func texts(list ...string) *mcp.CallToolResult {
	res := &mcp.CallToolResult{}
	for _, s := range list {
		res.Content = append(res.Content, &mcp.TextContent{Text: s})
	}
	return res
}

// serve starts a server and returns its address and a client for it.
func serve(t *testing.T, h http.Handler) (string, *http.Client) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL, srv.Client()
}

func streamable(s *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

func mcpFor(t *testing.T, path string, h http.Handler) Provider {
	t.Helper()
	address, client := serve(t, h)
	return one(t, Config{Names: []string{"mcp"}, BaseURL: address + path, Client: client})
}

func TestMCPAnswersAreReadInEveryForm(t *testing.T) {
	structured := func() *mcp.CallToolResult {
		var v any
		if err := json.Unmarshal([]byte(fixture(t, "mcp_json.txt")), &v); err != nil {
			t.Fatal(err)
		}
		return &mcp.CallToolResult{StructuredContent: v}
	}
	links := &mcp.CallToolResult{}
	var inParts []string
	for _, p := range pages {
		links.Content = append(links.Content, &mcp.ResourceLink{URI: p.URL, Name: p.Title, Description: p.Description})
		inParts = append(inParts, "Title: "+p.Title+"\nURL: "+p.URL+"\nText: "+p.Description)
	}
	for name, answer := range map[string]*mcp.CallToolResult{
		"labels":             texts(fixture(t, "mcp_labels.txt")),
		"address first":      texts(fixture(t, "mcp_url_first.txt")),
		"numbered list":      texts(fixture(t, "mcp_numbered.txt")),
		"Markdown links":     texts(fixture(t, "mcp_markdown.txt")),
		"Markdown headings":  texts(fixture(t, "mcp_plain.txt")),
		"JSON text":          texts(fixture(t, "mcp_json.txt")),
		"structured content": structured(),
		"links":              links,
		"one part each":      texts(inParts...),
	} {
		t.Run(name, func(t *testing.T) {
			p := mcpFor(t, "/mcp", streamable(toolServer(func(in searchInput) (*mcp.CallToolResult, error) {
				if in.Query != "old bookshops site:a.test" || in.Count != 7 {
					t.Errorf("the tool was called with %+v", in)
				}
				return answer, nil
			})))
			res, err := search(t, p, Query{Text: "old bookshops", Count: 7, Hosts: []string{"a.test"}})
			if err != nil {
				t.Fatal(err)
			}
			wantResults(t, res.Results, pages)
		})
	}
}

func TestMCPFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answer  *mcp.CallToolResult
		err     error
		message string
	}{
		"the tool reports an error": {&mcp.CallToolResult{IsError: true, Content: texts("Rate limit\nexceeded").Content}, nil, "the MCP server reports an error of its search tool: Rate limit exceeded"},
		"the tool fails":            {nil, errors.New("no quota"), "the MCP server reports an error of its search tool: no quota"},
		"another form":              {texts("<html>Welcome to the old bookshops"), nil, "the MCP server: the answer of the search tool has an unknown form"},
	} {
		t.Run(name, func(t *testing.T) {
			p := mcpFor(t, "/mcp", streamable(toolServer(func(searchInput) (*mcp.CallToolResult, error) { return c.answer, c.err })))
			_, err := search(t, p, question)
			wantFailure(t, err, fault.UpstreamBadAnswer, 0, c.message)
		})
	}
	t.Run("nothing found", func(t *testing.T) {
		for _, s := range []string{"No results found for 'x'.", "没有找到结果", `{"results":[]}`, ""} {
			p := mcpFor(t, "/mcp", streamable(toolServer(func(searchInput) (*mcp.CallToolResult, error) { return texts(s), nil })))
			if res, err := search(t, p, question); err != nil || len(res.Results) != 0 {
				t.Errorf("%q: %v, %v", s, res, err)
			}
		}
	})
	t.Run("no search tool", func(t *testing.T) {
		p := mcpFor(t, "/mcp", streamable(mcp.NewServer(&mcp.Implementation{Name: "test"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})))
		_, err := search(t, p, question)
		wantFailure(t, err, fault.UpstreamBadAnswer, 0, "the MCP server: none of its tools searches the web")
	})
	for status, want := range map[int]struct {
		code    fault.Code
		message string
	}{
		401: {fault.UpstreamAuth, "the MCP server rejected the API key"},
		404: {fault.UpstreamBadAnswer, "the MCP server rejected the request: HTTP 404 Not Found"},
		429: {fault.UpstreamRate, "the MCP server reports too many requests"},
		503: {fault.UpstreamDown, "the MCP server is not available"},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			p := mcpFor(t, "/mcp", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "5")
				http.Error(w, "old bookshops", status)
			}))
			_, err := search(t, p, question)
			wantFailure(t, err, want.code, status, want.message)
			if after := fault.Public(err).RetryAfter; after != 5*time.Second {
				t.Errorf("retry after %v", after)
			}
		})
	}
}

func TestMCPOverTheOlderTransport(t *testing.T) {
	for _, path := range []string{"/sse", "/other"} {
		t.Run(path, func(t *testing.T) {
			s := toolServer(func(searchInput) (*mcp.CallToolResult, error) { return texts(fixture(t, "mcp_labels.txt")), nil })
			handler := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
			p := mcpFor(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.URL.Query().Get("sessionid") == "" {
					http.Error(w, "use GET", http.StatusMethodNotAllowed)
					return
				}
				handler.ServeHTTP(w, r)
			}))
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				q, _ := question.checked()
				res, err := p.Search(ctx, q)
				cancel() // the session outlives the search
				if err != nil {
					t.Fatal(err)
				}
				wantResults(t, res.Results, pages)
			}
		})
	}
}

func TestTheMCPSessionIsReusedAndOpenedAgainAfterALoss(t *testing.T) {
	tool := toolServer(func(searchInput) (*mcp.CallToolResult, error) { return texts(fixture(t, "mcp_labels.txt")), nil })
	t.Cleanup(func() {
		for s := range tool.Sessions() { // that were forgotten
			_ = s.Close()
		}
	})
	var current atomic.Pointer[http.Handler]
	restart := func() {
		h := streamable(tool)
		current.Store(&h)
	}
	restart()
	p := mcpFor(t, "/mcp", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*current.Load()).ServeHTTP(w, r)
	}))
	ask := func() {
		t.Helper()
		if res, err := search(t, p, question); err != nil || len(res.Results) != 2 {
			t.Fatalf("%v, %v", res, err)
		}
	}
	ask()
	first := p.(*mcpServer)
	session := first.chosen
	ask()
	if first.chosen != session {
		t.Error("the second search opened another session")
	}
	_ = session.Close() // as if the connection had been lost
	ask()
	restart() // a server that has forgotten all sessions
	ask()
}

func TestAHangingMCPServerTimesOut(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	p := mcpFor(t, "/mcp", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	q, _ := question.checked()
	if _, err := p.Search(ctx, q); !fault.Is(err, fault.UpstreamTimeout) {
		t.Errorf("error %v", err)
	}
}

func TestAHugeMCPAnswerIsCutOff(t *testing.T) {
	p := mcpFor(t, "/mcp", streamable(toolServer(func(searchInput) (*mcp.CallToolResult, error) {
		return texts(strings.Repeat("Title: x\nURL: https://a.test/\n", maxBody/10)), nil
	})))
	if _, err := search(t, p, question); err == nil || fault.Is(err, fault.Internal) {
		t.Errorf("error %v", err)
	}
}

func TestTheToolThatSearchesTheWebIsChosen(t *testing.T) {
	tool := func(name, description, schema string) *mcp.Tool {
		return &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
	}
	const query = `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`
	order := []*mcp.Tool{ // the best first
		tool("brave_web_search", "Performs a web search", query),
		tool("search", "", query),
		tool("tavily-search", "", query),
		tool("ask", "Search the internet", query),
		tool("brave_news_search", "", query),
	}
	for i := range order[1:] {
		if a, b := rate(order[i]), rate(order[i+1]); a.rank <= b.rank {
			t.Errorf("%s (%d) is not before %s (%d)", a.name, a.rank, b.name, b.rank)
		}
	}
	for _, c := range []*mcp.Tool{
		tool("fetch", "Fetches a page", `{"properties":{"url":{"type":"string"}},"required":["url"]}`),
		tool("search", "", `{"properties":{"query":{"type":"integer"}}}`),
		tool("search", "", `{"properties":{"query":{"type":"string"},"path":{"type":"string"}},"required":["query","path"]}`),
		tool("search", "", `null`),
		tool("search", "", `{"properties":[]}`),
	} {
		if r := rate(c); r.rank != 0 {
			t.Errorf("%s %s has rank %d", c.Name, c.InputSchema, r.rank)
		}
	}
	limited := rate(tool("web_search", "", `{"properties":{"q":{"type":"string"},"limit":{"type":"integer","maximum":5}},"required":["q"]}`))
	if got := limited.arguments(Query{Text: "x", Count: 10}); !reflect.DeepEqual(got, map[string]any{"q": "x", "limit": 5}) {
		t.Errorf("arguments %v", got)
	}
}
