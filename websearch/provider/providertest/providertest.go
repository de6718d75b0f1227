// Package providertest is a SearXNG instance for tests: it answers questions from a map,
// fails on request, and refuses requests that a real one would not understand.
package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Result is one result of an answer.
type Result struct {
	Title, URL, Content string
	Date                string // such as "2026-03-01T00:00:00"; "" = none
}

// Fault is how a request fails. The zero Fault answers as usual.
type Fault struct {
	Delay  time.Duration // before the answer; ends early if the client goes
	Status int           // instead of 200
	Body   string        // instead of an answer
}

// Server is a handler for httptest.NewServer. It answers GET /search like SearXNG with
// format=json. A question without an answer has no results. The zero Server is ready.
type Server struct {
	mu      sync.Mutex
	answers map[string][]Result
	fault   Fault
	asked   []string
}

// Answer sets the results for a question, which must be equal to the parameter q, apart
// from case. Those for "" are the results for every other question.
func (s *Server) Answer(question string, results ...Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string][]Result{}
	}
	s.answers[strings.ToLower(question)] = results
}

// Fail sets how the requests from now on fail.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Asked returns the questions so far, in order, those of failed requests included.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// allowed are the values that the parameters of a search can have; nil = any.
var allowed = map[string][]string{
	"q":          nil,
	"format":     {"json"},
	"categories": nil,
	"language":   nil,
	"safesearch": {"0", "1", "2"},
	"time_range": {"day", "week", "month", "year"},
}

// refusal returns the status and the reason with which a request is refused, 0 if it is not.
func refusal(r *http.Request) (status int, reason string) {
	if r.Method != http.MethodGet || r.URL.Path != "/search" {
		return http.StatusNotFound, "only GET /search is known here"
	}
	params := r.URL.Query()
	for name, values := range params {
		known, ok := allowed[name]
		if !ok || len(values) != 1 || known != nil && !slices.Contains(known, values[0]) {
			return http.StatusBadRequest, fmt.Sprintf("parameter %s=%q", name, values)
		}
	}
	if params.Get("q") == "" || params.Get("format") == "" {
		return http.StatusBadRequest, "q and format=json are required"
	}
	return 0, ""
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status, reason := refusal(r); status != 0 {
		http.Error(w, reason, status)
		return
	}
	q := r.URL.Query().Get("q")
	s.mu.Lock()
	s.asked = append(s.asked, q)
	found, ok := s.answers[strings.ToLower(q)]
	if !ok {
		found = s.answers[""]
	}
	f := s.fault
	s.mu.Unlock()
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if f.Status != 0 {
		w.WriteHeader(f.Status)
	}
	if f.Body != "" || f.Status != 0 {
		_, _ = w.Write([]byte(f.Body))
		return
	}
	_ = json.NewEncoder(w).Encode(answer(q, found)) // the client may have gone
}

func answer(q string, found []Result) map[string]any {
	results := []map[string]any{}
	for i, r := range found {
		entry := map[string]any{
			"url": r.URL, "title": r.Title, "content": r.Content, "publishedDate": nil,
			"engine": "test", "engines": []string{"test"}, "template": "default.html",
			"category": "general", "positions": []int{i + 1}, "score": 1 / float64(i+1),
		}
		if r.Date != "" {
			entry["publishedDate"] = r.Date
		}
		results = append(results, entry)
	}
	return map[string]any{
		"query": q, "number_of_results": len(results), "results": results, "answers": []any{},
		"corrections": []any{}, "infoboxes": []any{}, "suggestions": []any{}, "unresponsive_engines": []any{},
	}
}
