// Package metrics counts what a process does, for Prometheus. Other packages tell it with plain
// functions; only it and the server, which serves the figures, know the library.
//
// No metric has an id, a text or a key. The values of labels are bounded: they are words of the program, or
// names of providers, of which the first providersKept have series of their own. docs/monitoring.md lists
// every metric. The methods of a nil *Set do nothing.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Set has the metrics of one process.
type Set struct {
	Registry *prometheus.Registry

	http        *prometheus.CounterVec
	errors      *prometheus.CounterVec
	quotas      *prometheus.CounterVec
	provider    providerMetrics
	generations generationMetrics
	recalls     *prometheus.CounterVec
	recallTime  prometheus.Histogram
	jobs        *prometheus.CounterVec
	jobTime     *prometheus.HistogramVec
	relay       relayMetrics
}

// Buckets of times, in seconds: of what a person waits for, of short steps, and of jobs.
var (
	waits = []float64{.1, .25, .5, 1, 2, 3, 5, 8, 13, 20, 30, 60, 120, 300, 600}
	steps = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
	work  = []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 600}
)

// New returns metrics that are all zero. Series without labels exist from the beginning.
func New() *Set {
	s := &Set{Registry: prometheus.NewRegistry()}
	s.http = s.counter("nodest_http_requests_total", "Answered HTTP requests by method, route and status.", "method", "route", "status")
	s.errors = s.counter("nodest_errors_total", "Requests of clients over REST, WebSocket and SSE that were answered with an error, by code.", "code")
	s.quotas = s.counter("nodest_quota_refusals_total", "Requests of clients that a quota refused, by quota.", "quota")
	s.recalls = s.counter("nodest_recalls_total", "Recalls of memories for turns and shown prompts, by result.", "result")
	s.recallTime = s.histogram("nodest_recall_seconds", "Time of a recall of memories.", steps).With(nil).(prometheus.Histogram)
	s.jobs = s.counter("nodest_job_attempts_total", "Attempts at background jobs, by kind and outcome.", "kind", "outcome")
	s.jobTime = s.histogram("nodest_job_seconds", "Time of an attempt at a background job, by kind.", work, "kind")
	s.provider = newProviderMetrics(s)
	s.generations = newGenerationMetrics(s)
	s.relay = newRelayMetrics(s)
	return s
}

func (s *Set) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	s.Registry.MustRegister(c)
	return c
}

func (s *Set) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	s.Registry.MustRegister(h)
	return h
}

// Request counts an answered HTTP request. route is the pattern of the path, which holds no ids.
func (s *Set) Request(method, route, status string) {
	if s != nil {
		s.http.WithLabelValues(method, route, status).Inc()
	}
}

// Refused counts an error that a client was told. quota is the quota that refused it; "" = none did.
func (s *Set) Refused(code, quota string) {
	if s == nil {
		return
	}
	s.errors.WithLabelValues(code).Inc()
	if quota != "" {
		s.quotas.WithLabelValues(quota).Inc()
	}
}

// Results of a recall.
const (
	RecallMemories = "memories" // memories were found
	RecallProfile  = "profile"  // none, but the profile has facts
	RecallNone     = "none"
	RecallFailed   = "failed" // the turn went on without them
)

// Recalled counts a recall and its time.
func (s *Set) Recalled(took time.Duration, result string) {
	if s != nil {
		s.recalls.WithLabelValues(result).Inc()
		s.recallTime.Observe(took.Seconds())
	}
}

// Outcomes of an attempt at a job.
const (
	JobDone   = "done"
	JobLater  = "later"  // it goes on at its next turn
	JobLost   = "lost"   // it was cancelled, taken over, or the process ends
	JobFailed = "failed" // it is tried again, or has used up its attempts
)

// Worked counts an attempt at a job and its time.
func (s *Set) Worked(kind string, took time.Duration, outcome string) {
	if s != nil {
		s.jobs.WithLabelValues(kind, outcome).Inc()
		s.jobTime.WithLabelValues(kind).Observe(took.Seconds())
	}
}

// names gives the first names that come labels of their own, and all others one together.
type names struct {
	mu    sync.Mutex
	known map[string]bool
	most  int
}

const other = "other"

func (n *names) label(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[name]:
		return name
	case len(n.known) >= n.most:
		return other
	}
	n.known[name] = true
	return name
}
