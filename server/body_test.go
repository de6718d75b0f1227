package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.BodyWithin = 50 * time.Millisecond })
	if res := h.sendUnfinished(false); res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
}

// A client that disconnects is not a server error.
func TestATruncatedBodyIsABadRequest(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	if res := h.sendUnfinished(true); res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
	if log := h.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("logged: %s", log)
	}
}

func TestMetricsGroupUnknownMethods(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{"GET": "GET", "PATCH": "PATCH", "FOO1": "other", "": "other"} {
		if got := methodOf(&http.Request{Method: method}); got != want {
			t.Errorf("%q: %q", method, got)
		}
	}
}
