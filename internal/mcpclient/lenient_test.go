package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/mcpclient"
	"nodest/llm"
)

const (
	aTool  = `{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}`
	aRain  = `{"content":[{"type":"text","text":"It rains."}]}`
	asJSON = "application/json"
	asSSE  = "text/event-stream"
)

// odd is a server that answers with these results; write writes each message.
func odd(t *testing.T, tools, result string, write func(w http.ResponseWriter, message string)) *mcpclient.Server {
	t.Helper()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			ID     json.RawMessage
			Method string
		}
		body, err := io.ReadAll(r.Body)
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case err != nil || json.Unmarshal(body, &call) != nil || call.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `{}`
		switch call.Method {
		case "initialize":
			answer = `{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		case "tools/list":
			answer = tools
		case "tools/call":
			answer = result
		}
		write(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, answer))
	})
	s := mcpclient.New(mcpclient.Config{Name: "weather", Address: srv.URL, Client: srv.Client()})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return s
}

func written(kind, format string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, message string) {
		w.Header().Set("Content-Type", kind)
		_, _ = fmt.Fprintf(w, format, message)
	}
}

// forecast is what the server's only tool answers.
func forecast(t *testing.T, s *mcpclient.Server) (tool *mcp.Tool, text []string, failed bool) {
	t.Helper()
	if err := s.Do(t.Context(), llm.Secrets{}, func(ctx context.Context, open *mcp.ClientSession) error {
		list, err := open.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		if len(list.Tools) != 1 {
			t.Fatalf("list.Tools has %d, want 1: %+v", len(list.Tools), list.Tools)
		}
		tool = list.Tools[0]
		result, err := open.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name})
		if err != nil {
			return err
		}
		for _, c := range result.Content {
			text = append(text, c.(*mcp.TextContent).Text)
		}
		failed = result.IsError
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return tool, text, failed
}

// An answer is read by its form, whatever its label, with or without a byte-order mark.
func TestAnswersAreReadByTheirForm(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(http.ResponseWriter, string){
		"JSON":                     written(asJSON, "%s"),
		"JSON as events":           written(asSSE, "%s"),
		"JSON behind a mark":       written(asJSON, "\uFEFF%s"),
		"events":                   written(asSSE, ": hi\n\nevent: message\nid: 1\ndata: %s\n\n"),
		"events as JSON":           written(asJSON, "data: %s\n\n"),
		"events behind a mark":     written(asSSE, "\uFEFFdata: %s\n\n"),
		"events that end in CR":    written(asSSE, "data:%s\r\r"),
		"events that end in CR LF": written(asSSE, "data: %s\r\n\r\n"),
		"an event in two lines": func(w http.ResponseWriter, message string) {
			written(asSSE, "data: %s\n\n")(w, strings.Replace(message, `,"id"`, ",\ndata: \"id\"", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, text, _ := forecast(t, odd(t, aTool, aRain, write))
			if want := ([]string{"It rains."}); !reflect.DeepEqual(text, want) {
				t.Fatalf("text is %q, want %q", text, want)
			}
		})
	}
}

// A member of an odd type costs itself: neither the other tools nor the rest of a result.
func TestAnOddMemberCostsItself(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ tools, result string }{
		"a tool without a name":  {`{"tools":[{"name":5,"inputSchema":{}},{"name":"forecast","inputSchema":{"type":"object"}}]}`, aRain},
		"members of a tool":      {`{"tools":[{"name":"forecast","title":5,"description":["a"],"annotations":"x","_meta":[],"inputSchema":{"type":"object"}}],"nextCursor":{}}`, aRain},
		"members of a result":    {aTool, `{"isError":"no","_meta":[],"structuredContent":"x","content":[{"type":"text","text":"It rains."}]}`},
		"members of a block":     {aTool, `{"content":[{"type":"text","text":"It rains.","annotations":5,"_meta":"x"}]}`},
		"an item that is a list": {aTool, `{"content":[[],{"type":"text","text":"It rains."}]}`},
		"a text for the blocks":  {aTool, `{"content":"It rains."}`},
		"a text for a block":     {aTool, `{"content":["It rains."]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, write := range []func(http.ResponseWriter, string){written(asJSON, "%s"), written(asSSE, "data: %s\n\n")} {
				tool, text, failed := forecast(t, odd(t, tt.tools, tt.result, write))
				if tool.Name != "forecast" {
					t.Fatalf("tool.Name is %q, want %q", tool.Name, "forecast")
				}
				if want := (map[string]any{"type": "object"}); !reflect.DeepEqual(tool.InputSchema, want) {
					t.Fatalf("tool.InputSchema is %+v, want %+v", tool.InputSchema, want)
				}
				if want := ([]string{"It rains."}); !reflect.DeepEqual(text, want) {
					t.Fatalf("text is %q, want %q", text, want)
				}
				if failed {
					t.Fatal("failed is true, want false")
				}
			}
		})
	}
	_, text, _ := forecast(t, odd(t, aTool, `{"content":[{"type":"hologram","x":1},{"type":"text","text":"It rains."}]}`, written(asJSON, "%s")))
	if want := ([]string{"[hologram]", "It rains."}); !reflect.DeepEqual(text, want) {
		t.Fatalf("a kind that nobody knows is named: text is %q, want %q", text, want)
	}
}
