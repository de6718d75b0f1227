package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"nodest/llm/llmtest"
)

// A provider whose list of models hangs delays no turn: as many as a user may have at once are answered while the
// one question for the list is still open.
func TestAListOfModelsThatHangsDelaysNoTurn(t *testing.T) {
	t.Parallel()
	const turns = 6 // two are written and four wait
	fake := llmtest.NewOpenAI(t)
	to, err := url.Parse(fake.URL)
	if err != nil {
		t.Fatal(err)
	}
	to.Path = ""
	var asked, gaveUp atomic.Int64
	pass, release := httputil.NewSingleHostReverseProxy(to), make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/models") {
			pass.ServeHTTP(w, r)
			return
		}
		asked.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
			gaveUp.Add(1)
		}
	}))
	defer front.Close()
	inst := newInstallation(t, "", "NODEST_PROVIDER=openai", "NODEST_MODEL=m", "OPENAI_BASE_URL="+front.URL+strings.TrimPrefix(fake.URL, to.Scheme+"://"+to.Host), "NODEST_EMBEDDINGS=offline")
	p := inst.start(t)
	defer p.stop(t)
	defer close(release)
	character := sampleCharacter(t, p.client)
	var all sync.WaitGroup
	for range turns {
		conversation := newConversation(t, p.client, character)
		all.Go(func() {
			if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": "Well?"}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if asked.Load() != 1 || gaveUp.Load() != 0 {
		t.Errorf("%d turns asked for the list %d times and waited until %d questions were given up", turns, asked.Load(), gaveUp.Load())
	}
}
