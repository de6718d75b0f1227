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

// unfinished sends a request whose body does not end, and returns the answer; cut
// ends the sending.
func (h *house) unfinished(cut bool) *http.Response {
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

func TestABodyThatDoesNotComeIsNotWaitedForForEver(t *testing.T) {
	h := build(t, func(o *Options) { o.BodyWithin = -8*time.Second + 50*time.Millisecond }) // 8 s are for its size
	if res := h.unfinished(false); res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
}

// A client that goes away is no failure of the server.
func TestABodyThatBreaksOffIsABadRequest(t *testing.T) {
	h := build(t, nil)
	if res := h.unfinished(true); res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
	if log := h.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("logged: %s", log)
	}
}

func TestLargeBodiesWaitForAPlace(t *testing.T) {
	h := build(t, func(o *Options) { o.LargeBodies = 1 })
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	first := h.server.echo.NewContext(httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder())
	second := h.server.echo.NewContext(httptest.NewRequest(http.MethodPost, "/", nil).WithContext(gone), httptest.NewRecorder())
	take := func(c echo.Context) error { return h.server.takePlace(c) }
	h.must(take(first))
	h.must(take(first)) // it has one
	if take(second) == nil {
		t.Error("there were two places")
	}
	h.server.leavePlace(second) // it has none to give back
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

func TestMethodsAreCountedUnderFewNames(t *testing.T) {
	for method, want := range map[string]string{"GET": "GET", "PATCH": "PATCH", "FOO1": "other", "": "other"} {
		if got := methodOf(&http.Request{Method: method}); got != want {
			t.Errorf("%q: %q", method, got)
		}
	}
}
