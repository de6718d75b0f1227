package server

import (
	"net/http"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
)

func TestProvidersAreTested(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	got := h.rest("POST", "/providers/offline/test", "").wants(t, 200)
	if got["ok"] != true || got["model"] != "voice" || got["reply"] != "Yes." || got["error"] != nil {
		t.Errorf("%v", got)
	}
	h.rest("POST", "/providers/offline/test", `{"model":"voice"}`).wants(t, 200)
	h.model.enqueue(&script{fails: llm.WithReason(llm.StatusError("gemini", http.StatusUnauthorized, 0, nil), "no such key")})
	got = h.rest("POST", "/providers/gemini/test", "").wants(t, 200)
	failure, _ := got["error"].(map[string]any)
	if got["ok"] != false || failure["code"] != string(fault.UpstreamAuth) || !strings.HasSuffix(failure["detail"].(string), ": no such key") {
		t.Errorf("%v", got)
	}
	h.rest("POST", "/providers/nope/test", "").refuses(t, 404, "not_found")
	h.rest("POST", "/providers/gemini/test", `{"model":"`+strings.Repeat("x", 257)+`"}`).refuses(t, 400, "invalid_field", "model")
	h.rest("POST", "/providers/gemini/test", `{"engine":"x"}`).refuses(t, 400, "invalid_field", "engine")
	h.rest("POST", "/providers/gemini/test", "", "Authorization: ").refuses(t, 401, "unauthenticated")
}

// A test uses the tokens of the user who asks for it, and nobody else's.
func TestTestsOfProvidersAreTheUsersUsage(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mia := "Authorization: Bearer " + h.newMember("mia")
	h.rest("POST", "/providers/offline/test", "", mia).wants(t, 200)
	if mine := h.rest("GET", "/usage", "").items(t); len(mine) != 0 {
		t.Errorf("the owner's usage: %v", mine)
	}
	if hers := h.rest("GET", "/usage", "", mia).items(t); len(hers) != 1 {
		t.Errorf("Mia's usage: %v", hers)
	}
	// While a test runs, its user cannot have another one; others can.
	slow := h.model.enqueue(&script{gate: make(chan struct{}), pieces: []string{"OK"}})
	done := make(chan *restResponse, 1)
	go func() { done <- h.rest("POST", "/providers/offline/test", "", mia) }()
	await(t, slow.requested, "the request to the model")
	h.rest("POST", "/providers/offline/test", "", mia).refuses(t, 429, "rate_limited")
	h.rest("POST", "/providers/offline/test", "").wants(t, 200)
	slow.gate <- struct{}{}
	await(t, done, "the answer").wants(t, 200)
}

func TestAClosedRequestEndsATestOfAProvider(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	slow := h.model.enqueue(&script{hangs: true})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.http.URL+base+"/providers/offline/test", nil)
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	client := &http.Client{Transport: &http.Transport{}}
	go func() {
		if res, err := client.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	await(t, slow.requested, "the request to the model")
	h.http.CloseClientConnections()
	await(t, slow.ended, "the end of the request to the model")
}
