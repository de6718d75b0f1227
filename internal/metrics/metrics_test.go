package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrape is what Prometheus reads.
func scrape(t *testing.T, s *Set) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatal(w.Body)
	}
	return w.Body.String()
}

func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("the metrics lack %q:\n%s", line, text)
		}
	}
}

func TestTheRelayIsCountedFromZero(t *testing.T) {
	t.Parallel()
	s := New()
	has(t, scrape(t, s), `nodest_relay_messages_total{direction="sent"} 0`, `nodest_relay_messages_total{direction="received"} 0`, "nodest_relay_dropped_total 0", "nodest_relay_lag_seconds_count 0")
	s.RelayLag(30 * time.Millisecond)
	s.RelayLag(-time.Minute) // the clock of the sender is ahead
	s.Relayed(Sent, 3)
	s.Relayed(Received, 2)
	s.Relayed("sideways", 2)
	s.Relayed(Sent, -1)
	s.RelayDropped(4)
	s.RelayDropped(0)
	has(t, scrape(t, s), `nodest_relay_messages_total{direction="sent"} 3`, `nodest_relay_messages_total{direction="received"} 2`, "nodest_relay_dropped_total 4",
		"nodest_relay_lag_seconds_count 2", "nodest_relay_lag_seconds_sum 0.03", `nodest_relay_lag_seconds_bucket{le="0.025"} 1`, `nodest_relay_lag_seconds_bucket{le="0.05"} 2`)
}

func TestManyProvidersShareOneSeries(t *testing.T) {
	t.Parallel()
	s := New()
	for i := range 1000 {
		s.Asked(fmt.Sprintf("server-%03d", i), Reply, OK, 0, time.Second)
		s.Metered(fmt.Sprintf("server-%03d", i), 1, 2, .5)
	}
	s.Asked("server-000", Reply, OK, 0, time.Second)
	text := scrape(t, s)
	has(t, text, `nodest_provider_requests_total{code="ok",operation="reply",provider="server-000"} 2`, `nodest_provider_requests_total{code="ok",operation="reply",provider="other"} 936`,
		`nodest_cost_usd_total{provider="other"} 468`)
	if n := strings.Count(text, "nodest_provider_requests_total{"); n != providersKept+1 {
		t.Errorf("%d series", n)
	}
}

func TestTheDatabaseIsReadEveryTenSeconds(t *testing.T) {
	t.Parallel()
	now, reads := time.Unix(1000, 0), 0
	var broken error
	s := New()
	s.Registry.MustRegister(&backlog{now: func() time.Time { return now }, read: func(context.Context) (*Backlog, error) {
		reads++
		return &Backlog{
			Generations: map[string]Queue{"queued": {2, 90 * time.Second}}, Due: map[string]Queue{"a.b": {3, time.Minute}},
			RunningJobs: map[string]int64{"a.c": 1}, FailedJobs: 7, DiskFreeBytes: -1,
		}, broken
	}})
	for range 3 {
		text := scrape(t, s)
		has(t, text, "nodest_database_up 1", `nodest_generations_open{status="queued"} 2`, `nodest_generations_oldest_seconds{status="queued"} 90`,
			`nodest_jobs_due{kind="a.b"} 3`, `nodest_jobs_oldest_due_seconds{kind="a.b"} 60`, `nodest_jobs_running{kind="a.c"} 1`, "nodest_jobs_failed 7")
		if strings.Contains(text, "nodest_disk_free_bytes") {
			t.Error("an unknown size is told")
		}
	}
	broken, now = errors.New("the database is away"), now.Add(backlogAge)
	text := scrape(t, s)
	has(t, text, "nodest_database_up 0")
	if strings.Contains(text, "nodest_jobs_due") || reads != 2 {
		t.Errorf("%d reads\n%s", reads, text)
	}
}

func TestNoMetricsAreAskedForNothing(t *testing.T) {
	t.Parallel()
	var s *Set
	s.Request("GET", "/", "200")
	s.Refused("busy", "")
	s.Recalled(1, RecallNone)
	s.Worked("a.b", 1, JobDone)
	s.Asked("p", Embed, OK, 0, 1)
	s.Metered("p", 1, 1, 1)
	s.Generated("done", OK, 1, 1)
	s.RelayLag(1)
	s.Relayed(Sent, 1)
	s.RelayDropped(1)
}
