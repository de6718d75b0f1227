package server

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"nodest/internal/op"
)

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	var broken error
	h := newTestServer(t, func(o *Options) { o.Ready = func(context.Context) error { return broken } })
	h.request("GET", "/healthz", "").wants(t, 200)
	h.request("GET", "/readyz", "").wants(t, 200)
	broken = errors.New("disk gone")
	a := h.request("GET", "/readyz", "")
	a.refuses(t, 503, "storage_unavailable")
	if strings.Contains(string(a.body), "disk") {
		t.Error("the cause is shown")
	}
	broken = nil
	h.server.draining.Store(true)
	h.request("GET", "/readyz", "").refuses(t, 503, "shutting_down")
	h.request("GET", "/healthz", "").wants(t, 200)
	h.server.draining.Store(false)
}

func TestMetricsAreForOwners(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("GET", "/me", "").wants(t, 200)
	h.rest("GET", "/conversations/"+op.NewID(), "").wants(t, 404)
	h.request("GET", "/metrics", "").refuses(t, 401, "unauthenticated") // from this machine
	h.request("GET", "/metrics", "", "Authorization: Bearer "+h.newMember("mia")).refuses(t, 403, "forbidden")
	a := h.request("GET", "/metrics", "", "Authorization: Bearer "+h.token)
	a.wants(t, 200)
	for _, want := range []string{`route="/api/v1/me",status="200"`, `route="/api/v1/conversations/:id",status="404"`, "nodest_websocket_connections"} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestMetricsCanBeOpen(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.OpenMetrics = true })
	h.request("GET", "/metrics", "").wants(t, 200)
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for _, path := range []string{"/", "/healthz", "/api/v1/me", "/nothing"} {
		a := h.request("GET", path, "")
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if a.header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, a.header.Get(name))
			}
		}
	}
}

func TestCORSIsOffUnlessAnOriginIsNamed(t *testing.T) {
	t.Parallel()
	foreign := "Origin: https://app.example"
	preflight := []string{foreign, "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: authorization"}
	off := newTestServer(t, nil)
	for _, a := range []*restResponse{off.request("GET", "/api/v1/me", "", foreign), off.request("OPTIONS", "/api/v1/settings", "", preflight...)} {
		for name := range a.header {
			if strings.HasPrefix(name, "Access-Control") {
				t.Errorf("CORS is off, but there is %s", name)
			}
		}
	}
	on := newTestServer(t, func(o *Options) { o.Origins = []string{"https://app.example"} })
	a := on.request("OPTIONS", "/api/v1/settings", "", preflight...)
	if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "https://app.example" || !strings.Contains(a.header.Get("Access-Control-Allow-Methods"), "PUT") {
		t.Errorf("%d %v", a.status, a.header)
	}
	if a.header.Get("Access-Control-Allow-Credentials") != "" || a.header.Get("Vary") != "Origin" {
		t.Errorf("%v", a.header)
	}
	if a := on.request("GET", "/api/v1/me", "", "Origin: https://evil.example"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", a.header)
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.request("GET", "/api/v1/nothing", "").refuses(t, 404, "not_found")
	h.request("GET", "/api/v2/me", "").refuses(t, 404, "not_found")
	h.request("DELETE", "/api/v1/providers", "").refuses(t, 404, "not_found")
	h.request("BREW", "/api/v1/me", "").refuses(t, 404, "not_found")
	if a := h.request("OPTIONS", "/api/v1/me", ""); a.status != 204 || !strings.Contains(a.header.Get("Allow"), "GET") {
		t.Errorf("%d %v", a.status, a.header)
	}
}

func TestHeadAnswersAsGetDoes(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	id := h.newCharacter()
	for _, path := range []string{"/me", "/settings", "/characters", "/characters/" + id, "/conversations/" + op.NewID(), "/sync"} {
		get, head := h.rest("GET", path, ""), h.rest("HEAD", path, "")
		if head.status != get.status || head.header.Get("ETag") != get.header.Get("ETag") || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("%s: GET %d %v, HEAD %d %v", path, get.status, get.header, head.status, head.header)
		}
	}
	h.request("HEAD", "/healthz", "").wants(t, 200)
	h.request("HEAD", "/", "").wants(t, 200)
	if a := h.rest("HEAD", "/events", ""); a.status != 404 {
		t.Errorf("HEAD of a stream: %d", a.status)
	}
}

func TestRequestIdsAreGivenOrKept(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	if a := h.rest("GET", "/me", "", "X-Request-Id: mine-1"); a.header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("%v", a.header)
	}
	for _, odd := range []string{"with blanks in it", strings.Repeat("x", 65), "<script>"} {
		if a := h.rest("GET", "/me", "", "X-Request-Id: "+odd); !op.IsClientID(a.header.Get("X-Request-Id")) {
			t.Errorf("%q is kept", odd)
		}
	}
	a := h.rest("GET", "/nothing", "", "X-Request-Id: lost")
	a.refuses(t, 404, "not_found")
	if !strings.Contains(h.log.String(), "requestId=lost") {
		t.Error("the log does not name the request")
	}
}

// The log has neither queries, which may contain tickets, nor message texts.
func TestTheLogHasNoQueriesAndNoTexts(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"A secret of mine"}`).wants(t, 200)
	h.rest("GET", "/conversations?cursor="+url.QueryEscape("a secret cursor"), "")
	if log := strings.ToLower(h.log.String()); strings.Contains(log, "secret") {
		t.Errorf("the log has secrets")
	}
}
