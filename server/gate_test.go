package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
)

const mib = 1 << 20

func TestAGateBoundsOneHolderAndAll(t *testing.T) {
	t.Parallel()
	ann, ben, stranger := holder{user: "ann"}, holder{user: "ben"}, holder{network: "192.0.2.1"}
	g := gate{all: 16 * mib, each: 8 * mib}
	for _, step := range []struct {
		who  holder
		take int64
		ok   bool
	}{
		{ann, 7 * mib, false}, // a quarter of what ann may have is kept for her small requests
		{ann, 6 * mib, true},
		{ann, mib, true},
		{ann, mib, true},
		{ann, 1, false},
		{ben, 4 * mib, true},
		{ben, 2 * mib, false}, // a quarter of all is kept for small requests
		{stranger, 1, false},  // for the small requests of users
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ann := holder{user: "ann"}
		g := gate{all: 16 * mib, each: 8 * mib}
		if err := g.take(t.Context(), ann, 8*mib, false); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := g.take(t.Context(), ann, 1, false); !fault.Is(err, fault.RateLimited) || time.Since(start) != gateWait {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.take(gone, ann, 1, false); err == nil {
			t.Error("a client that is gone was let in")
		}
		time.AfterFunc(time.Second, func() { g.give(ann, 8*mib) })
		if err := g.take(t.Context(), ann, 4*mib, false); err != nil {
			t.Errorf("after a second: %v", err)
		}
	})
}

// wantNothingHeld fails the test if the bytes of a finished request are not given back.
func (h *testServer) wantNothingHeld() {
	h.t.Helper()
	for name, g := range map[string]*gate{"memory": &h.server.memory, "disk": &h.server.disk} {
		h.eventually(name+" given back", func() bool { return g.inUse() == 0 })
		g.mu.Lock()
		if len(g.by) > 0 {
			h.t.Errorf("%s: %v", name, g.by)
		}
		g.mu.Unlock()
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

// inUse is what all requests hold.
func (g *gate) inUse() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
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
		h.eventually("all bytes received", func() bool { return h.server.disk.inUse() > clients*(sent-mib) })
	})
	if used > clients*sent { // less than 1 MiB arrives before the file is begun, in a buffer that grows
		t.Errorf("%d bytes allocated", used)
	}
	if held := h.server.memory.inUse(); held > clients*largeBody {
		t.Errorf("%d bytes held in memory", held)
	}
	h.upload("POST", "/characters/import", "a.json", []byte(`{"name":"Large","description":"`+strings.Repeat("d", 2*mib)+`"}`)).wants(t, 201)
}

func TestUnreadAnswersWaitOnDisk(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	document, err := json.Marshal(map[string]any{"name": "B", "document": map[string]any{"entries": map[string]any{}, "x": strings.Repeat("b", 5*mib)}}) // more than the buffers of a connection
	h.must(err)
	id := stringAt(h.rest("POST", "/worldbooks", string(document)).wants(t, 201), "id")
	const clients = 2 // a user's documents are read one after the other
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = h.raw("GET /api/v1/worldbooks/"+id, "")
	}
	h.eventually("all answers on disk", func() bool { return h.server.disk.inUse() > clients*5*mib })
	h.eventually("memory given back", func() bool { return h.server.memory.inUse() <= smallAnswer })
	for _, conn := range conns {
		h.must(conn.Close())
	}
	h.wantNothingHeld()
}

func TestAnAnswerThatIsNotReadIsCut(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.AnswerWithin = 3 * time.Second }) // time enough for a busy client that reads
	document, err := json.Marshal(map[string]any{"name": "B", "document": map[string]any{"entries": map[string]any{}, "x": strings.Repeat("b", 5*mib)}})
	h.must(err)
	id := stringAt(h.rest("POST", "/worldbooks", string(document)).wants(t, 201), "id")
	conn := h.raw("GET /api/v1/worldbooks/"+id, "")
	_, err = conn.Read(make([]byte, 1)) // the answer has begun
	h.must(err)
	h.wantNothingHeld() // although the client is still there
}

func TestALargeBodyWaitsUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	who := holder{user: h.user.ID}
	all := h.server.memory.each
	h.must(h.server.memory.take(t.Context(), who, all, false))
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

// A body of many small values takes much more memory than one of long texts.
func TestTheValuesOfALargeBodyAreCounted(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for text, want := range map[string]int64{
		strings.Repeat("d", 2*mib):        4 * 2 * mib,
		strings.Repeat("[{},\n", 500_000): 4*2_500_000 + 64*1_500_000,
	} {
		c := h.server.echo.NewContext(httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder())
		h.must(h.server.holding(c, holder{user: h.user.ID}, func() error {
			body := newSpill(c)
			defer body.drop()
			if _, err := io.WriteString(body, text); err != nil {
				return err
			}
			data, err := body.load(t.Context())
			if held := holdOf(c).n; len(data) != len(text) || held != want {
				t.Errorf("%d bytes hold %d, want %d", len(data), held, want)
			}
			return err
		}))
	}
	h.wantNothingHeld()
}

func TestSignInBodiesAreSmall(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("POST", "/auth/login", `{"username":"a","password":"`+strings.Repeat("p", signInBytes)+`"}`).refuses(t, 413, "too_large")
}
