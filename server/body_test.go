package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

// sendUnfinished sends a request with an incomplete body and returns the response; cut
// closes the sending side.
func (h *testServer) sendUnfinished(cut bool) *http.Response {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.http.Listener.Addr().String())
	h.must(err)
	h.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprint(conn, "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	h.must(err)
	if cut {
		h.must(conn.(*net.TCPConn).CloseWrite())
	}
	h.must(conn.SetReadDeadline(time.Now().Add(30 * time.Second)))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	h.must(err)
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestAStalledBodyTimesOut(t *testing.T) {
	h := newTestServer(t, func(o *Options) { o.BodyWithin = -8*time.Second + 50*time.Millisecond }) // the time limit adds 8 s for the size
	if res := h.sendUnfinished(false); res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
}

// A client that disconnects is not a server error.
func TestATruncatedBodyIsABadRequest(t *testing.T) {
	h := newTestServer(t, nil)
	if res := h.sendUnfinished(true); res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
	if log := h.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("logged: %s", log)
	}
}

func TestConcurrentLargeBodiesAreLimited(t *testing.T) {
	h := newTestServer(t, func(o *Options) { o.LargeBodies = 1 })
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	first := h.server.echo.NewContext(httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder())
	second := h.server.echo.NewContext(httptest.NewRequest(http.MethodPost, "/", nil).WithContext(gone), httptest.NewRecorder())
	take := func(c echo.Context) error { return h.server.takePlace(c) }
	h.must(take(first))
	h.must(take(first)) // it already has a place
	if take(second) == nil {
		t.Error("there were two places")
	}
	h.server.leavePlace(second) // without effect: it has no place
	h.server.leavePlace(first)
	h.server.leavePlace(first)

	done := make(chan int)
	card := []byte(`{"name":"Large","description":"` + strings.Repeat("d", largeBody) + `"}`)
	for range 2 {
		go func() {
			req := httptest.NewRequest(http.MethodPost, base+"/characters", strings.NewReader(`{"roleCard":`+string(card)+`}`))
			req.Header.Set("Authorization", "Bearer "+h.token)
			req.Header.Set("Content-Type", "application/json")
			res := httptest.NewRecorder()
			h.server.Handler().ServeHTTP(res, req)
			done <- res.Code
		}()
	}
	for range 2 {
		if status := <-done; status != http.StatusCreated {
			t.Errorf("status %d", status)
		}
	}
	if n := len(h.server.places); n != 0 {
		t.Errorf("%d places were not given back", n)
	}
}

func TestMetricsGroupUnknownMethods(t *testing.T) {
	for method, want := range map[string]string{"GET": "GET", "PATCH": "PATCH", "FOO1": "other", "": "other"} {
		if got := methodOf(&http.Request{Method: method}); got != want {
			t.Errorf("%q: %q", method, got)
		}
	}
}
