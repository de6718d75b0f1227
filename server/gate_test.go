package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/fault"
)

const mib = 1 << 20

func TestAGateBoundsOneHolderAndAll(t *testing.T) {
	ann, ben, stranger := holder{user: "ann"}, holder{user: "ben"}, holder{network: "192.0.2.1"}
	g := gate{all: 16 * mib, each: 8 * mib}
	for _, step := range []struct {
		who  holder
		take int64
		ok   bool
	}{
		{ann, 8 * mib, true},
		{ann, 1, false},
		{ben, 4 * mib, true},
		{ben, 2 * mib, false}, // a quarter is kept for small requests
		{stranger, 1, false},  // of users
		{ben, mib, true},
		{ben, mib, true},
	} {
		if got := g.try(step.who, step.take); got != step.ok {
			t.Errorf("%+v takes %d: %t", step.who, step.take, got)
		}
	}
	g.give(ann, 8*mib)
	if !g.try(stranger, 5*mib) || g.held != 11*mib || g.by[ann] != 0 {
		t.Errorf("after giving back: %d held, %v", g.held, g.by)
	}
}

func TestAGateMakesRequestsWaitALittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann := holder{user: "ann"}
		g := gate{all: 16 * mib, each: 8 * mib}
		if err := g.take(t.Context(), ann, 8*mib); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := g.take(t.Context(), ann, 1); !fault.Is(err, fault.RateLimited) || time.Since(start) != gateWait {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.take(gone, ann, 1); err == nil {
			t.Error("a client that is gone was let in")
		}
		time.AfterFunc(time.Second, func() { g.give(ann, 8*mib) })
		if err := g.take(t.Context(), ann, 4*mib); err != nil {
			t.Errorf("after a second: %v", err)
		}
	})
}

// wantNothingHeld fails the test if the bytes of a finished request are not given back.
func (h *testServer) wantNothingHeld() {
	h.t.Helper()
	for name, g := range map[string]*gate{"memory": &h.server.memory, "disk": &h.server.disk} {
		h.eventually(name+" given back", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.held == 0 && len(g.by) == 0
		})
	}
}

// eventually polls until something is so.
func (h *testServer) eventually(what string, is func() bool) {
	h.t.Helper()
	late := time.After(testTimeout)
	for !is() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			h.t.Fatalf("%s: never", what)
		}
	}
}

// raw opens a connection and sends the head of a request with the user's token.
func (h *testServer) raw(line, header string) net.Conn {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.http.Listener.Addr().String())
	h.must(err)
	h.t.Cleanup(func() { _ = conn.Close() })
	h.must(conn.(*net.TCPConn).SetReadBuffer(4 << 10))
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n", line, h.token, header)
	h.must(err)
	return conn
}

// allocated is what the process has allocated while f ran, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const uploadHead = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"

func TestStalledUploadsTakeNoMemoryAndBlockNobody(t *testing.T) {
	h := newTestServer(t, nil)
	const clients, sent = 6, 8 * mib
	part := []byte(uploadHead + strings.Repeat("x", sent))
	used := allocated(func() {
		for range clients {
			conn := h.raw("POST /api/v1/characters/import", "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 60000000\r\n")
			_, err := conn.Write(part)
			h.must(err)
		}
		h.eventually("all bytes received", func() bool {
			h.server.disk.mu.Lock()
			defer h.server.disk.mu.Unlock()
			return h.server.disk.held > clients*(sent-mib)
		})
	})
	if used > clients*sent { // what arrives before the file is begun is less than 1 MiB, in a buffer that grows
		t.Errorf("%d bytes allocated", used)
	}
	if h.server.memory.held > clients*largeBody {
		t.Errorf("%d bytes held in memory", h.server.memory.held)
	}
	h.upload("POST", "/characters/import", "a.json", []byte(`{"name":"Large","description":"`+strings.Repeat("d", 2*mib)+`"}`)).wants(t, 201)
}

func TestUnreadAnswersWaitOnDisk(t *testing.T) {
	h := newTestServer(t, nil)
	document, err := json.Marshal(map[string]any{"name": "B", "document": map[string]any{"entries": map[string]any{}, "x": strings.Repeat("b", 8*mib)}})
	h.must(err)
	id := stringAt(h.rest("POST", "/worldbooks", string(document)).wants(t, 201), "id")
	const clients = 6
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = h.raw("GET /api/v1/worldbooks/"+id, "")
	}
	h.eventually("all answers on disk", func() bool {
		h.server.disk.mu.Lock()
		defer h.server.disk.mu.Unlock()
		return h.server.disk.held > clients*8*mib
	})
	h.server.memory.mu.Lock()
	held := h.server.memory.held
	h.server.memory.mu.Unlock()
	if held > smallAnswer {
		t.Errorf("%d bytes held in memory", held)
	}
	for _, conn := range conns {
		h.must(conn.Close())
	}
	h.wantNothingHeld()
}

func TestAnAnswerThatIsNotReadIsCut(t *testing.T) {
	h := newTestServer(t, func(o *Options) { o.AnswerWithin = 50 * time.Millisecond })
	document, err := json.Marshal(map[string]any{"name": "B", "document": map[string]any{"entries": map[string]any{}, "x": strings.Repeat("b", 8*mib)}})
	h.must(err)
	id := stringAt(h.rest("POST", "/worldbooks", string(document)).wants(t, 201), "id")
	conn := h.raw("GET /api/v1/worldbooks/"+id, "")
	_, err = conn.Read(make([]byte, 1)) // the answer has begun
	h.must(err)
	h.wantNothingHeld() // although the client is still there
}

func TestALargeBodyWaitsUntilThereIsRoom(t *testing.T) {
	h := newTestServer(t, nil)
	who := holder{user: h.user.ID}
	all := h.server.memory.each
	if !h.server.memory.try(who, all) {
		t.Fatal("no room")
	}
	done := make(chan int)
	go func() {
		done <- h.upload("POST", "/characters/import", "a.json", []byte(`{"name":"Large","description":"`+strings.Repeat("d", 2*mib)+`"}`)).status
	}()
	h.eventually("the upload waits", func() bool {
		h.server.memory.mu.Lock()
		defer h.server.memory.mu.Unlock()
		return h.server.memory.freed != nil
	})
	h.server.memory.give(who, all)
	if status := await(t, done, "the upload"); status != http.StatusCreated {
		t.Errorf("status %d", status)
	}
	h.wantNothingHeld()
}

func TestSignInBodiesAreSmall(t *testing.T) {
	h := newTestServer(t, nil)
	h.rest("POST", "/auth/login", `{"username":"a","password":"`+strings.Repeat("p", signInBytes)+`"}`).refuses(t, 413, "too_large")
}
