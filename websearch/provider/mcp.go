package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/fault"
	"nodest/internal/mcpclient"
	"nodest/llm"
	"nodest/llm/loose"
)

// mcpServer searches with a tool of an MCP server.
type mcpServer struct {
	api
	server *mcpclient.Server

	mu     sync.Mutex
	chosen *mcp.ClientSession // whose search tool is tool
	tool   searchTool
}

func newMCP(a api) *mcpServer {
	return &mcpServer{api: a, server: mcpclient.New(mcpclient.Config{Name: a.name, Address: a.base, Client: a.client, Public: true})}
}

func (m *mcpServer) Search(ctx context.Context, q Query) (Results, error) {
	var answer *mcp.CallToolResult
	err := m.server.Do(ctx, llm.Secrets{Texts: []string{q.Text}}, func(ctx context.Context, session *mcp.ClientSession) error {
		tool, err := m.choose(ctx, session)
		if err != nil {
			return err
		}
		answer, err = session.CallTool(ctx, &mcp.CallToolParams{Name: tool.name, Arguments: tool.arguments(q)})
		if err != nil {
			m.choice(nil, searchTool{}) // the server may have other tools now
		}
		return err
	})
	if err != nil {
		return Results{}, err
	}
	return m.read(answer, q)
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

// Close ends the session.
func (m *mcpServer) Close() error { return m.server.Close() }

// maxTools bounds how many tools of a server are looked at.
const maxTools = 500

// choose returns the tool that is most likely made for searching the web. A session has the
// same one as long as it lasts.
func (m *mcpServer) choose(ctx context.Context, session *mcp.ClientSession) (searchTool, error) {
	m.mu.Lock()
	best, chosen := m.tool, m.chosen
	m.mu.Unlock()
	if chosen == session {
		return best, nil
	}
	best = searchTool{}
	seen := 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return best, err
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
	m.choice(session, best)
	return best, nil
}

// choice remembers the search tool of a session.
func (m *mcpServer) choice(session *mcp.ClientSession, tool searchTool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chosen, m.tool = session, tool
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
			Maximum loose.Number
		}
		Required loose.List[loose.Text]
	}
	raw, err := json.Marshal(t.InputSchema)
	if err != nil || loose.Unmarshal(raw, &schema) != nil {
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
		tool.maxCount = min(schema.Properties[tool.count].Maximum.IntOr(0), maxCount)
	}
	for _, name := range schema.Required {
		if string(name) != tool.query && string(name) != tool.count {
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
