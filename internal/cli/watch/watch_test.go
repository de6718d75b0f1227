package watch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/internal/cli"
)

// A run is started when its events are heard, so that none of its steps is missed, however fast it is; and a
// server that is shutting down is asked again.
func TestARunIsStartedWhenItIsHeard(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	var streams, starts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/start"):
			if starts.Add(1); streams.Load() < 2 {
				t.Error("it was started before its events were heard")
			}
			close(begun)
		case streams.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, `{"type":"urn:nodest:error:shutting_down","code":"shutting_down","detail":"the server is shutting down"}`)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-begun:
			case <-r.Context().Done():
				return
			}
			for _, event := range []string{
				`{"ev":"research.step","data":{"n":1,"action":"search","question":"Why?"}}`,
				`{"ev":"research.search","data":{"query":"why"}}`, `{"ev":"research.done","data":{}}`,
			} {
				_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
			}
		}
	}))
	t.Cleanup(server.Close)
	out := &strings.Builder{}
	if err := Start(t.Context(), cli.New(server.Listener.Addr().String(), "token"), "run", out); err != nil {
		t.Fatal(err)
	}
	if out.String() != "1 search: Why?\n  searches for why\n" || starts.Load() != 1 {
		t.Errorf("%d starts, and %q", starts.Load(), out)
	}
}

// A run that does not exist is not waited for.
func TestARunThatIsGoneEndsTheCommand(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"type":"urn:nodest:error:not_found","code":"not_found","detail":"no such research"}`)
	}))
	t.Cleanup(server.Close)
	err := Follow(t.Context(), cli.New(server.Listener.Addr().String(), "token"), "run", &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "no such research") || asked != 1 {
		t.Errorf("%v after %d requests", err, asked)
	}
}
