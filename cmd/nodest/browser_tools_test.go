package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolServer starts an MCP server with two tools and returns its address.
func toolServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	for name, about := range map[string]string{"forecast": "The weather of the next days in a city.", "tides": "High and low water at a harbour."} {
		s.AddTool(&mcp.Tool{Name: name, Description: about, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Rain until noon."}}}, nil
		})
	}
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

// TestPageGivesACharacterTools switches the tools of a server on for a character, in both
// languages and on a phone.
func TestPageGivesACharacterTools(t *testing.T) {
	ctx := browser(t)
	srv := toolServer(t)
	inst := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s", "NODEST_MCP_SERVERS=weather="+srv.URL+"/mcp,home=http://127.0.0.1:1/mcp")
	p := inst.start(t)
	openPage(t, ctx, p)
	dropFiles(t, ctx, "alice.json", aliceCard)
	waitJS(t, ctx, "a chat with her", `document.querySelector("article.assistant .text")?.innerText.includes("Hello, traveller.")`)
	var list struct{ Items []testCharacter }
	api(t, p, http.MethodGet, "/characters", nil, &list)
	address := "/characters/" + list.Items[0].ID + "/settings"
	servers := func() []string {
		t.Helper()
		var s struct{ Tools struct{ Servers []string } }
		api(t, p, http.MethodGet, address, nil, &s)
		return s.Tools.Servers
	}

	goTo(t, ctx, address, `document.querySelector("[data-path='tools.servers.weather']")`)
	waitJS(t, ctx, "its tools", `(d => d && (d.open = true, d.innerText.includes("2 tools") && d.innerText.includes("weather_forecast") && d.innerText.includes("High and low water")))([...document.querySelectorAll("details")].find(d => d.innerText.includes("tools")))`)
	waitJS(t, ctx, "the other one is away", `document.querySelector("[data-path='tools.servers.home']").closest("div").innerText.includes("does not answer")`)
	click(t, ctx, "[data-path='tools.servers.weather']")
	click(t, ctx, "[data-path='tools.servers.home']")
	saveInPage(t, ctx)
	if got, want := servers(), ([]string{"weather", "home"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("servers() is %q, want %q", got, want)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 800)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "nothing is wider than a phone", `document.documentElement.scrollWidth <= innerWidth`)
	waitJS(t, ctx, "another language", `(localStorage.setItem("nodest.language", "zh"), true)`)
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "Chinese", `document.querySelector("[data-path='tools.servers.weather']")?.checked && document.body.innerText.includes("其他服务器的工具")`)
	p.stop(t)
}

// TestDoctorAsksTheToolServers says what is wrong with each of them.
func TestDoctorAsksTheToolServers(t *testing.T) {
	srv := toolServer(t)
	inst := newInstallation(t, "", "NODEST_SEARCH=none", "NODEST_MCP_SERVERS=weather="+srv.URL+"/mcp,home=http://127.0.0.1:1/mcp")
	out, _, err := inst.command(t, nil, "doctor")
	if !errors.Is(err, errSaid) {
		t.Fatalf("got error %v, want %v", err, errSaid)
	}
	if !strings.Contains(out, "✓ MCP server weather: 2 tools") {
		t.Fatalf("out is %q, want it with %q", out, "✓ MCP server weather: 2 tools")
	}
	if !strings.Contains(out, "✗ MCP server home: not usable\n    home at http://127.0.0.1:1 does not respond: connection refused") {
		t.Fatalf("out is %q, want it with %q", out, "✗ MCP server home: not usable\n    home at http://127.0.0.1:1 does not respond: connection refused")
	}
	inst.env = append(inst.env, "NODEST_MCP_KEYS=other=abc")
	out, _, err = inst.command(t, nil, "doctor")
	if !errors.Is(err, errSaid) {
		t.Fatalf("got error %v, want %v", err, errSaid)
	}
	if !strings.Contains(out, "NODEST_MCP_KEYS") {
		t.Fatalf("out is %q, want it with %q", out, "NODEST_MCP_KEYS")
	}
	if strings.Contains(out, "abc") {
		t.Fatalf("out is %q, want it without %q", out, "abc")
	}
}
