package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nodest/internal/fault"
	"nodest/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	noon     = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	keyOne   = llm.NewKey("secret-key-one")
	keyTwo   = llm.NewKey("secret-key-two")
	question = Query{Text: "old bookshops"}
)

// engine is a client whose requests go to a handler, without a network.
func engine(h http.Handler) *http.Client { return &http.Client{Transport: direct{h}} }

type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.ServeHTTP(w, r)
	}()
	select {
	case <-done:
		return w.Result(), nil
	case <-r.Context().Done():
		<-done // handlers look at the context
		return nil, context.Cause(r.Context())
	}
}

// script answers requests one after the other, and the last answer for all that follow.
type script struct {
	t       *testing.T
	check   func(t *testing.T, r *http.Request)
	answers []reply

	mu       sync.Mutex
	requests []*http.Request
}

type reply struct {
	status int // 0 = 200
	body   string
	header map[string]string
	hang   bool
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.check != nil {
		s.check(s.t, r)
	}
	s.mu.Lock()
	a := s.answers[min(len(s.requests), len(s.answers)-1)]
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if a.hang {
		<-r.Context().Done()
		return
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	_, _ = w.Write([]byte(a.body))
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func answers(t *testing.T, check func(*testing.T, *http.Request), a ...reply) *script {
	return &script{t: t, check: check, answers: a}
}

func fixture(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wantParams fails if the parameters of a request differ from those expected.
func wantParams(t *testing.T, got url.Values, want string) {
	t.Helper()
	expected, err := url.ParseQuery(want)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("parameters %q, want %q", got.Encode(), expected.Encode())
	}
}

func one(t *testing.T, cfg Config) Provider {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return noon }
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.links[0].Provider
}

// search asks p for q with its defaults.
func search(t *testing.T, p Provider, q Query) (Results, error) {
	t.Helper()
	q, err := q.checked()
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Search(t.Context(), q)
	return res, labelled(p.Name(), err)
}

// wantFailure fails unless err has the code, names the provider and its status, and
// tells neither keys nor what the server sent.
func wantFailure(t *testing.T, err error, code fault.Code, status int, message string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want %s", err, code)
	}
	if e.Code != code || e.Message != message {
		t.Errorf("error %s %q, want %s %q", e.Code, e.Message, code, message)
	}
	if got, _ := e.Details["providerStatus"].(int); got != status {
		t.Errorf("status %d, want %d", got, status)
	}
	if e.Details["provider"] == nil {
		t.Error("the error does not name the provider")
	}
	for _, secret := range []string{"secret-key", "<html", "old bookshops"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in the error %q", secret, err)
		}
	}
}

// pages are the pages of the fixtures.
var pages = []Result{
	{"Old bookshops & their cats", "https://books.test/cats", "A shop isn't old without a cat.", time.Time{}},
	{"Ten shops", "https://ten.test/", "Ten of them.", time.Time{}},
}

func withoutDates(results []Result) []Result {
	results = slices.Clone(results)
	for i := range results {
		results[i].Date = time.Time{}
	}
	return results
}

func wantResults(t *testing.T, got, want []Result) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("results\n%v, want\n%v", got, want)
	}
}
