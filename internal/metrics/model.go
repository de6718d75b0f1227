package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// providersKept is how many providers have series of their own: owners can add 50 servers and remove them again.
const providersKept = 64

// providerMetrics are about requests to model providers.
type providerMetrics struct {
	names    *names
	requests *prometheus.CounterVec
	first    *prometheus.HistogramVec
	whole    *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	cost     *prometheus.CounterVec
}

func newProviderMetrics(s *Set) providerMetrics {
	return providerMetrics{
		names:    &names{known: map[string]bool{}, most: providersKept},
		requests: s.counter("nodest_provider_requests_total", "Requests to model providers that ended, repetitions included, by provider, operation and code.", "provider", "operation", "code"),
		first:    s.histogram("nodest_provider_first_token_seconds", "Time from a request to a model provider to the first piece of its answer.", waits, "provider"),
		whole:    s.histogram("nodest_provider_seconds", "Time from a request to a model provider to the end of its answer.", waits, "provider", "operation"),
		tokens:   s.counter("nodest_tokens_total", "Tokens that were metered, by provider and direction.", "provider", "direction"),
		cost:     s.counter("nodest_cost_usd_total", "Money that was metered, in US dollars, by provider.", "provider"),
	}
}

// Operations of a provider.
const (
	Reply = "reply" // a text, also one in the background
	Embed = "embed" // vectors
)

// OK is the code of a request that succeeded; others have the code of their error.
const OK = "ok"

// Asked counts one request to a provider. first is when the answer began; 0 = it never did.
func (s *Set) Asked(provider, operation, code string, first, took time.Duration) {
	if s == nil {
		return
	}
	p := &s.provider
	provider = p.names.label(provider)
	p.requests.WithLabelValues(provider, operation, code).Inc()
	p.whole.WithLabelValues(provider, operation).Observe(took.Seconds())
	if first > 0 {
		p.first.WithLabelValues(provider).Observe(first.Seconds())
	}
}

// Metered counts what was added to a user's meter.
func (s *Set) Metered(provider string, prompt, completion int64, usd float64) {
	if s == nil {
		return
	}
	p := &s.provider
	provider = p.names.label(provider)
	p.tokens.WithLabelValues(provider, "prompt").Add(float64(max(prompt, 0)))
	p.tokens.WithLabelValues(provider, "completion").Add(float64(max(completion, 0)))
	p.cost.WithLabelValues(provider).Add(max(usd, 0))
}

// generationMetrics are about replies, as their users see them.
type generationMetrics struct {
	ended *prometheus.CounterVec
	first prometheus.Histogram
	whole prometheus.Histogram
}

func newGenerationMetrics(s *Set) generationMetrics {
	return generationMetrics{
		ended: s.counter("nodest_generations_total", "Generations whose end this process has stored, by status and code of the error.", "status", "code"),
		first: s.histogram("nodest_first_token_seconds", "Time from the acceptance of a message to the first token of the reply.", waits).With(nil).(prometheus.Histogram),
		whole: s.histogram("nodest_generation_seconds", "Time from the acceptance of a message to the stored end of the reply.", waits).With(nil).(prometheus.Histogram),
	}
}

// Generated counts a generation. code is that of its error, OK without one; first is when the first token came; 0 = none did.
func (s *Set) Generated(status, code string, first, took time.Duration) {
	if s == nil {
		return
	}
	g := &s.generations
	g.ended.WithLabelValues(status, code).Inc()
	g.whole.Observe(took.Seconds())
	if first > 0 {
		g.first.Observe(first.Seconds())
	}
}
