package mcpclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"nodest/internal/fault"
	"nodest/internal/mcpclient"
	"nodest/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

// A server with the older transport names the address for requests. It cannot send them, and
// the key, to another host.
func TestRequestsGoToNoOtherHost(t *testing.T) {
	var asked atomic.Int64
	other := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: endpoint\ndata: %s/message\n\n", other.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := mcpclient.New(mcpclient.Config{Name: "weather", Address: srv.URL + "/sse", Key: llm.NewKey("secret-token"), Client: srv.Client()})
	err := s.Do(t.Context(), llm.Secrets{}, func(context.Context, *mcp.ClientSession) error { return nil })
	if err == nil || fault.Is(err, fault.Internal) || asked.Load() != 0 {
		t.Errorf("error %v, the other host got %d requests", err, asked.Load())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A call that the server may have carried out is not made again.
func TestACallThatMayHaveHadAnEffectIsMadeOnce(t *testing.T) {
	tools := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil)
	var broken atomic.Bool
	var calls atomic.Int64
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() && r.Method == http.MethodPost {
			calls.Add(1)
			panic(http.ErrAbortHandler) // after it was read
		}
		h.ServeHTTP(w, r)
	})
	s := mcpclient.New(mcpclient.Config{Name: "weather", Address: srv.URL + "/mcp", Client: srv.Client()})
	ping := func() error {
		return s.Do(t.Context(), llm.Secrets{}, func(ctx context.Context, session *mcp.ClientSession) error { return session.Ping(ctx, nil) })
	}
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if err := ping(); !fault.Is(err, fault.UpstreamDown) || calls.Load() != 1 {
		t.Errorf("error %v after %d calls", err, calls.Load())
	}
	broken.Store(false)
	if err := ping(); err != nil {
		t.Errorf("the session was not opened again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for session := range tools.Sessions() { // that were forgotten
		_ = session.Close()
	}
}
